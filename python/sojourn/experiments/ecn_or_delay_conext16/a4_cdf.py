"""Figure A4: the distribution of the completion time of small flows at load 0.8."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sojourn import Figure, Run, Verdict, every, metrics, plot

from .paper import (
    DCQCN,
    FACTOR,
    LOOKS,
    PATCHED,
    SCALES,
    SMALL,
    SMALL_BETA,
    TIMELY,
    as_published,
    at_load,
    ideal,
    paper,
    schemes,
)

DISTRIBUTION = "distribution"
FRACTIONS = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99}
READ_OFF = {DCQCN: tuple(FRACTIONS), TIMELY: ("p50", "p75")}
"""Percentiles that are published; the axis of the published figure ends at 6 ms."""

figure = Figure(
    paper,
    id="a4",
    title="Distribution of the completion time of small flows at load 0.8",
    source="Figure: CDF of FCT of small flows",
    scales=SCALES,
    deviations=(
        "The curves are distributions of all seeds together. The right panel has the medians over "
        "seeds of percentiles; they have intervals from six seeds on.",
        "The source's text gives no numbers. The claims were first that 99 % of DCQCN's small "
        "flows take less than 1 ms, and 10 % of TIMELY's more.",
    ),
    panels=(1, 2),
    size=(12.5, 5),
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for scheme, change in (schemes | ideal).items():
        yield {"scheme": scheme}, at_load(scale, change, 0.8)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    curves = metrics.cdf(runs, bucket=SMALL, points=1000).with_columns(metric=pl.lit(DISTRIBUTION))
    measured = metrics.measure(
        runs, **{name: metrics.fct(name, SMALL, few=True) for name in FRACTIONS}
    )
    percentiles = metrics.across_seeds(measured, median=True).with_columns(
        fraction=pl.col("metric").replace_strict(FRACTIONS, return_dtype=pl.Float64)
    )
    return pl.concat([percentiles, curves], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    left, right = axes
    label = "FCT of small flows"
    # TIMELY's published points are the same for both values of beta.
    points = None if published is None else published.filter(pl.col("scheme") != SMALL_BETA)
    named = (
        None if points is None else points.with_columns(pl.col("scheme").replace(TIMELY, "TIMELY"))
    )
    curves = table.filter(metric=DISTRIBUTION)
    plot.cdf(left, curves, published=named, label=label, drawn_as=LOOKS)
    plot.legend(left, columns=3)
    is_percentile = pl.col("metric").is_in(list(FRACTIONS))
    percentiles = table.filter(is_percentile, pl.col("scheme").is_in(list(schemes)))
    points = None if points is None else points.filter(is_percentile)
    plot.levels(
        right,
        percentiles,
        group="metric",
        unit="us",
        published=points,
        label=f"percentiles of the {label}",
        drawn_as=LOOKS,
    )
    plot.one_legend(axes)


def add_claim(scheme: str) -> None:
    """Add the claim that a scheme's percentiles are the published ones."""
    names = READ_OFF.get(scheme, READ_OFF[TIMELY])

    @figure.claim(
        f"{scheme}: {', '.join(names)} are the published ones (within a factor of {FACTOR})",
        stated=False,
    )
    def published_percentiles(table: pl.DataFrame) -> Verdict:
        return every(
            as_published(figure, table, f"{name} of {scheme}", scheme=scheme, metric=name)
            for name in names
        )


for scheme in (TIMELY, SMALL_BETA, DCQCN, PATCHED):
    add_claim(scheme)
