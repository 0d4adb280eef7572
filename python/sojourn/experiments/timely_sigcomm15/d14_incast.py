"""Figure D14: effect of an incast on calls between other hosts."""

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

BACKGROUND, ADDED = "background alone", "with incast"

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
        "The paper's incast is not described. Ours is 20 clients in the other pods that send "
        "endless flows to one server, over connections with converged rates: the background starts "
        "100 ms after them. Their initial bursts pause hosts for more than 10 ms with TIMELY too. "
        "After convergence, TIMELY's incast uses half of the server's link: the weight of its "
        "moving average suits calls, not connections.",
        "Our incast is far heavier than the paper's: with pause frames alone RTTs are 6 to 30 "
        "times as long, not twice (hollow), and the background keeps a quarter of its throughput; "
        "with the 64 hosts of the scale `quick` 4 to 17 times, and half of it.",
        "RTTs are those of acknowledged packets. Their mean is drawn: with pause frames alone the "
        "median even falls when the incast is added, as most calls stop and few packets contribute "
        "samples.",
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
            for traffic, parts in ((BACKGROUND, [calls]), (ADDED, [calls, incast(scale)])):
                workload = {"kind": "mixed", "parts": parts}
                shared = cluster.cluster(scale, workload, warm_up=warm_up, time_limit=stop)
                labels = {"scheme": scheme, "load": load, "traffic": traffic}
                yield labels, override(shared, change)


def incast(scale: Scale) -> dict[str, Any]:
    """Return endless flows to host 0 from clients in all other pods."""
    fabric = cluster.FABRICS[scale["name"]]
    pod = fabric["edges_per_pod"] * fabric["hosts_per_edge"]
    other_hosts = pod * (fabric["pods"] - 1)
    clients = min(CLIENTS, other_hosts)
    flows = [
        {
            "source": pod + number * other_hosts // clients,
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
        label="delivered share of the hosts' capacity",
    )
    times = cases.filter(metric=MEAN)
    is_background, is_timely = pl.col("traffic") == BACKGROUND, pl.col("scheme") == GRADIENT
    # The source: "the RTT increased about 100 %" with pauses alone, no noticeable change else.
    published = times.filter(is_background).with_columns(
        value=pl.when(is_timely).then("value").otherwise(2 * pl.col("value")), traffic=pl.lit(ADDED)
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


def ratios_to_background(table: pl.DataFrame, scheme: str, metric: str) -> dict[str, float]:
    """Return a metric with the incast over the same without, at each load."""
    return {
        f"with incast over without, at load {load},": metrics.at(table, traffic=ADDED, **row)
        / metrics.at(table, traffic=BACKGROUND, **row)
        for load in sorted(set(table["load"]))
        for row in [{"scheme": scheme, "metric": metric, "load": load}]
    }


@figure.claim("with pauses alone an incast reduces the background's throughput by 15 % or more")
def throughput_falls(table: pl.DataFrame) -> Verdict:
    return all_at_most(ratios_to_background(table, PAUSE, DELIVERED), 0.85)


@figure.claim("with pauses alone an incast lengthens the mean RTT by more than 50 %")
def round_trips_grow(table: pl.DataFrame) -> Verdict:
    return all_at_least(ratios_to_background(table, PAUSE, MEAN), 1.5)


def judge_unchanged(table: pl.DataFrame, metric: str) -> Verdict:
    """Judge that with TIMELY an incast changes a metric by less than 15 %."""
    ratios = ratios_to_background(table, GRADIENT, metric)
    return every(between(ratio, 0.85, 1.15, name) for name, ratio in ratios.items())


for metric, name in ((DELIVERED, "throughput"), (MEAN, "mean RTT")):
    figure.claim(f"with TIMELY an incast changes the background's {name} by less than 15 %")(
        partial(judge_unchanged, metric=metric)
    )
