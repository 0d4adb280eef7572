"""Comparison of schemes: all combinations of variations over seeds, reduced to a table.

The columns of the table are the variations, `size` and `class` of the flows, and the columns of
`metrics.across_seeds`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import breakdown, convergence, durations, long_lived, metrics, paired
from sojourn.analysis.fidelity import with_self_check
from sojourn.base.errors import check_whole
from sojourn.runs.result_tables import COLUMNS as FLOW_COLUMNS
from sojourn.runs.results import Run
from sojourn.runs.runner import MAX_RUNS, over_seeds, sweep
from sojourn.scenario.encoding import SCHEMES
from sojourn.scenario.fields import find
from sojourn.scenario.overrides import check_listed, expand, labels_of, scheme_names, schemes_of

COLUMNS = ("size", "class", "metric", "value", "low", "high", "seeds", "at_least")
"""The columns after those of the variations."""


FCT_PARTS, SLOWDOWN_PARTS = "FCT: ", "slowdown: "
"""Prefixes of the metrics that are parts of the mean FCT and slowdown, as in `FCT: pace`."""


LOAD = {"realised load": metrics.realised_load()}
"""Metric of all flows together, if the workload has a configured load."""


PERCENTILES = ("p50", "p99")
"""Percentiles of FCTs by default; of slowdowns, the last."""

QUEUE_MAX = "queue max"

COUNTERS = {
    **{name: metrics.count(name) for name in metrics.COUNTS},
    "utilisation": metrics.of_busiest_link("utilisation"),
    QUEUE_MAX: metrics.largest_queue(),
}
"""Counts and the largest switch queue of a complete run, utilisation of the busiest link."""


def run_all(
    base: Mapping[str, Any],
    variations: Mapping[str, Sequence[Any]],
    seeds: int = 1,
    **options: Any,
) -> list[Run]:
    """Run every combination of variations over seeds; the options are those of `run_many`.

    Raises `ScenarioError` for more than `MAX_RUNS` runs.
    """
    # A variation with the name of another column, such as `size`, is named by its full path. Tables
    # of sizes count `flows`.
    schemes = schemes_of(base)
    for name, values in variations.items():
        check_listed(name, values)
    other_columns = {*COLUMNS, *paired.COLUMNS, *FLOW_COLUMNS, "flows"}
    variations = {
        find(schemes[0][1], name) if name in other_columns else name: values
        for name, values in variations.items()
    }
    check_whole("seeds", seeds)
    count = seeds * len(schemes) * math.prod(len(values) for values in variations.values())
    if count > MAX_RUNS:
        raise ScenarioError(f"{count} runs: at most {MAX_RUNS} can be compared")
    return sweep(over_seeds(expand(base, variations), seeds), **options)


def compare(  # noqa: PLR0913 - each parameter is an option of the comparison
    base: Mapping[str, Any],
    variations: Mapping[str, Sequence[Any]] | None = None,
    *,
    seeds: int = 1,
    buckets: Iterable[metrics.Bucket] = metrics.BUCKETS,
    percentiles: Sequence[str] = PERCENTILES,
    median: bool = False,
    account: bool = False,
    **options: Any,
) -> tuple[pl.DataFrame, list[Run]]:
    """Run every combination over seeds; return means with 95 % intervals, and the runs.

    The schemes of a table `schemes` come before the variations. A scenario without either is one
    scheme, named by its `name`.

    Rows are by `size`, and by `class` if there is more than one; those of long-lived flows are by
    class, those of jobs and calls by job and kind, and those of `COUNTERS` of all flows.
    With `median`, values are medians over seeds. With a single seed, means have the intervals of
    `convergence.within_run`, and p99s of answers by samples those of
    `convergence.p99s_within_run`. With `account`, runs record FCT breakdowns, and metrics that
    begin with `FCT_PARTS` and `SLOWDOWN_PARTS` are added: the parts of the mean FCT and of the
    mean slowdown of finished flows (`accounts.by_size`; always means, since medians of parts do not
    add up). Runs that are the same with all seeds count as one run. The options are those of
    `run_many`.
    """
    _check_percentiles(percentiles)
    if SCHEMES not in base and not variations:
        base = {SCHEMES: {str(base.get("name") or "scenario"): base}}
    base = {**base, "account": True} if account else base
    all_runs = run_all(base, variations or {}, seeds, **options)
    runs = metrics.distinct(all_runs)
    single = [group[0] for group in metrics.by_scheme(runs) if len(group) == 1]
    varied = [name for name in runs[0].labels if name != "seed"]
    has_deadlines = any(run.result.flows["deadline_s"].count() for run in runs)
    has_load = any(run.result.summary["load"] for run in runs)
    buckets = (*buckets, *metrics.class_buckets(run.result for run in runs))
    tables: list[pl.DataFrame] = []

    def add(summary: pl.DataFrame, where: Mapping[str, str]) -> None:
        identity = {name: pl.lit(value) for name, value in where.items()}
        tables.append(summary.with_columns(**identity).select(*varied, *COLUMNS))

    for bucket in buckets:
        measured = metrics.measure(
            runs,
            **{
                "flows": metrics.flows(bucket),
                **(LOAD if has_load and bucket == metrics.ALL else {}),
                "FCT mean": metrics.fct("mean", bucket),
                **{f"FCT {name}": metrics.fct(name, bucket) for name in percentiles},
                "slowdown mean": metrics.slowdown("mean", bucket),
                f"slowdown {percentiles[-1]}": metrics.slowdown(percentiles[-1], bucket),
                **(_deadline_metrics(bucket) if has_deadlines else {}),
            },
        )
        summary = metrics.across_seeds(measured, median=median)
        summary = metrics.without_biased(summary, measured, "flows")
        if single:
            summary = summary.update(_within_runs(single, bucket), on=[*varied, "metric"])
        add(summary, bucket.where)
    counters = metrics.across_seeds(metrics.measure(runs, **COUNTERS), median=median)
    add(counters, metrics.ALL.where)
    for name in long_lived.classes(run.result for run in runs):
        measured = metrics.measure(
            runs, **{head: metric(name) for head, metric in long_lived.METRICS.items()}
        )
        add(metrics.across_seeds(measured, median=median), metrics.ALL.where | {"class": name})
    for group in durations.groups(run.result for run in runs):
        measured = metrics.measure(runs, **group.metrics(percentiles))
        summary = metrics.across_seeds(measured, median=median)
        summary = metrics.without_biased(summary, measured, durations.CALLS)
        add(summary, metrics.ALL.where | {"class": group.name})
    for prefix in (FCT_PARTS, SLOWDOWN_PARTS) if account else ():
        parts = breakdown.by_size(runs, buckets, slowdowns=prefix == SLOWDOWN_PARTS)
        if parts.is_empty():
            continue
        if "class" not in parts.columns:
            parts = parts.with_columns(pl.lit(metrics.ALL.name).alias("class"))
        add(parts.with_columns(metric=prefix + pl.col("metric")), {})
    return pl.concat(tables, how="vertical_relaxed"), all_runs


def _check_percentiles(names: Sequence[str]) -> None:
    """Raise `ScenarioError` unless the names are a list of statistics."""
    try:
        is_list = isinstance(names, Sequence) and not isinstance(names, str)
        are_valid = is_list and min(map(metrics.least_flows, names)) > 0
    except (TypeError, ValueError):
        are_valid = False
    if not are_valid:
        raise ScenarioError(
            f'percentiles: expected a list of percentiles, such as ["p50", "p99"], not {names!r}'
        )


def first_labels(base: Mapping[str, Any], variations: Mapping[str, Sequence[Any]]) -> list[Any]:
    """Return the names of the schemes: those of the table `schemes`, or of the first variation.

    A table or a variation of one value precedes the schemes only if all have one value.
    """
    for name, listed in variations.items():
        check_listed(name, listed)
    names = [scheme_names(base), *map(labels_of, variations.values())]
    candidates = [each for each in names if each]
    return next((each for each in candidates if len(each) > 1), [*candidates, []][0])


def scheme_label(runs: Sequence[Run]) -> str:
    """Return the label of the schemes: the first with several values, else the first."""
    names = [name for name in runs[0].labels if name != "seed"]
    return next((name for name in names if _differs(runs, name)), names[0])


def _differs(runs: Sequence[Run], name: str) -> bool:
    return any(str(run.labels[name]) != str(runs[0].labels[name]) for run in runs)


def without_parts(table: pl.DataFrame) -> pl.DataFrame:
    """Return a comparison's table without parts of means."""
    metric = pl.col("metric").str
    return table.filter(~metric.starts_with(FCT_PARTS), ~metric.starts_with(SLOWDOWN_PARTS))


def parts_of(table: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """Return the parts in a comparison's table, in the form of `accounts.by_size`.

    `prefix` is `FCT_PARTS` or `SLOWDOWN_PARTS`.
    """
    metric = pl.col("metric").str
    return table.filter(metric.starts_with(prefix)).with_columns(metric.strip_prefix(prefix))


def labels(table: pl.DataFrame) -> list[str]:
    """Return the names of the variations of a comparison's table."""
    return [name for name in table.columns if name not in COLUMNS]


def _within_runs(runs: Iterable[Run], bucket: metrics.Bucket) -> pl.DataFrame:
    """Return the interval bounds of each run's means, and of the p99s of answers by samples."""
    rows = [
        {**run.labels, **_with_self_check(run, bucket, row)}
        for run in runs
        for intervals in (convergence.within_run, convergence.p99s_within_run)
        for row in intervals(run.result, bucket).to_dicts()
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.drop("seed", "value", "seeds", "at_least").unique(maintain_order=True)


def _with_self_check(run: Run, bucket: metrics.Bucket, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose interval is at least as wide as the error of the self-check of a law."""
    value, high = row["value"], row["high"]
    if not value or math.isnan(high):
        return row
    width = (high - value) / value
    widest = with_self_check(run.result, bucket, row["metric"].rpartition(" ")[2], width)
    reach = value * widest
    return row if widest == width else {**row, "low": value - reach, "high": value + reach}


def _deadline_metrics(bucket: metrics.Bucket) -> dict[str, metrics.Metric]:
    """Return the metrics of flows with deadlines."""
    return {
        "deadlines met": metrics.deadlines_met(bucket),
        "terminated": metrics.terminated(bucket),
    }
