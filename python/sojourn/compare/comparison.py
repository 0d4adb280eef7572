"""Comparing: the product of variations over seeds, reduced to a table and a picture.

The table's first columns are the variations; then `size` and `class` tell which flows a row is of,
and what `across_seeds` returns follows.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import breakdown, convergence, metrics, paired
from sojourn.runs.results import Run
from sojourn.runs.runner import over_seeds, sweep
from sojourn.scenario.overrides import expand, find

COLUMNS = ("size", "class", "metric", "value", "low", "high", "seeds", "at_least")
"""The columns beside those of the variations."""


OF_TIME = "FCT: "
"""What the metrics begin with that are parts of the completion time, as in `FCT: pace`."""


MOST_RUNS = 100_000
"""The most runs of a comparison: more are surely a slip of the hand."""


LOAD = {"realised load": metrics.realised_load()}
"""What is told of all flows together where a load was asked for."""


def run_all(
    base: Mapping[str, Any],
    variations: Mapping[str, Sequence[Any]],
    seeds: int = 1,
    **options: Any,
) -> list[Run]:
    """Run every combination over seeds; the options are those of `run_many`."""
    # What has the name of another column, such as `size`, gets its whole path as its name.
    variations = {
        find(base, name) if name in (*COLUMNS, *paired.COLUMNS) else name: values
        for name, values in variations.items()
    }
    count = seeds * math.prod(len(values) for values in variations.values())
    if count > MOST_RUNS:
        raise ScenarioError(f"{count} runs are too many: at most {MOST_RUNS} can be compared")
    return sweep(over_seeds(expand(base, variations), seeds), **options)


def compare(  # noqa: PLR0913 - each is a choice of its own
    base: Mapping[str, Any],
    variations: Mapping[str, Sequence[Any]],
    *,
    seeds: int = 1,
    buckets: Iterable[metrics.Bucket] = metrics.BUCKETS,
    median: bool = False,
    account: bool = False,
    **options: Any,
) -> tuple[pl.DataFrame, list[Run]]:
    """Run every combination over seeds; return means with 95 % intervals, and the runs.

    By `size`, and by `class` where there is more than one. With `median`, medians over seeds. Of a
    single seed the means have the intervals of `convergence.within_run`. With `account`, runs keep
    accounts, and rows follow that begin with `OF_TIME`: how the mean time of finished flows divides
    (`accounts.by_size`; always means, since medians of parts do not add up). The options are those
    of `run_many`.
    """
    base = {**base, "account": True} if account else base
    runs = run_all(base, variations, seeds, **options)
    varied = [name for name in runs[0].labels if name != "seed"]
    hurried = any(run.result.flows["deadline_s"].count() for run in runs)
    loaded = any(run.result.summary["load"] for run in runs)
    buckets = (*buckets, *metrics.class_buckets(run.result for run in runs))
    tables = []
    for bucket in buckets:
        measured = metrics.measure(
            runs,
            **{
                "flows": metrics.flows(bucket),
                **(LOAD if loaded and bucket == metrics.ALL else {}),
                "FCT mean": metrics.fct("mean", bucket),
                "FCT p50": metrics.fct("p50", bucket),
                "FCT p99": metrics.fct("p99", bucket),
                "slowdown mean": metrics.slowdown("mean", bucket),
                "slowdown p99": metrics.slowdown("p99", bucket),
                **(_of_deadlines(bucket) if hurried else {}),
            },
        )
        summary = metrics.across_seeds(measured, median=median)
        if seeds == 1:
            summary = summary.update(_within_runs(runs, bucket), on=[*varied, "metric"])
        where = {name: pl.lit(value) for name, value in bucket.where.items()}
        tables.append(summary.with_columns(**where).select(*varied, *COLUMNS))
    parts = breakdown.by_size(runs, buckets) if account else pl.DataFrame()
    if not parts.is_empty():
        if "class" not in parts.columns:
            parts = parts.with_columns(pl.lit(metrics.ALL.name).alias("class"))
        parts = parts.with_columns(metric=OF_TIME + pl.col("metric"))
        tables.append(parts.select(*varied, *COLUMNS))
    return pl.concat(tables, how="vertical_relaxed"), runs


def divided(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Divide a comparison's table: what is usual, and how times divide, as `accounts.by_size`."""
    of_time = pl.col("metric").str.starts_with(OF_TIME)
    parts = table.filter(of_time).with_columns(pl.col("metric").str.strip_prefix(OF_TIME))
    return table.filter(~of_time), parts


def labels(table: pl.DataFrame) -> list[str]:
    """Return the names of the variations of a comparison's table."""
    return [name for name in table.columns if name not in COLUMNS]


def _within_runs(runs: Iterable[Run], bucket: metrics.Bucket) -> pl.DataFrame:
    """Return the bounds of each run's means."""
    rows = [
        {**run.labels, **row}
        for run in runs
        for row in convergence.within_run(run.result, bucket).to_dicts()
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.drop("seed", "value", "seeds", "at_least").unique(maintain_order=True)


def _of_deadlines(bucket: metrics.Bucket) -> dict[str, metrics.Metric]:
    """Return what is told of flows with deadlines."""
    return {
        "deadlines met": metrics.deadlines_met(bucket),
        "terminated": metrics.terminated(bucket),
    }
