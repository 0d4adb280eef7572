"""Errors of slowdowns that stand for others, by size, and intervals of their p99s."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn.base.statistics import BATCHES, half_width, inflation, nearest_rank

Floats = npt.NDArray[np.float64]

SIZES = (0.0, 1e4, 1e5, 1e6, math.inf)
"""Bounds of the sizes in bytes."""

LEAST_FLOWS = 200
"""Flows from which the errors of a size are given."""

LARGEST_DIFFERENCE = 0.01
"""Largest difference between the shares of unfinished flows with which finished ones compare."""

REPORTED = (0.0, 1e5, 1e7, math.inf)
"""Bounds of the sizes in bytes by which results are printed."""

LEAST_IN_BATCH = 100
"""Least number of flows in a batch for the interval of a p99."""

Slowdowns = tuple[Floats, Floats]
"""Sizes and slowdowns of flows; the slowdown of a flow that did not finish is infinite."""

Flags = npt.NDArray[np.bool_]

Bounded = tuple[Floats, Floats, Flags]
"""Sizes of flows, values or their lower bounds, and true for flows that finished."""


def errors_by_size(pairs: Iterable[tuple[Slowdowns, Slowdowns]]) -> list[dict[str, Any]]:
    """Return the errors of predicted slowdowns, for pairs of the truth and its prediction.

    A row has the bounds of the sizes (all flows first), the least number of flows, and the errors
    of the mean and the p99: prediction / truth - 1, the largest in absolute value over the pairs.
    If both have unfinished flows, an infinite mean or p99 is replaced by that of finished flows; an
    error is infinite if one alone has, or if their shares differ by more than `LARGEST_DIFFERENCE`.
    """
    pairs = list(pairs)
    rows = []
    for above, up_to in [(0.0, math.inf), *itertools.pairwise(SIZES)]:
        groups = [
            [values[(sizes > above) & (sizes <= up_to)] for sizes, values in pair] for pair in pairs
        ]
        flows = min(len(values) for group in groups for values in group)
        if flows >= LEAST_FLOWS:
            errors = {
                name: max((_error(measure, *group) for group in groups), key=abs)
                for name, measure in (("mean", np.mean), ("p99", _p99))
            }
            rows.append({"above": above, "up_to": up_to, "flows": flows, **errors})
    return rows


def widest_p99(samples: Sequence[Slowdowns]) -> dict[str, float]:
    """Return the size whose p99 has the widest interval: `above`, `up_to` and `half_width`.

    The half width is relative to the p99; infinite if flows of the size are unfinished, and for
    all flows if there are too few of every size.
    """
    rows = [{"above": 0.0, "up_to": math.inf, "half_width": math.inf}]
    for above, up_to in [(0.0, math.inf), *itertools.pairwise(SIZES)]:
        groups = [values[(sizes > above) & (sizes <= up_to)] for sizes, values in samples]
        values = np.concatenate(groups)
        width = _p99_half_width(groups, _p99(values)) if len(values) else math.nan
        if not math.isnan(width):
            rows.append({"above": above, "up_to": up_to, "half_width": width})
    return max(rows[1:] or rows, key=lambda row: row["half_width"])


def _p99_half_width(samples: Sequence[Floats], p99: float) -> float:
    """Return the relative half width of the 95 % interval of a p99; infinite if the p99 is.

    It is NaN with fewer values than `BATCHES` of `LEAST_IN_BATCH`.
    """
    if sum(map(len, samples)) < BATCHES * LEAST_IN_BATCH:
        return math.nan
    if not math.isfinite(p99):
        return math.inf
    parts = np.array([_p99(batch) for batch in _batches(samples)])
    factor = 1.0 if len(samples) >= BATCHES else inflation(parts)
    return half_width(parts, p99, factor=factor) / p99


def p99_interval(
    samples: Sequence[Floats], are_finished: Sequence[Flags]
) -> tuple[float, float, float]:
    """Return the p99 of all samples together, and its 95 % interval by batches.

    The values of flows that did not finish are lower bounds. The p99 is NaN with fewer than
    `LEAST_IN_BATCH` flows. The bounds of the interval are NaN with fewer than `BATCHES` times as
    many, and if more than 1 % of the flows are unfinished, since the p99 may then be that of one.
    The upper bound is for unfinished flows that take longer than all others.
    """
    values = np.concatenate(samples)
    if len(values) < LEAST_IN_BATCH:
        return math.nan, math.nan, math.nan
    p99 = _p99(values)
    largest = _p99(np.where(np.concatenate(are_finished), values, math.inf))
    reach = p99 * _p99_half_width(samples, p99) if math.isfinite(largest) else math.nan
    # No percentile is below all values: a slowdown is 1 at least.
    return p99, float(np.maximum(p99 - reach, values.min())), largest + reach


def p99_rows(samples: Sequence[Bounded]) -> list[dict[str, Any]]:
    """Return `p99_interval` of all flows, and of those of each of the `REPORTED` sizes.

    A row has the bounds of the sizes, the numbers of flows and of unfinished ones, the `p99`, and
    the bounds `low` and `high` of its interval; each of the three is `None` if it is unknown.
    """
    rows = []
    for above, up_to in [(0.0, math.inf), *itertools.pairwise(REPORTED)]:
        chosen = [(sizes > above) & (sizes <= up_to) for sizes, _, _ in samples]
        pairs = list(zip(samples, chosen, strict=True))
        groups = [values[of_size] for (_, values, _), of_size in pairs]
        are_finished = [is_done[of_size] for (_, _, is_done), of_size in pairs]
        unfinished = sum(int((~flags).sum()) for flags in are_finished)
        interval = zip(("p99", "low", "high"), p99_interval(groups, are_finished), strict=True)
        rows.append(
            {
                **{"above": above, "up_to": up_to},
                **{"flows": sum(map(len, groups)), "unfinished": unfinished},
                **{name: None if math.isnan(value) else value for name, value in interval},
            }
        )
    return rows


def _batches(samples: Sequence[Floats]) -> list[Floats]:
    """Return batches of whole samples, which are independent; of few samples, consecutive flows."""
    values = np.concatenate(samples)
    if len(samples) < BATCHES:
        return np.array_split(values, BATCHES)
    number = min(len(samples), len(values) // LEAST_IN_BATCH)
    groups = np.array_split(np.arange(len(samples)), number)
    return [np.concatenate([samples[place] for place in group]) for group in groups]


def _p99(values: Floats) -> float:
    return nearest_rank(values, 0.99)


def _error(measure: Callable[[Floats], Any], truth: Floats, predicted: Floats) -> float:
    """Return prediction / truth - 1, of finished flows if both have unfinished ones."""
    expected, value = float(measure(truth)), float(measure(predicted))
    if math.isfinite(expected) and math.isfinite(value):
        return value / expected - 1
    finished = [values[np.isfinite(values)] for values in (truth, predicted)]
    shares = [float(np.isfinite(values).mean()) for values in (truth, predicted)]
    if min(shares) == 0 or max(shares) == 1 or np.ptp(shares) > LARGEST_DIFFERENCE:
        return math.inf
    expected, value = (float(measure(done)) for done in finished)
    return value / expected - 1
