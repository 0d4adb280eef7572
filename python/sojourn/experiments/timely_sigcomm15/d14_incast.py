"""Figure D14: what an incast does to calls between other hosts."""

from collections.abc import Iterator
from functools import partial
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

from . import cluster
from .cluster import DELIVERED, GRADIENT, MEAN, PAUSE
from .paper import paper

LOADS = (0.167, 0.3, 0.5)

ALONE, ADDED = "background alone", "with incast"

CLIENTS = 20

figure = Figure(
    paper,
    id="d14",
    title="Calls between other hosts, without and with an incast",
    source="Large scale: network imbalance",
    scales={
        "smoke": {"loads": (0.3,), "begin": 20, "warm_up": 21, "stop": 22},
        "quick": {"loads": LOADS, "begin": 100, "warm_up": 103, "stop": 108, "seeds": 3},
        "paper": {"loads": LOADS, "begin": 200, "warm_up": 205, "stop": 215, "seeds": 2},
    },
    deviations=(
        *cluster.deviations,
        "The paper's incast is not described. Ours is 20 clients spread over the other pods that "
        "send to one server without end, over connections that have found their rates: the "
        "background begins 100 ms after them. The bursts that they start with pause hosts for "
        "more than 10 ms with TIMELY too. Once settled, TIMELY's incast takes half of the "
        "server's link: the weight of its moving average, which suits calls, does not suit "
        "connections.",
        "Ours is far harsher than the paper's: with pause frames alone RTTs are 6 to 30 times as "
        "long, not twice (hollow), and the background is left a quarter of its throughput; with "
        "the 64 hosts of the scale `quick` 4 to 17 times, and half of it.",
        "Round-trip times are those of packets that were acknowledged. Their mean is drawn: with "
        "pause frames alone the median even falls when the incast is added, as most calls come to "
        "a standstill and few packets get through to tell.",
    ),
    panels=(1, 2),
    size=(12, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    begin, warm_up, stop = (f"{scale[name]} ms" for name in ("begin", "warm_up", "stop"))
    for scheme, change in cluster.schemes.items():
        for load in scale["loads"]:
            calls = {**cluster.remote_calls(load, stop, start=begin), "class": "background"}
            for traffic, parts in ((ALONE, [calls]), (ADDED, [calls, incast(scale)])):
                workload = {"kind": "mixed", "parts": parts}
                shared = cluster.cluster(scale, workload, warm_up=warm_up, time_limit=stop)
                labels = {"scheme": scheme, "load": load, "traffic": traffic}
                yield labels, override(shared, change)


def incast(scale: Scale) -> dict[str, Any]:
    """Return clients all over the other pods that send to host 0 without end."""
    fabric = cluster.FABRICS[scale["name"]]
    pod = fabric["edges_per_pod"] * fabric["hosts_per_edge"]
    others = pod * (fabric["pods"] - 1)
    clients = min(CLIENTS, others)
    flows = [
        {
            "source": pod + number * others // clients,
            "target": 0,
            "start": f"{50 * number} us",
            "class": "incast",
        }
        for number in range(clients)
    ]
    return {"kind": "flows", "flows": flows}


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return cluster.measured(runs, of="background request")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    case = pl.col("scheme") + " " + pl.col("load").cast(pl.String)
    cases = table.with_columns(case=case)
    plot.bars(
        axes[0],
        cases.filter(metric=DELIVERED),
        group="case",
        by="traffic",
        unit="%",
        label="delivered of what hosts can send",
    )
    times = cases.filter(metric=MEAN)
    alone, timely = pl.col("traffic") == ALONE, pl.col("scheme") == GRADIENT
    # The source: "the RTT increased about 100 %" with pauses alone, no noticeable change else.
    published = times.filter(alone).with_columns(
        value=pl.when(timely).then("value").otherwise(2 * pl.col("value")), traffic=pl.lit(ADDED)
    )
    plot.levels(
        axes[1],
        times,
        group="case",
        by="traffic",
        unit="us",
        label="mean RTT",
        published=published,
        source="published change (hollow)",
    )
    for panel in axes:
        panel.set_xlabel("scheme, and load of the background")
    axes[0].get_legend().remove()


def change(table: pl.DataFrame, scheme: str, metric: str) -> dict[str, float]:
    """Return how many times as much it is with the incast, at each load."""
    return {
        f"with over without, at load {load},": metrics.at(table, traffic=ADDED, **row)
        / metrics.at(table, traffic=ALONE, **row)
        for load in sorted(set(table["load"]))
        for row in [{"scheme": scheme, "metric": metric, "load": load}]
    }


@figure.claim("with pauses alone an incast cuts the background's throughput by 15 % or more")
def throughput_falls(table: pl.DataFrame) -> Verdict:
    return all_at_most(change(table, PAUSE, DELIVERED), 0.85)


@figure.claim("with pauses alone an incast lengthens the mean RTT by more than 50 %")
def round_trips_grow(table: pl.DataFrame) -> Verdict:
    return all_at_least(change(table, PAUSE, MEAN), 1.5)


def unchanged(table: pl.DataFrame, metric: str) -> Verdict:
    """Judge that with TIMELY an incast changes a metric by less than 15 %."""
    ratios = change(table, GRADIENT, metric)
    return every(between(ratio, 0.85, 1.15, name) for name, ratio in ratios.items())


for metric, name in ((DELIVERED, "throughput"), (MEAN, "mean RTT")):
    figure.claim(f"with TIMELY an incast changes the background's {name} by less than 15 %")(
        partial(unchanged, metric=metric)
    )
