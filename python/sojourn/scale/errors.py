"""Errors of slowdowns that stand for others, by size."""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SIZES = (0.0, 1e4, 1e5, 1e6, math.inf)
"""Bounds of the sizes in bytes."""

LEAST_FLOWS = 200
"""Flows from which the errors of a size are given."""

Slowdowns = tuple[Floats, Floats]
"""Sizes and slowdowns of flows; the slowdown of a flow that did not finish is infinite."""


def errors_by_size(pairs: Iterable[tuple[Slowdowns, Slowdowns]]) -> list[dict[str, Any]]:
    """Return the errors of predicted slowdowns, for pairs of the truth and its prediction.

    A row has the bounds of the sizes (all flows first), and the errors of the mean and the p99:
    prediction / truth - 1, the largest in absolute value over the pairs. An error is infinite if
    one of the two has unfinished flows.
    """
    pairs = list(pairs)
    rows = []
    for above, up_to in [(0.0, math.inf), *itertools.pairwise(SIZES)]:
        groups = [
            [values[(sizes > above) & (sizes <= up_to)] for sizes, values in pair] for pair in pairs
        ]
        if min(len(values) for group in groups for values in group) >= LEAST_FLOWS:
            errors = {
                name: max((_error(measure, *group) for group in groups), key=abs)
                for name, measure in (("mean", np.mean), ("p99", _p99))
            }
            rows.append({"above": above, "up_to": up_to, **errors})
    return rows


def _p99(values: Floats) -> float:
    return float(np.sort(values)[math.ceil(0.99 * len(values)) - 1])


def _error(measure: Callable[[Floats], Any], truth: Floats, predicted: Floats) -> float:
    expected, value = float(measure(truth)), float(measure(predicted))
    if expected == value:
        return 0.0
    return value / expected - 1 if math.isfinite(expected) and math.isfinite(value) else math.inf
