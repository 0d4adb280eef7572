"""Values with their intervals, as text."""

import math
from collections.abc import Mapping
from typing import Any

from sojourn.base.units import format_count, format_size, format_time

COUNTS = ("flows", "terminated")
"""Metrics that count flows."""


def with_interval(row: Mapping[str, Any]) -> str:
    """Write a value, and how far its interval reaches in per cent of it."""
    value = row["value"]
    if value is None or math.isnan(value):
        return "-"
    if row.get("metric") in COUNTS:
        return f"{value:,.3g}" if value < 100 else format_count(round(value))
    bound = "≥ " if row.get("at_least") else ""
    low, high = row.get("low"), row.get("high")
    known = value and low is not None and high is not None
    reach = max(high - value, value - low) / value if known else 0.0
    digits = 0 if reach >= 0.1 else 1
    spread = f" ±{100 * reach:.{digits}f}%" if reach > 0 else ""
    return bound + in_unit(value, str(row.get("metric", ""))) + spread


def spent(row: Mapping[str, Any]) -> str:
    """Write an amount of time, and how far its interval reaches, if it is known."""
    if not row["value"] or math.isnan(row["value"]):
        return "-"
    reach = row["high"] - row["value"]
    return format_time(row["value"]) + ("" if math.isnan(reach) else f" ± {format_time(reach)}")


def in_unit(value: float, metric: str) -> str:
    """Format a value in the unit that the name of its metric implies."""
    if metric.startswith("FCT") or metric.endswith("_s"):
        return format_time(value)
    if metric.endswith("_bytes"):
        return format_size(value)
    if metric.startswith(("utilisation", "deadlines")):
        return f"{100 * value:.1f} %"
    return f"{value:.3g}"
