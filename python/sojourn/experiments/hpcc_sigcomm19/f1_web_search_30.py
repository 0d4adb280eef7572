"""Figure F1: slowdown by flow size, web search at load 0.3."""

import polars as pl

from sojourn import Verdict, all_at_least, between, every

from .paper import DCQCN, DCTCP, TIMELY
from .slowdowns import LARGE, SMALL, over_hpcc, slowdowns

figure = slowdowns(
    "web_search",
    0.3,
    id="f1",
    smoke={"warm_up": "500 us", "stop": "3 ms"},
    quick={"warm_up": "2 ms", "stop": "7 ms"},
    paper={"warm_up": "2 ms", "stop": "50 ms"},
)


@figure.claim(
    "the p95 of the smallest flows (up to position 10 %, 6.7 KB) is at least 2 times HPCC's under "
    "DCQCN+w and TIMELY+w, 1.7 times under DCTCP"
)
def small_p95(table: pl.DataFrame) -> Verdict:
    bounds = {DCQCN: 2.0, TIMELY: 2.0, DCTCP: 1.7}
    return every(
        all_at_least({f"{scheme} over HPCC": over_hpcc(table, scheme, "p95", SMALL)}, bound)
        for scheme, bound in bounds.items()
    )


@figure.claim("the p99 of the smallest flows is at least 2 times HPCC's under all three")
def small_p99(table: pl.DataFrame) -> Verdict:
    others = (DCQCN, TIMELY, DCTCP)
    return all_at_least(
        {f"{scheme} over HPCC": over_hpcc(table, scheme, "p99", SMALL) for scheme in others}, 2.0
    )


@figure.claim(
    "the p99 of the largest flows (from position 90 %) under DCQCN+w and DCTCP is 0.7 to 0.98 of "
    "HPCC's"
)
def large_p99(table: pl.DataFrame) -> Verdict:
    return every(
        between(over_hpcc(table, scheme, "p99", LARGE), 0.7, 0.98, f"{scheme} over HPCC")
        for scheme in (DCQCN, DCTCP)
    )


@figure.claim("the medians of flows up to position 50 % are equal (within 5 %)")
def equal_medians(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            over_hpcc(table, scheme, "p50", position),
            0.95,
            1.05,
            f"{scheme} over HPCC at position {position} %",
        )
        for scheme in (DCQCN, TIMELY, DCTCP)
        for position in range(10, 60, 10)
    )
