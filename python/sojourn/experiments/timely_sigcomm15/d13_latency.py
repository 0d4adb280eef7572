"""Figure D13: the distribution of calls' latency at a high load."""

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
    at_most,
    calls,
    metrics,
    plot,
)

from . import cluster
from .cluster import GRADIENT, LOADS, PAUSE
from .paper import paper

MEDIAN, TAIL = "median latency", "p99 latency"

figure = Figure(
    paper,
    id="d13",
    title="Latency of calls of 64 KB at a high load",
    source="Large scale: RPC latency of TIMELY and of pause frames alone",
    scales=cluster.HIGH_LOAD,
    deviations=(
        *cluster.deviations,
        "DEVIATION",
    ),
    panels=(1, 2),
    size=(12, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from cluster.at_high_load(scale)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    percentiles = {MEDIAN: calls.latency("p50"), TAIL: calls.latency("p99")}
    numbers = metrics.across_seeds(metrics.measure(runs, **percentiles))
    return pl.concat([calls.latency_cdf(runs), numbers], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, load in zip(axes, LOADS, strict=True):
        part = table.filter(pl.col("fraction").is_not_null(), load=load)
        cluster.draw_published(panel, part.filter(scheme=PAUSE), {0.5: -0.7, 0.99: 0.0})
        plot.cdf(panel, part, label=f"latency of calls at load {load}")
        panel.set_ylabel("fraction of calls")
    plot.one_legend(axes)


def shorter_median(table: pl.DataFrame, load: float) -> Verdict:
    """Judge that TIMELY's median is at least 40 % below that with pause frames alone."""
    ratio, said = cluster.over_pauses(table, GRADIENT, MEDIAN, load, "ms")
    return at_most(ratio, 0.6, said)


for load in LOADS:
    beyond = load != LOADS[0]
    figure.claim(
        f"so it is at a load of {load}"
        if beyond
        else "TIMELY's median latency is at least 40 % shorter (70 % in the paper)",
        stated=not beyond,
    )(partial(shorter_median, load=load))


@figure.claim("the p99 latencies are of the same order: within a factor of 3")
def tails_alike(table: pl.DataFrame) -> Verdict:
    ratio, said = cluster.over_pauses(table, GRADIENT, TAIL, LOADS[0], "ms")
    return all_at_most({f"TIMELY's, {said}": ratio, "the other over TIMELY's": 1 / ratio}, 3)
