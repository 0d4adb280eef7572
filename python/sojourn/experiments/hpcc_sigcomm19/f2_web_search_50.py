"""Figure F2: slowdown by flow size, web search at load 0.5."""

import itertools
import math

import polars as pl

from sojourn import Verdict, all_at_least, at_least, at_most, between, every

from .paper import DCQCN, DCTCP, HPCC, TIMELY
from .slowdowns import LARGE, SMALL, over_hpcc, slowdowns, value

figure = slowdowns(
    "web_search",
    0.5,
    id="f2",
    smoke={"warm_up": "500 us", "stop": "2 ms"},
    quick={"warm_up": "2 ms", "stop": "7 ms"},
    paper={"warm_up": "2 ms", "stop": "50 ms"},
)


@figure.claim(
    "the p99 of the smallest flows (up to position 10 %, 6.7 KB) is at least 2.7 times HPCC's "
    "under DCQCN+w, 2.2 times under DCTCP"
)
def small_p99(table: pl.DataFrame) -> Verdict:
    return every(
        at_least(over_hpcc(table, scheme, "p99", SMALL), bound, f"{scheme} over HPCC")
        for scheme, bound in {DCQCN: 2.7, DCTCP: 2.2}.items()
    )


@figure.claim(
    "the p99 of the largest flows (from position 90 %) under DCQCN+w is at most 0.85 of HPCC's"
)
def large_p99(table: pl.DataFrame) -> Verdict:
    return at_most(over_hpcc(table, DCQCN, "p99", LARGE), 0.85, f"{DCQCN} over HPCC")


@figure.claim("the curves of the p99 of DCQCN+w and HPCC cross between positions 60 and 90 %")
def crossing(table: pl.DataFrame) -> Verdict:
    return between(last_crossing(table), 60, 90, "the position of the last crossing, in %,")


def last_crossing(table: pl.DataFrame) -> float:
    """Return the position from which DCQCN+w's p99 stays below HPCC's, between bins linearly.

    The result is 0 if it is always below, and 100 if it is above in the last bin.
    """
    points = [
        (position, math.log(over_hpcc(table, DCQCN, "p99", position)))
        for position in range(10, 110, 10)
    ]
    if points[-1][1] >= 0:
        return 100.0
    for (left, above), (right, below) in reversed(list(itertools.pairwise(points))):
        if above >= 0:
            return left + (right - left) * above / (above - below)
    return 0.0


@figure.claim(
    "the p99 of the smallest flows rises in the order HPCC, DCTCP, TIMELY+w, DCQCN+w",
)
def order(table: pl.DataFrame) -> Verdict:
    pairs = itertools.pairwise((HPCC, DCTCP, TIMELY, DCQCN))
    return all_at_least(
        {
            f"{upper} over {lower}": value(table, upper, "p99", SMALL)
            / value(table, lower, "p99", SMALL)
            for lower, upper in pairs
        },
        1,
    )
