"""Transports from Reno to UET on fabrics of 100 Gb/s: figures of our own."""

from typing import Any

from sojourn import Paper

paper = Paper(
    key="modern_fabrics",
    citation="This project: transports from Reno to UET on leaf-spine fabrics",
    setup=(
        "Leaf-spine fabrics without oversubscription, with links of 100 Gb/s unless stated "
        "otherwise, cables of 1 µs, and packets of 4096 B of payload and 64 B of headers for all "
        "transports. Hosts, loss recovery and buffers are those of the environment that follows "
        "from network and transport: switches pause (PFC) for transports that were designed for "
        "that (HPCC, PowerTCP, DCQCN, TIMELY), and drop otherwise. Each transport has the queue "
        "and the router that it was designed for: composite queues with trimming for NDP, EQDS and "
        "UET. NDP, EQDS and UET send packets over all paths; the others keep a flow on one path "
        "(ECMP) unless stated otherwise. Claims were written before the first runs, and remain "
        "unchanged where they failed."
    ),
    deviations=(
        "All transports have packets of one size: telemetry of HPCC and PowerTCP adds no bytes.",
        "EQDS is UET with credits of the receiving host and the parameters of EQDS in htsim.",
    ),
)

NSCC, RCCC, BOTH, EQDS, NDP = "UET NSCC", "UET RCCC", "UET both", "EQDS", "NDP"

SWIFT, HPCC, DCQCN = "Swift", "HPCC", "DCQCN"


def uet(**parameters: Any) -> dict[str, Any]:
    """Return UET, whose hosts choose the path of each packet."""
    return {"transport": {"kind": "uet", **parameters}, "routing": "entropy", "entropy": "mixed"}


schemes: dict[str, dict[str, Any]] = {
    NSCC: uet(control="nscc"),
    RCCC: uet(control="rccc"),
    BOTH: uet(control="both"),
    EQDS: {
        **uet(control="rccc", credit_rate=0.98556, pull_bytes="4096 B", initial_packets=50),
        "entropy": "bitmap",
    },
    NDP: {"transport": "ndp", "routing": "spray_random"},
    SWIFT: {"transport": "swift"},
    HPCC: {"transport": "hpcc"},
    DCQCN: {"transport": "dcqcn"},
}
"""Transports of today's fabrics, with their choice of paths."""

looks_of = {
    NSCC: "dctcp",
    RCCC: "xcp",
    BOTH: "cubic",
    EQDS: "tcp",
    NDP: "dcqcn",
    SWIFT: "timely",
    HPCC: "ideal",
    DCQCN: "dcqcn, dotted",
}
"""Schemes of other figures whose colours and markers these have in pictures."""


def fabric(leaves: int, hosts: int, spines: int, fabric_rate: str = "100 Gbps") -> dict[str, Any]:
    """Return a network of this number of leaves, of hosts at each leaf, and of spines."""
    return {
        "environment": "automatic",
        "topology": {
            "kind": "leaf_spine",
            "leaves": leaves,
            "hosts_per_leaf": hosts,
            "spines": spines,
            "host_rate": "100 Gbps",
            "fabric_rate": fabric_rate,
            "host_delay": "1 us",
            "fabric_delay": "1 us",
        },
        "packet": {"payload": "4096 B", "header": "64 B", "ack": "64 B"},
    }
