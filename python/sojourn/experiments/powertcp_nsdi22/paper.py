"""Common parts of the figures of PowerTCP (NSDI 2022)."""

import math
from typing import Any

from sojourn import Paper, Run, override
from sojourn.experiments.hpcc_sigcomm19 import paper as hpcc19

paper = Paper(
    key="powertcp22",
    citation=(
        "V. Addanki, O. Michel, S. Schmid: PowerTCP: Pushing the Performance Limits of Datacenter "
        "Networks. NSDI 2022"
    ),
    setup=(
        "256 hosts at 25 Gb/s on 8 ToR switches, 8 aggregation and 4 core switches with links of "
        "100 Gb/s: ToR switches are oversubscribed 4:1. Cables have 1 µs, those of core switches 5 "
        "µs. Switches have 4 MB of shared buffer and PFC. PowerTCP and theta-PowerTCP have the "
        "form and the parameters of the authors' simulator, which builds on HPCC's; HPCC has eta "
        "0.95 and maxStage 5; TIMELY and DCQCN have no window. All start at line rate."
    ),
    deviations=(
        "The parameters of TIMELY and DCQCN are those of HPCC's simulator for hosts of 100 Gb/s, "
        "with rates in proportion to 25 Gb/s; the authors' are not known to us. DCTCP, which no "
        "claim concerns, paces its window, a bandwidth-delay product at first, as in HPCC's "
        "simulator.",
        "The claims are recalled from the paper without its numbers, except where a percentage is "
        "stated: they are orders and wide bounds. The published curves are not drawn.",
    ),
)

POWER, THETA, HPCC = "PowerTCP", "theta-PowerTCP", "HPCC"
TIMELY, DCQCN, DCTCP = "TIMELY", "DCQCN", "DCTCP"

HOST_BPS = 25e9

BASE_RTT_NS = 28_960
"""Base RTT of the longest path in the authors' simulator: propagation both ways, and the
transmission of a payload of 1000 B at each link."""

FABRICS: dict[str, dict[str, Any]] = {
    "smoke": {"pods": 2, "hosts_per_edge": 8},
    "quick": {"pods": 4, "hosts_per_edge": 32},
    "paper": {"pods": 4, "hosts_per_edge": 32},
}
"""32 hosts (4 ToR switches), and 256."""

base: dict[str, Any] = {
    "name": "PowerTCP's network of 256 hosts",
    "topology": {
        "kind": "clos",
        "edges_per_pod": 2,
        "aggregations_per_pod": 2,
        "cores": 4,
        "host_rate": "25 Gbps",
        "fabric_rate": "100 Gbps",
        "core_rate": "100 Gbps",
        "core_delay": "5 us",
    },
    "routing": "ecmp",
    "switch": hpcc19.LOSSLESS | {"shared_buffer": "4 MB"},
    "host": hpcc19.HOST,
}

COMMON = {"base_rtt": f"{BASE_RTT_NS} ns", "min_rate": "100 Mbps"}

schemes: dict[str, dict[str, Any]] = {
    POWER: {
        "transport": {"kind": "powertcp", "form": "simulator", "quantised": True, **COMMON},
        "packet": hpcc19.TELEMETRY,
    },
    THETA: {
        "transport": {"kind": "theta_powertcp", "form": "simulator", **COMMON},
        "packet": hpcc19.TELEMETRY,
    },
    HPCC: hpcc19.hpcc(BASE_RTT_NS, max_stage=5, min_rate="100 Mbps"),
    TIMELY: hpcc19.timely(0.25, min_rate="100 Mbps"),
    DCQCN: hpcc19.dcqcn(0.25, min_rate="100 Mbps") | {"switch.control_priority": True},
    DCTCP: hpcc19.dctcp(
        window=math.floor(HOST_BPS * BASE_RTT_NS * 1e-9 / 8000),
        additive_increase="154 Mbps",
        min_rate="100 Mbps",
    ),
}


def fabric(scale: str) -> dict[str, Any]:
    """Return the network of a scale."""
    return override(base, {"topology": base["topology"] | FABRICS[scale]})


def hosts(scale: str) -> int:
    """Return the number of hosts at a scale."""
    shape = fabric(scale)["topology"]
    return int(shape["pods"] * shape["edges_per_pod"] * shape["hosts_per_edge"])


def until_acked(run: Run) -> Run:
    """Return a run whose FCTs end with the last ACK at the sender, as the authors define them."""
    flows = run.result.flows
    return Run(run.labels, run.result.with_flows(flows.with_columns(fct_s=flows["acked_s"])))
