"""Figure A3: the 90th percentile of the completion time of small flows against load."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Run, Verdict, at_least, at_most, every, metrics, plot

from .paper import LOADS, SCALES, SMALL, TIMELYS, ideals, over_loads, paper, schemes, why

figure = Figure(
    paper,
    id="a3",
    title="90th percentile of the completion time of small flows",
    source="Figure: median and 90th percentile of FCT of small flows, right",
    scales=SCALES,
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield from over_loads(scale, schemes | why | ideals)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    measured = metrics.measure(runs, **{"FCT p90": metrics.fct("p90", SMALL)})
    return metrics.across_seeds(measured, median=True)


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    labels = ("load (1 = 8 Gb/s of payload)", "90th percentile of FCT of small flows")
    plot.against(axes, table, published=published, unit="us", labels=labels, log=True)


def high(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that TIMELY's p90 is far above DCQCN's."""

    def ratio(load: float, bound: float) -> Verdict:
        above, below = (metrics.at(table, scheme=s, load=load) for s in (timely, "DCQCN"))
        return at_least(above / below, bound, f"{timely} over DCQCN at load {load}")

    return every([ratio(0.6, 5), ratio(0.8, 10)])


for name in TIMELYS:
    figure.claim(
        f"the p90 of {name} is at least 5 times DCQCN's at load 0.6, and 10 times at 0.8",
        stated=name == "TIMELY",
    )(partial(high, timely=name))


@figure.claim("DCQCN's p90 stays below 300 µs at every load", stated=False)
def dcqcn_low(table: pl.DataFrame) -> Verdict:
    highest = max(metrics.at(table, scheme="DCQCN", load=load) for load in LOADS)
    return at_most(highest * 1e6, 300, "DCQCN's highest, in µs,")
