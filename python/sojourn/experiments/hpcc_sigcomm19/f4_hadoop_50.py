"""Figure F4: slowdown by flow size, Facebook's Hadoop at load 0.5."""

from functools import partial

import polars as pl

from sojourn import Verdict, between, every

from .paper import DIGEST, HPCC, PINT, hpcc
from .slowdowns import LONGEST_NS, TAILS, flat, slowdowns, small_tail, value

figure = slowdowns(
    "fb_hadoop",
    0.5,
    id="f4",
    others={PINT: {**hpcc(LONGEST_NS, eta=0.99, pint={}, quantised=False), "packet": DIGEST}},
    smoke={"warm_up": "200 us", "stop": "600 us"},
    quick={"warm_up": "2 ms", "stop": "4 ms"},
    paper={"warm_up": "2 ms", "stop": "20 ms"},
)

figure.claim(
    "below position 70 % (up to 7 KB) the p50, p95 and p99 of every scheme are flat: within 5 % of "
    "their mean over the bins",
)(flat)

figure.claim("below position 70 % the p99 under DCQCN+w is at least 2.0 times HPCC's in every bin")(
    partial(small_tail, bound=2.0)
)


def pint_over_hpcc(
    table: pl.DataFrame, positions: tuple[int, ...], least: float, most: float
) -> Verdict:
    """Judge every percentile under PINT over that under telemetry in these bins."""
    return every(
        between(
            value(table, PINT, metric, position) / value(table, HPCC, metric, position),
            least,
            most,
            f"{metric} of {PINT} over {HPCC} at position {position} %",
        )
        for metric in TAILS
        for position in positions
    )


figure.claim(
    "HPCC-PINT is within 12 % of HPCC up to position 40 %, at p50, p95 and p99",
    scales=("quick", "paper"),
)(partial(pint_over_hpcc, positions=(10, 20, 30, 40), least=0.88, most=1.12))

figure.claim(
    "HPCC-PINT is 3 to 17 % faster than HPCC from position 85 % on, at p50, p95 and p99",
    scales=("quick", "paper"),
)(partial(pint_over_hpcc, positions=(90, 100), least=0.83, most=0.97))
