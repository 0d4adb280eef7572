"""Figure D15: the latency of reads and writes of blocks against load."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    all_at_most,
    calls,
    metrics,
    override,
    plot,
)

from . import cluster
from .cluster import GRADIENT, PAUSE
from .paper import paper

LOADS = (0.1, 0.2, 0.3, 0.45, 0.6)

LOW, HIGH = LOADS[:2], LOADS[-2:]

MEDIAN, MEAN, TAIL = "median", "mean", "p99"

figure = Figure(
    paper,
    id="d15",
    title="Latency of reading and writing blocks",
    source="Large scale: application-level benchmark (storage)",
    scales={
        "smoke": {"loads": (0.1, 0.45), "warm_up": "1 ms", "stop": "3 ms"},
        "quick": {"loads": LOADS, "warm_up": "4 ms", "stop": "12 ms"},
        "paper": {"loads": LOADS, "warm_up": "10 ms", "stop": "40 ms", "seeds": 2},
    },
    deviations=(
        *cluster.deviations,
        "The paper's mix is not known. Ours reads as often as it writes, blocks of 64 KB to 1 MB, "
        "all sizes as likely, over the longest paths; a server's device serves one block after "
        "another, each in 100 µs on average. Loads count payload and are shares of what all hosts "
        "can send.",
    ),
    panels=(1, 2),
    size=(11, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    stop = scale["stop"]
    for scheme, change in cluster.schemes.items():
        for load in scale["loads"]:
            workload = {
                "kind": "storage",
                "blocks": {"kind": "uniform", "min": "64 KB", "max": "1 MB"},
                "device_time": "100 us",
                "pattern": cluster.remote_calls(load, stop)["pattern"],
            }
            shared = cluster.cluster(scale, workload, warm_up=scale["warm_up"], time_limit=stop)
            yield {"scheme": scheme, "load": load}, override(shared, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    statistics = {MEDIAN: "p50", MEAN: "mean", TAIL: "p99"}
    measured = {name: calls.latency(statistic) for name, statistic in statistics.items()}
    return metrics.across_seeds(metrics.measure(runs, **measured))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, metric in zip(axes, (MEDIAN, TAIL), strict=True):
        labels = ("offered load", f"{metric} latency")
        plot.against(panel, table.filter(metric=metric), unit="ms", labels=labels)
    plot.one_legend(axes)


def ratios(table: pl.DataFrame, metric: str, loads: tuple[float, ...]) -> dict[str, float]:
    """Return TIMELY's latency over that with pause frames alone."""
    return {
        f"TIMELY over pauses alone at load {load}": metrics.at(
            table, scheme=GRADIENT, metric=metric, load=load
        )
        / metrics.at(table, scheme=PAUSE, metric=metric, load=load)
        for load in loads
    }


@figure.claim(
    "at low load TIMELY's median latency is no worse than with pauses alone (within 10 %)"
)
def no_worse_at_low_load(table: pl.DataFrame) -> Verdict:
    return all_at_most(ratios(table, MEDIAN, LOW), 1.1)


@figure.claim("at high load TIMELY's median latency is lower (by 10 % or more)")
def lower_at_high_load(table: pl.DataFrame) -> Verdict:
    return all_at_most(ratios(table, MEDIAN, HIGH), 0.9)


@figure.claim("at low load TIMELY's mean latency is within 10 % too", stated=False)
def mean_no_worse(table: pl.DataFrame) -> Verdict:
    return all_at_most(ratios(table, MEAN, LOW), 1.1)
