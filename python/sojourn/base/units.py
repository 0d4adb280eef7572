"""Units of times, sizes and rates: one table, and the parsing and formatting of quantities."""

import re
from collections.abc import Mapping, Sequence

UNITS: Mapping[str, Mapping[str, int]] = {
    "a time": {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12},
    "data": {
        **{"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9},
        **{"KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    },
    "a rate": {"bps": 1, "Kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12},
    "packets": {"packets": 1, "packet": 1},
}
"""Units by the kind of quantity, in multiples of the smallest unit that scenarios accept."""

MEMORY_UNITS = {
    unit: UNITS["data"].get(unit, 10**12) for unit in ("KB", "MB", "GB", "TB", "KiB", "MiB", "GiB")
}
"""Units of amounts of memory, in bytes."""

SPELLINGS = {
    **dict.fromkeys(("\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s"), "us"),
    **{name.replace("ps", "/s"): name for name in UNITS["a rate"]},
}
"""Other spellings of units, as results print them, and their names; the core has the same."""

QUANTITY = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*((?:[A-Za-z\u00b5\u03bc]+(?:/s)?)?)"
)
"""Number with an optional unit."""

SIZE = rf"(\d+(?:\.\d+)?)\s*({'|'.join(UNITS['data'])})"
"""Pattern of a size: a number and a unit of data."""

PER_UNIT = {
    "s": 1.0,
    "ms": 1e3,
    "us": 1e6,
    "ns": 1e9,
    "B": 1.0,
    "KB": 1e-3,
    "MB": 1e-6,
    "%": 100.0,
    "Kb/s": 1e-3,
    "Mb/s": 1e-6,
    "Gb/s": 1e-9,
}
"""Factors that convert seconds, bytes, shares and bits per second to the units of plots."""

DECIMAL_SIZES = tuple((unit, MEMORY_UNITS[unit]) for unit in ("KB", "MB", "GB", "TB"))
"""Decimal units of data from small to large, in bytes."""

LEAST_OF_FOUR_DIGITS = 999.5
"""Least number that has four digits before the point when it is rounded to three."""


def factor(unit: str) -> float:
    """Return the factor of `PER_UNIT`; 1 without a unit.

    Raises `ValueError` for an unknown unit.
    """
    if unit and unit not in PER_UNIT:
        raise ValueError(f"unit {unit!r}: expected one of {', '.join(PER_UNIT)}")
    return PER_UNIT.get(unit, 1.0)


def fitting_unit(units: Sequence[str], largest: float) -> str:
    """Return the first of the units, from large to small, in which a value is at least 1."""
    return next((unit for unit in units if largest * factor(unit) >= 1), units[-1])


def canonical(unit: str) -> str:
    """Return the name of a unit that has another spelling, such as `µs`."""
    return SPELLINGS.get(unit, unit)


def scale_of(unit: str) -> int:
    """Return the size of a unit in the smallest unit of its kind; 1 if there is no unit."""
    unit = canonical(unit)
    return next((units[unit] for units in UNITS.values() if unit in units), 1)


def are_alike(first: str, second: str) -> bool:
    """Return true if two units are of the same kind, or if both are empty."""
    kinds = UNITS.values()
    first, second = canonical(first), canonical(second)
    return not (first or second) or any(first in units and second in units for units in kinds)


def parse_quantity(text: str) -> float:
    """Parse a number with its unit; return it in the smallest unit of its kind, such as ps."""
    match = QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"not an amount with its unit: {text!r}")
    return float(match[1]) * scale_of(match[2])


def parse_time(text: str) -> float:
    """Parse a time as scenarios write it, such as `10 us`; return seconds."""
    # The quotient of the two integers is the nearest double of the unit in seconds.
    number, unit = _number_and_unit(text, "a time")
    return number * (UNITS["a time"][unit] / UNITS["a time"]["s"])


def parse_size(text: str) -> float:
    """Parse a size such as `100 KB`; return bytes."""
    match = re.fullmatch(rf"\s*{SIZE}\s*", text)
    if match is None:
        raise ValueError(f"not a size with its unit: {text!r}")
    return float(match[1]) * UNITS["data"][match[2]]


def parse_rate(text: str) -> float:
    """Parse a rate such as `10 Gbps` or `10 Gb/s`; return bits per second."""
    number, unit = _number_and_unit(text, "a rate")
    return number * UNITS["a rate"][unit]


def _number_and_unit(text: str, kind: str) -> tuple[float, str]:
    """Return the number and the name of the unit; raise `ValueError` for another kind of unit."""
    match = re.fullmatch(r"\s*([\d.]+)\s*(\S+)\s*", text)
    if match is None or canonical(match[2]) not in UNITS[kind]:
        raise ValueError(f"not {kind} with its unit: {text!r}")
    return float(match[1]), canonical(match[2])


def parse_memory(text: str) -> int:
    """Parse an amount of memory such as `4 GB`; return bytes."""
    match = re.fullmatch(r"\s*(\d+\.?\d*)\s*(\w+)\s*", text)
    if match is None or match[2] not in MEMORY_UNITS or float(match[1]) <= 0:
        raise ValueError(f"not an amount of memory: {text!r}")
    return int(float(match[1]) * MEMORY_UNITS[match[2]])


def _in_unit(value: float, units: Sequence[tuple[str, float]]) -> str:
    """Format a value with three digits in the first of the units, from small to large, that fits.

    A unit fits if the rounded value is below 1000 in it; the largest fits all values.
    """
    for unit, size in units:
        number = value / size
        if abs(number) < LEAST_OF_FOUR_DIGITS:
            return f"{number:.3g} {unit}"
    return f"{number:.0f} {unit}"


def format_time(seconds: float) -> str:
    """Format a time with three digits and a fitting unit."""
    return _in_unit(seconds, (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)))


def format_long_time(seconds: float) -> str:
    """Format a time with about two digits, in seconds or longer units."""
    for scale, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * scale:
            return f"{seconds / scale:.{int(seconds < 10 * scale)}f} {unit}"
    return f"{seconds:.0f} s"


def format_size(size: float) -> str:
    """Format bytes with three digits and a fitting unit."""
    if abs(size) < LEAST_OF_FOUR_DIGITS:
        return f"{size:.0f} B"
    return _in_unit(size, DECIMAL_SIZES[:-1])


def format_exact_size(size: float) -> str:
    """Format bytes with up to six digits and a fitting unit, as a name of a range of sizes."""
    for unit in ("GB", "MB", "KB"):
        if size >= UNITS["data"][unit]:
            return f"{size / UNITS['data'][unit]:g} {unit}"
    return f"{size:g} B"


def format_size_range(above: float, up_to: float) -> str:
    """Format a range of sizes in bytes, `all` for that of all sizes."""
    if up_to == float("inf"):
        return f"> {format_exact_size(above)}" if above else "all"
    low = f"{format_exact_size(above)} to " if above else "≤ "
    return low + format_exact_size(up_to)


def format_memory(size: float) -> str:
    """Format an amount of memory with three digits, from kilobytes to terabytes."""
    return _in_unit(size, DECIMAL_SIZES)


def format_rate(bps: float) -> str:
    """Format bits per second with a fitting unit, as scenarios write rates."""
    for unit in ("Gbps", "Mbps", "Kbps"):
        if bps >= UNITS["a rate"][unit]:
            return f"{bps / UNITS['a rate'][unit]:g} {unit}"
    return f"{bps:g} bps"


def format_bit_rate(bps: float) -> str:
    """Format bits per second with three digits and a fitting unit, as results have rates."""
    return _in_unit(bps, (("b/s", 1.0), ("Kb/s", 1e3), ("Mb/s", 1e6), ("Gb/s", 1e9)))


def format_count(count: float) -> str:
    """Format a whole number in groups of three digits."""
    return f"{count:,}"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, whose plural ends in -s unless given."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
