"""Figure A4: the distribution of the completion time of small flows at load 0.8."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Run, Verdict, at_least, at_most, metrics, plot

from .paper import SCALES, SMALL, TIMELYS, at_load, ideals, paper, schemes, why

figure = Figure(
    paper,
    id="a4",
    title="Distribution of the completion time of small flows at load 0.8",
    source="Figure: CDF of FCT (its caption says load 0.9; its values are those of load 0.8)",
    scales=SCALES,
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for scheme, change in (schemes | why | ideals).items():
        yield {"scheme": scheme}, at_load(scale, change, 0.8)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return metrics.cdf(runs, bucket=SMALL, points=1000)


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    plot.cdf(axes, table, published=published, label="FCT of small flows")


def percentile(table: pl.DataFrame, scheme: str, fraction: float) -> float:
    """Return the completion time that a fraction of the flows do not exceed, in seconds."""
    above = table.filter(scheme=scheme).filter(pl.col("fraction") >= fraction)
    return float(above["value"].min()) if above.height else float("inf")  # type: ignore[arg-type]


@figure.claim("99 % of DCQCN's small flows take less than 1 ms", stated=False)
def dcqcn_tail(table: pl.DataFrame) -> Verdict:
    return at_most(percentile(table, "DCQCN", 0.99) * 1e3, 1, "DCQCN's p99 in ms")


def has_a_tail(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that many small flows are slow."""
    return at_least(percentile(table, timely, 0.90) * 1e3, 1, f"the p90 of {timely} in ms")


for name in TIMELYS:
    figure.claim(f"more than 10 % of small flows take more than 1 ms: {name}", stated=False)(
        partial(has_a_tail, timely=name)
    )
