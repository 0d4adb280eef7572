"""Text of values with confidence intervals."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sojourn.analysis import metrics
from sojourn.base.units import format_bit_rate, format_count, format_size, format_time

COUNTS = ("flows", "terminated", "calls", *metrics.COUNTS)
"""Metrics that count flows, calls, packets or events."""


MAX_UNFINISHED = 0.01
"""Largest share of unfinished flows that are not mentioned if they change no statement."""


def format_value(row: Mapping[str, Any]) -> str:
    """Format a value and the half-width of its interval in per cent of the value."""
    value = row["value"]
    if value is None or math.isnan(value):
        return "-"
    if row.get("metric") in COUNTS:
        return f"{value:,.3g}" if value < 100 else format_count(round(value))
    bound = "≥ " if row.get("at_least") else ""
    low, high = row.get("low"), row.get("high")
    has_interval = value and low is not None and high is not None
    half_width = max(high - value, value - low) / value if has_interval else 0.0
    digits = 0 if half_width >= 0.1 else 1
    interval = f" ±{100 * half_width:.{digits}f}%" if half_width > 0 else ""
    return bound + format_in_unit(value, str(row.get("metric", ""))) + interval


def with_half_widths(cells: Sequence[str], half_widths: Sequence[float]) -> list[str]:
    """Append half widths of intervals in per cent to the cells of a column; a dash if unknown.

    A cell without a value stays as it is.
    """
    percents = [_percent(width) if math.isfinite(width) else "-" for width in half_widths]
    longest = max(map(len, percents), default=0)
    return [
        cell if cell == "-" else f"{cell} ±{percent:>{longest}}"
        for cell, percent in zip(cells, percents, strict=True)
    ]


def _percent(share: float) -> str:
    """Format a share in whole per cent, or in tenths below one per cent."""
    return f"{100 * share:.{0 if share >= 0.01 else 1}f}%"


def format_duration(row: Mapping[str, Any]) -> str:
    """Format a duration and the half-width of its interval, if known and not zero."""
    if not row["value"] or math.isnan(row["value"]):
        return "-"
    half_width = row["high"] - row["value"]
    interval = f" ± {format_time(half_width)}" if half_width > 0 else ""
    return format_time(row["value"]) + interval


def flows_of_size(size: str) -> str:
    """Return the flows of a bucket of sizes, such as `≤ 100 KB`, in words."""
    if size.startswith("≤ "):
        return f"flows up to {size[2:]}"
    if size.startswith("> "):
        return f"flows above {size[2:]}"
    return f"flows of {size}"


def format_ratio(value: float) -> str:
    """Format a plain number, such as a slowdown, with three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:#.3g}"


def format_in_unit(value: float, metric: str) -> str:
    """Format a value in the unit of its metric."""
    if metric.startswith(("FCT", "duration", "latency")) or metric.endswith("_s"):
        return format_time(value)
    if metric.endswith("_bytes") or metric.startswith("queue"):
        return format_size(value)
    if metric == "throughput":
        return format_bit_rate(value)
    if metric.startswith(("utilisation", "deadlines", "share")):
        return f"{100 * value:.1f} %"
    return format_ratio(value)
