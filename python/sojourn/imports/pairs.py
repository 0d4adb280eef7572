"""Two columns of numbers: sizes and cumulative values, or seconds and rates.

A file is recognised only if one of the readings fits and the other does not.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median_low

from sojourn.base.errors import FileError
from sojourn.imports.document import NUMBER, Document, Line

Pair = tuple[float, float]

LONGEST_STEP_S = 60
"""Largest median of the steps of a rate trace; sizes from 0 on with shorter steps may be one."""

TOLERANCE = 0.01
"""Relative distance from 1 or 100 at which a last rate may be a damaged cumulative value."""


def of(lines: Sequence[Line]) -> list[Pair]:
    """Return the lines of two numbers; nothing if one of the first lines is of another shape."""
    if not all(map(_pair, lines[:3])):
        return []
    return [pair for line in lines if (pair := _pair(line))]


def is_ambiguous(document: Document) -> bool:
    """Return true if the first lines have two numbers each, and no single reading fits."""
    pairs = of(document.lines)
    return bool(pairs) and not are_sizes(pairs) and not are_rates(pairs)


def near_miss(document: Document) -> FileError | None:
    """Return an error of two columns with names before them, or with units in them."""
    first, *rest = document.lines
    is_named = not any(word[0].isdigit() for word in first.words) and len(first.words) in (2, 3)
    if is_named and rest and len(rest[0].words) == len(first.words) and _are_numbers(rest[0]):
        return first.error(
            "names of columns must state the unit of sizes, as `bytes cumulative` or `packets "
            "cumulative`, and must not precede seconds and Mb/s"
        )
    rows = document.lines[:3]
    if all(len(row.words) == 2 and all(word[0].isdigit() for word in row.words) for row in rows):
        odd = next((row for row in rows if not _are_numbers(row)), None)
        if odd is not None:
            return odd.expected("two numbers without units (sizes and shares, or seconds and Mb/s)")
    return None


def are_sizes(pairs: Sequence[Pair]) -> bool:
    """Return true for whole sizes and shares that never fall, and rise to 1 or 100."""
    if not pairs:
        return False
    sizes, shares = _columns(pairs)
    if len(pairs) == 1:
        return sizes[0] > 0 and shares[0] in (1, 100)
    is_whole = all(size >= 0 and size.is_integer() for size in sizes)
    is_rising = min(_steps(sizes)) >= 0 and min(_steps(shares)) >= 0
    may_be_seconds = sizes[0] == 0 and max(_steps(sizes)) <= LONGEST_STEP_S
    is_share = 0 <= shares[0] < shares[-1] and shares[-1] in (1, 100)
    return is_whole and is_rising and is_share and not may_be_seconds


def are_rates(pairs: Sequence[Pair]) -> bool:
    """Return true for times with short steps and rates that are constant or fall at a row."""
    if not pairs:
        return False
    times, rates = _columns(pairs)
    if len(pairs) == 1:
        return times[0] == 0
    is_ascending = min(_steps(times)) > 0 and median_low(_steps(times)) <= LONGEST_STEP_S
    falls, rises = min(_steps(rates)) < 0, max(_steps(rates)) > 0
    return is_ascending and (falls or not rises) and not _may_be_shares(rates)


def _may_be_shares(rates: Sequence[float]) -> bool:
    """Return true for rates that may be damaged cumulative values, or shares above a size."""
    first, last = rates[0], rates[-1]
    is_near = any(abs(last - top) <= TOLERANCE * top for top in (1, 100))
    is_cumulative = first == min(rates) < last == max(rates) <= 101 and (is_near or first == 0)
    is_complementary = first in (1, 100) and first == max(rates) and 10 * last <= first
    return is_cumulative or (is_complementary and last == min(rates))


def _are_numbers(line: Line) -> bool:
    return all(map(NUMBER.fullmatch, line.words))


def _pair(line: Line) -> Pair | None:
    if len(line.words) != 2 or not all(map(NUMBER.fullmatch, line.words)):
        return None
    return float(line.words[0]), float(line.words[1])


def _columns(pairs: Sequence[Pair]) -> tuple[list[float], list[float]]:
    return [first for first, _ in pairs], [second for _, second in pairs]


def _steps(values: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(values)]
