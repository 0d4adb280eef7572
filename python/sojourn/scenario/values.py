"""Values of a parameter as options write them: lists `0.2,0.8` and ranges `0.1:0.9:0.2`."""

import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base.units import QUANTITY, are_alike, scale_of
from sojourn.scenario.reading import TOO_DEEP, shortened

MAX_STEPS = 10_000
"""Largest number of values of a range, against mistyped steps."""


def parse(text: str) -> list[Any]:
    """Return values between commas: TOML, plain words, or ranges FIRST:LAST:STEP with both ends.

    Returns an empty list if a value is missing. Raises `ScenarioError` for an invalid range.
    """
    items = [item.strip() for item in _items(text)]
    if not all(items):
        return []
    return [value for item in items for value in (_steps(item) or [_parse_value(item)])]


def split(text: str) -> list[Any]:
    """Return values between commas, without ranges; an empty list if a value is missing."""
    items = [item.strip() for item in _items(text)]
    return [_parse_value(item) for item in items] if all(items) else []


def _steps(text: str) -> list[Any]:
    """Return the values of a range; an empty list if the text is not a range."""
    parts = [part.strip() for part in text.split(":")]
    matches = [QUANTITY.fullmatch(part) for part in parts]
    if len(parts) < 2 or not (matches[0] and matches[1]):
        return []
    ends = f"{parts[0]}:{parts[1]}"
    quantities = [(Decimal(match[1]), match[2]) for match in matches if match is not None]
    if len(parts) != 3 or len(quantities) != 3:
        raise ScenarioError(
            f"a range of values needs a step, as in {ends}:STEP; "
            f"or list the values, as in {parts[0]},{parts[1]}"
        )
    unit = quantities[0][1]
    if not all(other == unit or are_alike(unit, other) for _, other in quantities):
        raise ScenarioError(f"incompatible units in the range {shortened(text)}")
    scale = scale_of(unit)
    low, high, step = (number * scale_of(other) / scale for number, other in quantities)
    if step <= 0 or low > high:
        raise ScenarioError(
            f"a range is FIRST:LAST:STEP with FIRST <= LAST and STEP > 0, not {text}"
        )
    if (high - low) / step >= MAX_STEPS:
        raise ScenarioError(f"{shortened(text)}: at most {MAX_STEPS} values are allowed")
    numbers = [low + index * step for index in range(int((high - low) / step) + 1)]
    if unit:
        return [f"{number.normalize():f} {unit}" for number in numbers]
    is_whole = not re.search(r"[.eE]", text)
    return [int(number) if is_whole else float(number) for number in numbers]


def _items(text: str) -> Iterator[str]:
    """Split at the commas outside of brackets and quotes."""
    begin = depth = 0
    quote, is_start = "", True
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and (is_start or depth):
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth = max(0, depth - 1)
        elif char == "," and not depth:
            yield text[begin:position]
            begin = position + 1
        is_start = char == "," or (is_start and char.isspace())
    yield text[begin:]


def _parse_value(text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")
    except RecursionError:
        raise ScenarioError(f"{shortened(text)}: {TOO_DEEP}") from None
    except ValueError:
        return text
    # A text with several lines may define further keys; it is not a single value.
    return value["value"] if value.keys() == {"value"} else text
