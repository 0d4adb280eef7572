"""Metrics that reduce a run to one number, and their summary over seeds."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from sojourn.analysis.metrics.buckets import (
    ALL,
    Bucket,
    censored,
    counts,
    judged,
    timed,
    warm_up_s,
)
from sojourn.analysis.metrics.seeds import without_repetition
from sojourn.analysis.metrics.statistics import (
    Statistic,
    is_percentile,
    least_for_interval,
    mean,
    median_interval,
    ratio_interval,
    reported,
    seed_interval,
    statistic_of,
)
from sojourn.runs.results import Result, Run

Metric = Callable[[Result], Statistic]
"""Function from a result to one number."""

RARE_COUNTS = ("credit drops", "losses", "trims")
"""Counts that most runs have not, which tables have only if they are above zero."""

COUNTS = ("drops", *RARE_COUNTS, "marks", "pauses", "timeouts", "retransmits")
"""Counts of a run that results and comparisons contain."""


def fct(statistic: str, bucket: Bucket = ALL, *, few: bool = False) -> Metric:
    """Measure the FCT in seconds: `mean`, `max` or a percentile such as `p99`.

    A percentile of fewer than `least_flows` flows is NaN; with `few`, it is their largest value.
    """
    of = statistic_of if few else reported
    return lambda result: of(statistic, *censored(result, bucket, "fct_s"))


def slowdown(statistic: str, bucket: Bucket = ALL, *, few: bool = False) -> Metric:
    """Measure the slowdown (FCT over ideal FCT), in the form of `fct`."""
    of = statistic_of if few else reported
    return lambda result: of(statistic, *censored(result, bucket, "slowdown"))


def ratio_of_means(bucket: Bucket = ALL) -> Metric:
    """Measure the mean FCT over the mean ideal FCT of the same flows.

    Large flows have more weight than in the mean of the ratios, which is `slowdown`.
    """

    def measure_one(result: Result) -> Statistic:
        value, at_least = mean(*censored(result, bucket, "fct_s"))
        ideal = timed(result, bucket)["ideal_fct_s"].to_numpy()
        return Statistic(value / float(ideal.mean()) if len(ideal) else math.nan, at_least)

    return measure_one


def flows(bucket: Bucket = ALL) -> Metric:
    """Measure the number of flows in the FCT statistics of `bucket`."""
    return lambda result: Statistic(float(counts(result, bucket)[0]))


def terminated(bucket: Bucket = ALL) -> Metric:
    """Measure the number of flows that gave up because they would miss their deadlines."""
    return lambda result: Statistic(float(counts(result, bucket)[1]))


def deadlines_met(bucket: Bucket = ALL) -> Metric:
    """Measure application throughput: the share of flows with a deadline that met it.

    The share is a lower bound if an unfinished flow's deadline is after the end of the run.
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


def utilisation(link: str, *, whole_run: bool = False) -> Metric:
    """Measure the share of time during which a link, such as `left->right`, transmitted.

    The time is that of `measured`, or the whole run.
    """

    def measure_one(result: Result) -> Statistic:
        counters = link_counters(result, link)
        return Statistic(float((counters if whole_run else measured(counters))["utilisation"]))

    return measure_one


def link_counters(result: Result, link: str) -> dict[str, Any]:
    """Return the counters of one link in the whole run.

    Raises `KeyError` if there is no such link.
    """
    for counters in result.summary["links"]:
        if counters["name"] == link:
            return dict(counters)
    names = ", ".join(counters["name"] for counters in result.summary["links"])
    raise KeyError(f"link {link!r}: no such link; expected one of {names}")


def measured(counters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counters of a link, with those from the warm-up to the last arrival.

    These are utilisation, bytes, packets, drops, marks, pauses and the mean queue, and in an ideal
    utilisation and bytes; others are of the whole run. All are if flows do not arrive at a mean
    rate.
    """
    return {**counters, **counters.get("measured", {})}


def of_busiest_link(counter: str) -> Metric:
    """Measure a counter of the link with the highest utilisation, such as `queue_max_bytes`.

    The counters are those of `measured`; NaN in an ideal without them.
    """

    def measure_one(result: Result) -> Statistic:
        links = map(measured, result.summary["links"])
        busiest = max(links, key=lambda link: float(link["utilisation"]), default={})
        return Statistic(float(busiest.get(counter, math.nan)))

    return measure_one


def largest_queue() -> Metric:
    """Measure the largest backlog of a switch port in the whole run, in bytes.

    Ports of hosts count only in a network without switches, such as a single link. NaN in an ideal.
    """

    def measure_one(result: Result) -> Statistic:
        links = list(result.summary["links"])
        hosts = set(host_names(result.summary))
        of_switches = [link for link in links if _source(link) not in hosts]
        backlogs = (float(link.get("queue_max_bytes", math.nan)) for link in of_switches or links)
        return Statistic(max(backlogs, default=math.nan))

    return measure_one


def host_names(summary: Mapping[str, Any]) -> list[str]:
    """Return the names of hosts by number: of a graph those that it names, or nodes with one link.

    Without counters of links the list is empty. Switches with one link may follow the hosts.
    """
    named = summary["scenario"].get("topology", {}).get("hosts")
    if isinstance(named, list):
        return list(named)
    links_of = Counter(map(_source, summary["links"]))
    return [name for name, number in links_of.items() if number == 1]


def _source(link: Mapping[str, Any]) -> str:
    return str(link["name"]).partition("->")[0]


def count(name: str) -> Metric:
    """Measure one of the run's counts, such as `drops` or `marks`; NaN if the model has none.

    The counts include the warm-up.
    """
    key = name.replace(" ", "_")
    return lambda result: Statistic(float(result.summary["counts"].get(key, math.nan)))


def realised_load() -> Metric:
    """Measure the load that the started flows offered, as a share of the load reference.

    Headers count. The interval is from the first start to the last, including the warm-up. If sizes
    or interarrival times have a heavy tail, the realised load converges slowly to the configured
    load. NaN if all flows started at one instant.
    """

    def measure_one(result: Result) -> Statistic:
        realised = result.summary.get("realised_load")
        return Statistic(math.nan if realised is None else float(realised))

    return measure_one


def sampled(probe: str, statistic: str) -> Metric:
    """Measure samples of `probe` after the warm-up: `mean`, `max` or a percentile."""

    def measure_one(result: Result) -> Statistic:
        warm_up = warm_up_s(result)
        samples = result.samples.filter(pl.col("probe") == probe, pl.col("time_s") >= warm_up)
        return statistic_of(statistic, samples["value"].to_numpy(), np.empty(0))

    return measure_one


class NotInABatch(Exception):
    """A batch of flows was used in a metric that exists only for complete runs."""


def measure(runs: Iterable[Run], **metrics: Metric) -> pl.DataFrame:
    """Return one row per run and metric: the labels, `metric`, `value`, `at_least`.

    If the runs of all schemes are the same with each seed, only those of the first seed have rows.
    """
    return pl.DataFrame(
        [
            {**run.labels, "metric": name, **_measured(metric, run.result)._asdict()}
            for run in without_repetition(runs)
            for name, metric in metrics.items()
        ],
        infer_schema_length=None,
    )


def _measured(metric: Metric, result: Result) -> Statistic:
    try:
        return metric(result)
    except NotInABatch:
        return Statistic(math.nan)


def across_seeds(
    table: pl.DataFrame, *, median: bool = False, ratios: bool = False
) -> pl.DataFrame:
    """Reduce a table of `measure` to means or medians over seeds, with 95 % confidence bounds.

    Seeds in which a metric is NaN have no flows for it and do not count. (Seeds with too few flows
    for a percentile or a maximum do, since others alone would be biased.)

    The bounds of a mean are Student's, and NaN below `LEAST_FOR_MEAN` seeds; those of a median are
    order statistics, and NaN below `LEAST_FOR_MEDIAN` seeds. With `ratios`, the bounds of means of
    positive values are those of logarithms (`interval_about`), as of claims. The columns are the
    labels, `metric`, `value`, `low`, `high`, `seeds` and `at_least`.
    """
    labels = [name for name in table.columns if name not in ("seed", "value", "at_least")]
    mean_interval = ratio_interval if ratios else seed_interval
    interval = median_interval if median else mean_interval
    rows = []
    # Labels are read at once, since reading them from each group dominates the time.
    names = table.select(labels).unique(maintain_order=True).rows(named=True)
    for name, group in zip(names, table.partition_by(labels, maintain_order=True), strict=True):
        values = group["value"].to_numpy()
        if not any(is_percentile(word) or word == "max" for word in _words(name["metric"])):
            with_flows = values[~np.isnan(values)]
            values = with_flows if len(with_flows) else values
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


def _words(metric: str) -> list[str]:
    """Return the words of the name of a metric, such as those of `small_p99`."""
    return metric.replace("_", " ").split()


def without_biased(summary: pl.DataFrame, measured: pl.DataFrame, count: str) -> pl.DataFrame:
    """Remove the bounds of percentiles over seeds of fewer than `least_for_interval` flows each.

    `summary` is `across_seeds` of `measured`, in which the metric `count` is the number of flows.
    The last word of a metric is its statistic.
    """
    labels = [name for name in measured.columns if name not in ("seed", "value", "at_least")]
    labels.remove("metric")
    flows = measured.filter(pl.col("metric") == count)
    fewest = {
        tuple(map(str, row[:-1])): row[-1]
        for row in flows.group_by(labels, maintain_order=True).agg(pl.col("value").min()).rows()
    }

    def is_biased(row: dict[str, Any]) -> bool:
        name = str(row["metric"]).rpartition(" ")[2]
        key = tuple(str(row[label]) for label in labels)
        has_seeds = row["seeds"] > 1 and is_percentile(name)
        return has_seeds and fewest.get(key, math.inf) < least_for_interval(name)

    biased = pl.Series("biased", [is_biased(row) for row in summary.to_dicts()], pl.Boolean)
    bounds = [
        pl.when(biased).then(math.nan).otherwise(pl.col(name)).alias(name)
        for name in ("low", "high")
    ]
    return summary.with_columns(bounds)


def at(table: pl.DataFrame, column: str = "value", **labels: Any) -> float:
    """Return `column` in the row with these labels; NaN without such a row.

    Raises `ValueError` if several rows have the labels.
    """
    rows = table.filter(*(pl.col(name) == value for name, value in labels.items()))
    if rows.height > 1:
        raise ValueError(f"{labels}: {rows.height} rows match; give more labels")
    return float(rows[column][0]) if rows.height else math.nan
