"""Transports from Reno to UET on fabrics of 100 Gb/s: figures of our own."""

import math
from typing import Any

import numpy as np
import polars as pl

from sojourn import Paper, Result, Verdict, finding, looks, metrics

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
        "packet": {"payload": f"{PAYLOAD} B", "header": f"{HEADER} B", "ack": "64 B"},
    }


PAYLOAD, HEADER = 4096, 64
"""Bytes of a full packet."""

BYTES_PER_SECOND = 100e9 / 8
"""Rate of a host's link."""


def bound_s(result: Result) -> float:
    """Return a lower bound in seconds on the time until all flows of a run have ended.

    It is the ideal FCT of the nearest flow without its transmission, and the transmission of all
    flows of a receiver on its link, or the largest ideal FCT if that is more.
    """
    flows = metrics.timed(result)
    wire = pl.col("size_bytes") + HEADER * (pl.col("size_bytes") / PAYLOAD).ceil()
    flows = flows.with_columns(wire_s=wire / BYTES_PER_SECOND)
    # The ideal FCT has the rate of the sender's port, which its tolerance lowers.
    own_s = flows["wire_s"] / (1 - result.summary["scenario"]["host"]["rate_tolerance"])
    latency_s: Any = (flows["ideal_fct_s"] - own_s).min()
    busy_s: Any = flows.group_by("target").agg(pl.col("wire_s").sum())["wire_s"].max()
    ideal_s: Any = flows["ideal_fct_s"].max()
    return float(max(latency_s + busy_s, ideal_s))


def over_bound(result: Result, bound: float | None = None) -> metrics.Statistic:
    """Measure the time until all flows of a run have ended, over a bound: by default its own.

    An unfinished flow counts with the time until the end of the run, a lower bound.
    """
    flows = metrics.with_bounds(metrics.timed(result), result, "fct_s")
    end: Any = (flows["start_s"] + flows["value"]).max()
    start: Any = flows["start_s"].min()
    is_unfinished = flows["fct_s"].null_count() > 0
    return metrics.Statistic((end - start) / (bound or bound_s(result)), at_least=is_unfinished)


def none_is_faster(table: pl.DataFrame) -> Verdict:
    """Judge that no time is shorter than its bound."""
    smallest = float(table["value"].to_numpy().min())
    return finding(smallest >= 1, f"smallest time over its bound: {smallest:.4g}")


def ratio_axis(axes: Any, least: float, most: float) -> None:
    """Make the vertical axis a logarithmic one of ratios to a bound."""
    ticks: list[float] = []
    for tick in (1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20):
        # Numbers need a twentieth of the axis each.
        if not ticks or math.log(tick / ticks[-1]) > 0.05 * math.log(most / least):
            ticks.append(tick)
    axes.set_yscale("log")
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_ylim(least, most)


def grouped_bars(axes: Any, table: pl.DataFrame, along: str, by: str) -> None:
    """Draw a group of bars for each value of the column `along`, one bar for each value of `by`.

    Values are ratios to a bound: bars begin at 1 on a logarithmic axis. Lines are the intervals.
    """
    names = table[along].unique(maintain_order=True)
    parts = table.partition_by(by, maintain_order=True)
    width = 0.8 / len(parts)
    for number, (part, colour) in enumerate(zip(parts, looks.COLOURS, strict=False)):
        rows = pl.DataFrame({along: names}).join(part, on=along, how="left", maintain_order="left")
        places = np.arange(len(names)) + (number + 0.5) * width - 0.4
        axes.bar(places, rows["value"], width, label=part[by][0], color=colour)
        errors = rows.select(pl.col("value") - pl.col("low"), pl.col("high") - pl.col("value"))
        lines = errors.fill_nan(0).fill_null(0).to_numpy().T
        axes.errorbar(places, rows["value"], lines, fmt="none", color=looks.BLACK, linewidth=0.8)
    ratio_axis(axes, 1, 1.15 * float(np.nanmax(table.select("value", "high").to_numpy())))
    axes.set_xticks(range(len(names)), names.to_list(), rotation=45, ha="right", fontsize=9)
    axes.grid(visible=False, axis="x")
