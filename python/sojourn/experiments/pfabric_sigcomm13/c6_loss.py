"""Figure C6: losses of pFabric by priority and hop."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_least,
    at_most,
    metrics,
    override,
    plot,
)

from .paper import BUCKETS, PAYLOAD, PFABRIC, SCALES, WEB_SEARCH, paper, scenario, schemes

figure = Figure(
    paper,
    id="c6",
    title="Where pFabric loses packets, by priority: web search at load 0.8",
    source="Figure 13",
    # Losses grow with the length of a run, as large flows accumulate.
    scales=SCALES
    | {
        "quick": {"flows": {WEB_SEARCH: 2000}, "seeds": 2},
        "paper": {**SCALES["paper"], "seeds": 3},
    },
    deviations=(
        "A loss rate is the share of the packets of a priority arriving at a hop that are dropped "
        "there. Priorities are remaining sizes when a packet is sent. Probes count as the data "
        "that they represent: in the authors' module they are data of one byte.",
        "Almost all losses count as at least 90 %. By the text, the lost packets belong to flows "
        "larger than 3000 packets, so retransmissions are judged by flow size. The earlier claim, "
        "priorities of lost packets above 3000, is a different claim: a large flow also loses "
        "packets when less of it remains.",
    ),
    panels=(1, 2),
    size=(12, 4.6),
)

LOAD = 0.8

FIRST, CORE, LAST = "first hop", "core", "last hop"

RATE, LOSS_SHARE, CORE_RATE = "loss rate", "share of all losses", "core losses over packets sent"
LARGE_FLOW_SHARE = "share of flows above 3000 packets in retransmissions"

SPANS = [f"({low:g}, {high:g}]" for low, high in zip((0, *BUCKETS), BUCKETS, strict=False)]


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    shared = scenario(WEB_SEARCH, LOAD, scale["flows"][WEB_SEARCH])
    yield {"scheme": PFABRIC}, override(shared, schemes[PFABRIC])


def hop(link: str) -> str:
    """Return the hop of a path that a link belongs to."""
    source, _, target = link.partition("->")
    if source.startswith("host"):
        return FIRST
    return LAST if target.startswith("host") else CORE


def census(run: Run) -> pl.DataFrame:
    """Return the numbers of arrived and dropped packets by priority and hop."""
    counts = [
        {"hop": hop(link["name"]), "span": span, "arrived": arrived, "dropped": dropped}
        for link in run.result.summary["links"]
        for span, arrived, dropped in zip(SPANS, *link["census"].values(), strict=False)
    ]
    hops = pl.DataFrame(counts).group_by("hop", "span", maintain_order=True)
    return hops.agg(pl.col("arrived", "dropped").sum())


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return metrics.across_seeds(pl.concat(shares(run) for run in runs))


def shares(run: Run) -> pl.DataFrame:
    """Return the loss rates and the shares of losses of one run, by priority and hop."""
    counts, dropped = census(run), pl.col("dropped")
    sent = counts.filter(hop=FIRST)["arrived"].sum()
    rates = counts.with_columns(metric=pl.lit(RATE), value=dropped / pl.col("arrived"))
    parts = counts.with_columns(metric=pl.lit(LOSS_SHARE), value=dropped / counts["dropped"].sum())
    core = counts.filter(hop=CORE).with_columns(metric=pl.lit(CORE_RATE), value=dropped / sent)
    rows = pl.concat([rates, parts, core, by_size(run)], how="diagonal_relaxed")
    rows = rows.filter(pl.col("value").is_not_nan())
    return rows.select("hop", "span", "metric", "value", seed=run.labels["seed"], at_least=False)


def by_size(run: Run) -> pl.DataFrame:
    """Return the share of large flows in retransmissions."""
    flows = run.result.flows
    is_large = pl.col("size_bytes") > 3000 * PAYLOAD
    retransmits = flows.select(
        large=pl.col("retransmits").filter(is_large).sum(), all="retransmits"
    )
    return retransmits.select(
        metric=pl.lit(LARGE_FLOW_SHARE), value=pl.col("large").first() / pl.col("all").sum()
    )


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, metric in zip(axes, (RATE, LOSS_SHARE), strict=True):
        part = table.filter(pl.col("metric") == metric, pl.col("hop") != CORE)
        plot.bars(panel, part, group="span", by="hop", unit="%", label=metric)
        panel.tick_params(axis="x", labelsize=8)
        panel.set_xlabel("priority: remaining size (packets)")
    plot.one_legend(axes)


@figure.claim("almost all losses (90 %) are of flows larger than 3000 packets")
def large_flows_lose(table: pl.DataFrame) -> Verdict:
    return at_least(
        metrics.at(table, metric=LARGE_FLOW_SHARE), 0.9, "share of large flows in retransmissions"
    )


@figure.claim(
    "almost all losses (90 %) are of packets with a priority above 3000 packets", stated=False
)
def large_priorities_lose(table: pl.DataFrame) -> Verdict:
    large = pl.col("span").is_in(SPANS[BUCKETS.index(3000) + 1 :])
    share = table.filter(pl.col("metric") == LOSS_SHARE, large)["value"].sum()
    return at_least(float(share), 0.9, "share of high priorities")


@figure.claim("losses in the core are negligible: less than 0.1 % of the packets sent")
def core_losses_are_negligible(table: pl.DataFrame) -> Verdict:
    share = table.filter(metric=CORE_RATE)["value"].sum()
    return at_most(float(share), 0.001, "core losses over packets sent")
