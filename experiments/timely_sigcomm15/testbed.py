"""The testbed of TIMELY: ten clients, a few connections each, and one server."""

from typing import Any

from sojourn import override

from .paper import LOSSLESS, STAMPS, TIMELY

CLIENTS = 10

SERVER_LINK = "switch->server"

CAPACITY_BPS = 20e9

PACKET_S = 1040 * 8 / 10e9
"""What a packet takes on a client's cable: taken off a measured RTT."""

base: dict[str, Any] = {
    "name": "TIMELY's testbed: ten clients and a server",
    "topology": {"kind": "graph", "file": "testbed.csv", "senders": CLIENTS},
    "workload": {"kind": "long_lived", "stagger": "6.6 us"},
    "transport": TIMELY,
    "switch": LOSSLESS,
    "host": STAMPS,
    "packet": {"payload": "1000 B", "header": "40 B", "ack": "40 B"},
}


def testbed(connections: int, warm_up_ms: float, measured_ms: float) -> dict[str, Any]:
    """Return the scenario of `connections` a client, which start at their fair share."""
    flows = CLIENTS * connections
    return override(
        base,
        {
            "workload": {"flows": flows, "initial_rate": f"{CAPACITY_BPS / flows:.0f} bps"},
            "warm_up": f"{warm_up_ms:g} ms",
            "time_limit": f"{warm_up_ms + measured_ms:g} ms",
            "samples": {
                "interval": "1 ms",
                "links": [SERVER_LINK],
                "flows": list(range(flows)),
                "rtts": True,
            },
        },
    )
