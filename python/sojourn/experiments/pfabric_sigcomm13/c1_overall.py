"""Figure C1: normalised completion times of all flows against load."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, all_at_least, all_at_most, plot

from .paper import (
    DCTCP,
    IDEAL,
    MEAN,
    ONE_RUN,
    PDQ,
    PFABRIC,
    RATIO,
    SCALES,
    TCP,
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
    id="c1",
    title="Normalised completion times against load",
    source="Figure 7",
    one_seed=ONE_RUN,
    scales=SCALES,
    deviations=(
        "The ratio of pFabric to Ideal grows with the length of a run, as large flows accumulate: "
        "for web search at load 0.8 it is 1.04 with 500 flows and 1.14 with 100 000, so close to "
        "the bound that even 100 000 flows are inconclusive.",
    ),
    panels=(2, 2),
    size=(11, 8),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from over_loads(scale, schemes)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return measured(runs, MEAN, RATIO)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for row, metric in zip(axes, (MEAN, RATIO), strict=True):
        for panel, workload in zip(row, WORKLOADS, strict=True):
            part = table.filter(metric=metric, workload=workload)
            plot.against(panel, part, labels=(f"load ({workload})", metric), log=True)
            panel.set_ylim(bottom=0.95)
    plot.one_legend(axes)


def over(table: pl.DataFrame, workload: str, *pairs: tuple[str, str]) -> dict[str, float]:
    """Return the ratios of mean normalised FCTs of pairs of schemes, at every load."""
    return {
        f"{upper} over {lower} at load {load:g}": ratio(
            table, upper, lower, metric=MEAN, workload=workload, load=load
        )
        for load in loads(table)
        for upper, lower in pairs
    }


def in_order(table: pl.DataFrame, workload: str) -> Verdict:
    pairs = [(PFABRIC, IDEAL), (PDQ, PFABRIC), (DCTCP, PFABRIC), (TCP, PDQ), (TCP, DCTCP)]
    return all_at_least(over(table, workload, *pairs), 1)


def near_ideal(table: pl.DataFrame, workload: str) -> Verdict:
    return all_at_most(over(table, workload, (PFABRIC, IDEAL)), 1.15)


for workload in WORKLOADS:
    figure.claim(
        f"{workload}: Ideal is at least as fast as pFabric, pFabric faster than PDQ and DCTCP, and "
        "these faster than TCP, at every load",
        stated=False,
    )(partial(in_order, workload=workload))
    figure.claim(f"{workload}: pFabric is within 15 % of Ideal at every load", stated=False)(
        partial(near_ideal, workload=workload)
    )
