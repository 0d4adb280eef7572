"""Common parts of the figures of HPCC (SIGCOMM 2019)."""

from typing import Any

from sojourn import Paper

paper = Paper(
    key="hpcc19",
    citation=(
        "Y. Li, R. Miao, H. H. Liu, Y. Zhuang, F. Feng, L. Tang, Z. Cao, M. Zhang, F. Kelly, M. "
        "Alizadeh, M. Yu: HPCC: High Precision Congestion Control. SIGCOMM 2019"
    ),
    setup=(
        "Hosts at 100 Gb/s, switches with 32 MB of shared buffer and PFC, cables of 1 µs, packets "
        "of 1000 B of payload. Flows start at line rate, with a window of line rate times the base "
        "RTT (T) of the longest path. Parameters are those of the authors' simulator. HPCC's "
        "packets have 90 B of headers with telemetry, its ACKs 88 B; without telemetry 48 and 60 B."
    ),
    deviations=(
        "The authors' simulator cuts transmission times to whole nanoseconds, so that its links "
        "of 400 Gb/s are up to 5 % faster. Here times are exact.",
    ),
)

PAYLOAD = 1000
"""Bytes of payload of a full packet."""

TELEMETRY: dict[str, Any] = {"payload": f"{PAYLOAD} B", "header": "90 B", "ack": "88 B"}
"""Packets with telemetry of up to five hops."""

DIGEST: dict[str, Any] = {"payload": f"{PAYLOAD} B", "header": "50 B", "ack": "60 B"}
"""Packets with one number for the path (PINT)."""

PLAIN: dict[str, Any] = {"payload": f"{PAYLOAD} B", "header": "48 B", "ack": "60 B"}
"""Packets without telemetry."""

LOSSLESS: dict[str, Any] = {
    "shared_buffer": "32 MB",
    "pause": {"alpha_by_rate": True},
    "control_priority": False,
}
"""Switches with PFC, whose ACKs share the queues of data."""

HOST: dict[str, Any] = {"stamps": "wire", "control_priority": True}
"""Hosts whose NICs stamp departing packets, and transmit ACKs first."""

HPCC, DCQCN, TIMELY, DCTCP = "HPCC", "DCQCN+w", "TIMELY+w", "DCTCP"
"""The schemes of the public curves; `+w` is a window that shrinks with the rate."""

PINT = "HPCC-PINT"


def hpcc(base_rtt_ns: int, **parameters: Any) -> dict[str, Any]:
    """Return HPCC at hosts of 100 Gb/s."""
    transport = {"kind": "hpcc", "base_rtt": f"{base_rtt_ns} ns", "quantised": True}
    return {"transport": transport | parameters, "packet": TELEMETRY}


DCQCN_RED = {"kind": "dcqcn_red", "kmin": "32 us", "kmax": "128 us", "pmax": 0.2}
"""Marks from 400 KB to 1600 KB at 100 Gb/s."""


def dcqcn(scale: float = 1.0, **parameters: Any) -> dict[str, Any]:
    """Return DCQCN; `scale` is the rate of hosts over 100 Gb/s."""
    transport = {
        "kind": "dcqcn",
        "notify_at": "ack",
        "alpha_update": "periodic",
        "alpha_timer": "1 us",
        "cut_interval": "4 us",
        "rate_timer": "300 us",
        "byte_counter": "1000 GB",
        "fast_recovery_stages": 2,
        "additive_increase": f"{20 * scale:g} Mbps",
        "hyper_increase": f"{200 * scale:g} Mbps",
        "hyper_from": "timer",
        "clamp_target": "after_increase",
        "min_rate": f"{1000 * scale:g} Mbps",
        "ack_every": 1,
    }
    return {"transport": transport | parameters, "packet": PLAIN, "queue": DCQCN_RED}


def timely(scale: float = 1.0, **segments: Any) -> dict[str, Any]:
    """Return TIMELY, whose ACKs have priority; `scale` is the rate of hosts over 100 Gb/s."""
    transport = {
        "kind": "timely",
        "ewma_weight": 0.875,
        "delta": f"{100 * scale:g} Mbps",
        "hyper_counts": "increases",
        "hyper_after": 6,
        "segments": {
            "sampling": "per_rtt",
            "start": "line_rate",
            "min_rate": f"{1000 * scale:g} Mbps",
            **segments,
        },
    }
    packet = PLAIN | {"header": "56 B"}
    return {"transport": transport, "packet": packet, "switch.control_priority": True}


def dctcp(**pacing: Any) -> dict[str, Any]:
    """Return DCTCP with a rate in proportion to its window; defaults are for hosts of 100 Gb/s."""
    queue = {"kind": "ecn_threshold", "threshold": "24 us", "mark_at": "departure"}
    return {
        "transport": {"kind": "dctcp", "pacing": pacing},
        "packet": PLAIN,
        "queue": queue,
        "host_queue": "drop_tail",
    }


NOT_RANDOM = "nothing in it is random"
"""Reason why a figure has one seed."""

STAR_RTT_NS = 4160
"""Base RTT of two links in the authors' simulator: propagation both ways, and the transmission of
a payload at each link."""

BANDWIDTH_DELAY = 52_000
"""Bytes of the star's bandwidth-delay product."""

SENDERS = 16

BOTTLENECK = f"switch->host{SENDERS}"

star: dict[str, Any] = {
    "name": "Sixteen flows to one host",
    "topology": {"kind": "star", "hosts": SENDERS + 1, "rate": "100 Gbps", "delay": "1 us"},
    "switch": LOSSLESS,
    "host": HOST,
}
