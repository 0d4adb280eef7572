"""Figure D11: delivered load and RTTs of a Clos network against offered load."""

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
    every,
    metrics,
    override,
    plot,
)

from . import cluster
from .cluster import DELIVERED, GRADIENT, MEDIAN, PACED, PAUSE, TAIL
from .paper import paper

LOADS = (0.6, 0.7, 0.75, 0.8, 0.95)

SATURATED = 0.95
"""Share of the offered load below which a network is saturated."""

figure = Figure(
    paper,
    id="d11",
    title="Delivered load and RTTs against offered load",
    source="Large scale: saturation of TIMELY and of pause frames alone",
    scales={
        "smoke": {"loads": (0.5, 0.95), "warm_up": "1 ms", "stop": "2 ms"},
        "quick": {"loads": (0.7, 0.75, 0.8), "warm_up": "4 ms", "stop": "7 ms", "seeds": 3},
        "paper": {"loads": LOADS, "warm_up": "10 ms", "stop": "20 ms", "seeds": 5},
    },
    deviations=(
        *cluster.deviations,
        "Loads count payload, as shares of the capacity of all hosts' links. Calls start "
        "independently of earlier answers, so above saturation the backlog of hosts grows without "
        "bound.",
        "The paper does not define saturation; here a network is saturated if it delivers less "
        "than 95 % of the offered load, with linear interpolation between simulated loads. With "
        "1024 hosts TIMELY delivers 99.3 % of a load of 0.75 and pause frames alone 94.7 %; of 0.8 "
        "they deliver 93.5 and 92.4 %. The claim requires a higher load, as in the source; without "
        "interpolation it required a load 5 % higher, on which these seeds would be inconclusive.",
        "Beyond saturation, TIMELY's advantage lasts while few calls wait: of a load of 0.95, 256 "
        "hosts deliver 0.81 from 4 to 7 ms, pause frames alone 0.75; from 10 to 20 ms they deliver "
        "0.78 and 0.80. A hundred concurrent calls to every server keep its queue near T_high, 625 "
        "KB at 10 Gb/s, and a few such queues fill a switch and pause its neighbours. With a "
        "T_high of 100 µs hosts are not paused, and 0.87 is delivered.",
    ),
    panels=(1, 3),
    size=(14, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    stop = scale["stop"]
    for scheme, change in (cluster.schemes | {PACED: cluster.paced}).items():
        for load in scale["loads"]:
            workload = cluster.remote_calls(load, stop)
            shared = cluster.cluster(scale, workload, warm_up=scale["warm_up"], time_limit=stop)
            yield {"scheme": scheme, "load": load}, override(shared, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return cluster.measured(runs)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    offered = "offered load"
    share = pl.col("value", "low", "high") / pl.col("load")
    shares = table.filter(metric=DELIVERED).with_columns(share)
    plot.against(axes[0], shares, unit="%", labels=(offered, "delivered share of offered load"))
    axes[0].axhline(100 * SATURATED, color="#222222", ls=":", lw=1, label="saturated below")
    axes[0].set_ylim(60, 102)
    plot.legend(axes[0], columns=2)
    for panel, metric in zip(axes[1:], (MEDIAN, TAIL), strict=True):
        part = table.filter(metric=metric)
        plot.against(panel, part, unit="us", labels=(offered, metric))
    plot.one_legend(axes)


def over_loads(
    table: pl.DataFrame, scheme: str, metric: str
) -> tuple[metrics.Floats, metrics.Floats]:
    """Return the offered loads, and a metric of a scheme at each load."""
    rows = table.filter(scheme=scheme, metric=metric).sort("load")
    return rows["load"].to_numpy(), rows["value"].to_numpy()


def carried(table: pl.DataFrame, scheme: str, share: float) -> float:
    """Return the highest load of which `share` is delivered, interpolated between simulated loads.

    NaN if the lowest load is not delivered; the highest simulated load if all are delivered.
    """
    loads, delivered = over_loads(table, scheme, DELIVERED)
    shares = delivered / loads
    saturated = np.flatnonzero(shares < share)
    if saturated.size == 0:
        return float(loads[-1])
    first = saturated[0]
    if first == 0:
        return math.nan
    neighbours = slice(first - 1, first + 1)
    return float(np.interp(-share, -shares[neighbours], loads[neighbours]))


def carries_more(table: pl.DataFrame, share: float) -> Verdict:
    """Judge that TIMELY delivers a share of a higher load than pause frames alone."""
    timely, pause = (carried(table, scheme, share) for scheme in (GRADIENT, PAUSE))
    description = f"saturation ({share:.0%} delivered) with TIMELY, {timely:.3g}, over saturation"
    return at_least(timely / pause, 1, f"{description} with pause frames alone")


@figure.claim("TIMELY saturates at a higher load: 95 % of a higher load are delivered")
def timely_carries_more(table: pl.DataFrame) -> Verdict:
    return carries_more(table, SATURATED)


@figure.claim("TIMELY saturates at a higher load with bounds of 92 % and 98 %, too", stated=False)
def carries_more_at_other_bounds(table: pl.DataFrame) -> Verdict:
    return every(carries_more(table, share) for share in (0.92, 0.98))


def ratio_at_saturation(table: pl.DataFrame, metric: str) -> float:
    """Return TIMELY's metric over that of pause frames alone at the highest load it carries."""
    load = carried(table, GRADIENT, SATURATED)
    timely, pause = (
        np.interp(load, *over_loads(table, scheme, metric)) for scheme in (GRADIENT, PAUSE)
    )
    return float(timely / pause)


@figure.claim(
    "at the highest load that TIMELY carries its median RTT is at least 40 % shorter", stated=False
)
def round_trips_stay_short(table: pl.DataFrame) -> Verdict:
    return at_most(ratio_at_saturation(table, MEDIAN), 0.6, "TIMELY over pauses alone")
