"""Figure D15: the latency of reads and writes of blocks against load."""

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
from .cluster import GRADIENT, PAUSE, SMOOTH
from .paper import paper

LOADS = (0.1, 0.2, 0.3, 0.45, 0.6)

LOW, HIGH = LOADS[:2], LOADS[-2:]

MEDIAN, TAIL = "median", "p99"

figure = Figure(
    paper,
    id="d15",
    title="Latency of reading and writing blocks",
    source="Large scale: application-level benchmark (storage)",
    scales={
        "smoke": {"loads": (0.1, 0.45), "warm_up": 1, "stop": 2},
        "quick": {"loads": LOADS, "warm_up": 3, "stop": 10},
        "paper": {"loads": LOADS, "warm_up": 10, "stop": 40, "seeds": 2},
    },
    deviations=(
        *cluster.deviations,
        "The paper's mix is not known. Ours reads as often as it writes, blocks of 64 KB to 1 MB, "
        "all sizes as likely, over the longest paths; a server's device serves one block after "
        "another, each in 100 µs on average. Loads count payload and are shares of what all hosts "
        "can send. Once no more calls come the run goes on for 50 ms, so that almost all "
        "are answered.",
        "At a load of 0.2 TIMELY's median is a third longer than with pause frames alone. A "
        "transfer is cut when it meets another and gets 10 Mb/s back a segment, 50 Mb/s at best: "
        "the 62 segments of a block of 1 MB end before it has recovered. With the testbed's weight "
        "of 0.02 cuts are rare, and the median is within 10 %; with ten times the increase as well "
        "there is hardly a difference. That connections last in the paper is not the reason: with "
        "four servers a client (`peers`) the median is 37 % longer at this load, and 35 % if a "
        "block starts at the rate at which the one before it between the same hosts ended "
        "(`start`: remembered). TIMELY's p99, 18 ms at loads up to 0.3, is that of "
        "transfers cut to the least rate of 10 Mb/s, at which one segment takes 13 ms.",
    ),
    panels=(1, 2),
    size=(11, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    warm_up, stop, end = (
        f"{time} ms" for time in (scale["warm_up"], scale["stop"], scale["stop"] + 50)
    )
    for scheme, change in (cluster.schemes | cluster.why).items():
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
    latency = {MEDIAN: calls.latency("p50"), TAIL: calls.latency("p99")}
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


for name in (GRADIENT, SMOOTH):
    stated = name == GRADIENT
    figure.claim(
        f"at low load the median latency with {name} is no worse than with pauses alone (within "
        "10 %)",
        stated=stated,
    )(partial(no_worse_at_low_load, scheme=name))
    figure.claim(
        f"at high load the median latency with {name} is lower (by 10 % or more)", stated=stated
    )(partial(lower_at_high_load, scheme=name))
