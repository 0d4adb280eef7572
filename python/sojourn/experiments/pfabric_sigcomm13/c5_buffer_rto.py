"""Figure C5: FCT against pFabric's buffer size and RTO."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    all_at_least,
    all_at_most,
    between,
    every,
    metrics,
    override,
    plot,
)

from .paper import (
    BANDWIDTH_DELAY,
    MEAN,
    ONE_RUN,
    ROUND_TRIP_US,
    SCALES,
    SMALL_P99,
    WEB_SEARCH,
    measured,
    paper,
    pfabric,
    scenario,
)

PRODUCTS = (0.5, 1, 2, 3, 4, 5)
"""Queues, in bandwidth-delay products."""

RTOS = (2, 3, 6, 10, 20)
"""Timeouts, in RTTs."""

LOAD = 0.8

figure = Figure(
    paper,
    id="c5",
    title="pFabric's buffers and timeouts, web search at load 0.8",
    source="Figure 12",
    one_seed=ONE_RUN,
    scales={
        "smoke": SCALES["smoke"] | {"products": (0.5, 2), "rtos": (3,)},
        "quick": SCALES["quick"] | {"products": (0.5, 2, 5), "rtos": (3, 20)},
        "paper": SCALES["paper"] | {"products": PRODUCTS, "rtos": RTOS},
    },
    deviations=(
        "The window's limit is one packet short of the queue, and the initial window at most that, "
        "as in the authors' scripts: with half a bandwidth-delay product no flow can fill a link.",
        "An RTO of 3 RTTs is 45 µs, as in all other figures.",
    ),
    panels=(1, 2),
    size=(12, 4.6),
)


def name(rto: float) -> str:
    return f"RTO {rto:g} RTT"


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    shared = scenario(WEB_SEARCH, LOAD, scale["flows"][WEB_SEARCH])
    for rto in scale["rtos"]:
        rto_us = 45 if rto == 3 else rto * ROUND_TRIP_US
        for products in scale["products"]:
            labels = {"scheme": name(rto), "products": float(products)}
            yield labels, override(shared, pfabric(round(products * BANDWIDTH_DELAY), rto_us))


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return measured(runs, MEAN, SMALL_P99)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, metric in zip(axes, (MEAN, SMALL_P99), strict=True):
        labels = ("queue (bandwidth-delay products of 18 KB)", f"normalised FCT, {metric}")
        plot.against(panel, table.filter(metric=metric), x="products", labels=labels)
        panel.set_ylim(bottom=0.95)
    plot.one_legend(axes)


def at(table: pl.DataFrame, products: float, rto: float = 3, metric: str = MEAN) -> float:
    return metrics.at(table, scheme=name(rto), products=products, metric=metric)


@figure.claim("below one bandwidth-delay product performance is lost (5 % at 3 RTT)")
def worse_below_one(table: pl.DataFrame) -> Verdict:
    ratios = {
        f"half a product over two, {metric},": at(table, 0.5, metric=metric)
        / at(table, 2, metric=metric)
        for metric in (MEAN, SMALL_P99)
    }
    return all_at_least(ratios, 1.05)


@figure.claim("beyond two products there is at most 5 % to gain (at 3 RTT)")
def enough_with_two(table: pl.DataFrame) -> Verdict:
    larger = sorted(table.filter(pl.col("products") > 2)["products"].unique().to_list())
    ratios = {f"two products over {more:g}": at(table, 2) / at(table, more) for more in larger}
    return all_at_most(ratios, 1.05)


@figure.claim("with two products an RTO of 20 RTT is within 10 % of one of 3 RTT")
def long_rto_suffices(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            at(table, 2, 20, metric) / at(table, 2, 3, metric),
            0.9,
            1.1,
            f"20 RTT over 3 RTT, {metric},",
        )
        for metric in (MEAN, SMALL_P99)
    )
