"""Figure F4: slowdown by flow size, Facebook's Hadoop at load 0.5."""

from functools import partial

from .slowdowns import flat, slowdowns, small_tail

figure = slowdowns(
    "fb_hadoop",
    0.5,
    id="f4",
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
