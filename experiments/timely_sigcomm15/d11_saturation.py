"""Figure D11: what a Clos network delivers of what it is offered, and the round-trip times."""

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

from . import cluster
from .cluster import DELIVERED, GRADIENT, MEDIAN, PAUSE, PAUSED, TAIL
from .paper import paper

LOADS = (0.4, 0.65, 0.8, 0.95)

figure = Figure(
    paper,
    id="d11",
    title="Delivered load and round-trip times against offered load",
    source="Large scale: saturation of TIMELY and of pause frames alone",
    scales={
        "smoke": {"loads": (0.5, 0.95), "warm_up": "1 ms", "stop": "2 ms"},
        "quick": {"loads": LOADS, "warm_up": "4 ms", "stop": "7 ms"},
        "paper": {
            "loads": (*LOADS, 0.7, 0.75, 0.85),
            "warm_up": "10 ms",
            "stop": "20 ms",
            "seeds": 2,
        },
    },
    deviations=(
        *cluster.deviations,
        "Loads count payload and are shares of what all hosts can send. Calls come whether or not "
        "those before are answered, so above saturation hosts have ever more to send.",
    ),
    panels=(1, 3),
    size=(14, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    stop = scale["stop"]
    for scheme, change in cluster.schemes.items():
        for load in scale["loads"]:
            workload = cluster.remote_calls(load, stop)
            shared = cluster.cluster(scale, workload, warm_up=scale["warm_up"], time_limit=stop)
            yield {"scheme": scheme, "load": load}, override(shared, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return cluster.measured(runs)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    delivered, rtts, pauses = axes
    offered = "offered load"
    ideal = pl.DataFrame({"load": [0.0, 1.0], "value": [0.0, 1.0], "scheme": "all delivered"})
    plot.curves(delivered, ideal, x="load")
    plot.against(delivered, table.filter(metric=DELIVERED), labels=(offered, "delivered load"))
    tails = table.filter(metric=TAIL).with_columns(pl.col("scheme") + ", p99")
    shown = pl.concat([table.filter(metric=MEDIAN), tails])
    plot.against(rtts, shown, unit="us", labels=(offered, "RTT: median, and p99 dotted"), log=True)
    part = table.filter(metric=PAUSED)
    plot.against(pauses, part, unit="%", labels=(offered, "share of time that hosts are paused"))
    plot.one_legend(axes)


def most(table: pl.DataFrame, scheme: str) -> float:
    """Return the most that is delivered at any load."""
    return float(max(table.filter(metric=DELIVERED, scheme=scheme)["value"]))


@figure.claim("TIMELY saturates at a higher load: it delivers at least 3 % more at the most")
def timely_carries_more(table: pl.DataFrame) -> Verdict:
    ratio = most(table, GRADIENT) / most(table, PAUSE)
    return at_least(ratio, 1.03, "the most delivered, TIMELY over pause frames alone,")


@figure.claim("at the highest load TIMELY's median RTT is at least 40 % shorter", stated=False)
def round_trips_stay_short(table: pl.DataFrame) -> Verdict:
    timely, pause = (at_highest(table, MEDIAN, scheme) for scheme in (GRADIENT, PAUSE))
    return at_most(timely / pause, 0.6, "TIMELY over pauses alone")


@figure.claim(
    "at the highest load TIMELY's hosts are paused for a quarter of the time at most", stated=False
)
def fewer_pauses(table: pl.DataFrame) -> Verdict:
    timely, pause = (at_highest(table, PAUSED, scheme) for scheme in (GRADIENT, PAUSE))
    return at_most(timely / pause, 0.25, "the time paused, TIMELY over pause frames alone,")


def at_highest(table: pl.DataFrame, metric: str, scheme: str) -> float:
    """Return a metric at the highest load."""
    return metrics.at(table, metric=metric, scheme=scheme, load=max(table["load"]))
