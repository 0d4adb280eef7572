"""Flow size distributions: tables of HPCC, PowerTCP, ConWeave, ns-2 and Homa.

A Homa file has the mean on its first line, and a step function: messages have exactly the sizes of
the table. The other tables are linear between their rows.
"""

from fractions import Fraction
from itertools import pairwise

from sojourn.base.units import count, format_size
from sojourn.imports import pairs
from sojourn.imports.document import Document, Line, number
from sojourn.imports.parts import Options, Sizes

SHAPE = (
    "`size cumulative` up to 1 or 100, or ns-2's `size 1 cumulative`; before, optionally, the mean "
    "on a line (Homa) or names of the columns"
)

NS2_PACKET, HOMA_PACKET = 1460, 1442
"""Payload of a packet in tables that count packets, of ns-2 and of Homa's DCTCP table."""

UNITS = ("bytes", "packets")

MAX_SIZE = 10**15
"""Limit of `empirical` sizes."""

Row = tuple[Line, Fraction, Fraction]


def is_sizes(document: Document) -> bool:
    """Return true for three columns, and for two that can only be sizes and shares."""
    start = 1 if _first_number(document) is not None or _column_unit(document.lines[0]) else 0
    rows = document.lines[start:]
    widths = {len(row.words) for row in rows}
    if not rows or widths not in ({2}, {3}):
        return False
    if start or widths == {3}:
        return number(rows[0].words[0]) is not None
    return pairs.are_sizes(pairs.of(rows))


def _first_number(document: Document) -> Fraction | None:
    """Return the number of a first line of one number, the mean of Homa's files."""
    first = document.lines[0].words
    return number(first[0]) if len(first) == 1 else None


def _column_unit(line: Line) -> str | None:
    """Return the unit that names of columns state."""
    named = [unit for unit in UNITS if unit[:-1] in line.words[0].lower()]
    return named[0] if named and len(line.words) > 1 else None


def read(document: Document, options: Options) -> Sizes:
    """Read a table."""
    stated = _first_number(document)
    named = _column_unit(document.lines[0])
    rows = document.lines[1:] if stated is not None or named else document.lines
    points = [_point(row, len(rows[0].words)) for row in rows]
    if stated is not None:
        points, skipped = _rising(points)
    else:
        skipped = 0
    _check(document, points)
    total = points[-1][2]
    mean, step_mean = _linear_mean(points) / total, _step_mean(points) / total
    # A mean on the first line shows how to read the table; Homa draws the sizes of its rows.
    is_step = stated is not None and abs(stated - step_mean) <= abs(stated - mean)
    mean = step_mean if is_step else mean
    columns = len(rows[0].words)
    packet = HOMA_PACKET if stated is not None else NS2_PACKET
    unit = _unit(document, options, named, columns, (mean, packet))
    if mean * (packet if unit == "packets" else 1) < 1:
        raise document.error(f"the mean size must be 1 B or more, not {float(mean):g} {unit}")
    notes = [
        f"{count(len(rows), 'row')}, sizes in {unit}; mean {_mean(mean, unit, packet)}, "
        f"largest {_mean(points[-1][1], unit, packet)}"
    ]
    if unit == "packets":
        notes.append("the mean is that of the table, before rounding up to whole packets")
    if options.unit is None and named is None:
        notes.append("the unit is an assumption; `--unit packets` if sizes count packets")
    if stated is not None:
        kind = "a step function, as Homa draws sizes" if is_step else "linear between its rows"
        notes.append(f"the table is {kind}")
        if abs(stated - mean) > mean / 100:
            notes.append(f"the first line states a mean of {float(stated):g}, unlike the table")
    if skipped:
        notes.append(f"{count(skipped, 'row')} below an earlier cumulative value, never drawn")
    field = f'packet = "{packet} B"' if unit == "packets" else ""
    return Sizes(_table(points, unit, is_step), field, tuple(notes), {"transport": '"dctcp"'})


def _unit(
    document: Document,
    options: Options,
    named: str | None,
    columns: int,
    mean: tuple[Fraction, int],
) -> str:
    """Return the unit of the table: given, named, or bytes for two columns."""
    if options.unit is not None and options.unit not in UNITS:
        raise document.error(f"--unit must be bytes or packets for sizes, not {options.unit}")
    if options.unit is None and named is None and columns == 3:
        in_bytes, in_packets = (_mean(mean[0], unit, mean[1]) for unit in UNITS)
        raise document.error(
            f"the first of three columns may count bytes (mean {in_bytes}) or packets (mean "
            f"{in_packets}): give --unit bytes or --unit packets"
        )
    return options.unit or named or "bytes"


def _mean(value: Fraction, unit: str, packet: int) -> str:
    """Format a size; the unit of the table is that of the value."""
    if unit == "packets":
        return f"{float(value):g} packets of {packet} B, {format_size(float(value * packet))}"
    return f"{float(value):g} B" if value < 1000 else format_size(float(value))


def _point(row: Line, columns: int) -> Row:
    size, share = number(row.words[0]), number(row.words[-1])
    if len(row.words) != columns or columns not in (2, 3):
        raise row.expected(SHAPE)
    if size is None or share is None or size < 0 or not 0 <= share <= 100:
        raise row.expected(SHAPE)
    if size > MAX_SIZE:
        raise row.error(f"sizes must be at most 1e15, not {row.words[0]}")
    return row, size, share


def _rising(points: list[Row]) -> tuple[list[Row], int]:
    """Return the points above all earlier ones, and the number of others.

    Homa takes the first row whose cumulative value reaches a random number.
    """
    kept: list[Row] = []
    for point in points:
        if not kept or point[2] > kept[-1][2]:
            kept.append(point)
    return kept, len(points) - len(kept)


def _check(document: Document, points: list[Row]) -> None:
    if not points:
        raise document.error(f"expected {SHAPE}")
    for (_, size, share), (row, next_size, next_share) in pairwise(points):
        if next_size < size or next_share < share:
            raise row.error("sizes and cumulative values must not fall from row to row")
    row, size, share = points[-1]
    if share not in (1, 100) or size == 0:
        raise row.error(f"the last cumulative value must be 1 or 100, not {float(share):g}")


def _linear_mean(points: list[Row]) -> Fraction:
    parts = ((b[2] - a[2]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))
    return points[0][2] * points[0][1] + sum(parts, Fraction(0))


def _step_mean(points: list[Row]) -> Fraction:
    parts = ((b[2] - a[2]) * b[1] for a, b in pairwise(points))
    return points[0][2] * points[0][1] + sum(parts, Fraction(0))


def _table(points: list[Row], unit: str, is_step: bool) -> str:
    """Return the table of `empirical`; a step is two rows of one size."""
    rows = [f"{unit},cumulative"]
    below = points[0][0].words[-1]
    for row, _, share in points:
        size, cumulative = row.words[0], row.words[-1]
        # `empirical` gives the share of the first row to its size.
        if is_step and share and len(rows) > 1:
            rows.append(f"{size},{below}")
        rows.append(f"{size},{cumulative}")
        below = cumulative
    return "\n".join(rows) + "\n"
