"""Figure D11: delivered load and RTTs of a Clos network against offered load."""

import math
from collections.abc import Iterator
from functools import partial
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
    plot,
)

from . import cluster
from .cluster import DELIVERED, GRADIENT, MEDIAN, PAUSE, PAUSE_NEW, SHORT_NEW, TAIL
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
        name: times | {"loads": (0.5, 0.95) if name == "smoke" else LOADS}
        for name, times in cluster.TIMES.items()
    },
    deviations=(
        *cluster.deviations,
        "Loads count payload, as shares of the capacity of all hosts' links. Calls start "
        "independently of earlier answers, so above saturation the backlog of hosts grows without "
        "bound.",
        "The paper does not define saturation. The first bound was a maximum delivered load that "
        "is 3 % higher. After results it became 95 % delivered of a load that is 5 % higher, "
        "then, with interpolation between simulated loads, of any higher load; these are our own "
        "claims.",
    ),
    panels=(1, 3),
    size=(14, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    times = {"warm_up": scale["warm_up"], "time_limit": scale["stop"]}
    for scheme, transport in cluster.transports.items():
        for load in scale["loads"]:
            workload = cluster.remote_calls(scheme, load, scale["stop"])
            scenario = cluster.cluster(scale, transport, workload, **times)
            yield {"scheme": scheme, "load": load}, scenario


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return cluster.measured(runs)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    offered = "offered load"
    table = cluster.banded(table)
    share = pl.col("value", "low", "high") / pl.col("load")
    shares = table.filter(metric=DELIVERED).with_columns(share)
    plot.against(axes[0], shares, unit="%", labels=(offered, "delivered share of offered load"))
    axes[0].axhline(100 * SATURATED, color="#222222", ls=":", lw=1, label="95 % delivered")
    axes[0].set_ylim(60, 102)
    for panel, metric in zip(axes[1:], (MEDIAN, TAIL), strict=True):
        part = table.filter(metric=metric)
        plot.against(panel, part, unit="us", labels=(offered, metric))
    cluster.common_legend(axes)


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


@figure.claim(
    "TIMELY saturates at a higher load: its maximum delivered load is at least 3 % higher"
)
def delivers_more(table: pl.DataFrame) -> Verdict:
    pause, timely = (max(over_loads(table, scheme, DELIVERED)[1]) for scheme in cluster.SOURCE)
    return at_least(timely / pause, 1.03, "maximum delivered load, TIMELY over pause frames alone,")


def carries_more(
    table: pl.DataFrame, share: float, bound: float, schemes: tuple[str, str] = cluster.SOURCE
) -> Verdict:
    """Judge that TIMELY delivers a share of a higher load than pause frames alone."""
    pause, timely = (carried(table, scheme, share) for scheme in schemes)
    description = f"saturation ({share:.0%} delivered) with TIMELY, {timely:.3g}, over saturation"
    return at_least(timely / pause, bound, f"{description} with pause frames alone")


figure.claim("TIMELY delivers 95 % of a load at least 5 % higher", stated=False)(
    partial(carries_more, share=SATURATED, bound=1.05)
)
figure.claim("TIMELY delivers 95 % of a higher load", stated=False)(
    partial(carries_more, share=SATURATED, bound=1)
)


@figure.claim("TIMELY delivers 92 % and 98 % of higher loads", stated=False)
def carries_more_at_other_bounds(table: pl.DataFrame) -> Verdict:
    return every(carries_more(table, share, 1) for share in (0.92, 0.98))


figure.claim("with new connections TIMELY delivers 95 % of a higher load", stated=False)(
    partial(carries_more, share=SATURATED, bound=1, schemes=(PAUSE_NEW, SHORT_NEW))
)


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
