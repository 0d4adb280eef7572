"""Figure C2: normalised completion times of small and of large flows against load."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, all_at_most, plot

from .paper import (
    IDEAL,
    LARGE_MEAN,
    ONE_RUN,
    PFABRIC,
    SCALES,
    SMALL_MEAN,
    SMALL_P99,
    WORKLOADS,
    loads,
    measured,
    over_loads,
    paper,
    ratio,
    schemes,
)

figure = Figure(
    paper,
    id="c2",
    title="Normalised completion times of small and large flows",
    source="Figures 8 and 9",
    one_seed=ONE_RUN,
    scales=SCALES,
    panels=(2, 3),
    size=(15, 8),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from over_loads(scale, schemes)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return measured(runs, SMALL_MEAN, SMALL_P99, LARGE_MEAN)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for row, workload in zip(axes, WORKLOADS, strict=True):
        for panel, metric in zip(row, (SMALL_MEAN, SMALL_P99, LARGE_MEAN), strict=True):
            part = table.filter(metric=metric, workload=workload)
            labels = (f"load ({workload})", f"normalised FCT, {metric}")
            plot.against(panel, part, labels=labels, log=True)
            panel.set_ylim(bottom=0.95)
    plot.one_legend(axes)


def near_ideal(table: pl.DataFrame, workload: str) -> Verdict:
    ratios = {
        f"{PFABRIC} over {IDEAL} at load {load:g}": ratio(
            table, PFABRIC, IDEAL, metric=SMALL_MEAN, workload=workload, load=load
        )
        for load in loads(table)
    }
    return all_at_most(ratios, 1.15)


for workload in WORKLOADS:
    figure.claim(
        f"{workload}: the mean of pFabric's small flows is within 15 % of Ideal's at every load",
        stated=False,
    )(partial(near_ideal, workload=workload))
