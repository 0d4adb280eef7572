"""Conversion of Python values to those of scenarios: texts, numbers, lists and tables."""

import math
import os
from collections.abc import Mapping
from typing import Any

from sojourn._core import ScenarioError

ALLOWED = "must be a string, a number, true or false, a list or a table"


def without_array(value: Any) -> Any:
    """Return a number for a scalar of numpy, and a list for an array or a tensor."""
    return value.tolist() if hasattr(value, "tolist") and not isinstance(value, type) else value


def plain(value: Any, field: str) -> Any:
    """Return a scalar, or a list for an array; tables and lists are returned unchanged.

    Raises `ScenarioError` for the `field` of a value that is not allowed in scenarios.
    """
    value = without_array(value)
    if isinstance(value, str | bool | Mapping | list | tuple) or value is None:
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, int):
        return value
    if not isinstance(value, float):
        raise ScenarioError(f"{field}: {ALLOWED}, not {_described(value)}")
    if not math.isfinite(value):
        raise ScenarioError(f"{field}: must be a finite number, not {value}")
    return value


def plain_tree(value: Any, field: str) -> Any:
    """Return a value with plain values at all levels of its tables and lists."""
    value = plain(value, field)
    if isinstance(value, Mapping):
        return {key: plain_tree(inner, f"{field}.{key}") for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_tree(inner, f"{field}[{i}]") for i, inner in enumerate(value)]
    return value


def _described(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"a value of the type {type(value).__name__}"
