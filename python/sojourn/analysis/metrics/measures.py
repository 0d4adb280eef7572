"""What a run is measured by, a number each, and what these numbers are over seeds."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import polars as pl

from sojourn.analysis.metrics.buckets import ALL, Bucket, censored, judged, timed, warm_up_s
from sojourn.analysis.metrics.statistics import (
    Statistic,
    bootstrap_median,
    mean,
    statistic_of,
    t_interval,
)
from sojourn.runs.results import Result, Run

Metric = Callable[[Result], Statistic]


def fct(statistic: str, bucket: Bucket = ALL) -> Metric:
    """Measure flow completion time in seconds: `mean`, `max` or a percentile such as `p99`."""
    return lambda result: statistic_of(statistic, *censored(result, bucket, "fct_s"))


def slowdown(statistic: str, bucket: Bucket = ALL) -> Metric:
    """Measure completion time over that of the same flow alone in the network."""
    return lambda result: statistic_of(statistic, *censored(result, bucket, "slowdown"))


def ratio_of_means(bucket: Bucket = ALL) -> Metric:
    """Measure the mean completion time over the mean of the same flows alone in the network.

    Large flows weigh more than in the mean of the ratios, which is `slowdown`.
    """

    def measure_one(result: Result) -> Statistic:
        value, at_least = mean(*censored(result, bucket, "fct_s"))
        alone = timed(result, bucket)["ideal_fct_s"].to_numpy()
        return Statistic(value / float(alone.mean()) if len(alone) else math.nan, at_least)

    return measure_one


def flows(bucket: Bucket = ALL) -> Metric:
    """Measure how many flows the statistics of `bucket` are made of."""
    return lambda result: Statistic(float(timed(result, bucket).height))


def terminated(bucket: Bucket = ALL) -> Metric:
    """Measure how many flows were given up lest they miss their deadlines."""

    def measure_one(result: Result) -> Statistic:
        return Statistic(float(judged(result, bucket).height - timed(result, bucket).height))

    return measure_one


def deadlines_met(bucket: Bucket = ALL) -> Metric:
    """Measure application throughput: the share of flows with a deadline that finish by it.

    It is a lower bound while a flow is in progress of which the deadline has not passed.
    """

    def measure_one(result: Result) -> Statistic:
        flows = judged(result, bucket).filter(pl.col("deadline_s").is_not_null())
        met = (flows["fct_s"] <= flows["deadline_s"]).sum()
        undecided = flows.filter(
            pl.col("outcome") == "unfinished",
            pl.col("start_s") + pl.col("deadline_s") > result.summary["simulated_s"],
        )
        share = float(met) / flows.height if flows.height else math.nan
        return Statistic(share, at_least=not undecided.is_empty())

    return measure_one


def utilisation(link: str) -> Metric:
    """Measure the share of time that the link, such as `left->right`, was sending."""
    return lambda result: Statistic(float(link_counters(result, link)["utilisation"]))


def link_counters(result: Result, link: str) -> dict[str, Any]:
    """Return the counters of one link."""
    for counters in result.summary["links"]:
        if counters["name"] == link:
            return dict(counters)
    names = ", ".join(counters["name"] for counters in result.summary["links"])
    raise KeyError(f"there is no link {link!r} among {names}")


def count(name: str) -> Metric:
    """Measure one of the run's counts, such as `drops` or `marks`; NaN if the model has none."""
    return lambda result: Statistic(float(result.summary["counts"].get(name, math.nan)))


def realised_load() -> Metric:
    """Measure what the flows that started did offer, as a share of the topology's load reference.

    On the wire, headers included, from the first start to the last, warm-up and all. Sizes and gaps
    with a heavy tail offer what was asked for only in the long run. NaN if all started together.
    """

    def measure_one(result: Result) -> Statistic:
        realised = result.summary.get("realised_load")
        return Statistic(math.nan if realised is None else float(realised))

    return measure_one


def sampled(probe: str, statistic: str) -> Metric:
    """Measure a sampled quantity over the run after the warm-up: `mean`, `max` or a percentile."""

    def measure_one(result: Result) -> Statistic:
        warm_up = warm_up_s(result)
        samples = result.samples.filter(pl.col("probe") == probe, pl.col("time_s") >= warm_up)
        return statistic_of(statistic, samples["value"].to_numpy(), np.empty(0))

    return measure_one


class NotInABatch(Exception):
    """What is asked of some flows of a run is told of whole runs only."""


def measure(runs: Iterable[Run], **metrics: Metric) -> pl.DataFrame:
    """Return one row a run and metric: the labels, `metric`, `value`, `at_least`."""
    return pl.DataFrame(
        [
            {**run.labels, "metric": name, **_measured(metric, run.result)._asdict()}
            for run in runs
            for name, metric in metrics.items()
        ],
        infer_schema_length=None,
    )


def _measured(metric: Metric, result: Result) -> Statistic:
    try:
        return metric(result)
    except NotInABatch:
        return Statistic(math.nan)


def across_seeds(table: pl.DataFrame, *, median: bool = False) -> pl.DataFrame:
    """Reduce what `measure` returned over its seeds, with 95 % confidence bounds.

    The mean has bounds from Student's t distribution, the median from the bootstrap. `value`,
    `low`, `high`, `seeds` and `at_least` follow the labels and `metric`.
    """
    labels = [name for name in table.columns if name not in ("seed", "value", "at_least")]
    interval = bootstrap_median if median else t_interval
    rows = []
    # Their labels in one go: to take them group by group is slower than all else here.
    names = table.select(labels).unique(maintain_order=True).rows(named=True)
    for name, group in zip(names, table.partition_by(labels, maintain_order=True), strict=True):
        values = group["value"].to_numpy()
        value, low, high = interval(values)
        rows.append(
            {
                **name,
                "value": value,
                "low": low,
                "high": high,
                "seeds": len(values),
                "at_least": group["at_least"].any(),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def at(table: pl.DataFrame, column: str = "value", **labels: Any) -> float:
    """Return the one value of `column` in the row with these labels; NaN if there is none."""
    rows = table.filter(*(pl.col(name) == value for name, value in labels.items()))
    if rows.height > 1:
        raise ValueError(f"{rows.height} rows have {labels}: give more labels")
    return float(rows[column][0]) if rows.height else math.nan
