"""Picture of a comparison."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from sojourn.analysis import breakdown, metrics
from sojourn.base import files
from sojourn.base.units import fitting_unit
from sojourn.compare.comparison import SLOWDOWN_PARTS, labels, parts_of, without_parts
from sojourn.show import plot
from sojourn.show.parts import COLOURS, significant_metrics
from sojourn.show.style import BLACK, DEFAULT_FORMATS, distinct

FLOWS = "size or class"
"""Column of the size or class whose parts a bar shows."""


MAX_BARS = 40
"""Largest number of stacked bars in one picture."""


UNITS = {"s": ("s", "ms", "us"), "B": ("MB", "KB", "B"), "b/s": ("Gb/s", "Mb/s", "Kb/s")}
"""Units of an axis, from large to small, by the unit of a measure."""

MAX_NAME = 32
"""Characters of a scheme in one line of an axis."""


def write(
    table: pl.DataFrame,
    out: Path,
    measures: pl.DataFrame | None = None,
    units: Mapping[str, str] = MappingProxyType({}),
    formats: Sequence[str] = DEFAULT_FORMATS,
) -> list[str]:
    """Write a comparison and its picture to a directory; return the files' names."""
    files.write_text(out / "comparison.csv", table.write_csv())
    pictures = draw(table, out / "comparison", measures, units, formats)
    return ["comparison.csv", *(file.name for file in pictures)]


def draw(
    table: pl.DataFrame,
    stem: Path,
    measures: pl.DataFrame | None = None,
    units: Mapping[str, str] = MappingProxyType({}),
    formats: Sequence[str] = DEFAULT_FORMATS,
) -> list[Path]:
    """Draw measures against the first numeric variation, or as bars: one panel for each.

    `measures` is a table of `metrics.across_seeds`, whose metrics have the `units` `s`, `B`,
    `b/s` or none; by default it is the mean and first percentile of slowdowns, or throughput and
    Jain index if all flows are long-lived. If the table has FCT breakdowns, a further panel
    contains one stacked bar for each combination of variations, size and class. Returns the files.
    """
    table, parts = without_parts(table), parts_of(table, SLOWDOWN_PARTS)
    names = labels(table)
    x = _first_numeric(table)
    every = metrics.ALL.name
    if measures is None:
        all_flows = table.filter(pl.col("size") == every, pl.col("class") == every)
        measures = all_flows.filter(pl.col("metric").is_in(_drawn_metrics(all_flows)))
    rows = measures.with_columns(series=_series(table))
    drawn = rows["metric"].unique(maintain_order=True).to_list()
    size = None
    if not parts.is_empty():
        parts, omitted = _stacks(parts, names)
        size = 6.0 * (len(drawn) + 1), max(4.2, 1.2 + 0.25 * _extent(parts, names))
    looks = looks_of(table)
    with plot.canvas(1, len(drawn) + (size is not None), size) as (picture, grid):
        panels = np.ravel(grid)
        for axes, metric in zip(panels, drawn, strict=False):
            part = rows.filter(pl.col("metric") == metric)
            if not part["value"].is_finite().any():
                axes.set_axis_off()
                axes.text(0, 0.5, f"{metric}:\nno value, or too few flows")
                continue
            unit = units.get(metric, "")
            if unit:
                unit = fitting_unit(UNITS[unit], float(np.nanmax(part["value"].to_numpy())))
            options: Any = {"by": "series", "unit": unit, "drawn_as": looks}
            if x is None:
                one_group = part.with_columns(group=pl.lit(""))
                plot.bars(axes, one_group, group="group", label=metric, **options)
                axes.set_xlabel("")
            else:
                plot.against(axes, part, x=x, labels=(x, metric), **options)
        plot.one_legend(panels[: len(drawn)])
        if size is not None:
            _draw_parts(panels[-1], parts, names)
            unfinished = table.filter(pl.col("metric") == "slowdown mean")["at_least"].any()
            flows = " of finished flows" if unfinished else ""
            panels[-1].set_xlabel(f"mean slowdown{flows} (1: ideal FCT)")
            panels[-1].set_title(omitted, loc="left", fontsize=9)
        return plot.save(picture, stem, formats)


def looks_of(table: pl.DataFrame) -> dict[str, str]:
    """Return the looks of the series of a comparison, in the form of `distinct`.

    If each scheme is one series, it has the look of the scheme, which other pictures need, too.
    """
    names = labels(table)
    by = next((name for name in names if table[name].n_unique() > 1), names[0])
    columns = table.select(series=_series(table), scheme=pl.col(by).cast(pl.String))
    pairs = columns.unique(maintain_order=True)
    if not (pairs["series"].is_unique().all() and pairs["scheme"].is_unique().all()):
        return distinct(pairs["series"].unique(maintain_order=True).to_list())
    looks = distinct(pairs["scheme"].to_list())
    return looks | {series: looks[scheme] for series, scheme in pairs.iter_rows()}


def _first_numeric(table: pl.DataFrame) -> str | None:
    """Return the variation along the horizontal axis."""
    return next((name for name in labels(table) if table[name].dtype.is_numeric()), None)


def _series(table: pl.DataFrame) -> pl.Expr:
    """Return the name of a series: the values of the other variations."""
    x = _first_numeric(table)
    others = [pl.col(name).cast(pl.String) for name in labels(table) if name != x]
    return pl.concat_str(others, separator=", ") if others else pl.lit("all flows")


def _drawn_metrics(rows: pl.DataFrame) -> tuple[str, str]:
    """Return the metrics that are drawn: those of long-lived flows, if no flow has an FCT."""
    slowdowns = rows.filter(pl.col("metric") == "slowdown mean")["value"]
    has_long_lived = "throughput" in rows["metric"]
    if has_long_lived and not slowdowns.is_finite().any():
        return "throughput", "Jain index"
    return "slowdown mean", next(name for name in rows["metric"] if name.startswith("slowdown p"))


def _stacks(parts: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, str]:
    """Return the parts that are drawn, with the column `FLOWS`, and a note on those that are not.

    They are by sizes, if several, and classes: as many as fit with all schemes.
    """
    size, flow_class = pl.col("size"), pl.col("class")
    every = metrics.ALL.name
    # With a single size, its values are those of all flows.
    has_sizes = parts["size"].n_unique() > 2
    has_size = (size != every) if has_sizes else (size == every)
    parts = parts.filter(has_size | (flow_class != every)).with_columns(
        pl.when(flow_class == every).then(size).otherwise(flow_class).alias(FLOWS)
    )
    stacks = parts.select(FLOWS, *names).unique(maintain_order=True)
    count = stacks.group_by(FLOWS, maintain_order=True).len()
    fitting = count.filter(pl.col("len").cum_sum() <= MAX_BARS)
    # A size or class is drawn without some of its bars only if no other picture is possible.
    chosen = count.head(max(fitting.height, 1))
    drawn = stacks.join(chosen, on=FLOWS, how="semi", maintain_order="left").head(MAX_BARS)
    every_bar = chosen["len"].sum()
    omissions = [
        *([f"{drawn.height} of {every_bar} combinations"] if drawn.height < every_bar else []),
        *([f"{len(chosen)} of {len(count)} sizes and classes"] if len(chosen) < len(count) else []),
    ]
    note = f"{', '.join(omissions)}; comparison.csv has all" if omissions else ""
    return parts.join(drawn, on=drawn.columns, how="semi", maintain_order="left"), note


def _extent(parts: pl.DataFrame, names: Sequence[str]) -> float:
    """Return the height of all bars with the names of their sizes, in distances of bars."""
    bars = parts.select(FLOWS, *names).unique(maintain_order=True)
    rooms = [_room(_bar_name(bar, names)) for bar in bars.to_dicts()]
    return sum(rooms) + bars[FLOWS].n_unique()


def _bar_name(bar: Mapping[str, Any], names: Sequence[str]) -> str:
    return textwrap.fill(", ".join(str(bar[name]) for name in names), MAX_NAME)


def _room(name: str) -> float:
    """Return the distance to the next bar: 1, or more for a name of several lines."""
    # A line of ten points takes 0.67 of a distance, and a legend may take a fifth of the height.
    return max(1.0, 0.9 * (name.count("\n") + 1))


def _draw_parts(axes: Axes, parts: pl.DataFrame, names: Sequence[str]) -> None:
    """Draw stacked bars of the parts of mean slowdowns."""
    drawn = [name for name in significant_metrics(parts) if name in breakdown.PARTS]
    ticks: dict[float, str] = {}
    height = 0.0
    for group in parts.partition_by(FLOWS, maintain_order=True):
        axes.text(0, height - 0.45, group[FLOWS][0], fontsize=9, fontweight="bold", va="bottom")
        for bar in group.partition_by(names, maintain_order=True):
            values = dict(zip(bar["metric"], bar["value"], strict=True))
            name = _bar_name(bar.row(0, named=True), names)
            # A bar is in the middle of its room.
            height += (_room(name) - 1) / 2
            ticks[height] = name
            left = 0.0
            for part in drawn:
                width = values[part]
                style: Any = {"color": COLOURS[part], "edgecolor": "white", "linewidth": 0.3}
                entry = breakdown.LABELS[part] if len(ticks) == 1 else ""
                axes.barh(height, width, 0.8, left, label=entry, **style)
                left += width
            height += (_room(name) + 1) / 2
        height += 1.0
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_ylim(height - 1.5, -1.5)
    axes.axvline(1, color=BLACK, linestyle="--", linewidth=1)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9, frameon=False)
