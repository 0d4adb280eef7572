"""One function for each kind of picture. Published points are hollow, their line dashed."""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sojourn import files
from sojourn.layout import layout
from sojourn.looks import BLUE, RED, STYLE, look

UNITS = {
    "s": 1.0,
    "ms": 1e3,
    "us": 1e6,
    "ns": 1e9,
    "B": 1.0,
    "KB": 1e-3,
    "MB": 1e-6,
    "%": 100.0,
    "Gb/s": 1e-9,
}
"""What a value in seconds, bytes or shares is multiplied by to be shown in the unit."""

PUBLISHED = "published (hollow)"
"""What legends say of published points."""


SHEET = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6}
"""What lies behind a name that stands among lines."""


@contextlib.contextmanager
def canvas(
    rows: int = 1, columns: int = 1, size: tuple[float, float] | None = None, salt: str = "sojourn"
) -> Iterator[tuple[Canvas, Any]]:
    """Open a picture in the house look: the figure, and its axes (an array if several).

    The `salt` goes into the names inside an SVG: same picture, same file.
    """
    with mpl.rc_context(STYLE | {"svg.hashsalt": salt}):
        width, height = STYLE["figure.figsize"]
        extent = size or (width * (1 + 0.6 * (columns - 1)), height * (1 + 0.7 * (rows - 1)))
        figure = Canvas(figsize=extent)
        yield figure, figure.subplots(rows, columns)


def save(figure: Canvas, stem: Path) -> tuple[Path, Path]:
    """Write the picture as `stem.svg` and `stem.png`."""
    svg, png = stem.with_suffix(".svg"), stem.with_suffix(".png")
    with files.writing(svg):
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    # Laid out once: that takes as long as to draw.
    figure.set_layout_engine("none")
    with files.writing(png):
        figure.savefig(png, metadata={"Software": None})
    return svg, png


def legend(axes: Axes, columns: int = 4) -> None:
    """Put the legend above the axes, where it covers no data."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=math.ceil(len(handles) / math.ceil(len(handles) / columns)),
            borderaxespad=0.2,
            columnspacing=1.2,
            handletextpad=0.5,
        )


def one_legend(panels: Any) -> None:
    """Keep the legend of the first panel only: the others show the same schemes, or nothing."""
    for axes in np.ravel(panels)[1:]:
        shown = axes.get_legend()
        if shown is not None:
            shown.remove()


def same_scale(panels: Any) -> None:
    """Give panels the vertical axis that holds what any of them shows, named on the left only."""
    rows = np.atleast_2d(panels)
    limits = np.array([axes.get_ylim() for axes in rows.flat])
    for axes in rows.flat:
        axes.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        if axes.get_yscale() == "log":
            _name_minor_ticks(axes.yaxis)
    for axes in rows[:, 1:].flat:
        axes.set_ylabel("")
    for axes in rows[:-1].flat:
        axes.set_xlabel("")


def against(  # noqa: PLR0913 - each names one thing to be seen
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

    `published` has the columns `x`, `by` and `value`, in the same base unit as the table. What is
    in `drawn_as` has the look of the name that stands there.
    """
    scale = UNITS[unit] if unit else 1.0
    for scheme, part in _parts(table.sort(x, maintain_order=True), by):
        style = look(drawn_as.get(scheme, scheme))
        horizontal = part[x].to_numpy()
        axes.plot(
            horizontal,
            part["value"].to_numpy() * scale,
            color=style.colour,
            marker=style.marker,
            linestyle=style.line,
            label=scheme,
        )
        if "low" in part.columns and part["low"].is_not_nan().any():
            low, high = (part[name].to_numpy() * scale for name in ("low", "high"))
            # What is never negative has no band below zero, which a log axis could not show.
            floor = np.nanmin(part["value"].to_numpy()) * scale / 100 if log else 0.0
            axes.fill_between(
                horizontal, np.maximum(low, floor), high, color=style.colour, alpha=0.18, lw=0
            )
    if published is not None:
        _published(axes, published, (x, by), scale, drawn_as)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(with_unit(labels[1], unit))
    _scale(axes, log=log)
    if log_x:
        axes.set_xscale("log")
        least, most = axes.get_xlim()
        if most < 300 * least:
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(_plain_numbers())
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
    for number, (scheme, part) in enumerate(_parts(published.sort(x), by)):
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


def along_sizes(  # noqa: PLR0913 - each names one thing to be seen
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
    """Draw `column` of size curves, in seconds, against flow size in packets.

    `curves` are closed forms: the columns `by`, `size` and `column`, drawn as thin dashed lines.
    Means have bands of two standard errors. Hollow marks are lower bounds: flows had not finished.
    """
    within = pl.col("size").is_between(*limits) if limits else pl.lit(value=True)
    for scheme, part in _parts(table.filter(within).with_columns(value=column), by):
        _size_line(axes, part.sort("size"), scheme, band=column == "mean")
    if curves is not None:
        for name, part in _parts(curves.filter(within).with_columns(value=column), by):
            line: Any = {"color": look(name).colour, "linestyle": "--", "linewidth": 1}
            axes.plot(part["size"].to_numpy(), part["value"].to_numpy(), label=name, **line)
    if log_sizes:
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_plain_numbers())
    axes.set_xlabel("flow size (packets)")
    axes.set_ylabel(with_unit(label, "s"))
    _scale(axes, log=True)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    legend(axes, columns=3)


def _size_line(axes: Axes, part: pl.DataFrame, scheme: str, *, band: bool) -> None:
    style = look(scheme)
    sizes, values = part["size"].to_numpy(), part["value"].to_numpy()
    line: Any = {"color": style.colour, "linestyle": style.line, "linewidth": 1.2}
    axes.plot(sizes, values, marker=style.marker, markersize=4, label=scheme, **line)
    if band:
        # Of a handful of flows not even the spread is known.
        known = part["flows"].to_numpy() >= 5
        reach = 2 * np.where(known, part["stderr"].to_numpy(), 0.0)
        least = np.maximum(values - reach, values / 10)
        axes.fill_between(sizes, least, values + reach, color=style.colour, alpha=0.18, lw=0)
    bound = part["at_least"].to_numpy()
    hollow: Any = {"markerfacecolor": "white", "markersize": 4, "linestyle": "none"}
    axes.plot(sizes[bound], values[bound], marker=style.marker, color=style.colour, **hollow)


def curves(axes: Axes, table: pl.DataFrame, *, x: str, by: str = "scheme") -> None:
    """Draw `value` against `x` as lines without marks, one for each `by`: closed forms."""
    for name, part in _parts(table.sort(x, maintain_order=True), by):
        style = look(name)
        line: Any = {"color": style.colour, "linestyle": style.line, "linewidth": 1.2}
        axes.plot(part[x].to_numpy(), part["value"].to_numpy(), label=name, **line)


def cdf(  # noqa: PLR0913 - each names one thing to be seen
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
    """Draw distributions: `fraction` of flows against `value`, a curve for each `by`."""
    scale = UNITS[unit] if unit else 1.0
    for scheme, part in _parts(table, by):
        style = look(drawn_as.get(scheme, scheme))
        values, fractions = part["value"].to_numpy() * scale, part["fraction"].to_numpy()
        axes.step(
            values, fractions, where="post", color=style.colour, linestyle=style.line, label=scheme
        )
    if published is not None:
        for number, (scheme, part) in enumerate(_parts(published, by)):
            style = look(drawn_as.get(scheme, scheme))
            axes.plot(
                part["value"].to_numpy() * scale,
                part["fraction"].to_numpy(),
                color=style.colour,
                marker=style.marker,
                markerfacecolor="none",
                linestyle="--",
                linewidth=1,
                label=PUBLISHED if number == 0 else None,
            )
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_plain_numbers())
        _name_minor_ticks(axes.xaxis)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(with_unit(label, unit))
    axes.set_ylabel("fraction of flows")
    legend(axes)


def series(  # noqa: PLR0913 - each names one thing to be seen
    axes: Axes,
    table: pl.DataFrame,
    *,
    by: str = "scheme",
    unit: str = "KB",
    label: str = "queue",
    time_unit: str = "ms",
    log: bool = False,
    drawn_as: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw `value` over `time_s`, a curve for each `by`; `high` shades the peaks."""
    scale = UNITS[unit] if unit else 1.0
    for scheme, part in _parts(table, by):
        style = look(drawn_as.get(scheme, scheme))
        times = part["time_s"].to_numpy() * UNITS[time_unit]
        values = part["value"].to_numpy() * scale
        axes.plot(times, values, color=style.colour, linewidth=0.9, label=scheme)
        if "high" in part.columns:
            high = part["high"].to_numpy() * scale
            axes.fill_between(times, values, high, color=style.colour, alpha=0.2, lw=0)
    axes.set_xlabel(with_unit("time", time_unit))
    axes.set_ylabel(with_unit(label, unit))
    if log:
        # Queues are often empty: a scale that is linear near zero shows that too.
        axes.set_yscale("symlog", linthresh=1.0)
        axes.yaxis.set_major_formatter(_plain_numbers())
    legend(axes)


def points(
    axes: Axes,
    table: pl.DataFrame,
    *,
    by: str = "scheme",
    units: tuple[str, str] = ("", ""),
    labels: tuple[str, str] = ("", ""),
) -> None:
    """Draw `value` against `x` as a cloud of points, one colour for each `by`."""
    across, up = (UNITS[unit] if unit else 1.0 for unit in units)
    for name, part in _parts(table, by):
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
    across, up = (UNITS[unit] if unit else 1.0 for unit in units)
    for number, (scheme, part) in enumerate(_parts(table, by)):
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
    scale = UNITS[unit] if unit else 1.0
    groups = table[group or by].unique(maintain_order=True).to_list()
    names = table[by].unique(maintain_order=True).to_list()

    def places(name: str, part: pl.DataFrame) -> Any:
        shift = (names.index(name) + 0.5) * 0.6 / len(names) - 0.3 if group else 0.0
        return np.array([groups.index(at) + shift for at in part[group or by]])

    for name, part in _parts(table, by):
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
    known = [] if published is None else _parts(published, by)
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
    _scale(axes, log=log)
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
    scale = UNITS[unit] if unit else 1.0
    groups = table[group or by].unique(maintain_order=True).to_list()
    parts = list(_parts(table, by))
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
    known = [] if published is None else _parts(published, by)
    outline: Any = {"fill": False, "edgecolor": "#222222", "linestyle": "--", "linewidth": 1.2}
    for number, (name, part) in enumerate(known):
        heights = part["value"].to_numpy() * scale
        said = None if number else f"{source} (dashed)"
        axes.bar(places(name, part), heights, width * 0.92, label=said, **outline)
    axes.set_xticks(range(len(groups)), [str(name).replace(" ", "\n") for name in groups])
    axes.set_xlabel(group.replace("_", " ") if group else "")
    axes.set_ylabel(with_unit(label, unit))
    axes.grid(visible=False, axis="x")
    _scale(axes, log=log)
    legend(axes, columns=3)


def topology(axes: Axes, links: Sequence[Mapping[str, Any]]) -> None:
    """Draw a network from a summary's `links`: switches as squares, hosts as dots.

    Cables that are used more are drawn thicker, the most used one in red.
    """
    cables: dict[tuple[str, str], float] = {}
    for link in links:
        source, _, target = str(link["name"]).partition("->")
        cable = (min(source, target), max(source, target))
        cables[cable] = max(cables.get(cable, 0.0), float(link.get("utilisation", 0.0)))
    places, switches = layout(list(cables))
    # Hosts at the ends of a chain stand under each other: their names go to the side.
    chain = min(places[name][0] for name in places) == 0.0
    busiest = max(cables.values(), default=0.0)
    for (one, other), used in cables.items():
        hot = used > 0 and used == busiest
        axes.plot(
            *zip(places[one], places[other], strict=True),
            color=RED if hot else "#9CA3AF",
            linewidth=1 + 3 * used,
            zorder=1,
        )
    hosts = [name for name in places if name not in switches]
    for names, marker, size, colour in ((hosts, "o", 60, BLUE), (switches, "s", 260, "#374151")):
        spots = np.array([places[name] for name in names]).reshape(-1, 2)
        axes.scatter(spots[:, 0], spots[:, 1], s=size, marker=marker, color=colour, zorder=2)
    for name in switches if len(places) > 40 else places:
        side = {0.0: "left", 1.0: "right"}.get(places[name][0]) if chain else None
        _name_node(axes, name, places[name], side or ("switch" if name in switches else "host"))
    axes.set_axis_off()
    axes.margins(0.08)


NAME_PLACES: dict[str, tuple[tuple[float, float], dict[str, Any]]] = {
    "left": ((-7, 0), {"ha": "right", "va": "center"}),
    "right": ((7, 0), {"ha": "left", "va": "center"}),
    "switch": ((0, -12), {"ha": "center", "va": "top"}),
    "host": ((0, -6), {"ha": "center", "va": "top"}),
}
"""Where a node's name stands: its shift in points, and how it is aligned."""


def _name_node(axes: Axes, name: str, place: tuple[float, float], side: str) -> None:
    shift, alignment = NAME_PLACES[side]
    text: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7, "bbox": SHEET}
    axes.annotate(name, place, shift, **text, **alignment)


def _parts(table: pl.DataFrame, by: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows of each `by`, without those that have no value."""
    table = table.filter(pl.col("value").is_not_nan())
    for part in table.partition_by(by, maintain_order=True):
        yield str(part[by][0]), part


def unit_of_time(longest_s: float) -> str:
    """Return the unit for an axis of times up to this one."""
    return "s" if longest_s >= 1 else "ms" if longest_s >= 1e-3 else "us"


def with_unit(label: str, unit: str) -> str:
    """Return an axis label with its unit."""
    return f"{label} ({unit.replace('us', 'µs')})" if unit else label


def _scale(axes: Axes, *, log: bool) -> None:
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(_plain_numbers())
        _name_minor_ticks(axes.yaxis)
    elif np.isfinite(axes.dataLim.ymax):
        bottom, top = axes.get_ylim()
        bottom, highest = min(0.0, bottom), axes.dataLim.ymax
        # Room for the markers of what is nearly as high as all else.
        axes.set_ylim(bottom, max(top, highest + 0.04 * (highest - bottom)))


def _name_minor_ticks(axis: Axis) -> None:
    """Name minor ticks too where less than a decade may hold no power of ten to read values off."""
    least, most = axis.get_view_interval()
    axis.set_minor_formatter(_plain_numbers() if most < 10 * least else NullFormatter())


def _plain_numbers() -> FuncFormatter:
    """Write 100 rather than a power of ten."""
    return FuncFormatter(lambda value, _: f"{value:,.10g}".replace(",", " "))
