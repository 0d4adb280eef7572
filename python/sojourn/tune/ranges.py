"""Ranges: what a parameter may be in a search, as `0.01:1:log`, `10 KB:200 KB` or `none,linux`."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base.units import QUANTITY, UNITS, are_alike, scale_of
from sojourn.scenario.overrides import labels_of, split_values

FORMS = "`0.01:1`, `0.01:1:log`, `10 KB:200 KB` or `one,other`"


DIGITS = 4
"""To how many digits values are rounded: more are of no use, and hard to read."""


@dataclass(frozen=True)
class Choice:
    """A parameter that has one of several values."""

    path: str
    labels: tuple[Any, ...]
    values: tuple[Any, ...]

    @property
    def names(self) -> list[str]:
        """What the search calls the values."""
        return [str(label) for label in self.labels]

    def ends(self) -> tuple[Any, ...]:
        """Return the values that are tried whether the scenario may have them."""
        return self.values

    def value(self, at: Any) -> Any:
        """Return what the scenario says for one of the search's names."""
        return self.values[self.names.index(at)]

    def place(self, value: Any) -> Any:
        """Return the search's name for a value; `None` if it is not among these."""
        return self.names[self.values.index(value)] if value in self.values else None


@dataclass(frozen=True)
class Range:
    """A parameter that is a number between two, perhaps with a unit, in which they are."""

    path: str
    low: float
    high: float
    log: bool = False
    whole: bool = False
    unit: str = ""

    def ends(self) -> tuple[Any, ...]:
        """Return the values that are tried whether the scenario may have them."""
        return self.value(self.low), self.value(self.high)

    def value(self, at: Any) -> Any:
        """Return what the scenario says for one of the search's numbers."""
        at = at if self.whole else self.rounded(at)
        if not self.unit:
            return int(at) if self.whole else at
        scale = scale_of(self.unit)
        amount = Decimal(round(at * scale)) / scale
        # Not as 1E+2.
        return f"{amount.normalize():f} {self.unit}"

    def rounded(self, at: float) -> float:
        """Return a number of few digits within the range."""
        return min(max(float(f"{at:.{DIGITS}g}"), self.low), self.high)

    def place(self, value: Any) -> Any:
        """Return the search's number for a value; `None` if it does not lie in the range."""
        number, unit = value, ""
        if isinstance(value, str):
            match = QUANTITY.fullmatch(value)
            if match is None or not are_alike(match[2], self.unit):
                return None
            unit, number = match[2], float(match[1]) * scale_of(match[2]) / scale_of(self.unit)
        if isinstance(number, bool) or not isinstance(number, int | float):
            return None
        if bool(unit) != bool(self.unit) or not self.low <= number <= self.high:
            return None
        if self.whole:
            return int(number) if number == int(number) else None
        return float(number)


Parameter = Choice | Range


def parse(texts: Iterable[str]) -> dict[str, str]:
    """Divide texts such as `transport.gain=0.01:1:log` into names and what stands behind."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, spec = (part.strip() for part in text.partition("="))
        if not (name and equals and spec):
            raise ScenarioError(f"--parameter {text}: expected NAME=RANGE, as NAME={FORMS}")
        if name in found:
            raise ScenarioError(f"--parameter {text}: `{name}` is given twice")
        found[name] = spec
    return found


def read(path: str, given: str | Sequence[Any]) -> Parameter:
    """Read the range of the parameter at a path, or the list of its values.

    Raises `ScenarioError` if there is nothing to choose, or the ends do not fit each other.
    """
    values = given if not isinstance(given, str) else _listed(given)
    if values is not None:
        labels = tuple(labels_of(list(values)))
        if len(set(map(str, labels))) < max(len(labels), 2):
            raise ScenarioError("wants two values or more, each another")
        return Choice(path, labels, tuple(values))
    ends, log = _ends(str(given))
    return _range(path, ends, log=log)


def _listed(text: str) -> list[Any] | None:
    """Return the values of a list; `None` if the text is no list."""
    values = split_values(text)
    if not values:
        raise ScenarioError(f"lacks a value; expected {FORMS}")
    return values if len(values) > 1 else None


def _ends(text: str) -> tuple[list[tuple[str, str]], bool]:
    """Divide `10 KB:200 KB:log` into numbers with their units, and whether it is logarithmic."""
    parts = [part.strip() for part in text.strip("\"'").split(":")]
    log = parts[-1] == "log"
    ends = [QUANTITY.fullmatch(part) for part in (parts[:-1] if log else parts)]
    known = [(end[1], end[2]) for end in ends if end is not None]
    if len(ends) != 2 or len(known) != 2:
        raise ScenarioError(f"expected a range or a list of values, as {FORMS}")
    return known, log


def _range(path: str, ends: Sequence[tuple[str, str]], *, log: bool) -> Range:
    (low, unit), (high, other) = ends
    if not are_alike(unit, other):
        known = ", ".join(name for units in UNITS.values() for name in units)
        units = f"`{unit}` and `{other}`" if unit and other else f"`{unit or other}` and no unit"
        raise ScenarioError(f"{units} do not fit each other (units are {known})")
    # Of 1 us to 1 ms each end has its unit, and the range that of the first.
    least, most = float(low), float(high) * scale_of(other) / scale_of(unit)
    whole = unit in UNITS["packets"] or not (unit or re.search(r"[.eE]", low + high))
    if not (math.isfinite(least) and least < most < math.inf):
        raise ScenarioError(f"the range must rise: {low} is not below {high}")
    if log and least <= 0:
        raise ScenarioError(f"a logarithmic range must begin above 0, not at {low}")
    return Range(path, least, most, log, whole, unit)
