"""Figure A2: the median completion time of small flows against load."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sojourn import Figure, Run, Verdict, at_least, at_most, between, every, metrics

from .paper import (
    DCQCN,
    FACTOR,
    PATCHED,
    SCALES,
    SMALL,
    along_load,
    as_published,
    claim_for_both_betas,
    dctcp,
    ideal,
    over_loads,
    paper,
    schemes,
)

figure = Figure(
    paper,
    id="a2",
    title="Median completion time of small flows",
    source="Figure: median and 90th percentile of FCT of small flows, left",
    scales=SCALES,
    deviations=(
        "The published median of TIMELY at load 1.0 is 14.8 times DCQCN's. The claim was first a "
        "factor of at least 3, with beta 0.8, and then with beta 0.008.",
    ),
    panels=(1, 3),
    size=(12, 4.4),
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield from over_loads(scale, schemes | dctcp | ideal)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    measured = metrics.measure(runs, **{"FCT p50": metrics.fct("p50", SMALL, few=True)})
    return metrics.across_seeds(measured, median=True)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    along_load(axes, table, published, "median FCT of small flows")


def equal_at_low_load(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that TIMELY's median is DCQCN's at low load."""

    def ratio(load: float) -> Verdict:
        above, below = (metrics.at(table, scheme=s, load=load) for s in (timely, DCQCN))
        return between(above / below, 0.95, 1.05, f"{timely} over DCQCN at load {load}")

    return every(ratio(load) for load in (0.1, 0.2))


claim_for_both_betas(
    figure, "DCQCN and {timely} are equal (within 5 %) at load 0.2 and below", equal_at_low_load
)


def add_claim(scheme: str) -> None:
    """Add the claim that a scheme's median at load 1.0 is the published one."""

    @figure.claim(
        f"{scheme}: the median at load 1.0 is the published one (within a factor of {FACTOR})",
        stated=False,
    )
    def published_median(table: pl.DataFrame) -> Verdict:
        labels = {"scheme": scheme, "load": 1.0}
        return as_published(figure, table, f"{scheme} at load 1.0", **labels)


for scheme in schemes:
    add_claim(scheme)


def is_between(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that patched TIMELY's median lies between DCQCN's and TIMELY's at high load."""

    def in_order(load: float) -> list[Verdict]:
        dcqcn, patched, high = (
            metrics.at(table, scheme=s, load=load) for s in (DCQCN, PATCHED, timely)
        )
        return [
            at_least(patched / dcqcn, 1, f"patched TIMELY over DCQCN at load {load}"),
            at_most(patched / high, 1, f"patched TIMELY over {timely} at load {load}"),
        ]

    return every(verdict for load in (0.8, 1.0) for verdict in in_order(load))


claim_for_both_betas(
    figure,
    "patched TIMELY lies between DCQCN and {timely} at load 0.8 and above",
    is_between,
    stated=False,
)
