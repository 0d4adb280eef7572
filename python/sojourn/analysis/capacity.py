"""Bits that links can carry over time, if their rates follow traces."""

import csv
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Carried = Callable[[Floats], Floats]
"""Function from times in seconds to the bits that a link can carry until then."""

OPPORTUNITY = 1500 * 8
"""Bits of a delivery opportunity of Mahimahi."""

TRACED = "left->right"
"""Link of a topology whose parameter is `rate_trace`."""


def traced_links(scenario: Mapping[str, Any]) -> dict[str, Carried]:
    """Return the links whose rates follow traces, by name."""
    files = {trace["link"]: trace["file"] for trace in scenario.get("rate_traces") or []}
    own = (scenario.get("topology") or {}).get("rate_trace")
    if isinstance(own, Mapping):
        files[TRACED] = own
    return {link: carried(file["text"]) for link, file in files.items()}


def carried(text: str) -> Carried:
    """Return what a trace carries, in either file format of `rate_trace`."""
    stripped = (line.strip() for line in text.splitlines())
    lines = [line for line in stripped if line and not line.startswith("#")]
    return _opportunities(lines) if lines[0].isdecimal() else _table(lines)


def _table(lines: list[str]) -> Carried:
    """Return what rates carry that hold until the next row, the last without end."""
    rows = list(csv.DictReader(lines, skipinitialspace=True))
    starts = np.array([float(row["time_s"]) for row in rows])
    rates = np.array([float(row["rate_bps"]) for row in rows])
    done = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(starts))])

    def bits(times: Floats) -> Floats:
        piece = np.searchsorted(starts, times, side="right") - 1
        total: Floats = done[piece] + rates[piece] * (times - starts[piece])
        return total

    return bits


def _opportunities(lines: list[str]) -> Carried:
    """Return what delivery opportunities carry; the last line ends the period."""
    milliseconds = np.array([int(line) for line in lines])
    lasts = int(milliseconds[-1])
    # An opportunity at the start is that of the end of the period before.
    counts = np.bincount(np.where(milliseconds == 0, lasts, milliseconds), minlength=lasts + 1)
    done = np.cumsum(counts) * float(OPPORTUNITY)

    def bits(times: Floats) -> Floats:
        rounds, rest = np.divmod(times * 1000, lasts)
        total: Floats = rounds * done[-1] + np.interp(rest, np.arange(lasts + 1), done)
        return total

    return bits
