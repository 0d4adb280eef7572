"""Figure D11: what a Clos network delivers of what it is offered, and the round-trip times."""

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
"""A network that delivers less of what is offered is saturated."""

figure = Figure(
    paper,
    id="d11",
    title="Delivered load and round-trip times against offered load",
    source="Large scale: saturation of TIMELY and of pause frames alone",
    scales={
        "smoke": {"loads": (0.5, 0.95), "warm_up": "1 ms", "stop": "2 ms"},
        "quick": {"loads": (0.7, 0.75, 0.8), "warm_up": "4 ms", "stop": "7 ms", "seeds": 3},
        "paper": {"loads": LOADS, "warm_up": "10 ms", "stop": "20 ms", "seeds": 5},
    },
    deviations=(
        *cluster.deviations,
        "Loads count payload and are shares of what all hosts can send. Calls come whether or not "
        "those before are answered, so above saturation hosts have ever more to send.",
        "Where the paper takes a network to be saturated is not known; here, where it delivers "
        "less than 95 % of what is offered, on a line between the loads that are run. With 1024 "
        "hosts TIMELY delivers 99.3 % of a load of 0.75 and pause frames alone 94.7 %; of 0.8 it "
        "is 93.5 and 92.4 %. Asked is a higher load, as the source says; it was 5 % higher while "
        "only loads that are run counted, and that much these seeds would not decide.",
        "Beyond, TIMELY's lead lasts as long as few calls wait: of a load of 0.95 256 hosts "
        "deliver 0.81 from 4 to 7 ms, pause frames alone 0.75; from 10 to 20 ms it is 0.78 and "
        "0.80. A hundred calls at once to every server hold its queue near T_high, 625 KB at 10 "
        "Gb/s, and a few such queues fill a switch and pause its neighbours. With a T_high of 100 "
        "µs hosts are not paused, and 0.87 is delivered.",
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
    plot.against(axes[0], shares, unit="%", labels=(offered, "delivered of what is offered"))
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
    """Return the offered loads and what a scheme has at each of them."""
    rows = table.filter(scheme=scheme, metric=metric).sort("load")
    return rows["load"].to_numpy(), rows["value"].to_numpy()


def carried(table: pl.DataFrame, scheme: str, share: float) -> float:
    """Return the load from which on less than a share is delivered, between those that were run.

    NaN if even the least load is not carried; the highest, if all are.
    """
    loads, delivered = over_loads(table, scheme, DELIVERED)
    shares = delivered / loads
    lacking = np.flatnonzero(shares < share)
    if lacking.size == 0:
        return float(loads[-1])
    first = lacking[0]
    if first == 0:
        return math.nan
    around = slice(first - 1, first + 1)
    return float(np.interp(-share, -shares[around], loads[around]))


def carries_more(table: pl.DataFrame, share: float) -> Verdict:
    """Judge that TIMELY delivers a share of a higher load than pause frames alone."""
    timely, pause = (carried(table, scheme, share) for scheme in (GRADIENT, PAUSE))
    what = f"the highest load of which {share:.0%} are delivered, with TIMELY {timely:.3g}, over it"
    return at_least(timely / pause, 1, f"{what} with pause frames alone")


@figure.claim("TIMELY saturates at a higher load: of a higher one 95 % are delivered")
def timely_carries_more(table: pl.DataFrame) -> Verdict:
    return carries_more(table, SATURATED)


@figure.claim("TIMELY saturates at a higher load if 92 % or 98 % are asked for, too", stated=False)
def carries_more_nearby(table: pl.DataFrame) -> Verdict:
    return every(carries_more(table, share) for share in (0.92, 0.98))


def there(table: pl.DataFrame, metric: str) -> float:
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
    return at_most(there(table, MEDIAN), 0.6, "TIMELY over pauses alone")
