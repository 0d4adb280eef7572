"""Figure J2: medians and 99th percentiles of Homa's slowdowns at loads 0.5 and 0.8."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, all_at_most, plot

from .paper import (
    HIGH_LOAD,
    HOMA,
    LOW_LOAD,
    SCALES,
    SHORTER_HALF,
    WORKLOADS,
    along_sizes,
    at,
    bins,
    over_workloads,
    paper,
    slowdowns,
)

STATISTICS = {"p50": "median", "p99": "99th percentile"}

figure = Figure(
    paper,
    id="j2",
    title="Homa's slowdowns at loads 0.5 and 0.8, by message size",
    source="Figure 13",
    scales=SCALES,
    deviations=(
        "The published curves give no numbers, and are not drawn. The bound of the median is our "
        "own.",
    ),
    panels=(2, 5),
    size=(22, 7.5),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from over_workloads(scale, [LOW_LOAD, HIGH_LOAD], HOMA)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return slowdowns(runs, *STATISTICS)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    by_load = table.with_columns(name=pl.format("load {}", "load"))
    for row, (statistic, label) in zip(axes, STATISTICS.items(), strict=True):
        for panel, workload in zip(row, WORKLOADS, strict=True):
            part = by_load.filter(metric=statistic)
            along_sizes(panel, part, workload, f"{label} of slowdown", by="name")
        plot.same_scale(row)
    plot.one_legend(axes)


@figure.claim(
    "the median slowdown of the shorter half of messages is at most 1.3",
    stated=False,
    scales=("paper",),
)
def small_medians(table: pl.DataFrame) -> Verdict:
    return all_at_most(
        {
            f"{workload} at load {load:g}": at(
                table, SHORTER_HALF, "p50", workload=workload, load=load
            )
            for workload in WORKLOADS
            for load in (LOW_LOAD, HIGH_LOAD)
        },
        1.3,
    )


def falls_with_load(table: pl.DataFrame, statistic: str) -> Verdict:
    """Judge that a percentile is lower at the lower load, in every bin of sizes."""

    def ratio(workload: str, sizes: str) -> float:
        low, high = (
            at(table, sizes, statistic, workload=workload, load=load)
            for load in (LOW_LOAD, HIGH_LOAD)
        )
        return low / high

    return all_at_most(
        {
            f"load {LOW_LOAD:g} over {HIGH_LOAD:g}, {workload}, at {bucket.name},": ratio(
                workload, bucket.name
            )
            for workload in WORKLOADS
            for bucket in bins(workload)
        },
        1,
    )


for statistic, label in STATISTICS.items():
    figure.claim(
        f"the {label} at load 0.5 is below that at load 0.8 at every size", scales=("paper",)
    )(partial(falls_with_load, statistic=statistic))
