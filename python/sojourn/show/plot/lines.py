"""Line pictures: against a variation, by flow size, distributions, time series."""

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
    are_bounds,
    legend,
    name_bounds,
    name_minor_ticks,
    plain_numbers,
    rows_of_each,
    set_scale,
    with_unit,
)
from sojourn.show.style import look


def against(  # noqa: PLR0913 - each parameter is an option of the picture
    axes: Axes,
    table: pl.DataFrame,
    *,
    x: str = "load",
    by: str = "scheme",
    unit: str = "",
    published: pl.DataFrame | None = None,
    labels: tuple[str, str] = ("load", ""),
    log: bool = False,
    log_x: bool = False,
    drawn_as: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw `value` against `x`, a line for each `by`, with bands from `low` to `high`.

    `published` has the columns `x`, `by` and `value`, in the same base unit as the table.
    `drawn_as` maps names of schemes to the names whose colours and markers they get. Lower bounds
    (`at_least`) have hollow marks below `≥`, without a band.
    """
    scale, has_bounds = factor(unit), False
    for scheme, part in rows_of_each(table.sort(x, maintain_order=True), by):
        style = look(drawn_as.get(scheme, scheme))
        horizontal, values = part[x].to_numpy(), part["value"].to_numpy() * scale
        bound = are_bounds(part)
        axes.plot(
            horizontal,
            values,
            color=style.colour,
            marker=style.marker,
            linestyle=style.line,
            label=scheme,
        )
        if "low" in part.columns and part["low"].is_not_nan().any():
            low, high = (part[name].to_numpy() * scale for name in ("low", "high"))
            # Values are nonnegative; on a log axis the band needs a positive lower limit.
            floor = np.nanmin(values) / 100 if log else 0.0
            low, high = (
                np.where(bound, np.nan, np.maximum(low, floor)),
                np.where(bound, np.nan, high),
            )
            axes.fill_between(horizontal, low, high, color=style.colour, alpha=0.18, lw=0)
        if bound.any():
            has_bounds = True
            hollow: Any = {"markerfacecolor": "white", "linestyle": "none"}
            places = horizontal[bound], values[bound]
            axes.plot(*places, marker=style.marker, color=style.colour, **hollow)
            above: Any = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center"}
            for place in zip(*places, strict=True):
                axes.annotate(AT_LEAST, place, color=style.colour, fontsize=9, **above)
    if has_bounds:
        name_bounds(axes)
    if published is not None:
        _published(axes, published, (x, by), scale, drawn_as)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(with_unit(labels[1], unit))
    set_scale(axes, log=log)
    if log_x:
        axes.set_xscale("log")
        least, most = axes.get_xlim()
        if most < 300 * least:
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(plain_numbers())
        axes.xaxis.set_minor_formatter(NullFormatter())
    legend(axes)


def _published(
    axes: Axes,
    published: pl.DataFrame,
    columns: tuple[str, str],
    scale: float,
    drawn_as: Mapping[str, str],
) -> None:
    x, by = columns
    for number, (scheme, part) in enumerate(rows_of_each(published.sort(x), by)):
        style = look(drawn_as.get(scheme, scheme))
        axes.plot(
            part[x].to_numpy(),
            part["value"].to_numpy() * scale,
            color=style.colour,
            marker=style.marker,
            markerfacecolor="none",
            linestyle="--",
            linewidth=1,
            alpha=0.75,
            label=PUBLISHED if number == 0 else None,
        )


def along_sizes(  # noqa: PLR0913 - each parameter is an option of the picture
    axes: Axes,
    table: pl.DataFrame,
    *,
    column: str = "mean",
    by: str = "scheme",
    curves: pl.DataFrame | None = None,
    label: str = "mean completion time",
    limits: tuple[float, float] | None = None,
    log_sizes: bool = True,
) -> None:
    """Draw `column` of `metrics.size_curve`, in seconds, against flow size in packets.

    `curves` are closed forms with the columns `by`, `size` and `column`, drawn as thin dashed
    lines. Means have bands of two standard errors. Hollow marks are lower bounds, because of
    unfinished flows.
    """
    within = pl.col("size").is_between(*limits) if limits else pl.lit(value=True)
    for scheme, part in rows_of_each(table.filter(within).with_columns(value=column), by):
        _size_line(axes, part.sort("size"), scheme, band=column == "mean")
    if curves is not None:
        for name, part in rows_of_each(curves.filter(within).with_columns(value=column), by):
            line: Any = {"color": look(name).colour, "linestyle": "--", "linewidth": 1}
            axes.plot(part["size"].to_numpy(), part["value"].to_numpy(), label=name, **line)
    if log_sizes:
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(plain_numbers())
    axes.set_xlabel("flow size (packets)")
    axes.set_ylabel(with_unit(label, "s"))
    set_scale(axes, log=True)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    legend(axes, columns=3)


def _size_line(axes: Axes, part: pl.DataFrame, scheme: str, *, band: bool) -> None:
    style = look(scheme)
    sizes, values = part["size"].to_numpy(), part["value"].to_numpy()
    line: Any = {"color": style.colour, "linestyle": style.line, "linewidth": 1.2}
    axes.plot(sizes, values, marker=style.marker, markersize=4, label=scheme, **line)
    if band:
        # The standard error of fewer than five flows is too uncertain.
        has_error = part["flows"].to_numpy() >= 5
        half_width = 2 * np.where(has_error, part["stderr"].to_numpy(), 0.0)
        low = np.maximum(values - half_width, values / 10)
        axes.fill_between(sizes, low, values + half_width, color=style.colour, alpha=0.18, lw=0)
    bound = part["at_least"].to_numpy()
    hollow: Any = {"markerfacecolor": "white", "markersize": 4, "linestyle": "none"}
    axes.plot(sizes[bound], values[bound], marker=style.marker, color=style.colour, **hollow)


def curves(axes: Axes, table: pl.DataFrame, *, x: str, by: str = "scheme") -> None:
    """Draw closed forms, `value` against `x`, as lines without marks, one for each `by`."""
    for name, part in rows_of_each(table.sort(x, maintain_order=True), by):
        style = look(name)
        line: Any = {"color": style.colour, "linestyle": style.line, "linewidth": 1.2}
        axes.plot(part[x].to_numpy(), part["value"].to_numpy(), label=name, **line)


def cdf(  # noqa: PLR0913 - each parameter is an option of the picture
    axes: Axes,
    table: pl.DataFrame,
    *,
    by: str = "scheme",
    unit: str = "us",
    published: pl.DataFrame | None = None,
    label: str = "flow completion time",
    log: bool = True,
    drawn_as: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw distributions: `fraction` of flows against `value`, one curve for each `by`."""
    scale = factor(unit)
    for scheme, part in rows_of_each(table, by):
        style = look(drawn_as.get(scheme, scheme))
        values, fractions = part["value"].to_numpy() * scale, part["fraction"].to_numpy()
        axes.step(
            values, fractions, where="post", color=style.colour, linestyle=style.line, label=scheme
        )
    if published is not None:
        for scheme, part in rows_of_each(published, by):
            style = look(drawn_as.get(scheme, scheme))
            axes.plot(
                part["value"].to_numpy() * scale,
                part["fraction"].to_numpy(),
                color=style.colour,
                marker=style.marker,
                markerfacecolor="none",
                linestyle="--",
                linewidth=1,
                label=f"{scheme}, published",
            )
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(plain_numbers())
        name_minor_ticks(axes.xaxis)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(with_unit(label, unit))
    axes.set_ylabel("fraction of flows")
    legend(axes)


def series(  # noqa: PLR0913 - each parameter is an option of the picture
    axes: Axes,
    table: pl.DataFrame,
    *,
    by: str = "scheme",
    unit: str = "KB",
    label: str = "queue",
    time_unit: str = "ms",
    log: bool = False,
    drawn_as: Mapping[str, str] = MappingProxyType({}),
    note: str = "",
    step: bool = False,
) -> None:
    """Draw `value` over `time_s`, one curve for each `by`; `high` shades the peaks.

    The `note` is a line above the legend. With `step`, a value holds until the next time.

    Raises `ValueError` if the times of a curve decrease, because it is of several runs.
    """
    scale = factor(unit)
    for scheme, part in rows_of_each(table, by):
        style = look(drawn_as.get(scheme, scheme))
        times = part["time_s"].to_numpy() * factor(time_unit)
        if (np.diff(times) < 0).any():
            raise ValueError(f"{scheme}: time_s decreases; draw a single run")
        values = part["value"].to_numpy() * scale
        # Only a look that was chosen for this picture has a line style.
        line = style.line if scheme in drawn_as else "-"
        drawn: Any = {"color": style.colour, "linestyle": line, "linewidth": 0.9}
        form = "steps-post" if step else "default"
        axes.plot(times, values, label=scheme, drawstyle=form, **drawn)
        if "high" in part.columns:
            high = part["high"].to_numpy() * scale
            axes.fill_between(times, values, high, color=style.colour, alpha=0.2, lw=0)
    axes.set_xlabel(with_unit("time", time_unit))
    axes.set_ylabel(with_unit(label, unit))
    if log:
        # The scale is linear near zero, since queues are often empty.
        axes.set_yscale("symlog", linthresh=1.0)
        axes.yaxis.set_major_formatter(plain_numbers())
    legend(axes, note=note)
