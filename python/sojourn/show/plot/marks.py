"""Pictures of single values: points, trade-offs, marks with intervals, bars."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from sojourn.base.units import PER_UNIT
from sojourn.show.plot.frame import (
    PUBLISHED,
    SHEET,
    legend,
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
    """Draw `value` against `x` as a cloud of points, one colour for each `by`."""
    across, up = (PER_UNIT[unit] if unit else 1.0 for unit in units)
    for name, part in rows_of_each(table, by):
        spots = part["x"].to_numpy() * across, part["value"].to_numpy() * up
        # Of thousands of points, an SVG would hold each.
        cloud: Any = {"s": 6, "alpha": 0.35, "linewidths": 0, "rasterized": part.height > 500}
        axes.scatter(*spots, color=look(name).colour, **cloud)
        # The clouds' own marks are too faint for a legend.
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
    """Draw what is had, `value`, against what it costs, `x`, as marks with intervals.

    Those with a `name` bear it. `low` to `high`, and `x_low` to `x_high`, are intervals, if given.
    """
    across, up = (PER_UNIT[unit] if unit else 1.0 for unit in units)
    for number, (scheme, part) in enumerate(rows_of_each(table, by)):
        style = look(scheme)
        # Names left above the first marks and right below the others keep apart where these meet.
        shift, side = ((5, -11), "left") if number else ((-5, 6), "right")
        spots = part["x"].to_numpy() * across, part["value"].to_numpy() * up
        reach = [
            np.nan_to_num(abs(part[end].to_numpy() * scale - centre))
            if end in part.columns
            else np.zeros(part.height)
            for axis, scale, centre in zip(("x_", ""), (across, up), spots, strict=True)
            for end in (f"{axis}low", f"{axis}high")
        ]
        mark: Any = {"color": style.colour, "linestyle": "none", "elinewidth": 0.8, "capsize": 2}
        axes.errorbar(
            *spots, yerr=reach[2:], xerr=reach[:2], marker=style.marker, label=scheme, **mark
        )
        for name, right, top in zip(part["name"], *spots, strict=True):
            place: Any = {"xytext": shift, "textcoords": "offset points", "ha": side, "fontsize": 8}
            axes.annotate(name, (right, top), color=style.colour, bbox=SHEET, **place)
    axes.margins(0.12)
    axes.set_xlim(left=0)
    axes.set_xlabel(with_unit(labels[0], units[0]))
    axes.set_ylabel(with_unit(labels[1], units[1]))
    legend(axes)


def levels(  # noqa: PLR0913 - each names one thing to be seen
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
    """Draw `value` as marks with intervals: bars have no foot to stand on where an axis is log.

    Marks stand together by `group`; without one, each stands over its own name. Published values
    are hollow, and `source` says where they come from. Values stand beside their marks in the
    format `values`, such as `{:.0f}`. A scheme in `drawn_as` looks as another one.
    """
    scale = PER_UNIT[unit] if unit else 1.0
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
        said = name if group else None
        axes.errorbar(at, centre, yerr=(low, high), marker=style.marker, label=said, **mark)
        given: Any = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
        for x, height in zip(at, centre, strict=True) if values else ():
            axes.annotate(values.format(height), (x, height), fontsize=8, **given)
    known = [] if published is None else rows_of_each(published, by)
    for number, (name, part) in enumerate(known):
        style = look(drawn_as.get(name, name))
        said = None if number else source
        hollow: Any = {"markerfacecolor": "none", "linestyle": "none", "markersize": 8}
        axes.plot(
            places(name, part) + (0.0 if group else 0.25),
            part["value"].to_numpy() * scale,
            color=style.colour,
            marker=style.marker,
            label=said,
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


def bars(  # noqa: PLR0913 - each names one thing to be seen
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
) -> None:
    """Draw `value` as bars with intervals, one colour for each `by`; published ones are outlines.

    Bars stand together by `group`; without one, each stands over its own name. `source` says where
    the outlines come from, `values` is a format such as `{:.2f}` by which values stand on bars.
    """
    scale = PER_UNIT[unit] if unit else 1.0
    groups = table[group or by].unique(maintain_order=True).to_list()
    parts = list(rows_of_each(table, by))
    width = 0.8 / (len(parts) or 1) if group else 0.7
    shift = {name: (number + 0.5) * width - 0.4 for number, (name, _) in enumerate(parts)}

    def places(name: str, part: pl.DataFrame) -> list[float]:
        return [groups.index(at) + (shift[name] if group else 0.0) for at in part[group or by]]

    for name, part in parts:
        heights = part["value"].to_numpy() * scale
        said = name if group else None
        at = places(name, part)
        axes.bar(at, heights, width * 0.92, color=look(name).colour, label=said)
        reach = np.zeros(len(at))
        if "low" in part.columns and part["low"].is_not_nan().any():
            reach = np.nan_to_num(part["high"].to_numpy() * scale - heights)
            # What is never negative has no interval below zero.
            below = np.where(heights >= 0, np.minimum(reach, heights), reach)
            bars: Any = {"fmt": "none", "ecolor": "#222222", "capsize": 2}
            axes.errorbar(at, heights, yerr=[below, reach], **bars)
        for x, height, top in zip(at, heights, heights + reach, strict=True) if values else ():
            given: Any = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center"}
            axes.annotate(values.format(height), (x, top), fontsize=8, **given)
    known = [] if published is None else rows_of_each(published, by)
    outline: Any = {"fill": False, "edgecolor": "#222222", "linestyle": "--", "linewidth": 1.2}
    for number, (name, part) in enumerate(known):
        heights = part["value"].to_numpy() * scale
        said = None if number else f"{source} (dashed)"
        axes.bar(places(name, part), heights, width * 0.92, label=said, **outline)
    axes.set_xticks(range(len(groups)), [str(name).replace(" ", "\n") for name in groups])
    axes.set_xlabel(group.replace("_", " ") if group else "")
    axes.set_ylabel(with_unit(label, unit))
    axes.grid(visible=False, axis="x")
    set_scale(axes, log=log)
    legend(axes, columns=3)
