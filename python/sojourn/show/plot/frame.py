"""Common elements of pictures: canvas, files, legend, axes with units and scales."""

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, NullFormatter

from sojourn.base import files
from sojourn.show.style import STYLE

PUBLISHED = "published (hollow)"
"""Legend entry of published points."""

SHEET = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6}
"""Background of a name that is drawn among lines."""


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
        yield figure, figure.subplots(rows, columns)


def save(figure: Canvas, stem: Path) -> tuple[Path, Path]:
    """Write the picture as `stem.svg` and `stem.png`."""
    svg, png = stem.with_suffix(".svg"), stem.with_suffix(".png")
    # The canvases are used directly, since `savefig` draws twice because of the layout.
    svg_canvas: Any = FigureCanvasSVG(figure)
    figure.set_dpi(mpl.rcParams["savefig.dpi"])
    with files.writing(svg):
        svg_canvas.print_svg(svg, metadata={"Date": None, "Creator": None})
    # The layout is not computed again, which takes as long as drawing. Printing an SVG changes the
    # resolution.
    figure.set_layout_engine("none")
    png_canvas: Any = FigureCanvasAgg(figure)
    figure.set_dpi(mpl.rcParams["savefig.dpi"])
    with files.writing(png):
        png_canvas.print_png(png, metadata={"Software": None})
    return svg, png


def legend(axes: Axes, columns: int = 4) -> None:
    """Draw the legend above the axes, where it does not cover data."""
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
    """Remove the legends of all panels but the first, which show the same schemes."""
    for axes in np.ravel(panels)[1:]:
        panel_legend = axes.get_legend()
        if panel_legend is not None:
            panel_legend.remove()


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
