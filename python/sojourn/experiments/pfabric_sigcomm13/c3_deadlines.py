"""Figure C3: share of deadlines met against the mean deadline."""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, all_at_least, all_at_most, metrics, plot

from .deadlines import DEADLINES_S, EDF, late_by_start_up, over_deadlines, with_deadlines
from .paper import (
    DATA_MINING,
    DCTCP,
    EVERYWHERE,
    ONE_RUN,
    PDQ,
    PFABRIC,
    SCALES,
    TCP,
    WORKLOADS,
    paper,
)

figure = Figure(
    paper,
    id="c3",
    title="Deadlines met at load 0.6",
    source="Figure 10",
    one_seed=ONE_RUN,
    scales={
        "smoke": SCALES["smoke"] | {"deadlines_s": (100e-6,)},
        "quick": SCALES["quick"] | {"deadlines_s": (100e-6, 500e-6, 1e-3, 100e-3)},
        "paper": SCALES["paper"] | {"deadlines_s": DEADLINES_S},
    },
    deviations=(
        "Schemes without deadlines are run once, and judged by the random deadlines of the same "
        "flows.",
        "The upper bound of PDQ, with an RTT before its first packet on an idle network, is "
        "calculated: with FCTs that end at the sender, which gives the numbers of the text for "
        "data mining, and at the receiver, as in our runs.",
        "The curve `PDQ at best` is the calculation, with the numbers of the text (hollow).",
    ),
    panels=(2, 2),
    size=(11, 8),
)

AT_SENDER, AT_RECEIVER = "PDQ at best", "PDQ at best, receiver"

MET = "deadlines met"


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from over_deadlines(scale)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    met = metrics.measure(with_deadlines(runs), **{MET: metrics.deadlines_met()})
    best = [
        {
            "scheme": scheme,
            "workload": workload,
            "deadline_s": mean_s,
            "metric": "calculation",
            "value": 1 - late_by_start_up(workload, mean_s, at_sender=scheme == AT_SENDER),
        }
        for scheme in (AT_SENDER, AT_RECEIVER)
        for workload in WORKLOADS
        for mean_s in DEADLINES_S
    ]
    return pl.concat([metrics.across_seeds(met), pl.DataFrame(best)], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for (met_panel, missed_panel), workload in zip(axes.T, WORKLOADS, strict=True):
        published_points = (
            None if published is None or workload != DATA_MINING else in_ms(published)
        )
        part = in_ms(table.filter(workload=workload))
        x = f"mean deadline ({workload}, ms)"
        options: Any = {"x": "ms", "unit": "%", "log_x": True}
        plot.against(
            met_panel, part, published=published_points, labels=(x, "deadlines met"), **options
        )
        missed = part.with_columns(value=1 - pl.col("value")).drop("low", "high")
        missed = missed.filter(pl.col("value") > 0)
        plot.against(missed_panel, missed, labels=(x, "deadlines missed"), log=True, **options)
        missed_panel.get_legend().remove()


def in_ms(table: pl.DataFrame) -> pl.DataFrame:
    """Add the mean deadline in milliseconds, the unit of the axis."""
    return table.with_columns(ms=1e3 * pl.col("deadline_s"))


def met(table: pl.DataFrame, scheme: str, workload: str, mean_s: float) -> float:
    """Return the share of deadlines that a scheme met, or could meet."""
    return metrics.at(table, scheme=scheme, workload=workload, deadline_s=mean_s)


@figure.check(
    "with mean deadlines of 100 µs, 500 µs and 1 ms a round trip of start-up alone misses 22.7, "
    "5.0 and 2.5 % (data mining, calculated, within 0.5 points)",
    scales=EVERYWHERE,
    exact=True,
)
def start_up_misses(table: pl.DataFrame) -> Verdict:
    distances = {}
    for mean_s, expected in zip(DEADLINES_S, (22.7, 5.0, 2.5), strict=False):
        missed = 100 * (1 - met(table, AT_SENDER, DATA_MINING, mean_s))
        description = f"percentage points from {missed:.2f} to {expected} % at {mean_s * 1e6:g} µs"
        distances[description] = abs(missed - expected)
    return all_at_most(distances, 0.5)


def in_order(table: pl.DataFrame, workload: str) -> Verdict:
    pairs = itertools.pairwise((EDF, PFABRIC, PDQ, DCTCP, TCP))
    leads = {
        f"percentage points of {better} above {worse} at {mean_s * 1e6:g} µs": 100
        * (met(table, better, workload, mean_s) - met(table, worse, workload, mean_s))
        for better, worse in pairs
        for mean_s in DEADLINES_S
        if mean_s <= 1e-3
    }
    return all_at_least(leads, 0)


def judge_long_deadlines(table: pl.DataFrame, workload: str) -> Verdict:
    return all_at_least(
        {f"{scheme}'s share": met(table, scheme, workload, 100e-3) for scheme in (PFABRIC, EDF)},
        0.95,
    )


for workload in WORKLOADS:
    figure.claim(
        f"{workload}: up to a mean of 1 ms pFabric-EDF meets the most deadlines, then pFabric, PDQ,"
        " DCTCP, TCP",
        stated=False,
    )(partial(in_order, workload=workload))
    figure.claim(
        f"{workload}: with a mean of 100 ms pFabric meets 95 % of the deadlines", stated=False
    )(partial(judge_long_deadlines, workload=workload))
