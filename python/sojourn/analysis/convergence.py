"""Convergence: how far the intervals of means reach, and beyond what that is told.

Completion times of one run are neither independent (flows that overlap share queues) nor, where
sizes have a heavy tail, of a spread that a formula for independent ones would find: a few flows
make up the mean. So the interval of a run's mean is that of batch means. It sees what the run has
seen: a tail of which nothing has come yet leaves no trace in it.
"""

import math

import numpy as np
import polars as pl

from sojourn.analysis import metrics
from sojourn.analysis.metrics import ALL, Bucket, Floats
from sojourn.runs.results import Result

BATCHES = 10
"""Batches of one run's flows: few, so that each is long against what correlates its neighbours."""

ONE_RUN = 0.10
"""How far the mean of one run may be off, as a share of it, before that is told.

Schemes differ by tens of per cent: a mean known to a tenth still puts them in order.
"""

OVER_SEEDS = 0.25
"""How far a value over several seeds may be off, as a share of it, before that is told.

More than for one run: with three seeds Student's factor alone is 4.3, where ten batches have 2.3.
And schemes are compared on the same flows, so that what seeds change is largely common to them.
"""

MEANS = {"FCT mean": "fct_s", "slowdown mean": "slowdown"}
"""The means that are judged, and the columns that they are means of."""


def batch_means(
    values: Floats, batches: int = BATCHES, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the mean of values in order of time, and its confidence interval by batch means.

    The values are cut into batches of consecutive ones; the batches' means are nearly independent
    and normal if batches are long, and so have Student's interval. Ten to thirty batches are enough
    for any run: more only make them shorter (B. Schmeiser, Batch Size Effects in the Analysis of
    Simulation Output, Operations Research 30(3), 1982; [schmeiser82]). Fewer than two values a
    batch give no bounds.
    """
    if len(values) < 2 * batches:
        return float(values.mean()) if len(values) else math.nan, math.nan, math.nan
    parts = [float(part.mean()) for part in np.array_split(values, batches)]
    _, low, high = metrics.t_interval(parts, confidence)
    centre, reach = float(values.mean()), (high - low) / 2
    return centre, centre - reach, centre + reach


def within_run(result: Result, bucket: Bucket = ALL) -> pl.DataFrame:
    """Return the means of one run with their intervals, in the columns of `across_seeds`."""
    rows = []
    for metric, column in MEANS.items():
        values, at_least = metrics.in_order(result, column, bucket)
        value, low, high = batch_means(values)
        bounds = {"value": value, "low": low, "high": high}
        rows.append({"metric": metric, **bounds, "seeds": 1, "at_least": at_least})
    return pl.DataFrame(rows)


def unsure(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with an interval that reaches too far, the worst first.

    `table` is one of `across_seeds` or `within_run`; `reach` tells how far, as a share of `value`.
    """
    value, low, high = pl.col("value"), pl.col("low"), pl.col("high")
    reach = pl.col("reach")
    bound = pl.when(pl.col("seeds") > 1).then(OVER_SEEDS).otherwise(ONE_RUN)
    return (
        table.with_columns(reach=pl.max_horizontal(high - value, value - low) / value.abs())
        .filter(reach.is_finite(), reach > bound)
        .sort("reach", descending=True, maintain_order=True)
    )


def note(table: pl.DataFrame) -> str | None:
    """Return a sentence on the values of a figure's table that are unsure, if any are."""
    if not {"value", "low", "high", "seeds"} <= set(table.columns):
        return None
    rows = unsure(table)
    if rows.is_empty():
        return None
    worst = rows.row(0, named=True)
    where = ", ".join(str(worst[name]) for name in table.columns[: table.columns.index("value")])
    return (
        f"not converged: {rows.height} of {table.height} values are known to no better than "
        f"± {100 * OVER_SEEDS:.0f} %; the worst to ± {100 * worst['reach']:.0f} % over "
        f"{worst['seeds']} seeds ({where})"
    )
