"""Figure F13: the 99.9th percentile of FCTs by flow size, web search."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    all_at_most,
    at_least,
    at_most,
    between,
    every,
    metrics,
    override,
    plot,
)

from .paper import (
    DCQCN,
    HOST_BPS,
    HPCC,
    POWER,
    THETA,
    TIMELY,
    fabric,
    hosts,
    paper,
    schemes,
    until_acked,
)

OVERSUBSCRIPTION = 4

BUCKETS = metrics.size_buckets(10e3, 100e3, 1e6)
SMALL, _, MEDIUM, LARGE = BUCKETS

TAIL = "FCT p99.9"

SIZES = {"kind": "empirical", "file": "web_search.csv"}

HIGH = 0.6

figure = Figure(
    paper,
    id="f13",
    title="99.9th percentile of FCTs by flow size, web search",
    source="Figure 6",
    scales={
        "smoke": {"loads": (HIGH,), "stop": "1 ms"},
        "quick": {"loads": (0.2, HIGH), "stop": "20 ms"},
        "paper": {"loads": (0.2, HIGH), "stop": "200 ms"},
    },
    deviations=(
        "A load of 1 is the payload that fills the uplinks of the ToR switches. Targets are in "
        "other pods, where the authors' are in any other rack.",
        "The authors' runs last 9 s, ours 20 ms at the scale `quick` and 200 ms at `paper`; all "
        "flows finish. With less than 1000 flows of a size the percentile is the largest FCT: at "
        "`quick` a seed has about 210 flows up to 10 KB. Claims are judged at `paper`.",
        "`Like` is taken as within a factor of 1.5.",
        "PowerTCP's tail up to 10 KB is that of HPCC here, not 25 % less, since neither law queues "
        "much: the base RTT is 29 µs, the largest of these FCTs 41 to 50 µs by seed. With HPCC's "
        "maxStage 0 or eta 0.99, at load 0.9, or with 1000 such flows (100 ms) the ratio is 0.92 "
        "to 1.16 (one seed); it is 0.78, 0.89 and 0.96 with three seeds if HPCC reacts only once "
        "per RTT. In HPCC's simulator with both laws (cases `a` and `b` of `sojourn validate "
        "hpcc`) it is 0.88. What made HPCC's queues longer in the source is not known.",
    ),
    panels=(1, 2),
    size=(12, 4.8),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    capacity_bps = hosts(scale["name"]) * HOST_BPS / OVERSUBSCRIPTION
    for load in scale["loads"]:
        workload = {
            "kind": "poisson",
            "load": load,
            "load_counts": "payload",
            "load_reference": f"{capacity_bps:.0f} bps",
            "pairs": "longest",
            "sizes": SIZES,
            "stop": scale["stop"],
        }
        shared = override(fabric(scale["name"]), {"workload": workload, "time_limit": "100 s"})
        for scheme, change in schemes.items():
            yield {"scheme": scheme, "load": load}, override(shared, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    tails = [
        metrics.measure(
            map(until_acked, runs), **{TAIL: metrics.fct("p99.9", bucket, few=True)}
        ).with_columns(size=pl.lit(bucket.name))
        for bucket in BUCKETS
    ]
    return metrics.across_seeds(pl.concat(tails))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    loads = table["load"].unique().sort().to_list()
    for panel, load in zip(axes, loads, strict=False):
        # The plot breaks a name at spaces.
        names = pl.col("size").str.replace_all(" ", "\u00a0").str.replace("to\u00a0", "to ")
        part = table.filter(load=load).with_columns(size=names)
        plot.levels(panel, part, group="size", unit="us", label=TAIL)
        panel.set_title(f"load {load:g}", loc="right", fontsize=10)
    for panel in axes[len(loads) :]:
        panel.set_axis_off()
    plot.one_legend(axes[: len(loads)])


def over(table: pl.DataFrame, upper: str, lower: str, bucket: metrics.Bucket) -> float:
    """Return the 99.9th percentile of a scheme over that of another at the high load."""
    upper_tail, lower_tail = (
        metrics.at(table, scheme=scheme, load=HIGH, size=bucket.name) for scheme in (upper, lower)
    )
    return upper_tail / lower_tail


@figure.claim(
    "load 0.6, up to 10 KB: PowerTCP is at least 25 % below HPCC, and 60 % below DCQCN and TIMELY",
    scales=("paper",),
)
def small(table: pl.DataFrame) -> Verdict:
    return every(
        [
            at_most(over(table, POWER, HPCC, SMALL), 0.75, f"{POWER} over {HPCC}"),
            all_at_most(
                {
                    f"{POWER} over {other}": over(table, POWER, other, SMALL)
                    for other in (DCQCN, TIMELY)
                },
                0.4,
            ),
        ]
    )


@figure.claim(
    "load 0.6: theta-PowerTCP is like PowerTCP up to 10 KB (within a factor of 1.5), and worse "
    "from 100 KB to 1 MB",
    scales=("paper",),
)
def theta(table: pl.DataFrame) -> Verdict:
    ratio = f"{THETA} over {POWER}"
    return every(
        [
            between(over(table, THETA, POWER, SMALL), 1 / 1.5, 1.5, f"{ratio}, {SMALL.name},"),
            at_least(over(table, THETA, POWER, MEDIUM), 1, f"{ratio}, {MEDIUM.name},"),
        ]
    )


@figure.claim("load 0.6, above 1 MB: PowerTCP is at most 10 % above HPCC", scales=("paper",))
def large(table: pl.DataFrame) -> Verdict:
    return at_most(over(table, POWER, HPCC, LARGE), 1.1, f"{POWER} over {HPCC}")
