"""Rates and times of ns-3 and htsim, and their exact form in scenarios."""

import re
from collections.abc import Mapping
from fractions import Fraction

from sojourn.base.units import UNITS
from sojourn.imports.document import NUMBER, number

RATE = re.compile(rf"({NUMBER.pattern})([kKMGT]?)(i?)([bB])(?:ps|it/s|/s)", re.ASCII)
"""Rate of ns-3's `DataRate`, with a unit."""

TIME = re.compile(rf"({NUMBER.pattern})(fs|ps|ns|us|ms|s|min)", re.ASCII)
"""Time of ns-3's `Time`, with a unit."""

POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}

PICOSECONDS: Mapping[str, int | Fraction] = {
    **UNITS["a time"],
    "fs": Fraction(1, 1000),
    "min": 60 * 10**12,
}


def parse_rate(word: str) -> int | None:
    """Return a rate in bits per second; a number without a unit has that unit."""
    match = RATE.fullmatch(word)
    if match is None:
        value = number(word)
    else:
        base = 1024 if match[3] else 1000
        scale: int = base ** POWERS[match[2]] * (8 if match[4] == "B" else 1)
        value = Fraction(match[1]) * scale
    return round(value) if value is not None and 0 < value < 2**63 else None


def parse_time(word: str) -> int | None:
    """Return a time in picoseconds; a number without a unit counts seconds."""
    match = TIME.fullmatch(word)
    value = number(word) if match is None else Fraction(match[1])
    unit: int | Fraction = 10**12 if match is None else PICOSECONDS[match[2]]
    return round(value * unit) if value is not None and 0 <= value * unit < 2**63 else None


def format_rate(bps: int) -> str:
    """Format a rate exactly, as scenarios have it."""
    return _exact(bps, UNITS["a rate"])


def format_time(picoseconds: int) -> str:
    """Format a time exactly, as scenarios have it."""
    return _exact(picoseconds, UNITS["a time"])


def _exact(value: int, scales: Mapping[str, int]) -> str:
    unit = max((unit for unit in scales if value % scales[unit] == 0), key=scales.__getitem__)
    return f"{value // scales[unit]} {unit}"


def seconds(picoseconds: int) -> str:
    """Format a time exactly as a decimal number of seconds."""
    whole, rest = divmod(picoseconds, 10**12)
    return f"{whole}.{rest:012}".rstrip("0").rstrip(".")
