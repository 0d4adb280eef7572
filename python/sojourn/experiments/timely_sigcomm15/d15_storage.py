"""Figure D15: latency of reads and writes of blocks against load."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl
from matplotlib.ticker import LogLocator

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
from .cluster import GRADIENT, NEW, PAUSE, PAUSE_NEW, SHORT_NEW
from .paper import TIMELY, paper

LOADS = (0.1, 0.2, 0.3, 0.45, 0.6)

LOW, HIGH = LOADS[:2], LOADS[-2:]

AT_ONCE_NEW = f"{GRADIENT}, 64 KB at once, {NEW}"

transports = cluster.transports | {AT_ONCE_NEW: override(TIMELY, {"least_factor": 0.5})}
"""Schemes of the cluster, and TIMELY with segments of 64 KB that are not paced."""

DRAWN_AS = {AT_ONCE_NEW: f"64 KB, {NEW}"}

MEDIAN, TAIL = "median", "p99"

figure = Figure(
    paper,
    id="d15",
    title="Latency of reading and writing blocks",
    source="Large scale: application-level benchmark (storage)",
    scales={
        "smoke": {"loads": (0.1, 0.45), "warm_up": 1, "stop": 2},
        "quick": {"loads": (*LOW, *HIGH), "warm_up": 3, "stop": 10},
        "paper": {"loads": LOADS, "warm_up": 10, "stop": 40},
    },
    deviations=(
        *cluster.deviations,
        "The paper's mix is unknown. Ours has equal numbers of reads and writes of blocks, "
        "uniformly from 64 KB to 1 MB, over the longest paths; a server's device serves one block "
        "at a time, in 100 µs on average. Loads count payload, as shares of the capacity of all "
        "hosts' links. After the last start of a call the run continues for 50 ms, so that almost "
        "all calls are answered.",
        "TIMELY paces the packets of a connection at 700 Mb/s, which takes 6 ms for a block of "
        "mean size: ten times the median latency with pauses alone at low load. Before, the "
        "figure had TIMELY with segments of 16 KB and a weight of 0.875, which reduces a rate "
        "when transfers meet, and recovers 10 Mb/s per segment; after its results, segments of 64 "
        "KB at once with the authors' weight of 0.02. Both have a new connection for each call, "
        "and their claims are our own now.",
        "The source names no percentile; the stated claims concern medians, as at first. The p99 "
        "is judged as our own: with 64 KB at once it is 1.1 times that with pauses alone at a "
        "load of 0.1, 1.3 times at 0.2, and 2.4 times at 0.45 and 0.6 (64 hosts, four seeds); at "
        "the scale `paper` it is 1.3, 1.4, 1.2 and 1.4 times.",
    ),
    panels=(1, 2),
    size=(11, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    warm_up, stop, end = (
        f"{time} ms" for time in (scale["warm_up"], scale["stop"], scale["stop"] + 50)
    )
    for scheme, transport in transports.items():
        for load in scale["loads"]:
            workload = {
                "kind": "storage",
                "blocks": {"kind": "uniform", "min": "64 KB", "max": "1 MB"},
                "device_time": "100 us",
                "pattern": cluster.pattern(scheme, load, stop),
            }
            times = {"warm_up": warm_up, "time_limit": end}
            scenario = cluster.cluster(scale, transport, workload, **times)
            yield {"scheme": scheme, "load": load}, scenario


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    latency = {MEDIAN: calls.latency("p50", few=True), TAIL: calls.latency("p99", few=True)}
    return metrics.across_seeds(metrics.measure(runs, **latency))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, metric in zip(axes, (MEDIAN, TAIL), strict=True):
        labels = ("offered load", f"{metric} latency")
        part = cluster.banded(table.filter(metric=metric))
        plot.against(panel, part, unit="ms", labels=labels, log=True, drawn_as=DRAWN_AS)
        panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    cluster.common_legend(axes)


def ratios(
    table: pl.DataFrame, scheme: str, metric: str, loads: tuple[float, ...]
) -> dict[str, float]:
    """Return a scheme's latency over that of pause frames alone with the same connections."""
    pause = PAUSE_NEW if scheme.endswith(NEW) else PAUSE

    def latency(name: str, load: float) -> float:
        return metrics.at(table, scheme=name, metric=metric, load=load)

    return {
        f"{metric} over that with pauses alone at load {load}": latency(scheme, load)
        / latency(pause, load)
        for load in loads
    }


def no_worse_at_low_load(table: pl.DataFrame, scheme: str, metric: str) -> Verdict:
    """Judge that a latency at low load is within 10 % of that with pause frames alone."""
    return all_at_most(ratios(table, scheme, metric, LOW), 1.1)


def lower_at_high_load(table: pl.DataFrame, scheme: str, metric: str) -> Verdict:
    """Judge that a latency at high load is lower than with pause frames alone."""
    return all_at_most(ratios(table, scheme, metric, HIGH), 0.9)


for statement, judge in (
    (
        "at low load the {} latency is at most 10 % above that with pauses alone",
        no_worse_at_low_load,
    ),
    ("at high load the {} latency is at least 10 % lower", lower_at_high_load),
):
    for case, scheme, metric in (
        ("", GRADIENT, MEDIAN),
        ("", GRADIENT, TAIL),
        (" with 64 KB at once and new connections", AT_ONCE_NEW, MEDIAN),
        (" with 64 KB at once and new connections", AT_ONCE_NEW, TAIL),
        (" with 16 KB and new connections", SHORT_NEW, MEDIAN),
    ):
        figure.claim(
            f"{statement.format(metric)}{case}", stated=(scheme, metric) == (GRADIENT, MEDIAN)
        )(partial(judge, scheme=scheme, metric=metric))
