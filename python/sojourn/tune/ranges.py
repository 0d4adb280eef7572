"""Ranges of parameters in a search: `0.01:1:log`, `10 KB:200 KB`, `none,linux` or with a step."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base.units import QUANTITY, UNITS, are_alike, scale_of
from sojourn.scenario import values as listed
from sojourn.scenario.overrides import labels_of

FORMS = "`0.01:1`, `0.01:1:log`, `10 KB:200 KB`, `0.1:0.9:0.2` or `none,linux`"

STEPPED = re.compile(r"[^:,]+:[^:,]+:[^:,]*\d[^:,]*")
"""Form of a range with a step, such as `0.1:0.9:0.2`."""

DIGITS = 4
"""Number of significant digits of values."""

EDGE = 0.02
"""Share of a range at either end that counts as its edge."""


@dataclass(frozen=True)
class Choice:
    """Parameter with a list of values."""

    path: str
    labels: tuple[Any, ...]
    values: tuple[Any, ...]

    @property
    def names(self) -> list[str]:
        """Names of the values in the search."""
        return [str(label) for label in self.labels]

    def ends(self) -> tuple[Any, ...]:
        """Return the values that are checked before the search."""
        return self.values

    def value(self, place: Any) -> Any:
        """Return the value in the scenario for a name in the search."""
        return self.values[self.names.index(place)]

    def place(self, value: Any) -> Any:
        """Return the name of a value in the search; `None` if the list does not contain it."""
        return self.names[self.values.index(value)] if value in self.values else None


@dataclass(frozen=True)
class Range:
    """Numeric parameter between `low` and `high`, which are in `unit` if that is not empty.

    `log`: if true, the search samples the logarithm. `whole`: if true, values are integers.
    """

    path: str
    low: float
    high: float
    log: bool = False
    whole: bool = False
    unit: str = ""

    def ends(self) -> tuple[Any, ...]:
        """Return the values that are checked before the search."""
        return self.value(self.low), self.value(self.high)

    def value(self, place: Any) -> Any:
        """Return the value in the scenario for a number of the search."""
        number = place if self.whole else self.rounded(place)
        if not self.unit:
            return int(number) if self.whole else number
        scale = scale_of(self.unit)
        amount = Decimal(round(number * scale)) / scale
        # `normalize` alone would write 1E+2.
        return f"{amount.normalize():f} {self.unit}"

    def rounded(self, number: float) -> float:
        """Round to `DIGITS` significant digits within the range."""
        return min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)

    def place(self, value: Any) -> Any:
        """Return the number in the search for a value; `None` if it is outside the range."""
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

    def beyond(self, place: float) -> Any:
        """Return a value a tenth beyond the end within `EDGE` of a number of the search, or `None`.

        Distances are shares of the range, which is that of the logarithms if `log`.
        """
        low, number, high = (
            math.log(value) if self.log else value for value in (self.low, place, self.high)
        )
        share = (number - low) / (high - low)
        if EDGE < share < 1 - EDGE:
            return None
        target = low - (high - low) / 10 if share <= EDGE else high + (high - low) / 10
        end = math.exp(target) if self.log else target
        if self.whole:
            end = math.floor(end) if share <= EDGE else math.ceil(end)
        return replace(self, low=min(self.low, end), high=max(self.high, end)).value(end)


Parameter = Choice | Range


def parse(texts: Iterable[str]) -> dict[str, str]:
    """Split texts such as `transport.gain=0.01:1:log` into names and ranges.

    Raises `ScenarioError` for a text of another form, and for a name that occurs twice.
    """
    specs: dict[str, str] = {}
    for text in texts:
        name, equals, spec = (part.strip() for part in text.partition("="))
        if not (name and equals and spec):
            raise ScenarioError(f"--parameter {text}: expected NAME=RANGE, where RANGE is {FORMS}")
        if name in specs:
            raise ScenarioError(f"--parameter {text}: duplicate parameter `{name}`")
        specs[name] = spec
    return specs


def read(path: str, spec: str | Sequence[Any]) -> Parameter:
    """Parse the range, or the list of values, of the parameter at a path.

    Raises `ScenarioError` if there are less than two different values, or if the units of the ends
    differ in kind.
    """
    values = spec if not isinstance(spec, str) else _split_list(spec)
    if values is not None:
        labels = tuple(labels_of(list(values)))
        if len(set(map(str, labels))) < max(len(labels), 2):
            raise ScenarioError("expected at least two different values")
        return Choice(path, labels, tuple(values))
    ends, log = _ends(str(spec))
    return _range(path, ends, log=log)


def _split_list(text: str) -> list[Any] | None:
    """Return the values of a list or of a range with a step; `None` if the text is neither."""
    values = listed.split(text)
    if not values:
        raise ScenarioError(f"missing value; expected {FORMS}")
    is_continuous = len(values) == 1 and not STEPPED.fullmatch(text)
    return None if is_continuous else listed.parse(text)


def _ends(text: str) -> tuple[list[tuple[str, str]], bool]:
    """Split `10 KB:200 KB:log` into two (number, unit) and true if the range is logarithmic."""
    parts = [part.strip() for part in text.strip("\"'").split(":")]
    log = parts[-1] == "log"
    ends = [QUANTITY.fullmatch(part) for part in (parts[:-1] if log else parts)]
    quantities = [(end[1], end[2]) for end in ends if end is not None]
    if len(ends) != 2 or len(quantities) != 2:
        raise ScenarioError(f"expected a range or a list of values, such as {FORMS}")
    return quantities, log


def _range(path: str, ends: Sequence[tuple[str, str]], *, log: bool) -> Range:
    (low, unit), (high, high_unit) = ends
    if not are_alike(unit, high_unit):
        allowed = ", ".join(name for units in UNITS.values() for name in units)
        both = unit and high_unit
        units = f"`{unit}` and `{high_unit}`" if both else f"`{unit or high_unit}` and no unit"
        raise ScenarioError(f"incompatible units: {units} (units: {allowed})")
    # The unit of the range is that of its lower end, also for 1 us to 1 ms.
    lower, upper = float(low), float(high) * scale_of(high_unit) / scale_of(unit)
    whole = unit in UNITS["packets"] or not (unit or re.search(r"[.eE]", low + high))
    if not (math.isfinite(lower) and lower < upper < math.inf):
        raise ScenarioError(
            f"the lower end must be below the upper end, but {low} is not below {high}"
        )
    if log and lower <= 0:
        raise ScenarioError(f"a logarithmic range must start above 0, not at {low}")
    return Range(path, lower, upper, log, whole, unit)
