"""Answers for large networks against packets of the whole: figures of our own."""

from typing import Any

import numpy as np

from sojourn import Paper, Result, metrics

paper = Paper(
    key="scale",
    citation="This project: folded networks and corrected fluids against whole networks",
    setup=(
        "Clos networks of pods with 4 racks of 16 hosts, 2 aggregation switches and 4 core "
        "switches; links of 10 and 40 Gb/s, oversubscribed 2:1 at racks and 4:1 at pods. A load "
        "of 1 is that of the links to core switches. Sizes of Facebook's Hadoop cluster, random "
        "pairs, DCTCP unless stated otherwise; hosts, loss recovery and buffers are those of the "
        "environment that follows from the network. Claims were written before the first runs, and "
        "remain unchanged where they failed."
    ),
)

PACKETS, SAMPLE, FLOWS = "packets", "sample", "flows"
"""Fidelities of an answer."""

schemes: dict[str, dict[str, Any]] = {
    "DCTCP": {"transport": "dctcp"},
    "Swift": {"transport": "swift"},
}

HOSTS_PER_RACK, HOSTS_PER_POD = 16, 64

CLOSE = {"mean": 1.05, "p99": 1.1}
"""Largest ratios of answers that count as equal, and of their inverses."""


def clos(pods: int) -> dict[str, Any]:
    """Return the network of `pods` pods."""
    return {
        "kind": "clos",
        "pods": pods,
        "edges_per_pod": HOSTS_PER_POD // HOSTS_PER_RACK,
        "hosts_per_edge": HOSTS_PER_RACK,
        "aggregations_per_pod": 2,
        "cores": 4,
    }


def uniform(pods: int, flows_per_host: int) -> dict[str, Any]:
    """Return the scenario of random pairs at a load of 0.5."""
    hosts = pods * HOSTS_PER_POD
    # Of the other hosts, those of the own pod are not behind core links, of which a pod has four.
    core_gbps = 4 * 40 * pods * (hosts - 1) / (hosts - HOSTS_PER_POD)
    return {
        "name": "Random pairs on a Clos network",
        "topology": clos(pods),
        "transport": "dctcp",
        "workload": {
            "kind": "poisson",
            "load": 0.5,
            "load_reference": f"{core_gbps:.3f} Gbps",
            "sizes": {"kind": "empirical", "table": "fb_hadoop"},
            "flows": flows_per_host * hosts,
        },
    }


def cpu_seconds(result: Result) -> metrics.Statistic:
    """Return the CPU time of a run, or of all runs of an answer."""
    return metrics.Statistic(float(result.summary["cpu_seconds"] or np.nan))
