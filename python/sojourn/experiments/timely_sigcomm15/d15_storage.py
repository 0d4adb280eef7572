"""Figure D15: latency of reads and writes of blocks against load."""

from collections.abc import Iterator
from functools import partial
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
from .paper import TIMELY, paper

LOADS = (0.1, 0.2, 0.3, 0.45, 0.6)

LOW, HIGH = LOADS[:2], LOADS[-2:]

SHORT = "TIMELY, segments of 16 KB"

schemes: dict[str, dict[str, Any]] = {
    PAUSE: cluster.schemes[PAUSE],
    GRADIENT: {"transport": override(TIMELY, {"least_factor": 0.5})},
    SHORT: cluster.schemes[GRADIENT],
}
"""TIMELY with the parameters of the authors' code, and as in the other figures of the cluster."""

MEDIAN, TAIL = "median", "p99"

figure = Figure(
    paper,
    id="d15",
    title="Latency of reading and writing blocks",
    source="Large scale: application-level benchmark (storage)",
    scales={
        "smoke": {"loads": (0.1, 0.45), "warm_up": 1, "stop": 2},
        "quick": {"loads": (*LOW, *HIGH), "warm_up": 3, "stop": 10, "seeds": 6},
        "paper": {"loads": LOADS, "warm_up": 10, "stop": 40, "seeds": 2},
    },
    deviations=(
        *cluster.deviations,
        "The paper's mix is unknown. Ours has equal numbers of reads and writes of blocks, "
        "uniformly from 64 KB to 1 MB, over the longest paths; a server's device serves one block "
        "at a time, in 100 µs on average. Loads count payload, as shares of the capacity of all "
        "hosts' links. After the last start of a call the run continues for 50 ms, so that almost "
        "all calls are answered.",
        "A block is long enough for the authors' segments of 64 KB, unlike the calls of D11 to "
        "D14; they are not paced, as 700 Mb/s would take 12 ms for a block of 1 MB. With the "
        "segments of 16 KB and the weight of 0.875 of those figures a transfer reduces its rate "
        "when it meets another, and recovers 10 Mb/s per segment: at a load of 0.2 the median is "
        "then a third longer than with pause frames alone, and the p99 is 16 to 18 ms at any load. "
        "The cause is not the minimum rate of 10 Mb/s (with 100 Mb/s the p99 is 17 to 18 ms as "
        "well) but the weight: with 0.02 and segments of 16 KB the p99 is 3, 8 and 9 ms at loads "
        "of 0.1, 0.2 and 0.3.",
        "The source names no percentile, and the claims concern medians. The p99 with TIMELY is "
        "above that with pause frames alone at every load: by a fifth at 0.1, and twice as long "
        "from 0.3 on (256 hosts, four seeds; the medians are then 1.02, 1.03, 0.94, 0.73 and 0.90 "
        "times as long).",
    ),
    panels=(1, 2),
    size=(11, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    warm_up, stop, end = (
        f"{time} ms" for time in (scale["warm_up"], scale["stop"], scale["stop"] + 50)
    )
    for scheme, change in schemes.items():
        for load in scale["loads"]:
            workload = {
                "kind": "storage",
                "blocks": {"kind": "uniform", "min": "64 KB", "max": "1 MB"},
                "device_time": "100 us",
                "pattern": cluster.remote_calls(load, stop)["pattern"],
            }
            shared = cluster.cluster(scale, workload, warm_up=warm_up, time_limit=end)
            yield {"scheme": scheme, "load": load}, override(shared, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    latency = {MEDIAN: calls.latency("p50", few=True), TAIL: calls.latency("p99", few=True)}
    return metrics.across_seeds(metrics.measure(runs, **latency))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, metric in zip(axes, (MEDIAN, TAIL), strict=True):
        labels = ("offered load", f"{metric} latency")
        plot.against(panel, table.filter(metric=metric), unit="ms", labels=labels)
    plot.one_legend(axes)


def ratios(table: pl.DataFrame, scheme: str, loads: tuple[float, ...]) -> dict[str, float]:
    """Return a scheme's median latency over that with pause frames alone."""

    def median(name: str, load: float) -> float:
        return metrics.at(table, scheme=name, metric=MEDIAN, load=load)

    return {
        f"{scheme} over pauses alone at load {load}": median(scheme, load) / median(PAUSE, load)
        for load in loads
    }


def no_worse_at_low_load(table: pl.DataFrame, scheme: str) -> Verdict:
    """Judge that a latency at low load is within 10 % of that with pause frames alone."""
    return all_at_most(ratios(table, scheme, LOW), 1.1)


def lower_at_high_load(table: pl.DataFrame, scheme: str) -> Verdict:
    """Judge that the median latency at high load is lower than with pause frames alone."""
    return all_at_most(ratios(table, scheme, HIGH), 0.9)


for statement, judge in (
    (
        "at low load the median latency is at most 10 % above that with pauses alone",
        no_worse_at_low_load,
    ),
    ("at high load the median latency is lower (by 10 % or more)", lower_at_high_load),
):
    figure.claim(statement)(partial(judge, scheme=GRADIENT))
    figure.claim(f"with segments of 16 KB {statement}", stated=False)(partial(judge, scheme=SHORT))
