"""Figure D12: the distribution of round-trip times of calls over the longest paths."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_most, metrics, plot, steady

from . import cluster
from .cluster import GRADIENT, LOADS, MEDIAN, PACKET_S, PAUSE, TAIL
from .paper import paper

OF = "rpc request"

figure = Figure(
    paper,
    id="d12",
    title="Round-trip times of calls of 64 KB at a high load",
    source="Large scale: RTTs of TIMELY and of pause frames alone",
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
    percentiles = {
        name: steady.rtt(statistic, of=OF, less_s=PACKET_S)
        for name, statistic in ((MEDIAN, "p50"), (TAIL, "p99"))
    }
    numbers = metrics.across_seeds(metrics.measure(runs, **percentiles))
    return pl.concat([steady.rtt_cdf(runs, of=OF, less_s=PACKET_S), numbers], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, load in zip(axes, LOADS, strict=True):
        part = table.filter(pl.col("fraction").is_not_null(), load=load)
        reductions = {0.5: -0.6, 0.99: -0.75}
        cluster.draw_published(panel, part.filter(scheme=PAUSE), reductions)
        plot.cdf(panel, part, label=f"round-trip time at load {load}")
        panel.set_ylabel("fraction of round-trip times")
    plot.one_legend(axes)


def shorter(table: pl.DataFrame, metric: str, load: float) -> Verdict:
    """Judge that TIMELY's percentile is at least 40 % below that with pause frames alone."""
    ratio, said = cluster.over_pauses(table, GRADIENT, metric, load, "us")
    return at_most(ratio, 0.6, said)


for metric, reduction in ((MEDIAN, "60"), (TAIL, "75")):
    for load in LOADS:
        beyond = load != LOADS[0]
        figure.claim(
            f"so it is at a load of {load}"
            if beyond
            else f"TIMELY's {metric} is at least 40 % shorter ({reduction} % in the paper)",
            stated=not beyond,
        )(partial(shorter, metric=metric, load=load))
