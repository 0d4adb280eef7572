"""Common elements of pictures: canvas, files, legend, axes with units and scales."""

import contextlib
import contextvars
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FuncFormatter, NullFormatter

from sojourn.base import files
from sojourn.show.style import DEFAULT_FORMATS, STYLE

PUBLISHED = "published (hollow)"
"""Legend entry of published points."""

AT_LEAST = "≥"
"""Mark of lower bounds."""

LOWER_BOUND = "lower bound (unfinished flows)"
"""Legend entry of lower bounds."""

SHEET = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6}
"""Background of a name that is drawn among lines."""


MOST_IN_A_ROW = 3
"""Largest number of panels side by side; more are not legible in a page."""


TITLE: contextvars.ContextVar[str] = contextvars.ContextVar("title", default="")
"""Title of pictures, see `titled`."""


@contextlib.contextmanager
def titled(title: str) -> Iterator[None]:
    """Give all pictures that are drawn within this context a title; none if it is empty."""
    token = TITLE.set(title)
    try:
        yield
    finally:
        TITLE.reset(token)


def take_title(figure: Canvas) -> dict[str, Any]:
    """Take the title off a picture; return it as options of a legend that is above all panels."""
    title = figure.get_suptitle()
    if not title:
        return {}
    figure.suptitle("").set_in_layout(False)
    return {"title": title, "title_fontsize": 9, "alignment": "left"}


@contextlib.contextmanager
def canvas(
    rows: int = 1, columns: int = 1, size: tuple[float, float] | None = None, salt: str = "sojourn"
) -> Iterator[tuple[Canvas, Any]]:
    """Create a picture in the common style: the figure, and its axes (an array if several).

    The `salt` seeds the identifiers in the SVG, so that a picture always gives the same file.
    """
    with mpl.rc_context(STYLE | {"svg.hashsalt": salt}):
        width, height = STYLE["figure.figsize"]
        extent = size or (width * (1 + 0.6 * (columns - 1)), height * (1 + 0.7 * (rows - 1)))
        figure = Canvas(figsize=extent)
        if title := TITLE.get():
            figure.suptitle(title, fontsize=9, x=0.01, ha="left")
        yield figure, figure.subplots(rows, columns)


@contextlib.contextmanager
def panels(
    count: int, extent: tuple[float, float], legend_width: float, salt: str
) -> Iterator[tuple[Canvas, list[Axes]]]:
    """Create a picture of panels, at most `MOST_IN_A_ROW` in a row: the figure, and their axes.

    `extent` is the width and height of a panel in inches, and `legend_width` that of the legend on
    the right.
    """
    columns = min(count, MOST_IN_A_ROW)
    rows = math.ceil(count / columns)
    size = (legend_width + columns * extent[0], rows * extent[1])
    with canvas(rows, columns, size, salt) as (figure, axes):
        every = list(np.ravel(axes))
        for axis in every[count:]:
            axis.remove()
        yield figure, every[:count]


def save(figure: Canvas, stem: Path, formats: Sequence[str] = DEFAULT_FORMATS) -> list[Path]:
    """Write the picture as `stem.svg` and `stem.png`, or in other formats; return the files."""
    written = []
    for suffix in formats:
        file = stem.with_name(f"{stem.name}.{suffix}")
        # The canvases are used directly, since `savefig` draws twice because of the layout.
        figure_canvas: Any = CANVASES[suffix](figure)
        # Printing an SVG or a PDF changes the resolution.
        figure.set_dpi(mpl.rcParams["savefig.dpi"])
        with files.writing(file):
            getattr(figure_canvas, f"print_{suffix}")(file, metadata=METADATA[suffix])
        # The layout is not computed again, which takes as long as drawing.
        figure.set_layout_engine("none")
        written.append(file)
    return written


CANVASES: dict[str, Any] = {
    "svg": FigureCanvasSVG,
    "png": FigureCanvasAgg,
    "pdf": FigureCanvasPdf,
}

METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Metadata that are left out, so that a picture always gives the same file."""


def legend(axes: Axes, columns: int = 4, note: str = "") -> None:
    """Draw the legend above the axes, where it covers neither data nor another legend.

    The `note` is a line above the entries; a title of the axes would be where the legend is.
    """
    handles, labels = axes.get_legend_handles_labels()
    if LOWER_BOUND in labels:
        # Matplotlib names lines before bars.
        last = labels.index(LOWER_BOUND)
        for items in (handles, labels):
            items.append(items.pop(last))
    if handles:
        figure: Any = axes.get_figure(root=True)
        place = axes.get_subplotspec()
        panels = place.get_gridspec().ncols if place is not None else 1
        # The names of ticks and axes take about 40 points.
        width = 72 * figure.get_figwidth() / panels - 40
        columns, labels = fitted(figure, labels, width, columns, notes=int(bool(note)))
        axes.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=columns,
            borderaxespad=0.2,
            columnspacing=1.2,
            handletextpad=0.5,
            title=note or None,
            title_fontsize=9,
            alignment="left",
        )


def side_legend(picture: Canvas, panels: Iterable[Axes], order: Iterable[str]) -> None:
    """Draw one legend of several panels on their right; `order` is that of possible entries."""
    entries: dict[str, Any] = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    names = [name for name in order if name in entries]
    handles = [entries[name] for name in names]
    picture.legend(handles, names, loc="outside right center", fontsize=9, frameon=False)


def fitted(
    figure: Canvas, labels: Sequence[str], width: float, columns: int, notes: int = 0
) -> tuple[int, list[str]]:
    """Return the number of columns of a legend of `width` points, and its entries.

    Entries that are wider than the legend have line breaks. A legend that takes more than a fifth
    of the picture's height makes it higher. `notes` is the number of lines above the entries.
    """
    font = FontProperties(size=mpl.rcParams["legend.fontsize"])
    agg: Any = FigureCanvasAgg(figure)
    renderer = agg.get_renderer()
    points = 72 / figure.get_dpi()
    widths = [
        renderer.get_text_width_height_descent(label, font, ismath=False)[0] * points
        for label in labels
    ]
    # Handle and text pad of an entry, space between columns, and border, in sizes of the font.
    size = font.get_size_in_points()
    entry, space, border = 2.5 * size, 1.2 * size, 0.8 * size

    def total(count: int) -> float:
        parts = np.array_split(np.array(widths), count)
        return float(sum(part.max() + entry for part in parts)) + (count - 1) * space + border

    # The number of columns that gives the same number of rows.
    counts = [math.ceil(len(labels) / math.ceil(len(labels) / n)) for n in range(columns, 0, -1)]
    fitting = next((count for count in counts if total(count) <= width), 1)
    longest, room = max(widths), width - entry - border
    if longest > room:
        characters = max(map(len, labels))
        most = max(int(characters * room / longest), 12)
        labels = [textwrap.fill(label, most) for label in labels]
    rows = math.ceil(len(labels) / fitting)
    lines = sum(max(label.count("\n") + 1 for label in labels[row::rows]) for row in range(rows))
    excess = 1.3 * size * (lines + notes) / 72 - 0.2 * figure.get_figheight()
    if excess > 0:
        figure.set_figheight(figure.get_figheight() + excess)
    return fitting, list(labels)


def one_legend(panels: Any) -> None:
    """Remove all legends of the panels but the first, which show the same schemes.

    The first explains lower bounds of all panels.
    """
    first, *others = [axes for axes in np.ravel(panels) if axes.get_legend() is not None] or [None]
    has_bounds = [LOWER_BOUND in axes.get_legend_handles_labels()[1] for axes in others]
    if any(has_bounds) and LOWER_BOUND not in first.get_legend_handles_labels()[1]:
        name_bounds(first)
        legend(first)
    for axes in others:
        axes.get_legend().remove()


def are_bounds(part: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Return true for each row whose value is a lower bound, because of unfinished flows."""
    if "at_least" not in part.columns:
        return np.zeros(part.height, dtype=bool)
    return part["at_least"].fill_null(value=False).to_numpy()


def name_bounds(axes: Axes) -> None:
    """Add the mark of lower bounds to the legend."""
    mark: Any = {"color": "#222222", "linestyle": "none", "label": LOWER_BOUND}
    axes.plot([], [], marker=f"${AT_LEAST}$", markeredgewidth=0.3, markersize=7, **mark)


def same_scale(panels: Any) -> None:
    """Give all panels the same vertical range, with axis labels on the left and bottom only."""
    rows = np.atleast_2d(panels)
    limits = np.array([axes.get_ylim() for axes in rows.flat])
    for axes in rows.flat:
        axes.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        if axes.get_yscale() == "log":
            name_minor_ticks(axes.yaxis)
    for axes in rows[:, 1:].flat:
        axes.set_ylabel("")
    for axes in rows[:-1].flat:
        axes.set_xlabel("")


def unit_of_time(longest_s: float) -> str:
    """Return the unit of an axis of times up to `longest_s`."""
    return "s" if longest_s >= 1 else "ms" if longest_s >= 1e-3 else "us"


def with_unit(label: str, unit: str) -> str:
    """Return an axis label with its unit."""
    return f"{label} ({unit.replace('us', 'µs')})" if unit else label


def rows_of_each(table: pl.DataFrame, by: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield each value of `by` and its rows, without rows whose `value` is NaN."""
    table = table.filter(pl.col("value").is_not_nan())
    for part in table.partition_by(by, maintain_order=True):
        yield str(part[by][0]), part


def set_scale(axes: Axes, *, log: bool) -> None:
    """Make the vertical axis logarithmic, or begin it at zero with space above the highest mark."""
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(plain_numbers())
        name_minor_ticks(axes.yaxis)
    elif np.isfinite(axes.dataLim.ymax):
        bottom, top = axes.get_ylim()
        bottom, highest = min(0.0, bottom), axes.dataLim.ymax
        # Space for the markers of the highest values.
        axes.set_ylim(bottom, max(top, highest + 0.04 * (highest - bottom)))


def name_minor_ticks(axis: Axis) -> None:
    """Label minor ticks if the axis is shorter than a decade and may contain no power of ten."""
    least, most = axis.get_view_interval()
    axis.set_minor_formatter(plain_numbers() if most < 10 * least else NullFormatter())


def plain_numbers() -> FuncFormatter:
    """Return a formatter of ticks that writes 100 rather than a power of ten."""
    return FuncFormatter(lambda value, _: f"{value:,.10g}".replace(",", " "))
