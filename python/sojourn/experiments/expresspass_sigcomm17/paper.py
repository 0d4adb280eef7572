"""Common parts of the figures of ExpressPass (SIGCOMM 2017)."""

from typing import Any

from sojourn import Paper

paper = Paper(
    key="expresspass17",
    citation=(
        "I. Cho, K. Jang, D. Han: Credit-Scheduled Delay-Bounded Congestion Control for "
        "Datacenters. SIGCOMM 2017"
    ),
    setup=(
        "Packets of 1460 + 78 B; credits, requests and ACKs of 84 B. Every port limits credits to "
        "one in the time of a credit and a full packet, so that data takes at most 94.8 % of a "
        "link; eight credits may wait, two depart back to back. The rate of credits has the law "
        "and the parameters of the authors' simulator: it starts at half the largest rate, the "
        "aggressiveness at 0.5, the target loss is 12.5 % of the unused share, gaps vary by 10 %. "
        "DCTCP and RCP have the defaults of this simulator and the same packets; DCTCP's queues "
        "have the 250 packets of ExpressPass's at 10 Gb/s, and as many times more at higher rates "
        "as its threshold of marks, which scales with the rate."
    ),
    deviations=(
        "Credits have one size; in the authors' fat-tree script it varies from 76 to 92 B. The "
        "gaps after credits at ports vary by as much. Without that, in our first run of L1, the "
        "credits of the first flow kept their phase, and those of the second found no room for up "
        "to 200 RTTs.",
        "The FCT ends when the receiver has the last byte. In the authors' simulator it ends when "
        "a packet behind the last byte arrives that stops the credits, 67 ns later at 10 Gb/s.",
        "The published numbers are not available, so that no figure shows them.",
    ),
)

EXPRESSPASS, DCTCP, RCP = "ExpressPass", "DCTCP", "RCP"

PAYLOAD, DATA, CREDIT = 1460, 1538, 84
"""Bytes of payload of a full packet, of the packet and of a credit."""

CEILING = DATA / (DATA + CREDIT)
"""Largest share of a link for data."""

PACKET: dict[str, Any] = {
    "payload": f"{PAYLOAD} B",
    "header": f"{DATA - PAYLOAD} B",
    "ack": f"{CREDIT} B",
}


def schemes(gbps: int = 10) -> dict[str, dict[str, Any]]:
    """Return the schemes on links of this rate.

    DCTCP's queues have 25 packets per Gb/s, since its threshold of marks scales with the rate too.
    """
    queue = {"kind": "ecn_threshold", "capacity": f"{25 * gbps} packets"}
    return {
        EXPRESSPASS: {"transport": "expresspass"},
        DCTCP: {"transport": "dctcp", "queue": queue},
        RCP: {"transport": "rcp", "router": {"kind": "rcp", "initial_rtt": "100 us"}},
    }


RTT_S = 100e-6
"""Propagation time of a round trip on the dumbbell."""


def dumbbell(pairs: int, gbps: int) -> dict[str, Any]:
    """Return pairs of hosts at two switches, with one rate for all links."""
    return {
        "name": "ExpressPass's dumbbell",
        "topology": {
            "kind": "dumbbell",
            "senders": pairs,
            "receivers": pairs,
            "rate": f"{gbps} Gbps",
            "delay": "1 us",
            "bottleneck_delay": "48 us",
        },
        "packet": PACKET,
    }


BOTTLENECK = "left->right"
