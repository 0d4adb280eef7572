"""Figure L4: FCTs by flow size on an oversubscribed fat-tree, and wasted credits."""

import itertools
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Result,
    Run,
    Scale,
    Verdict,
    all_at_least,
    at_least,
    between,
    every,
    metrics,
    override,
    plot,
)

from .paper import DCTCP, EXPRESSPASS, PACKET, PAYLOAD, paper, schemes

WEB_SERVER, CACHE_FOLLOWER = "web server", "cache follower"
WEB_SEARCH, DATA_MINING = "web search", "data mining"

WORKLOADS = {
    WEB_SERVER: "web_server",
    CACHE_FOLLOWER: "cache_follower",
    WEB_SEARCH: "web_search",
    DATA_MINING: "data_mining",
}
"""The tables of flow sizes, in the order of their means."""

SHORT_FLOWS = (WEB_SERVER, CACHE_FOLLOWER)

WITH_LARGE_FLOWS = (CACHE_FOLLOWER, WEB_SEARCH, DATA_MINING)
"""Workloads with flows above 1 MB."""

BUCKETS = metrics.size_buckets(10e3, 100e3, 1e6)
SMALL, MEDIUM, _, LARGEST = BUCKETS

TAIL, MEAN, WASTE = "FCT p99", "mean FCT", "wasted credits"

LOAD = 0.6

UPLINKS_GBPS = 32 * 2 * 10
"""Total rate of the uplinks of the ToR switches."""


def scaled(*flows: int) -> dict[str, int]:
    """Return the number of flows of each workload."""
    return dict(zip(WORKLOADS, flows, strict=True))


figure = Figure(
    paper,
    id="l4",
    title="FCTs by flow size on an oversubscribed fat-tree at load 0.6",
    source="Realistic workloads on a fat-tree",
    scales={
        "smoke": {"flows": scaled(200, 100, 100, 30)},
        "quick": {"flows": scaled(6000, 1500, 600, 150)},
        "paper": {"flows": scaled(10_000, 10_000, 10_000, 3_000)},
    },
    deviations=(
        "192 hosts at 32 ToR switches with two uplinks each, 16 aggregation and 8 core switches; "
        "all links have 10 Gb/s, 1 µs at hosts and 4 µs elsewhere. A load of 1 is the data, with "
        "headers, that fills the uplinks of the ToR switches. The initial aggressiveness is "
        "0.0625, as in the authors' script.",
        "The authors' script computes the arrival rate from other means than those of the tables "
        "between whose points it draws sizes (web server 63.7 instead of 66.1 KB, cache follower "
        "701 instead of 713 KB); here the load is 0.6 of the drawn sizes. Web search is the table "
        "of [hpcc19], with a mean of 1.71 MB instead of 1.65 MB.",
        "Runs of the source have 100 000 flows; at the scale `paper` ten seeds have as many, and "
        "30 000 of data mining, which carry as many bytes as 130 000 of web search.",
        "The 99th percentile of fewer than 100 flows of a size is their largest FCT, as of most "
        "sizes of web search and data mining at `quick`. No claim is about it.",
        "A flow of ExpressPass waits an RTT for its first credit, and DCTCP sends its first window "
        "at once: the 99th percentiles of FCTs up to 10 KB are longer under ExpressPass (web "
        "server 31 %, cache follower 17 %).",
        "Wasted are credits that reach a sender without data; they count relative to all credits "
        "that reach senders.",
    ),
    panels=(2, 3),
    size=(16, 9.6),
)

base: dict[str, Any] = {
    "name": "ExpressPass's fat-tree",
    "topology": {
        "kind": "clos",
        "pods": 8,
        "edges_per_pod": 4,
        "hosts_per_edge": 6,
        "aggregations_per_pod": 2,
        "cores": 8,
        "fabric_rate": "10 Gbps",
        "core_rate": "10 Gbps",
        "host_delay": "1 us",
        "fabric_delay": "4 us",
        "core_delay": "4 us",
    },
    "packet": PACKET,
    "routing": "ecmp",
    "time_limit": "1000 s",
}

SLOW_START: dict[str, Any] = {"transport": {"kind": "expresspass", "initial_weight": 0.0625}}


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for scheme, change in ((EXPRESSPASS, SLOW_START), (DCTCP, schemes()[DCTCP])):
        for workload, table in WORKLOADS.items():
            flows = {
                "kind": "poisson",
                "load": LOAD,
                "load_reference": f"{UPLINKS_GBPS} Gbps",
                "sizes": {"kind": "empirical", "table": table},
                "flows": scale["flows"][workload],
                "class": workload,
            }
            labels = {"scheme": scheme, "workload": workload}
            yield labels, override(base, {"workload": flows}, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    by_size = [
        metrics.measure(
            runs, **{TAIL: metrics.fct("p99", bucket, few=True), MEAN: metrics.fct("mean", bucket)}
        ).with_columns(size=pl.lit(bucket.name))
        for bucket in BUCKETS
    ]
    with_credits = [run for run in runs if run.labels["scheme"] == EXPRESSPASS]
    waste = metrics.measure(with_credits, **{WASTE: wasted}).with_columns(size=pl.lit("all"))
    return metrics.across_seeds(pl.concat([*by_size, waste]))


def wasted(result: Result) -> metrics.Statistic:
    """Measure the wasted credits over the credits that reach senders.

    Hosts send data, a request and an ACK for each flow, a request after each timeout, and credits.
    """
    counts, flows = result.summary["counts"], result.flows
    data = flows.select(((pl.col("size_bytes") / PAYLOAD).ceil() + pl.col("retransmits")).sum())
    packets = float(data.item())
    others = 2 * flows.height + counts["timeouts"]
    credits = counts["packets"] - packets - others - counts["credit_drops"]
    return metrics.Statistic(1 - packets / credits if credits else math.nan)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    panels = list(axes.flat)
    names = pl.col("size").str.replace_all(" ", "\u00a0").str.replace("to\u00a0", "to ")
    for panel, workload in zip(panels, WORKLOADS, strict=False):
        has_flows = pl.col("value").is_not_nan()
        part = table.filter(has_flows, metric=TAIL, workload=workload).with_columns(size=names)
        plot.levels(panel, part, group="size", unit="us", label=TAIL)
        panel.set_title(workload, loc="right", fontsize=10)
    waste, empty = panels[len(WORKLOADS) :]
    part = table.filter(metric=WASTE)
    options: Any = {"group": "workload", "unit": "%", "log": False, "values": "{:.1f}"}
    plot.levels(waste, part, label=WASTE, **options)
    waste.set_ylim(bottom=0)
    empty.set_axis_off()
    plot.one_legend(axes)


def over_dctcp(table: pl.DataFrame, metric: str, workload: str, size: str) -> float:
    """Return a number of ExpressPass over that of DCTCP."""
    express, dctcp = (
        metrics.at(table, scheme=scheme, metric=metric, workload=workload, size=size)
        for scheme in (EXPRESSPASS, DCTCP)
    )
    return express / dctcp


def shorter_tail(table: pl.DataFrame, size: str) -> Verdict:
    """Judge the 99th percentile of DCTCP over that of ExpressPass."""
    ratios = {
        f"{DCTCP} over {EXPRESSPASS}, {workload},": 1 / over_dctcp(table, TAIL, workload, size)
        for workload in SHORT_FLOWS
    }
    return all_at_least(ratios, 1)


for words, bucket in (("up to 10 KB", SMALL), ("from 10 to 100 KB", MEDIUM)):
    figure.claim(
        f"{words} the 99th percentile of FCTs is at most DCTCP's, with the web server and the "
        "cache follower",
        scales=("quick", "paper"),
    )(partial(shorter_tail, size=bucket.name))


@figure.claim("above 1 MB the mean FCT is 5 to 60 % longer than DCTCP's", scales=("quick", "paper"))
def large_flows_are_slower(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            over_dctcp(table, MEAN, workload, LARGEST.name),
            1.05,
            1.6,
            f"{EXPRESSPASS} over {DCTCP}, {workload},",
        )
        for workload in WITH_LARGE_FLOWS
    )


@figure.claim("the shorter the flows of a workload, the larger its share of wasted credits")
def shorter_flows_waste_more(table: pl.DataFrame) -> Verdict:
    shares = [metrics.at(table, metric=WASTE, workload=name, size="all") for name in WORKLOADS]
    pairs = zip(itertools.pairwise(WORKLOADS), itertools.pairwise(shares), strict=True)
    return every(
        at_least(more / less, 1, f"wasted with {shorter} over {longer}")
        for (shorter, longer), (more, less) in pairs
    )
