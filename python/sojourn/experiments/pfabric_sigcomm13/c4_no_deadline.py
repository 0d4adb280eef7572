"""Figure C4: FCT of flows without a deadline, beside flows with deadlines."""

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
    all_at_least,
    between,
    every,
    finding,
    metrics,
    plot,
)

from .deadlines import EDF, WITHOUT_DEADLINE, over_deadlines, with_deadlines
from .paper import (
    DCTCP,
    MEAN,
    ONE_RUN,
    PDQ,
    PFABRIC,
    RATIO,
    SCALES,
    TCP,
    WORKLOADS,
    at_sender,
    paper,
    ratio,
)

MEAN_DEADLINE_S = 100e-6

figure = Figure(
    paper,
    id="c4",
    title="Normalised completion times of flows without deadline at load 0.6",
    source="Figure 11",
    one_seed=ONE_RUN,
    scales={name: scale | {"deadlines_s": (MEAN_DEADLINE_S,)} for name, scale in SCALES.items()},
    deviations=(
        "The mean deadline is not stated; here it is 100 µs, the shortest of C3.",
        "Slightly higher means higher by at most 15 %. Means up to 1 % lower first counted as "
        "slightly higher; the means of pFabric and pFabric-EDF differ by less than their "
        "confidence intervals.",
    ),
    panels=(1, 2),
    size=(12, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from over_deadlines(scale)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    measures = {
        MEAN: metrics.slowdown("mean", WITHOUT_DEADLINE),
        RATIO: metrics.ratio_of_means(WITHOUT_DEADLINE),
    }
    return metrics.across_seeds(metrics.measure(map(at_sender, with_deadlines(runs)), **measures))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, metric in zip(axes, (MEAN, RATIO), strict=True):
        part = table.filter(metric=metric)
        plot.bars(panel, part, group="workload", label=metric, values="{:.2f}")
    plot.one_legend(axes)


def over(table: pl.DataFrame, workload: str, *schemes: str) -> dict[str, float]:
    """Return the mean normalised FCTs of schemes over pFabric's."""
    return {
        f"{scheme} over {PFABRIC}": ratio(table, scheme, PFABRIC, metric=MEAN, workload=workload)
        for scheme in schemes
    }


def lowest(table: pl.DataFrame, workload: str) -> Verdict:
    return all_at_least(over(table, workload, EDF, PDQ, DCTCP, TCP), 1)


def slightly_higher(table: pl.DataFrame, workload: str) -> Verdict:
    [(name, value)] = over(table, workload, EDF).items()
    # Equal runs have an interval of zero width, at the bound.
    differs = finding(None if value == 1 else True, f"{name} is{' ' if value == 1 else ' not '}1")
    return every([between(value, 1, 1.15, name), differs])


for workload in WORKLOADS:
    figure.claim(f"{workload}: pFabric is the lowest")(partial(lowest, workload=workload))
    figure.claim(f"{workload}: pFabric-EDF is slightly higher than pFabric (by at most 15 %)")(
        partial(slightly_higher, workload=workload)
    )
