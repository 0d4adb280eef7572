"""The testbed of TIMELY: ten clients, a few connections each, and one server."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from sojourn import Run, metrics, override, plot, steady

from .paper import LOSSLESS, STAMPS, TIMELY

CLIENTS = 10

UNPACED: dict[str, Any] = {"size": "16 KB", "spacing": "none"}
"""Short unpaced segments: a set of our own beside the authors'."""

AUTHORS, OURS = "authors' set", "16 KB, not paced"
"""Names of TIMELY with the authors' parameters, and of TIMELY with unpaced segments of 16 KB."""

CONNECTIONS = 4
"""Default number of connections per client: each has a fair share of 500 Mb/s."""

CAPACITY_BPS = 20e9

GOODPUT_BPS = CAPACITY_BPS * 1000 / 1040
"""Payload part of the capacity."""

PACKET_S = 1040 * 8 / 10e9
"""Transmission time of a packet at a client, which is subtracted from measured RTTs."""

SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"warm_up": 10, "measured": 10},
    "quick": {"warm_up": 300, "measured": 100},
    "paper": {"warm_up": 1000, "measured": 500},
}
"""Warm-up and measurement in milliseconds.

A connection at its fair share has one RTT sample per millisecond, and the moving average has a
memory of 50 samples: rates and queues converge in about a second. `quick` has a shorter warm-up,
except in figures whose claims need shares or tails with an error of a few per cent.
"""

base: dict[str, Any] = {
    "name": "TIMELY's testbed: ten clients and a server",
    "topology": {
        "kind": "graph",
        "file": "testbed.csv",
        "hosts": [*(f"client{number}" for number in range(CLIENTS)), "server"],
        "senders": CLIENTS,
    },
    "workload": {"kind": "long_lived", "jitter": "2 ms"},
    "transport": override(TIMELY, {"segments.spacing": "700 Mbps"}),
    "switch": LOSSLESS,
    "host": STAMPS,
    "packet": {"payload": "1000 B", "header": "40 B", "ack": "40 B"},
}

THROUGHPUT, MEAN, TAIL = "throughput", "mean RTT", "p99 RTT"

measures: dict[str, metrics.Metric] = {
    THROUGHPUT: steady.goodput(),
    MEAN: steady.rtt("mean", less_s=PACKET_S),
    TAIL: steady.rtt("p99", less_s=PACKET_S),
}


def rack(scale: Mapping[str, Any], connections: int = CONNECTIONS) -> dict[str, Any]:
    """Return the scenario of `connections` per client, which start at their fair share."""
    flows = CLIENTS * connections
    return override(
        base,
        {
            "workload": {"flows": flows, "initial_rate": f"{CAPACITY_BPS / flows:.0f} bps"},
            "warm_up": f"{scale['warm_up']} ms",
            "time_limit": f"{scale['warm_up'] + scale['measured']} ms",
            "samples": {"interval": "1 ms", "flows": list(range(flows)), "rtts": True},
        },
    )


def measured(runs: list[Run]) -> pl.DataFrame:
    """Return throughput, mean and p99 RTT of all labels over their seeds."""
    return metrics.across_seeds(metrics.measure(runs, **measures))


def draw_sweep(panels: Any, table: pl.DataFrame, x: str, label: str) -> None:
    """Draw throughput, mean and p99 RTT on three panels."""
    for panel, metric, unit in zip(
        panels, (THROUGHPUT, MEAN, TAIL), ("Gb/s", "us", "us"), strict=True
    ):
        rows = table.filter(metric=metric)
        plot.against(panel, rows, x=x, unit=unit, labels=(label, metric), log_x=True)
        panel.set_ylim(bottom=0)
    plot.one_legend(panels)
    if table["scheme"].n_unique() == 1:
        panels[0].get_legend().remove()


def draw_sweeps(rows: Any, table: pl.DataFrame, x: str, label: str) -> None:
    """Draw a sweep with the authors' set in the first row of panels, and with ours in the next."""
    for panels, way in zip(rows, table["way"].unique(maintain_order=True), strict=True):
        draw_sweep(panels, table.filter(way=way), x, label)
        for panel in panels[1:]:
            panel.set_title(way, fontsize=10)
        panels[0].text(0.03, 0.05, way, transform=panels[0].transAxes)
