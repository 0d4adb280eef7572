"""Figure J4: slowdowns of W1 by the number of priorities for packets without grants."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_least, at_most, override

from .paper import (
    HIGH_LOAD,
    SCALES,
    SHORTER_HALF,
    WORKLOADS,
    along_sizes,
    at,
    homa,
    paper,
    scenario,
    slowdowns,
)

WORKLOAD = "W1"

CUTOFFS: dict[int, tuple[int, ...]] = {
    1: (),
    2: (376,),
    4: (95, 376, 903),
    7: WORKLOADS[WORKLOAD].cutoffs,
}
"""Bounds of equal shares of the bytes, by number of priorities; unit tests of Homa check them."""

figure = Figure(
    paper,
    id="j4",
    title="Homa with 1, 2, 4 and 7 priorities for packets without grants, W1 at load 0.8",
    source="Section 5.2, ablation of priorities",
    scales=SCALES,
    deviations=(
        "Small messages are the shorter half. One more priority is for granted packets, as with "
        "the seven of the other figures.",
        "The source's 99th percentile with one priority is about 2.5 times as high, from memory; "
        "the claim's bound is 2.",
    ),
    size=(8, 4.6),
)


def name(levels: int) -> str:
    """Return the scheme with this number of priorities."""
    return f"{levels} {'priority' if levels == 1 else 'priorities'}"


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    shared = scenario(WORKLOAD, HIGH_LOAD, scale)
    for levels, cutoffs in CUTOFFS.items():
        labels = {"scheme": name(levels), "workload": WORKLOAD}
        yield labels, override(shared, homa(cutoffs, priorities=levels + 1))


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return slowdowns(runs, "p99")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    along_sizes(axes, table, WORKLOAD, "99th percentile of slowdown")


def p99(table: pl.DataFrame, levels: int) -> float:
    return at(table, SHORTER_HALF, "p99", scheme=name(levels))


@figure.claim(
    "W1: with one priority the 99th percentile of small messages is at least twice as high"
)
def one_is_not_enough(table: pl.DataFrame) -> Verdict:
    return at_least(p99(table, 1) / p99(table, 7), 2, f"{name(1)} over {name(7)}")


@figure.claim("W1: beyond four priorities there is at most 15 % to gain")
def four_are_enough(table: pl.DataFrame) -> Verdict:
    return at_most(p99(table, 4) / p99(table, 7), 1.15, f"{name(4)} over {name(7)}")
