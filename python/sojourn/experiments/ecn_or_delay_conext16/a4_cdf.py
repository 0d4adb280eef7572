"""Figure A4: the distribution of the completion time of small flows at load 0.8."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Run, Verdict, at_least, at_most, looks, metrics, plot

from .paper import LOOKS, PUBLISHED, SCALES, SMALL, TIMELY, at_load, ideal, paper, schemes

DISTRIBUTION = "distribution"
FRACTIONS = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99}

figure = Figure(
    paper,
    id="a4",
    title="Distribution of the completion time of small flows at load 0.8",
    source="Figure: CDF of FCT of small flows",
    scales=SCALES,
    deviations=(
        "The curves are distributions of all seeds together. The horizontal bars are the intervals "
        "of the median over seeds of p50, p75, p90, p95 and p99.",
    ),
    size=(7.4, 4.6),
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
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    curves = table.filter(metric=DISTRIBUTION)
    label = "FCT of small flows"
    plot.cdf(axes, curves, published=published, label=label, drawn_as=LOOKS)
    for scheme in PUBLISHED:
        for name, fraction in FRACTIONS.items():
            row = {"scheme": scheme, "metric": name}
            low, high = (1e6 * metrics.at(table, bound, **row) for bound in ("low", "high"))
            colour = looks.look(LOOKS.get(scheme, scheme)).colour
            axes.hlines(fraction, low, high, color=colour, lw=5, alpha=0.3)
    plot.legend(axes, columns=3)


@figure.claim("99 % of DCQCN's small flows take less than 1 ms", stated=False)
def dcqcn_tail(table: pl.DataFrame) -> Verdict:
    return at_most(metrics.at(table, scheme="DCQCN", metric="p99") * 1e3, 1, "DCQCN's p99 in ms")


@figure.claim(f"more than 10 % of small flows take more than 1 ms: {TIMELY}", stated=False)
def timely_tail(table: pl.DataFrame) -> Verdict:
    p90 = metrics.at(table, scheme=TIMELY, metric="p90")
    return at_least(p90 * 1e3, 1, f"the p90 of {TIMELY} in ms")
