"""Picture of paired ratios."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from sojourn.analysis.metrics import ALL
from sojourn.base import files
from sojourn.compare.paired_tables import (
    GROUP_COLUMNS,
    label_columns,
    may_change_ratio,
    same_flows_note,
)
from sojourn.scenario.overrides import scheme_name
from sojourn.show import plot
from sojourn.show.plot.frame import take_title
from sojourn.show.style import DEFAULT_FORMATS, Look, distinct, look

MAX_CASES = 60
"""Largest number of combinations of other variations in one picture."""


def write(
    table: pl.DataFrame,
    by: str,
    out: Path,
    drawn_as: Mapping[str, str] = MappingProxyType({}),
    formats: Sequence[str] = DEFAULT_FORMATS,
) -> list[str]:
    """Write ratios and their picture to a directory, if there are any; return the files' names."""
    if table.is_empty():
        return []
    files.write_text(out / "pairs.csv", table.write_csv())
    if means(table).is_empty():
        return ["pairs.csv"]
    pictures = draw(table, by, out / "pairs", drawn_as, formats)
    return ["pairs.csv", *(file.name for file in pictures)]


def means(table: pl.DataFrame) -> pl.DataFrame:
    """Return the ratios of mean completion times that have a value, which `draw` needs."""
    if table.is_empty():
        return table
    return table.filter(pl.col("metric") == "FCT mean", pl.col("value").is_not_nan())


def draw(
    table: pl.DataFrame,
    by: str,
    stem: Path,
    drawn_as: Mapping[str, str] = MappingProxyType({}),
    formats: Sequence[str] = DEFAULT_FORMATS,
) -> list[Path]:
    """Draw ratios of mean completion times with intervals: one panel for each size or class.

    A row is a combination of the other variations, with one mark for each scheme. Hollow marks are
    ratios that may change with the flows that finished under one scheme only. `drawn_as` maps
    schemes to the names whose looks they have in other pictures. Returns the files.
    """
    drawn = means(table)
    other_labels = [name for name in label_columns(table) if name != by]
    case = [pl.format(f"{name}={{}}", pl.col(name).cast(pl.String)) for name in other_labels]
    drawn = drawn.with_columns(
        case=pl.concat_str(case, separator=", ") if other_labels else pl.lit(""),
        scheme=pl.col(by).cast(pl.String),
    )
    cases = drawn["case"].unique(maintain_order=True).to_list()[:MAX_CASES]
    schemes = drawn["scheme"].unique(maintain_order=True).to_list()
    looks = drawn_as if drawn_as.keys() >= set(schemes) else distinct(schemes)
    panels = drawn.partition_by(*GROUP_COLUMNS, maintain_order=True)
    height = 1.6 + 0.28 * len(cases) * (len(schemes) + 0.5)
    with plot.canvas(1, len(panels), size=(1.8 + 2.4 * len(panels), height)) as (picture, grid):
        for axes, part in zip(np.ravel(grid), panels, strict=True):
            _panel(axes, part, cases, {scheme: look(looks[scheme]) for scheme in schemes})
            head = "class" if part["class"][0] != ALL.name else "size"
            axes.set_title(part[head][0].replace("all", "all flows"), fontsize=10)
        first = np.ravel(grid)[0]
        first.set_yticks(range(len(cases)), cases)
        for axes in np.ravel(grid)[1:]:
            axes.set_yticks(range(len(cases)), [""] * len(cases))
        baseline = scheme_name(by, table["against"][0])
        label = f"mean completion time over that of {baseline}{same_flows_note(drawn)}"
        picture.supxlabel(label, fontsize=10)
        handles, names = first.get_legend_handles_labels()
        columns, names = plot.fitted(picture, names, 72 * picture.get_figwidth() - 20, 6)
        style: Any = {"ncols": columns, "frameon": False, **take_title(picture)}
        picture.legend(handles, names, loc="outside upper left", **style)
        return plot.save(picture, stem, formats)


def _panel(axes: Any, part: pl.DataFrame, cases: list[str], styles: Mapping[str, Look]) -> None:
    for number, (scheme, style) in enumerate(styles.items()):
        rows = part.filter(pl.col("scheme") == scheme, pl.col("case").is_in(cases)).to_dicts()
        shift = 0.8 * ((number + 0.5) / len(styles) - 0.5)
        # The empty series adds every scheme to the legend.
        axes.plot([], [], style.marker, color=style.colour, label=scheme)
        for row in rows:
            height = cases.index(row["case"]) + shift
            if not math.isnan(row["low"]):
                axes.plot([row["low"], row["high"]], [height] * 2, color=style.colour)
            fill = "white" if may_change_ratio(row) else style.colour
            axes.plot(row["value"], height, style.marker, color=style.colour, markerfacecolor=fill)
    axes.axvline(1, color="#444444", linewidth=1)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    # The range extends beyond 1 on both sides and contains ticks.
    axes.set_xlim(min(low, 0.9), max(high, 1.11))
    low, high = axes.get_xlim()
    # The ticks of a log axis are too far apart in a narrow range.
    is_narrow = high < 3 * low
    linear, log = MaxNLocator(5, steps=(1, 2, 2.5, 5, 10)), LogLocator(subs=(1, 2, 3, 5))
    axes.xaxis.set_major_locator(linear if is_narrow else log)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(len(cases) - 0.5, -0.5)
