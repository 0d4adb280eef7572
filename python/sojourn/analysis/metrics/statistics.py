"""Statistics of values: percentiles and means with censoring, intervals, fairness."""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sojourn.base.statistics import half_width, of_rank, rank_of

Floats = npt.NDArray[np.float64]


class Statistic(NamedTuple):
    """A number; `at_least` is true if unfinished flows make the number a lower bound."""

    value: float
    at_least: bool = False


STATISTICS = ("mean", "p50", "p95", "p99")

TIMES_LEAST = 10
"""Times `least_flows` from which a percentile has an interval over seeds."""

LEAST_FOR_MEAN = 3
"""Least number of seeds whose mean has an interval: that of two is 12.7 standard errors wide."""

LEAST_FOR_MEDIAN = 6
"""Least number of values whose median has a 95 % interval: 1 - 2 / 2**6 is 97 %."""


def statistic_of(name: str, finished: Floats, unfinished: Floats) -> Statistic:
    """Return `mean`, `max` or a percentile such as `p99`; `unfinished` holds lower bounds.

    A percentile of fewer than `least_flows` values is the largest of them.
    """
    if name == "mean":
        return mean(finished, unfinished)
    return percentile(finished, unfinished, share_of(name))


def least_flows(name: str) -> int:
    """Return the number of flows from which a percentile is not simply the largest value.

    By nearest rank that is 1 / (1 - p): 100 for `p99`. It is 1 for `mean` and `max`.
    """
    share = 0.0 if name in ("mean", "max") else share_of(name)
    return math.ceil(1 / (1 - share) - 1e-9) if share < 1 else 1


def least_for_interval(name: str) -> int:
    """Return the number of flows per seed from which the mean of a percentile has an interval.

    The percentile of few flows is biased, and more seeds only make the interval narrower around the
    biased value: by nearest rank the p99 of 100 flows is 0.87 of the true one in the mean, and that
    of 199 flows up to 1.4 of it. With 10 / (1 - p) flows the bias is about 1 %.
    """
    return TIMES_LEAST * least_flows(name)


def reported(name: str, finished: Floats, unfinished: Floats) -> Statistic:
    """Return `statistic_of`, or NaN if there are fewer than `least_flows` flows."""
    if len(finished) + len(unfinished) < least_flows(name):
        return Statistic(math.nan)
    return statistic_of(name, finished, unfinished)


def share_of(name: str) -> float:
    """Return the rank of a percentile as a share: 0.99 for `p99`, 1 for `max`.

    Raises `ValueError` for another name.
    """
    share = re.fullmatch(r"p(\d+(?:\.\d+)?)", name)
    if name != "max" and (share is None or float(share[1]) > 100):
        raise ValueError(f"statistic {name!r}: expected mean, max, or a percentile such as p99")
    return 1.0 if share is None else float(share[1]) / 100


def is_percentile(name: str) -> bool:
    """Return true if a name is that of a percentile, such as `p99.9`."""
    return re.fullmatch(r"p\d+(\.\d+)?", name) is not None


def percentile(finished: Floats, unfinished: Floats, share: float) -> Statistic:
    """Return the smallest value that a `share` of all flows do not exceed (nearest rank).

    `unfinished` holds lower bounds. The result is a lower bound if larger values in their place
    would change it.
    """
    count = len(finished) + len(unfinished)
    if count == 0:
        return Statistic(math.nan)
    rank = rank_of(share, count)
    least = of_rank(_joined(finished, unfinished), rank)
    if rank > len(finished):
        return Statistic(least, at_least=True)
    return Statistic(least, at_least=len(unfinished) > 0 and of_rank(finished, rank) != least)


def _joined(finished: Floats, unfinished: Floats) -> Floats:
    """Return the values and the lower bounds; without any of these, the array of values."""
    return np.concatenate([finished, unfinished]) if len(unfinished) else finished


def mean(finished: Floats, unfinished: Floats) -> Statistic:
    """Return the mean, a lower bound if any flow is unfinished."""
    values = _joined(finished, unfinished)
    if len(values) == 0:
        return Statistic(math.nan)
    return Statistic(float(values.mean()), at_least=len(unfinished) > 0)


def t_interval(values: Iterable[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the mean and its confidence interval; the bounds of a single value are NaN."""
    data = np.asarray(list(values), dtype=np.float64)
    centre = float(data.mean()) if len(data) else math.nan
    reach = half_width(data, confidence=confidence)
    return centre, centre - reach, centre + reach


def interval_about(centre: float, values: Iterable[float]) -> tuple[float, float]:
    """Return Student's interval about `centre`, the number of all values together.

    Of positive numbers it is that of their logarithms: it contains no negative number, and the
    interval of A/B is the inverse of that of B/A.
    """
    data = np.asarray(list(values), dtype=np.float64)
    if min(centre, *data) > 0:
        reach = half_width(np.log(data), math.log(centre))
        return centre * math.exp(-reach), centre * math.exp(reach)
    reach = half_width(data, centre)
    return centre - reach, centre + reach


def ratio_interval(values: Iterable[float]) -> tuple[float, float, float]:
    """Return the mean of one ratio per seed and `interval_about` it, as `seed_interval` does."""
    centre, low, high = seed_interval(data := list(values))
    return (centre, low, high) if math.isnan(low) else (centre, *interval_about(centre, data))


def seed_interval(values: Iterable[float]) -> tuple[float, float, float]:
    """Return `t_interval` of one value per seed; the bounds are NaN below `LEAST_FOR_MEAN`."""
    centre, low, high = t_interval(data := list(values))
    return (centre, low, high) if len(data) >= LEAST_FOR_MEAN else (centre, math.nan, math.nan)


def median_interval(
    values: Iterable[float], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the median and its confidence interval, for any distribution of the values.

    The bounds are order statistics: the k-th smallest and the k-th largest of n values enclose the
    median with probability 1 - 2 P(B < k), where B is binomial with n and 1/2; k is the largest
    with at least `confidence`. Without such a k the bounds are NaN, as with fewer than
    `LEAST_FOR_MEDIAN` values at 95 %: five values enclose the median with 94 % only.
    """
    data = np.sort(np.asarray(list(values), dtype=np.float64))
    count = len(data)
    centre = float(np.median(data)) if count else math.nan
    rank, coverage = 0, 1 - 2 / 2**count
    while coverage >= confidence:
        rank += 1
        coverage -= 2 * math.comb(count, rank) / 2**count
    if rank == 0 or math.isnan(centre):
        return centre, math.nan, math.nan
    return centre, float(data[rank - 1]), float(data[-rank])


def jain(values: Iterable[float]) -> float:
    """Return Jain's fairness index: 1 if all values are equal, 1/n if only one is positive."""
    data = np.asarray(list(values), dtype=np.float64)
    squares = float((data**2).sum())
    return float(data.sum()) ** 2 / (len(data) * squares) if squares > 0 else math.nan
