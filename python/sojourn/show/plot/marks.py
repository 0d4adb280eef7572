"""Pictures of single values: scatter plots, trade-offs, marks with intervals, bars."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from sojourn.base.units import factor
from sojourn.show.plot.frame import (
    AT_LEAST,
    PUBLISHED,
    SHEET,
    are_bounds,
    legend,
    name_bounds,
    rows_of_each,
    set_scale,
    with_unit,
)
from sojourn.show.style import look


def points(
    axes: Axes,
    table: pl.DataFrame,
    *,
    by: str = "scheme",
    units: tuple[str, str] = ("", ""),
    labels: tuple[str, str] = ("", ""),
) -> None:
    """Draw `value` against `x` as a scatter plot, one colour for each `by`."""
    x_scale, y_scale = (factor(unit) for unit in units)
    for name, part in rows_of_each(table, by):
        positions = part["x"].to_numpy() * x_scale, part["value"].to_numpy() * y_scale
        # Many points are rasterised to limit the size of the SVG.
        marks: Any = {"s": 6, "alpha": 0.35, "linewidths": 0, "rasterized": part.height > 500}
        axes.scatter(*positions, color=look(name).colour, **marks)
        # The legend gets opaque marks.
        axes.scatter([], [], color=look(name).colour, s=20, label=name)
    axes.set_xlabel(with_unit(labels[0], units[0]))
    axes.set_ylabel(with_unit(labels[1], units[1]))
    legend(axes, columns=2)


def tradeoff(
    axes: Axes,
    table: pl.DataFrame,
    *,
    by: str = "scheme",
    units: tuple[str, str] = ("", ""),
    labels: tuple[str, str] = ("", ""),
) -> None:
    """Draw a benefit, `value`, against its cost, `x`, as marks with intervals.

    The column `name` labels marks. Optional intervals are `low` to `high`, and `x_low` to `x_high`.
    """
    x_scale, y_scale = (factor(unit) for unit in units)
    for number, (scheme, part) in enumerate(rows_of_each(table, by)):
        style = look(scheme)
        # Labels of the first scheme are left above its marks, others right below, against overlap.
        shift, side = ((5, -11), "left") if number else ((-5, 6), "right")
        positions = part["x"].to_numpy() * x_scale, part["value"].to_numpy() * y_scale
        errors = [
            np.nan_to_num(abs(part[end].to_numpy() * scale - centre))
            if end in part.columns
            else np.zeros(part.height)
            for axis, scale, centre in zip(("x_", ""), (x_scale, y_scale), positions, strict=True)
            for end in (f"{axis}low", f"{axis}high")
        ]
        mark: Any = {"color": style.colour, "linestyle": "none", "elinewidth": 0.8, "capsize": 2}
        mark |= {"marker": style.marker, "label": scheme}
        axes.errorbar(*positions, yerr=errors[2:], xerr=errors[:2], **mark)
        for name, x, y in zip(part["name"], *positions, strict=True):
            place: Any = {"xytext": shift, "textcoords": "offset points", "ha": side, "fontsize": 8}
            axes.annotate(name, (x, y), color=style.colour, bbox=SHEET, **place)
    axes.margins(0.12)
    axes.set_xlim(left=0)
    axes.set_xlabel(with_unit(labels[0], units[0]))
    axes.set_ylabel(with_unit(labels[1], units[1]))
    legend(axes)


def levels(  # noqa: PLR0913 - each parameter is an option of the picture
    axes: Axes,
    table: pl.DataFrame,
    *,
    group: str | None = None,
    by: str = "scheme",
    unit: str = "",
    published: pl.DataFrame | None = None,
    source: str = PUBLISHED,
    label: str = "",
    values: str = "",
    log: bool = True,
    drawn_as: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw `value` as marks with intervals, which unlike bars suit a log axis.

    Marks are grouped by `group`; without it, each has its own position. Published values are
    hollow, and `source` is their legend entry. If `values` is a format, such as `{:.0f}`, values
    are written beside their marks. Lower bounds are hollow too, with `≥` before the value.
    `drawn_as` maps schemes to the schemes whose look they get.
    """
    scale = factor(unit)
    groups = table[group or by].unique(maintain_order=True).to_list()
    names = table[by].unique(maintain_order=True).to_list()

    def places(name: str, part: pl.DataFrame) -> Any:
        shift = (names.index(name) + 0.5) * 0.6 / len(names) - 0.3 if group else 0.0
        return np.array([groups.index(at) + shift for at in part[group or by]])

    for name, part in rows_of_each(table, by):
        style = look(drawn_as.get(name, name))
        at, centre = places(name, part), part["value"].to_numpy() * scale
        low, high = (
            np.nan_to_num(abs(part[end].to_numpy() * scale - centre)) for end in ("low", "high")
        )
        mark: Any = {"color": style.colour, "linestyle": "none", "capsize": 3, "markersize": 7}
        entry = name if group else None
        axes.errorbar(at, centre, yerr=(low, high), marker=style.marker, label=entry, **mark)
        bound = are_bounds(part)
        hollow: Any = {"color": style.colour, "markerfacecolor": "white", "markersize": 7}
        axes.plot(at[bound], centre[bound], marker=style.marker, linestyle="none", **hollow)
        shift: Any = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
        for x, height, is_bound in zip(at, centre, bound, strict=True) if values else ():
            text = (f"{AT_LEAST} " if is_bound else "") + values.format(height)
            axes.annotate(text, (x, height), fontsize=8, **shift)
    published_rows = [] if published is None else rows_of_each(published, by)
    for number, (name, part) in enumerate(published_rows):
        style = look(drawn_as.get(name, name))
        entry = None if number else source
        hollow = {"markerfacecolor": "none", "linestyle": "none", "markersize": 8}
        axes.plot(
            places(name, part) + (0.0 if group else 0.25),
            part["value"].to_numpy() * scale,
            color=style.colour,
            marker=style.marker,
            label=entry,
            **hollow,
        )
    axes.set_xticks(range(len(groups)), [str(name).replace(" ", "\n") for name in groups])
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.margins(y=0.12)
    axes.set_ylabel(with_unit(label, unit))
    axes.grid(visible=False, axis="x")
    set_scale(axes, log=log)
    if log:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    legend(axes, columns=3)


def bars(  # noqa: PLR0913 - each parameter is an option of the picture
    axes: Axes,
    table: pl.DataFrame,
    *,
    group: str | None = None,
    by: str = "scheme",
    unit: str = "",
    published: pl.DataFrame | None = None,
    source: str = "published",
    label: str = "",
    values: str = "",
    log: bool = False,
    drawn_as: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw `value` as bars with intervals, one colour for each `by`; published bars are outlines.

    Bars are grouped by `group`; without it, each has its own position. `source` is the legend entry
    of outlines. If `values` is a format, such as `{:.2f}`, values are written above bars.
    `drawn_as` maps schemes to the schemes whose look they get; bars are hatched if their lines
    would be dotted. Lower bounds (`at_least`) have a `≥` above instead of an interval.
    """
    scale, has_bounds = factor(unit), False
    groups = table[group or by].unique(maintain_order=True).to_list()
    parts = list(rows_of_each(table, by))
    width = 0.8 / (len(parts) or 1) if group else 0.7
    shift = {name: (number + 0.5) * width - 0.4 for number, (name, _) in enumerate(parts)}

    def places(name: str, part: pl.DataFrame) -> list[float]:
        return [groups.index(at) + (shift[name] if group else 0.0) for at in part[group or by]]

    for name, part in parts:
        heights = part["value"].to_numpy() * scale
        entry = name if group else None
        at = places(name, part)
        style = look(drawn_as.get(name, name))
        hatch: Any = {"hatch": "///", "edgecolor": "white"} if style.line == ":" else {}
        hatch = hatch if name in drawn_as else {}
        axes.bar(at, heights, width * 0.92, color=style.colour, label=entry, **hatch)
        above, bound = np.zeros(len(at)), are_bounds(part)
        has_bounds |= bool(bound.any())
        if "low" in part.columns and part["low"].is_not_nan().any():
            above = np.nan_to_num(part["high"].to_numpy() * scale - heights)
            above[bound] = 0
            # The interval of a nonnegative value does not extend below zero.
            below = np.where(heights >= 0, np.minimum(above, heights), above)
            bars: Any = {"fmt": "none", "ecolor": "#222222", "capsize": 2}
            shown = np.where(bound, np.nan, heights)
            axes.errorbar(at, shown, yerr=[below, above], **bars)
        for x, height, top, is_bound in zip(at, heights, heights + above, bound, strict=True):
            texts = [AT_LEAST] if is_bound else []
            texts += [values.format(height)] if values else []
            offset: Any = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center"}
            if texts:
                axes.annotate(" ".join(texts), (x, top), fontsize=8 if values else 11, **offset)
    if has_bounds:
        name_bounds(axes)
    published_rows = [] if published is None else rows_of_each(published, by)
    outline: Any = {"fill": False, "edgecolor": "#222222", "linestyle": "--", "linewidth": 1.2}
    for number, (name, part) in enumerate(published_rows):
        heights = part["value"].to_numpy() * scale
        entry = None if number else f"{source} (dashed)"
        axes.bar(places(name, part), heights, width * 0.92, label=entry, **outline)
    axes.set_xticks(range(len(groups)), [str(name).replace(" ", "\n") for name in groups])
    axes.set_xlabel(group.replace("_", " ") if group else "")
    axes.set_ylabel(with_unit(label, unit))
    axes.grid(visible=False, axis="x")
    set_scale(axes, log=log)
    legend(axes, columns=3)
