"""Figure L4: FCTs by flow size on an oversubscribed fat-tree, and wasted credits."""

import math
from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Result,
    Run,
    Scale,
    Verdict,
    at_least,
    between,
    every,
    metrics,
    override,
    plot,
)

from .paper import DCTCP, EXPRESSPASS, PACKET, PAYLOAD, paper, schemes

WEB_SEARCH, DATA_MINING = "web search", "data mining"

WORKLOADS = {WEB_SEARCH: "web_search", DATA_MINING: "data_mining"}

BUCKETS = metrics.size_buckets(10e3, 100e3, 1e6)
LARGEST = BUCKETS[-1]

TAIL, MEAN, WASTE = "FCT p99", "mean FCT", "wasted credits"

LOAD = 0.6

UPLINKS_GBPS = 32 * 2 * 10
"""Total rate of the uplinks of the ToR switches."""

figure = Figure(
    paper,
    id="l4",
    title="FCTs by flow size on an oversubscribed fat-tree at load 0.6",
    source="Realistic workloads on a fat-tree",
    scales={
        "smoke": {"flows": {WEB_SEARCH: 100, DATA_MINING: 30}},
        "quick": {"flows": {WEB_SEARCH: 600, DATA_MINING: 150}},
        "paper": {"flows": {WEB_SEARCH: 10_000, DATA_MINING: 10_000}},
    },
    deviations=(
        "192 hosts at 32 ToR switches with two uplinks each, 16 aggregation and 8 core switches; "
        "all links have 10 Gb/s, 1 µs at hosts and 4 µs elsewhere. A load of 1 is the data, with "
        "headers, that fills the uplinks of the ToR switches. The initial aggressiveness is "
        "0.0625, as in the authors' script.",
        "The source also has the sizes of a web server and of a cache follower. Their tables are "
        "not available, so that its claims about flows up to 100 KB, which name these two, are "
        "left out. Web search is the table of [hpcc19], with a mean of 1.71 MB instead of 1.65 MB.",
        "Runs of the source have 100 000 flows; at the scale `paper` ten seeds have as many.",
        "The 99th percentile of fewer than 100 flows of a size is their largest FCT, as of most "
        "sizes at `quick`, with 600 flows of web search and 150 of data mining. No claim is about "
        "it.",
        "Wasted are credits that reach a sender without data; they count relative to all credits "
        "that reach senders.",
    ),
    panels=(1, 3),
    size=(16, 4.8),
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
    names = pl.col("size").str.replace_all(" ", "\u00a0").str.replace("to\u00a0", "to ")
    for panel, workload in zip(axes, WORKLOADS, strict=False):
        part = table.filter(metric=TAIL, workload=workload).with_columns(size=names)
        plot.levels(panel, part, group="size", unit="us", label=TAIL)
        panel.set_title(workload, loc="right", fontsize=10)
    part = table.filter(metric=WASTE)
    options: Any = {"group": "workload", "unit": "%", "log": False, "values": "{:.1f}"}
    plot.levels(axes[2], part, label=WASTE, **options)
    axes[2].set_ylim(bottom=0)
    plot.one_legend(axes)


def over_dctcp(table: pl.DataFrame, metric: str, workload: str, size: str) -> float:
    """Return a number of ExpressPass over that of DCTCP."""
    express, dctcp = (
        metrics.at(table, scheme=scheme, metric=metric, workload=workload, size=size)
        for scheme in (EXPRESSPASS, DCTCP)
    )
    return express / dctcp


@figure.claim("above 1 MB the mean FCT is 5 to 60 % longer than DCTCP's", scales=("quick", "paper"))
def large_flows_are_slower(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            over_dctcp(table, MEAN, workload, LARGEST.name),
            1.05,
            1.6,
            f"{EXPRESSPASS} over {DCTCP}, {workload},",
        )
        for workload in WORKLOADS
    )


@figure.claim("the share of wasted credits is higher with web search, whose flows are shorter")
def shorter_flows_waste_more(table: pl.DataFrame) -> Verdict:
    search, mining = (
        metrics.at(table, metric=WASTE, workload=workload, size="all") for workload in WORKLOADS
    )
    return at_least(search / mining, 1, "wasted with web search over data mining")
