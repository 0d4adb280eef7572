"""Figure B8: HighSpeed TCP completes flows no sooner than TCP."""

import math
from collections.abc import Iterator
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_least, at_most, every, plot

from .paper import (
    BY_SIZE,
    FEW_FLOWS,
    FEW_FLOWS_SCALES,
    HIGHSPEED,
    TCP,
    along_size,
    drawn_formulas,
    paper,
    ratios,
    tcp,
)

figure = Figure(
    paper,
    id="b8",
    title="HighSpeed TCP and TCP with drop-tail queues",
    source="Figure 8",
    scales=FEW_FLOWS_SCALES,
    deviations=(
        "The shape of the sizes is not stated; ours is 1.2, as in other figures.",
        "Bins with at least 30 flows per run are judged. To bins with 30 flows in all runs "
        "together each additional run would add one of a larger size with few flows.",
    ),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = FEW_FLOWS.at(scale)
    link = setting.link
    yield from setting.runs(scale, {HIGHSPEED: tcp(link, "high_speed_tcp"), TCP: tcp(link)})


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return along_size(FEW_FLOWS, runs)


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    forms = drawn_formulas(table)
    plot.along_sizes(axes, table.filter(metric=BY_SIZE), curves=forms, limits=(50, 2e5))


@figure.claim(
    "flows take about the same time, within 25 % in every bin with 30 flows or more a run"
)
def alike(table: pl.DataFrame) -> Verdict:
    ratio = ratios(table, HIGHSPEED, TCP)["ratio"]
    minimum: Any = ratio.min()
    maximum: Any = ratio.max()
    return every(
        [
            at_least(
                math.nan if minimum is None else minimum, 0.75, "minimum of HighSpeed TCP over TCP"
            ),
            at_most(
                math.nan if maximum is None else maximum, 1.25, "maximum of HighSpeed TCP over TCP"
            ),
        ]
    )
