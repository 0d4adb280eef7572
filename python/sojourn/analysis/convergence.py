"""Convergence: confidence intervals of means, and the widths that cause a warning.

FCTs of one run are not independent, since flows that overlap share queues. If sizes have a heavy
tail, a few flows dominate the mean, and the formula for independent values underestimates the
variance. So the interval of a run's mean is by batch means, and wider if these are correlated. An
interval reflects only the flows of the run: large flows too rare to occur in the run do not widen
it.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn.analysis import metrics
from sojourn.analysis.metrics import ALL, Bucket, Floats
from sojourn.base.statistics import BATCHES, half_width, inflation, t_quantile
from sojourn.runs.answers import SAMPLE, by_sample
from sojourn.runs.results import Result
from sojourn.scale.errors import p99_interval
from sojourn.scenario.fidelity import PACKETS

ONE_RUN = 0.10
"""Half-width of the interval of one run's mean, as a share of the mean, that causes a warning.

Schemes differ by tens of per cent: means within ±10 % still rank them.
"""

OVER_SEEDS = 0.25
"""Half-width of an interval over seeds, as a share of the value, that causes a warning.

Larger than for one run: with three seeds Student's quantile is 4.3, with ten batches 2.3. Also,
schemes are compared on the same flows, so that the effect of a seed is largely common to them.
"""

STEP = "step"
"""Column of flow records: the step of a message in its job, null for other flows."""

MEANS = {"FCT mean": "fct_s", "slowdown mean": "slowdown"}
"""The means whose convergence is checked, and their columns in flow records."""

P99S = {"FCT p99": "fct_s", "slowdown p99": "slowdown"}
"""The p99s of answers by samples and laws that have intervals, and their columns."""


LEAST_STARTS = 2 * BATCHES
"""Least number of times at which the flows of a run in batches start, as flows of a batch."""


LEAST_SAMPLES = 5
"""Number of samples from which these are the batches: Student's quantile of five is 2.8."""


def batch_means(
    values: Floats,
    batches: int = BATCHES,
    confidence: float = 0.95,
    samples: npt.NDArray[Any] | None = None,
) -> tuple[float, float, float]:
    """Return the mean of values in order of time, and its confidence interval by batch means.

    A batch is a sequence of consecutive values. The means of long batches are nearly independent
    and normal, and so have Student's interval. Ten to thirty batches suffice for any run: more only
    make the batches shorter ([schmeiser82]: B. Schmeiser, Batch Size Effects in the Analysis of
    Simulation Output, Operations Research 30(3), 1982). Batches of short runs are correlated: the
    variance of the mean grows by `inflation`. With fewer than two values per batch the bounds are
    NaN.

    `samples` has the number of each value's sample; values are then in order of samples, and in
    order of time in each. Samples are independent: if there are `LEAST_SAMPLES`, they are the
    batches.
    """
    if len(values) < 2 * batches:
        return float(values.mean()) if len(values) else math.nan, math.nan, math.nan
    starts = np.unique([] if samples is None else samples, return_index=True)[1]
    if are_samples := len(starts) >= LEAST_SAMPLES:
        parts = np.split(values, starts[1:])
    else:
        parts = np.array_split(values, batches)
    means = np.array([float(batch.mean()) for batch in parts])
    factor = 1.0 if are_samples else inflation(means)
    centre, reach = float(values.mean()), half_width(means, None, confidence, factor)
    return centre, centre - reach, centre + reach


def are_batches(flows: pl.DataFrame) -> bool:
    """Return true if tenths of flows in order of start are batches of one steady state.

    That is so if new flows come again and again, independently of the network:

    * not with messages of jobs. They start when others arrive, in few rounds of a job that begins
      and ends: a batch is a phase of the job, and the order in a round is that of the ranks. In
      place of batches, their job has a duration.
    * not with fewer than `LEAST_STARTS` times of start, such as a burst from all hosts at once. The
      flows of one burst share their queues, and their order is that of the hosts.
    """
    if STEP in flows.columns and flows[STEP].count():
        return False
    return flows["start_s"].n_unique() >= LEAST_STARTS


def within_run(result: Result, bucket: Bucket = ALL) -> pl.DataFrame:
    """Return the means of one run with their intervals, in the columns of `across_seeds`.

    The bounds are NaN unless `are_batches`.
    """
    rows = []
    of_bucket = metrics.timed(result, bucket) if result.summary.get("jobs") else None
    is_steady = of_bucket is None or are_batches(of_bucket)
    for metric, column in MEANS.items():
        flows = by_sample(metrics.in_order(result, column, bucket))
        value, low, high = batch_means(flows["value"].to_numpy(), samples=samples_of(flows))
        if not (is_steady and are_batches(flows)):
            low = high = math.nan
        bounds = {"value": value, "low": low, "high": high}
        at_least = not flows["is_finished"].all()
        rows.append({"metric": metric, **bounds, "seeds": 1, "at_least": at_least})
    return pl.DataFrame(rows)


def samples_of(flows: pl.DataFrame) -> npt.NDArray[Any] | None:
    """Return the number of each flow's sample; `None` without samples."""
    return flows[SAMPLE].to_numpy() if SAMPLE in flows.columns else None


def p99s_within_run(result: Result, bucket: Bucket = ALL) -> pl.DataFrame:
    """Return the p99s of an answer by samples or a law with their intervals, as `within_run`.

    The table is empty for packets of the whole network. The batches are whole samples if there are
    ten or more; see `p99_interval`.
    """
    rows: list[dict[str, Any]] = []
    if result.summary.get("fidelity", {}).get("kind", PACKETS) == PACKETS:
        return pl.DataFrame(rows)
    for metric, column in P99S.items():
        flows = metrics.in_order(result, column, bucket)
        samples = [flows]
        if SAMPLE in flows.columns and not flows.is_empty():
            samples = by_sample(flows).partition_by(SAMPLE, maintain_order=True)
        values, are_finished = (
            [sample[name].to_numpy() for sample in samples] for name in ("value", "is_finished")
        )
        value, low, high = p99_interval(values, are_finished)
        bounds = {"value": value, "low": low, "high": high}
        at_least = not flows["is_finished"].all()
        rows.append({"metric": metric, **bounds, "seeds": 1, "at_least": at_least})
    return pl.DataFrame(rows)


def trend(results: Sequence[Result]) -> tuple[float, float, float]:
    """Return the ratio of slowdowns in the second half of the flows to the first, and its bounds.

    The ratio is that of the geometric means of the slowdowns of flows that started in either half
    of the time from the warm-up to the last arrival. Over seeds its logarithms have Student's
    interval; the interval of one run is that of the difference of two means, of five batches each.
    NaN without a load, with jobs (which load the network unevenly by design), or with fewer than
    `BATCHES` flows in a half. Unfinished flows count with lower bounds, so that the ratio is NaN if
    they make it less than 1.
    """
    halves = [half for result in results if (half := _halves(result)) is not None]
    logs = np.array([second.mean() - first.mean() for first, second in halves])
    has_bounds = any((result.flows["outcome"] == "unfinished").any() for result in results)
    if not halves or (has_bounds and logs.mean() < 0):
        return math.nan, math.nan, math.nan
    if len(logs) == 1:
        return _trend_within(*halves[0])
    value, low, high = map(math.exp, metrics.t_interval(logs))
    return value, low, high


def _halves(result: Result) -> tuple[Floats, Floats] | None:
    """Return the logarithms of slowdowns of the flows of either half, in order of start."""
    if not result.summary.get("load") or result.summary.get("jobs"):
        return None
    flows = metrics.in_order(result, "slowdown")
    starts, logs = flows["start_s"].to_numpy(), flows["value"].log().to_numpy()
    if not len(starts):
        return None
    first = starts < (metrics.warm_up_s(result) + starts[-1]) / 2
    halves = logs[first], logs[~first]
    return halves if min(map(len, halves)) >= BATCHES else None


def _trend_within(first: Floats, second: Floats) -> tuple[float, float, float]:
    """Return the ratio of two halves of a run and its interval, by batches."""
    batches = [
        np.array([batch.mean() for batch in np.array_split(half, BATCHES // 2)])
        for half in (first, second)
    ]
    count = BATCHES // 2
    error = math.sqrt(sum(float(means.var(ddof=1)) for means in batches) / count)
    reach = t_quantile((1 + 0.95) / 2, 2 * (count - 1)) * error
    value = float(second.mean() - first.mean())
    return math.exp(value), math.exp(value - reach), math.exp(value + reach)


def is_trend(ratio: tuple[float, float, float]) -> bool:
    """Return true for a result of `trend` that is significant and differs by over `ONE_RUN`."""
    value, low, high = ratio
    return bool(low > 1 or high < 1) and abs(math.log(value)) > ONE_RUN


def unsure(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are not converged, the widest interval first.

    `table` is a result of `across_seeds` or `within_run`. The column `reach` is the half-width of
    the interval as a share of `value`.
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
    """Return a sentence about the values of a figure's table that are not converged, if any."""
    if not {"value", "low", "high", "seeds"} <= set(table.columns):
        return None
    # Rows of time series have no interval over seeds; `high` is the largest sample of a span.
    over_seeds = table.drop_nulls(["seeds", "low"])
    rows = unsure(over_seeds)
    if rows.is_empty():
        return None
    worst = rows.row(0, named=True)
    labels = (worst[name] for name in table.columns[: table.columns.index("value")])
    where = ", ".join(str(label) for label in labels if label is not None)
    return (
        f"not converged: {rows.height} of {over_seeds.height} values have a confidence interval "
        f"wider than ± {100 * OVER_SEEDS:.0f} %; the widest is ± {100 * worst['reach']:.0f} % over "
        f"{worst['seeds']} seeds ({where})"
    )
