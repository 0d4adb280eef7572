"""Picture of a comparison."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn.analysis import breakdown, metrics
from sojourn.base import files
from sojourn.compare.comparison import labels, split_parts
from sojourn.show import plot
from sojourn.show.parts import COLOURS, significant_metrics
from sojourn.show.style import BLACK

FLOWS = "size or class"
"""Column of the size or class whose parts a bar shows."""


MAX_BARS = 40
"""Largest number of stacked bars in one picture."""


def write(table: pl.DataFrame, out: Path) -> list[str]:
    """Write a comparison and its picture to a directory; return the files' names."""
    files.write_text(out / "comparison.csv", table.write_csv())
    draw(table, out / "comparison")
    return ["comparison.csv", "comparison.svg", "comparison.png"]


def draw(table: pl.DataFrame, stem: Path) -> None:
    """Draw mean and p99 slowdown of all flows against the first numeric variation, or as bars.

    If the table has FCT breakdowns, a third panel contains one stacked bar for each combination of
    variations, size and class.
    """
    table, parts = split_parts(table)
    names = labels(table)
    x = next((name for name in names if table[name].dtype.is_numeric()), None)
    other_labels = [name for name in names if name != x]
    series = pl.concat_str([pl.col(name).cast(pl.String) for name in other_labels], separator=", ")
    every = metrics.ALL.name
    rows = table.filter(pl.col("size") == every, pl.col("class") == every)
    rows = rows.with_columns((series if other_labels else pl.lit("all flows")).alias("series"))
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
    """Return the parts that are drawn, with the column `FLOWS`: by sizes, if several, and class."""
    size, flow_class = pl.col("size"), pl.col("class")
    every = metrics.ALL.name
    # With a single size, its values are those of all flows.
    has_sizes = parts["size"].n_unique() > 2
    has_size = (size != every) if has_sizes else (size == every)
    parts = parts.filter(has_size | (flow_class != every)).with_columns(
        pl.when(flow_class == every).then(size).otherwise(flow_class).alias(FLOWS)
    )
    stacks = (
        parts.select(FLOWS, *names).unique(maintain_order=True).sort(FLOWS, maintain_order=True)
    )
    return parts.join(stacks.head(MAX_BARS), on=stacks.columns, how="semi", maintain_order="left")


def _draw_parts(axes: Axes, parts: pl.DataFrame, names: Sequence[str]) -> None:
    """Draw stacked bars of the parts of mean FCTs, over the mean ideal FCT of the same flows."""
    drawn = [name for name in significant_metrics(parts) if name in breakdown.PARTS]
    ticks: dict[float, str] = {}
    height = 0.0
    for group in parts.partition_by(FLOWS, maintain_order=True):
        axes.text(0, height - 0.45, group[FLOWS][0], fontsize=9, fontweight="bold", va="bottom")
        for bar in group.partition_by(names, maintain_order=True):
            values = dict(zip(bar["metric"], bar["value"], strict=True))
            ticks[height] = ", ".join(str(bar[name][0]) for name in names)
            left = 0.0
            for part in drawn:
                width = values[part] / values[breakdown.ALONE]
                style: Any = {"color": COLOURS[part], "edgecolor": "white", "linewidth": 0.3}
                entry = breakdown.LABELS[part] if len(ticks) == 1 else ""
                axes.barh(height, width, 0.8, left, label=entry, **style)
                left += width
            height += 1
        height += 1.0
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.invert_yaxis()
    axes.axvline(1, color=BLACK, linestyle="--", linewidth=1)
    axes.set_xlabel("mean FCT over mean ideal FCT")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9, frameon=False)
