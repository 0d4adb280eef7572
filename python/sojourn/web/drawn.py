"""Data of a picture's artists, from which a page draws the picture again, interactively.

A picture is a list of panels with axes and marks. A mark is a line (with markers, or markers
only), a band, a group of boxes, of intervals, a rule, or a text; `figure.js` draws them. Marks of
one scheme have its name; published marks are hollow.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, LineCollection, PathCollection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator

from sojourn.base import files
from sojourn.web import sheet

SUFFIX = ".drawn.json"

MOST_POINTS = 1500
"""Points of a line above which only the least and the greatest of each interval are kept."""

DIGITS = 6
"""Significant digits of numbers."""

PIXELS_PER_POINT = 4 / 3
"""CSS pixels of a point of Matplotlib."""

DASHES = {"--": [5, 3], ":": [1.5, 2.5], "-.": [6, 3, 1.5, 3]}
"""Lengths of dashes and gaps of Matplotlib's line styles, in CSS pixels."""

BASELINES = {"center": "middle", "center_baseline": "middle", "top": "top"}
"""Vertical alignments of a canvas, by Matplotlib's."""

UPRIGHT = {
    **{"bottom": "left", "middle": "center", "top": "right"},
    **{"right": "bottom", "center": "middle", "left": "top"},
}
"""Alignments of text that is turned to the left by a quarter, by those of upright text."""

Mark = dict[str, Any]
"""Mark with its `kind`; positions are lists, in which null is a missing number."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tick:
    """Named position on an axis."""

    at: float
    text: str


@dataclass
class PanelAxis:
    """Axis of a panel."""

    name: str
    scale: str
    range: tuple[float, float]
    ticks: list[Tick] | None = None
    """Ticks that the figure chose; the page chooses others."""
    threshold: float = 1.0
    """Value below which a `symlog` axis is nearly linear."""


@dataclass
class Panel:
    """Axes of a picture with their marks, and their place in the grid."""

    title: str
    row: int
    column: int
    x: PanelAxis
    y: PanelAxis
    marks: list[Mark]


@dataclass
class Picture:
    """Content of `ID.drawn.json`."""

    panels: list[Panel]
    unknown: list[str]
    """Kinds of artists that the panels lack."""


def write(figure: Figure, stem: Path) -> None:
    """Write the data of a picture to `stem.drawn.json`."""
    files.write_text(stem.with_name(stem.name + SUFFIX), as_json(of(figure)))


def as_json(picture: Picture) -> str:
    """Return the content of the file of a picture."""
    return sheet.as_json(asdict(picture)) + "\n"


def of(figure: Figure) -> Picture:
    """Return the data of a picture."""
    unknown: list[str] = []
    panels = [_panel(axes, unknown) for axes in figure.axes]
    for panel in panels:
        # In a grid with equal axes only the outer panels have names.
        _share_name(panel.x, [other.x for other in panels if other.column == panel.column])
        _share_name(panel.y, [other.y for other in panels if other.row == panel.row])
    return Picture(panels, sorted(set(unknown)))


def _share_name(axis: PanelAxis, others: Iterable[PanelAxis]) -> None:
    """Give an axis with numbers and without a name that of the others in its row or column."""
    if not axis.name and axis.ticks is None:
        axis.name = next((other.name for other in others if other.name), "")


def _panel(axes: Axes, unknown: list[str]) -> Panel:
    place = axes.get_subplotspec()
    titles = [axes.get_title(side) for side in ("left", "center", "right")]
    marks = [mark for mark in _marks(axes, unknown) if not _is_empty(mark)]
    _name_after_colours(marks)
    return Panel(
        title=" ".join(filter(None, titles)).replace("\n", " "),
        row=place.rowspan.start if place else 0,
        column=place.colspan.start if place else 0,
        x=_axis(axes, axes.xaxis, axes.get_xlim()),
        y=_axis(axes, axes.yaxis, axes.get_ylim()),
        marks=marks,
    )


def _axis(axes: Axes, axis: Any, limits: tuple[float, float]) -> PanelAxis:
    low, high = sorted(map(_number, limits))
    shown = PanelAxis(axis.get_label_text().replace("\n", " "), axis.get_scale(), (low, high))
    if shown.scale == "symlog":
        shown.threshold = axis.get_transform().linthresh
    if not axes.axison:
        shown.name, shown.ticks = "", []
    elif isinstance(axis.get_major_locator(), FixedLocator):
        places = list(axis.get_majorticklocs())
        texts = axis.get_major_formatter().format_ticks(places)
        named = zip(map(_number, places), texts, strict=True)
        shown.ticks = [Tick(at, text) for at, text in named if text]
    return shown


def _marks(axes: Axes, unknown: list[str]) -> Iterator[Mark]:
    """Yield the marks of all artists of the axes, from the back to the front."""
    in_containers: set[Artist] = set()
    for container in axes.containers:
        name = _name(container)
        if isinstance(container, BarContainer):
            in_containers |= set(container.patches)
            yield _boxes(container.patches, name)
        elif isinstance(container, ErrorbarContainer):
            centre, caps, intervals = container.lines
            in_containers |= {*caps, *intervals}
            if centre is not None:
                in_containers.add(centre)
            for collection in intervals:
                yield from _segments(collection, name)
            if centre is not None:
                yield _line(centre, name)
        else:
            unknown.append(type(container).__name__)
    frame: set[Any] = {*axes.spines.values(), axes.xaxis, axes.yaxis, axes.patch, axes.get_legend()}
    titles = {axes.title, *(_title(axes, side) for side in ("left", "right"))}
    others = frame | titles | in_containers
    children = [child for child in axes.get_children() if child not in others]
    for artist in sorted(children, key=lambda child: child.get_zorder()):
        if artist.get_visible():
            reader = next((READERS[kind] for kind in READERS if isinstance(artist, kind)), None)
            marks = reader(axes, artist) if reader else None
            if marks is None:
                unknown.append(type(artist).__name__)
            yield from marks or ()


def _title(axes: Axes, side: str) -> Any:
    return getattr(axes, f"_{side}_title")


def _line_or_rule(axes: Axes, line: Line2D) -> Iterator[Mark]:
    transform = line.get_transform()
    if transform == axes.get_yaxis_transform(which="grid"):
        yield _strokes(line) | {"kind": "rule", "y": _rounded(line.get_ydata())[0]}
    elif transform == axes.get_xaxis_transform(which="grid"):
        yield _strokes(line) | {"kind": "rule", "x": _rounded(line.get_xdata())[0]}
    elif len(np.asarray(line.get_xdata())):
        yield _line(line, _name(line))


def _line(line: Line2D, name: str) -> Mark:
    x, y = (np.asarray(values, float) for values in line.get_data())
    kept = thinned(y)
    mark = _strokes(line) | {"kind": "line", "x": _rounded(x[kept]), "y": _rounded(y[kept])}
    mark["name"] = name
    if line.get_linestyle() == "None":
        mark["width"] = 0
    if line.get_drawstyle() == "steps-post":
        mark["step"] = True
    marker = line.get_marker()
    if marker not in ("None", None, " ", ""):
        mark["shape"] = str(marker)
        mark["size"] = round(float(line.get_markersize()) / 2 * PIXELS_PER_POINT, 2)
        face: Any = line.get_markerfacecolor()
        if isinstance(face, str) and face in ("none", "white"):
            mark["hollow"] = True
            # Lower bounds are hollow on white; published marks are transparent.
            mark["published"] = face == "none"
    return mark


def _strokes(line: Line2D) -> Mark:
    """Return colour, width and dashes of a line."""
    alpha = line.get_alpha()
    return {
        "name": _name(line),
        "colour": to_hex(line.get_color()),
        "alpha": 1.0 if alpha is None else float(alpha),
        "width": round(float(line.get_linewidth()) * PIXELS_PER_POINT, 2),
        "dash": DASHES.get(str(line.get_linestyle()), []),
    }


def _scatter(_: Axes, points: PathCollection) -> Iterator[Mark]:
    places = np.asarray(points.get_offsets(), float)
    if not len(places):
        return
    kept = np.linspace(0, len(places) - 1, min(len(places), MOST_POINTS)).astype(int)
    faces = np.asarray(points.get_facecolor())
    sizes = np.asarray(points.get_sizes())
    yield {
        "kind": "line",
        "name": _name(points),
        "colour": to_hex(faces[0]),
        "alpha": float(faces[0][3]),
        "width": 0,
        "shape": "o",
        "size": round(math.sqrt(float(sizes[0])) / 2 * PIXELS_PER_POINT, 2),
        "all": len(places),
        "x": _rounded(places[kept, 0]),
        "y": _rounded(places[kept, 1]),
    }


def _segments(lines: Any, name: str) -> Iterator[Mark]:
    """Yield the segments of a collection as intervals, those up and those across apart."""
    # Segments without an extent, of NaN, are empty.
    segments = [np.asarray(segment) for segment in lines.get_segments() if len(segment)]
    ends = np.array([segment[[0, -1]] for segment in segments]).reshape(-1, 2, 2)
    colour = to_hex(lines.get_colors()[0]) if len(lines.get_colors()) else "#000000"
    is_up = ends[:, 0, 0] == ends[:, 1, 0]
    for along, chosen in ((1, ends[is_up]), (0, ends[~is_up])):
        yield {
            "kind": "intervals",
            "name": name,
            "colour": colour,
            "isAcross": along == 0,
            "at": _rounded(chosen[:, 0, 1 - along]),
            "low": _rounded(chosen[:, :, along].min(axis=1)),
            "high": _rounded(chosen[:, :, along].max(axis=1)),
        }


def _bands(_: Axes, area: FillBetweenPolyCollection) -> Iterator[Mark]:
    """Yield the bands of `fill_between`, and the boxes of `fill_betweenx`."""
    face: Any = np.asarray(area.get_facecolor())[0]
    style = {"name": _name(area), "colour": to_hex(face), "alpha": float(face[3])}
    for path in area.get_paths():
        # The first curve, and back along the second, each after one point of the other's end.
        corners = np.asarray(path.vertices)
        count = (len(corners) - 3) // 2
        first, second = corners[1 : count + 1], corners[count + 2 : 2 * count + 2][::-1]
        if np.array_equal(first[:, 0], second[:, 0]):
            low = np.minimum(first[:, 1], second[:, 1])
            kept = thinned(np.maximum(first[:, 1], second[:, 1]))
            high = np.maximum(first[:, 1], second[:, 1])[kept]
            band = {"x": _rounded(first[kept, 0]), "low": _rounded(low[kept])}
            yield style | band | {"kind": "band", "high": _rounded(high)}
        else:
            (left, bottom), (right, top) = corners.min(axis=0), corners.max(axis=0)
            yield style | _box_columns([(left, right, bottom, top)])


def _boxes(patches: Iterable[Any], name: str) -> Mark:
    patches = list(patches)
    corners = [
        (patch.get_x(), patch.get_x() + patch.get_width(), *_vertical(patch)) for patch in patches
    ]
    mark: Mark = {"name": name, **_box_columns(corners)}
    if patches:
        is_outline = not patches[0].get_fill()
        edge, face = to_hex(patches[0].get_edgecolor()), to_hex(patches[0].get_facecolor())
        mark["colour"] = edge if is_outline else face
        mark["alpha"] = 1.0 if is_outline else to_rgba(patches[0].get_facecolor())[3]
        mark["hollow"] = mark["published"] = is_outline
        mark["hatched"] = bool(patches[0].get_hatch())
    return mark


def _vertical(patch: Any) -> tuple[float, float]:
    ends = patch.get_y(), patch.get_y() + patch.get_height()
    return min(ends), max(ends)


def _box_columns(corners: Sequence[tuple[float, ...]]) -> Mark:
    table = np.array(corners, float).reshape(-1, 4)
    # Bars without a height have no mark.
    table = table[table[:, 2] != table[:, 3]]
    names = ("left", "right", "bottom", "top")
    columns = {name: _rounded(table[:, number]) for number, name in enumerate(names)}
    return {"kind": "boxes", **columns}


def _span(axes: Axes, patch: Rectangle) -> Iterator[Mark]:
    """Yield a patch that extends over the axes in one direction, or that is a single box."""
    mark = _boxes([patch], "")
    for transform, ends, limits in (
        (axes.get_xaxis_transform(which="grid"), ("bottom", "top"), axes.get_ylim()),
        (axes.get_yaxis_transform(which="grid"), ("left", "right"), axes.get_xlim()),
    ):
        if patch.get_transform() == patch.get_patch_transform() + transform:
            mark |= {ends[0]: _rounded([min(limits)]), ends[1]: _rounded([max(limits)])}
    yield mark


def _text(axes: Axes, text: Text) -> Iterable[Mark] | None:
    if not text.get_text():
        return []
    shift = (0.0, 0.0)
    place: Any = text.get_position()
    if isinstance(text, Annotation):
        systems: Any = text.xycoords
        systems = (systems, systems) if isinstance(systems, str) else systems
        if text.arrow_patch is not None or not set(systems) <= {"data", "axes fraction"}:
            return None
        if text.anncoords == "offset points":
            shift, place = text.xyann, text.xy
        is_data = [system == "data" for system in systems]
        in_axes = (axes.transAxes - axes.transData).transform(np.where(is_data, 0.5, place))
        place = np.where(is_data, place, in_axes)
    elif text.get_transform() != axes.transData:
        place = (text.get_transform() - axes.transData).transform(place)
    x, y = _rounded(np.array(place, float))
    align: str = text.get_horizontalalignment()
    baseline = BASELINES.get(text.get_verticalalignment(), "bottom")
    if text.get_rotation() == 90:
        # Matplotlib aligns the text as it stands, a canvas as it would lie.
        align, baseline = UPRIGHT[baseline], UPRIGHT[align]
    mark = {
        "kind": "text",
        "name": "",
        "x": x,
        "y": y,
        "text": text.get_text(),
        "colour": to_hex(text.get_color()),
        "align": align,
        "baseline": baseline,
        "rotation": text.get_rotation(),
        "shift": _rounded(np.array([shift[0], -shift[1]]) * PIXELS_PER_POINT),
    }
    return [mark]


READERS: dict[type[Artist], Callable[[Axes, Any], Iterable[Mark] | None]] = {
    Line2D: _line_or_rule,
    PathCollection: _scatter,
    LineCollection: lambda _, lines: _segments(lines, _name(lines)),
    FillBetweenPolyCollection: _bands,
    Rectangle: _span,
    Text: _text,
}
"""Functions that return an artist's marks, by its class; `None` means that it is not supported."""


def _name(artist: Any) -> str:
    """Return the legend's entry of an artist; Matplotlib's own names begin with `_`."""
    label = str(artist.get_label() or "")
    return "" if label.startswith("_") else label


def _name_after_colours(marks: list[Mark]) -> None:
    """Give marks without a name, and published marks, the name of the scheme that looks like them.

    A scheme has their colour, and their shape if several have the colour. The value of a bar has
    the name of the bar, and is hidden with it.
    """
    schemes: dict[tuple[str, str | None], str] = {}
    for mark in marks:
        is_scheme = mark["kind"] in ("line", "boxes") and not mark.get("published")
        if is_scheme and mark["name"]:
            schemes.setdefault((mark["colour"], None), mark["name"])
            schemes.setdefault((mark["colour"], mark.get("shape")), mark["name"])

    def scheme_of(mark: Mark) -> str | None:
        colour = mark["colour"]
        return schemes.get((colour, mark.get("shape"))) or schemes.get((colour, None))

    for mark in marks:
        if mark["kind"] == "line" and mark.get("published"):
            mark["name"] = scheme_of(mark) or mark["name"]
        elif not mark["name"] and mark["kind"] in ("line", "band", "intervals"):
            mark["name"] = scheme_of(mark) or ""
        elif mark["kind"] == "text":
            mark["name"] = _bar_at(marks, mark["x"])


def _bar_at(marks: Iterable[Mark], x: float) -> str:
    """Return the scheme of the only bar at a place, whose value a text there is; or no name."""
    names = {
        mark["name"]
        for mark in marks
        if mark["kind"] == "boxes" and not mark.get("published")
        for left, right in zip(mark["left"], mark["right"], strict=True)
        if left <= x <= right
    }
    return names.pop() if len(names) == 1 else ""


def _is_empty(mark: Mark) -> bool:
    places = mark.get("x", mark.get("left", mark.get("at")))
    return isinstance(places, list) and not places


def thinned(values: Floats) -> npt.NDArray[np.intp]:
    """Return the rows to keep of a line: all up to `MOST_POINTS`, else the extremes of intervals.

    Each interval of rows keeps its least and its greatest value, and the line its two ends.
    """
    count = len(values)
    if count <= MOST_POINTS:
        return np.arange(count)
    starts = np.linspace(0, count, MOST_POINTS // 2, endpoint=False).astype(int)
    parts = np.split(np.arange(count), starts[1:])
    finite = [part[np.isfinite(values[part])] for part in parts]
    kept = [row for part in finite if len(part) for row in _extremes(values, part)]
    return np.unique([0, *kept, count - 1])


def _extremes(values: Floats, rows: npt.NDArray[np.intp]) -> tuple[Any, Any]:
    return rows[values[rows].argmin()], rows[values[rows].argmax()]


def _rounded(values: Any) -> list[float | None]:
    """Return numbers with few digits; those that are not finite are `None`."""
    numbers = np.asarray(values, float).tolist()
    return [_number(value) if math.isfinite(value) else None for value in numbers]


def _number(value: float) -> float:
    """Return a number with few digits, an integer if it is whole."""
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
