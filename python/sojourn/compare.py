"""Comparing: the product of variations over seeds, reduced to a table and a picture."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import metrics, plot
from sojourn.results import Run
from sojourn.run import over_seeds, sweep
from sojourn.scenario import expand


def compare(
    base: Mapping[str, Any],
    variations: Mapping[str, Sequence[Any]],
    *,
    seeds: int = 1,
    buckets: Iterable[metrics.Bucket] = metrics.BUCKETS,
    **options: Any,
) -> tuple[pl.DataFrame, list[Run]]:
    """Run every combination over seeds; return means with 95 % intervals by size, and the runs.

    The options are those of `run_many`.
    """
    runs = sweep(over_seeds(expand(base, variations), seeds), **options)
    hurried = any(run.result.flows["deadline_s"].count() for run in runs)
    tables = []
    for bucket in buckets:
        measured = metrics.measure(
            runs,
            **{
                "flows": metrics.flows(bucket),
                "FCT mean": metrics.fct("mean", bucket),
                "FCT p50": metrics.fct("p50", bucket),
                "FCT p99": metrics.fct("p99", bucket),
                "slowdown mean": metrics.slowdown("mean", bucket),
                "slowdown p99": metrics.slowdown("p99", bucket),
                **(_of_deadlines(bucket) if hurried else {}),
            },
        )
        summary = metrics.across_seeds(measured)
        names = [name for name in summary.columns if name not in variations]
        size = pl.lit(bucket.name).alias("size")
        tables.append(summary.select(*variations, size, *names))
    return pl.concat(tables, how="vertical_relaxed"), runs


def _of_deadlines(bucket: metrics.Bucket) -> dict[str, metrics.Metric]:
    """Return what is told of flows with deadlines."""
    return {
        "deadlines met": metrics.deadlines_met(bucket),
        "terminated": metrics.terminated(bucket),
    }


def draw(table: pl.DataFrame, variations: Mapping[str, Sequence[Any]], stem: Path) -> None:
    """Draw mean and p99 slowdown of all flows against the first numeric variation, or as bars."""
    numeric = [name for name, values in variations.items() if all(map(_is_number, values))]
    x = numeric[0] if numeric else None
    others = [name for name in variations if name != x]
    named = pl.concat_str([pl.col(name).cast(pl.String) for name in others], separator=", ")
    rows = table.filter(pl.col("size") == metrics.ALL.name)
    rows = rows.with_columns((named if others else pl.lit("all flows")).alias("series"))
    with plot.canvas(1, 2) as (picture, panels):
        for axes, metric in zip(panels, ("slowdown mean", "slowdown p99"), strict=True):
            part = rows.filter(pl.col("metric") == metric)
            if x is None:
                plot.bars(axes, part, group="metric", by="series", label="slowdown")
            else:
                plot.against(axes, part, x=x, by="series", labels=(x, metric))
        plot.save(picture, stem)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
