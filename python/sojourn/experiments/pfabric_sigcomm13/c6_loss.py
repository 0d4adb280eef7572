"""Figure C6: losses of pFabric by hop, by priority and by flow size."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_least,
    at_most,
    looks,
    metrics,
    override,
    plot,
)

from .paper import BUCKETS, PAYLOAD, PFABRIC, SCALES, WEB_SEARCH, paper, scenario, schemes

figure = Figure(
    paper,
    id="c6",
    title="Which packets pFabric loses: web search at load 0.8",
    source="Figure 13",
    # Losses grow with the length of a run, as large flows accumulate.
    scales=SCALES | {"quick": {"flows": {WEB_SEARCH: 2000}}},
    deviations=(
        "A loss rate is the share of the packets of a priority arriving at a hop that are dropped "
        "there. Priorities are remaining sizes when a packet is sent. Probes count as the data "
        "that they represent: in the authors' module they are data of one byte.",
        "The axis of the published figure runs to 40 %; our loss rates are below 5 %, and the "
        "reason is not known.",
        "Almost all losses means at least 90 %. By the text, the lost packets belong to flows "
        "larger than 3000 packets. Remaining sizes of lost packets were judged first, then "
        "retransmissions by flow size (89 %), which include packets that were not lost; now lost "
        "packets are counted by flow size.",
        "In short runs large flows have a smaller share of the lost packets, 0.82 at the scale "
        "`quick`: the network does not yet have as many of them.",
    ),
    panels=(1, 2),
    size=(12, 4.6),
)

LOAD = 0.8

FIRST, CORE, LAST = "first hop", "core", "last hop"

RATE, CORE_RATE = "loss rate", "core losses over packets sent"

BY_PRIORITY, BY_SIZE = "by remaining size", "by flow size"
"""Shares of all lost packets."""

SPANS = [f"({low:g}, {high:g}]" for low, high in zip((0, *BUCKETS), BUCKETS, strict=False)]

FIRST_LARGE = BUCKETS.index(3000) + 1
"""Index of the first range above 3000 packets."""


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
    """Return the loss rates of one run by priority and hop, and the shares of lost packets."""
    counts, dropped = census(run), pl.col("dropped")
    sent = counts.filter(hop=FIRST)["arrived"].sum()
    rates = counts.with_columns(metric=pl.lit(RATE), value=dropped / pl.col("arrived"))
    core = counts.filter(hop=CORE).with_columns(metric=pl.lit(CORE_RATE), value=dropped / sent)
    parts = counts.group_by("span", maintain_order=True).agg(
        metric=pl.lit(BY_PRIORITY), value=dropped.sum() / counts["dropped"].sum()
    )
    rows = pl.concat([rates, core, parts, by_size(run)], how="diagonal_relaxed")
    rows = rows.filter(pl.col("value").is_not_nan())
    return rows.select("hop", "span", "metric", "value", seed=run.labels["seed"], at_least=False)


def by_size(run: Run) -> pl.DataFrame:
    """Return the share of each range of flow sizes in the lost packets."""
    flows = run.result.flows
    spans = np.searchsorted(np.array(BUCKETS) * PAYLOAD, flows["size_bytes"].to_numpy())
    lost = np.bincount(spans, flows["lost_packets"].to_numpy(), len(SPANS))
    shares = (lost / (lost.sum() or math.nan)).tolist()
    return pl.DataFrame({"span": SPANS, "value": shares}).with_columns(metric=pl.lit(BY_SIZE))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    rates = table.filter(pl.col("metric") == RATE, pl.col("hop") != CORE)
    names = {
        metric: f"{metric}: {100 * share_of_large(table, metric):.0f} % above 3000"
        for metric in (BY_PRIORITY, BY_SIZE)
    }
    shares = table.filter(pl.col("metric").is_in(list(names)))
    shares = shares.with_columns(pl.col("metric").replace(names))
    looks_of = {name: metric for metric, name in names.items()}
    for panel, part, by, label in (
        (axes[0], rates, "hop", "loss rate"),
        (axes[1], shares, "metric", "share of all lost packets"),
    ):
        options: Any = {"unit": "%", "label": label, "log": False, "drawn_as": looks_of}
        plot.levels(panel, part, group="span", by=by, **options)
        panel.set_ylim(bottom=0)
        panel.axvspan(FIRST_LARGE - 0.5, len(SPANS) - 0.5, color=looks.GREY, alpha=0.12, lw=0)
        panel.tick_params(axis="x", labelsize=8)
    axes[0].set_xlabel("priority: remaining size (packets); grey: above 3000")
    axes[1].set_xlabel("size (packets); grey: above 3000")


def share_of_large(table: pl.DataFrame, metric: str) -> float:
    """Return the share of the ranges above 3000 packets."""
    large = pl.col("span").is_in(SPANS[FIRST_LARGE:])
    return float(table.filter(pl.col("metric") == metric, large)["value"].sum())


@figure.claim("almost all losses (90 %) are of flows larger than 3000 packets")
def large_flows_lose(table: pl.DataFrame) -> Verdict:
    share = share_of_large(table, BY_SIZE)
    return at_least(share, 0.9, "share of large flows in lost packets")


@figure.claim(
    "almost all losses (90 %) are of packets with a priority above 3000 packets", stated=False
)
def large_priorities_lose(table: pl.DataFrame) -> Verdict:
    share = share_of_large(table, BY_PRIORITY)
    return at_least(share, 0.9, "share of high priorities in lost packets")


@figure.claim("losses in the core are negligible: less than 0.1 % of the packets sent")
def core_losses_are_negligible(table: pl.DataFrame) -> Verdict:
    share = table.filter(metric=CORE_RATE)["value"].sum()
    return at_most(float(share), 0.001, "core losses over packets sent")
