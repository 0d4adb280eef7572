"""Comparing: the product of variations over seeds, reduced to a table and a picture.

The table's first columns are the variations; then `size` and `class` tell which flows a row is of,
and what `across_seeds` returns follows.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import accounts, convergence, explain, files, looks, metrics, pairs, plot
from sojourn._core import ScenarioError
from sojourn.results import Run
from sojourn.run import over_seeds, sweep
from sojourn.scenario import expand, find

COLUMNS = ("size", "class", "metric", "value", "low", "high", "seeds", "at_least")
"""The columns beside those of the variations."""

OF_TIME = "FCT: "
"""What the metrics begin with that are parts of the completion time, as in `FCT: pace`."""

FLOWS = "size or class"
"""Of which flows a stack of parts is."""

MOST_RUNS = 100_000
"""The most runs of a comparison: more are surely a slip of the hand."""

MOST_DRAWN = 40
"""Stacks of parts in one picture; it would be too high for more."""

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
        find(base, name) if name in (*COLUMNS, *pairs.COLUMNS) else name: values
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
    parts = accounts.by_size(runs, buckets) if account else pl.DataFrame()
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


def write(table: pl.DataFrame, out: Path) -> list[str]:
    """Write a comparison and its picture into a folder; return the files' names."""
    files.write_text(out / "comparison.csv", table.write_csv())
    draw(table, out / "comparison")
    return ["comparison.csv", "comparison.svg", "comparison.png"]


def draw(table: pl.DataFrame, stem: Path) -> None:
    """Draw mean and p99 slowdown of all flows against the first numeric variation, or as bars.

    If the table has parts of times, a third panel stacks them: a bar a combination, by size and
    class.
    """
    table, parts = divided(table)
    names = labels(table)
    x = next((name for name in names if table[name].dtype.is_numeric()), None)
    others = [name for name in names if name != x]
    named = pl.concat_str([pl.col(name).cast(pl.String) for name in others], separator=", ")
    every = metrics.ALL.name
    rows = table.filter(pl.col("size") == every, pl.col("class") == every)
    rows = rows.with_columns((named if others else pl.lit("all flows")).alias("series"))
    size = None
    if not parts.is_empty():
        parts = _stacks(parts, names)
        count = parts.select([*names, FLOWS]).n_unique()
        size = 18.0, max(4.2, 1.2 + 0.25 * count)
    with plot.canvas(1, 2 if size is None else 3, size) as (picture, panels):
        for axes, metric in zip(panels, ("slowdown mean", "slowdown p99"), strict=False):
            part = rows.filter(pl.col("metric") == metric)
            if x is None:
                plot.bars(axes, part, group="metric", by="series", label="slowdown")
            else:
                plot.against(axes, part, x=x, by="series", labels=(x, metric))
        if size is not None:
            _draw_parts(panels[2], parts, names)
        plot.save(picture, stem)


def _stacks(parts: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the parts that are drawn, and of which `FLOWS`: of several sizes, and classes."""
    size, of_class = pl.col("size"), pl.col("class")
    every = metrics.ALL.name
    # Of one size are all flows: what is said of them is said of it.
    several = parts["size"].n_unique() > 2
    sized = (size != every) if several else (size == every)
    parts = parts.filter(sized | (of_class != every)).with_columns(
        pl.when(of_class == every).then(size).otherwise(of_class).alias(FLOWS)
    )
    stacks = (
        parts.select(FLOWS, *names).unique(maintain_order=True).sort(FLOWS, maintain_order=True)
    )
    return parts.join(stacks.head(MOST_DRAWN), on=stacks.columns, how="semi", maintain_order="left")


def _draw_parts(axes: Axes, parts: pl.DataFrame, names: Sequence[str]) -> None:
    """Stack what mean times divide into, over the mean of the same flows alone."""
    heads = [name for name in explain.that_matter(parts) if name in accounts.PARTS]
    ticks: dict[float, str] = {}
    height = 0.0
    for of_some in parts.partition_by(FLOWS, maintain_order=True):
        axes.text(0, height - 0.45, of_some[FLOWS][0], fontsize=9, fontweight="bold", va="bottom")
        for stack in of_some.partition_by(names, maintain_order=True):
            values = dict(zip(stack["metric"], stack["value"], strict=True))
            ticks[height] = ", ".join(str(stack[name][0]) for name in names)
            left = 0.0
            for head in heads:
                width = values[head] / values[accounts.ALONE]
                style: Any = {
                    "color": accounts.COLOURS[head],
                    "edgecolor": "white",
                    "linewidth": 0.3,
                }
                axes.barh(height, width, 0.8, left, label=head if len(ticks) == 1 else "", **style)
                left += width
            height += 1
        height += 1.0
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.invert_yaxis()
    axes.axvline(1, color=looks.BLACK, linestyle="--", linewidth=1)
    axes.set_xlabel("mean completion time over that alone in the network")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9, frameon=False)
