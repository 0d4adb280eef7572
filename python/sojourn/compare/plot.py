"""The picture of a comparison."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn.analysis import breakdown, metrics
from sojourn.base import files
from sojourn.compare.comparison import divided, labels
from sojourn.show import plot
from sojourn.show.parts import COLOURS, significant_metrics
from sojourn.show.style import BLACK

FLOWS = "size or class"
"""Of which flows a stack of parts is."""


MOST_DRAWN = 40
"""Stacks of parts in one picture; it would be too high for more."""


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
    heads = [name for name in significant_metrics(parts) if name in breakdown.PARTS]
    ticks: dict[float, str] = {}
    height = 0.0
    for of_some in parts.partition_by(FLOWS, maintain_order=True):
        axes.text(0, height - 0.45, of_some[FLOWS][0], fontsize=9, fontweight="bold", va="bottom")
        for stack in of_some.partition_by(names, maintain_order=True):
            values = dict(zip(stack["metric"], stack["value"], strict=True))
            ticks[height] = ", ".join(str(stack[name][0]) for name in names)
            left = 0.0
            for head in heads:
                width = values[head] / values[breakdown.ALONE]
                style: Any = {
                    "color": COLOURS[head],
                    "edgecolor": "white",
                    "linewidth": 0.3,
                }
                axes.barh(height, width, 0.8, left, label=head if len(ticks) == 1 else "", **style)
                left += width
            height += 1
        height += 1.0
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.invert_yaxis()
    axes.axvline(1, color=BLACK, linestyle="--", linewidth=1)
    axes.set_xlabel("mean completion time over that alone in the network")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9, frameon=False)
