"""Figure F32: mean FCTs with cables at a fifth of their rate, and the traffic on those cables."""

import random
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
    all_at_least,
    at_most,
    between,
    every,
    metrics,
    plot,
)

from .paper import CONGA, ECMP, LETFLOW, MEAN, loads, paper, ratio, routings

LEAVES, HOSTS_PER_LEAF = 8, 8

SHARE = 0.2
"""Rate of a slow cable over that of the others."""


def slow_cables() -> list[tuple[int, int]]:
    """Return the cables that are slow, by leaf and spine: each with probability 0.4."""
    draw = random.Random(1)
    cables = [(leaf, spine) for leaf in range(LEAVES) for spine in range(LEAVES)]
    return [cable for cable in cables if draw.random() < 0.4]


SLOW = slow_cables()

HIGH = 0.8

SLOW_TRAFFIC = "traffic on slow cables"

figure = Figure(
    paper,
    id="f32",
    title="Mean FCTs with slow cables",
    scales={
        "smoke": {"loads": (HIGH,), "flows": 40},
        "quick": {"loads": (0.3, 0.5, HIGH), "flows": 1000},
        "paper": {"loads": (0.3, 0.5, HIGH), "flows": 20_000},
    },
    deviations=(
        "Eight leaves with eight hosts each, eight spines, all cables 10 Gb/s and 10 µs; 40 % of "
        "the cables between leaves and spines, drawn once, have a fifth of the rate. DCTCP marks "
        "from 65 packets of 1400 B on, queues hold 600 packets, the initial window is 10 packets, "
        "the minimum RTO 5 ms, as in a public simulator. Web-search sizes between hosts of "
        "different leaves; the load refers to the hosts' links, so that 0.8 is more than the "
        "uplinks of most leaves carry together.",
        "The traffic on slow cables is the mean number of bytes on a slow uplink over that on an "
        "uplink of the same leaf, over all leaves.",
        "LetFlow's slow cables have more than half of an even share because gaps of 500 µs are "
        "rare in flows of a few hundred round trips. At load 0.8 the share is 0.62 with gaps of "
        "500 µs, 0.46 with 100 µs and 0.39 with 50 µs; with 500 µs and 4000 flows instead of 1000 "
        "it is 0.53 (one seed).",
    ),
    panels=(1, 2),
    size=(12, 4.8),
)


def scenario(load: float, flows: int, routing: Any) -> dict[str, Any]:
    """Return the network with slow cables and its flows."""
    names = [(f"leaf{leaf}", f"spine{spine}") for leaf, spine in SLOW]
    links = [
        f"{one}->{other}" for leaf, spine in names for one, other in ((leaf, spine), (spine, leaf))
    ]
    return {
        "name": "fabric with slow cables",
        "environment": "paper",
        "topology": {
            "kind": "leaf_spine",
            "leaves": LEAVES,
            "hosts_per_leaf": HOSTS_PER_LEAF,
            "spines": LEAVES,
            "fabric_rate": "10 Gbps",
            "host_delay": "10 us",
            "fabric_delay": "10 us",
        },
        "degraded_links": [{"link": link, "share": SHARE} for link in links],
        "packet": {"payload": "1400 B", "header": "40 B", "ack": "40 B"},
        "transport": {
            "kind": "dctcp",
            "initial_window": 10,
            "reliability": {"min_rto": "5 ms"},
        },
        "queue": {
            "kind": "ecn_threshold",
            "capacity": "600 packets",
            "threshold": "65 packets",
        },
        "routing": routing,
        "workload": {
            "kind": "poisson",
            "load": load,
            "pairs": "longest",
            "sizes": {"kind": "empirical", "table": "web_search"},
            "flows": flows,
            "allow_overload": True,
        },
        "time_limit": "1000 s",
    }


def slow_traffic(result: Result) -> metrics.Statistic:
    """Measure the bytes on a slow uplink over those on an uplink of the same leaf, in the mean."""
    by_name = {link["name"]: link["bytes"] for link in result.summary["links"]}
    shares = []
    for leaf, spine in SLOW:
        uplinks = [by_name[f"leaf{leaf}->spine{other}"] for other in range(LEAVES)]
        if sum(uplinks):
            shares.append(by_name[f"leaf{leaf}->spine{spine}"] * LEAVES / sum(uplinks))
    return metrics.Statistic(sum(shares) / len(shares))


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for load in scale["loads"]:
        for scheme in (ECMP, LETFLOW, CONGA):
            labels = {"scheme": scheme, "load": load}
            yield labels, scenario(load, scale["flows"], routings[scheme])


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    measures = {MEAN: metrics.fct("mean"), SLOW_TRAFFIC: slow_traffic}
    return metrics.across_seeds(metrics.measure(runs, **measures))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    times, traffic = axes
    plot.against(times, table.filter(metric=MEAN), unit="ms", labels=("load", MEAN), log=True)
    plot.against(traffic, table.filter(metric=SLOW_TRAFFIC), labels=("load", SLOW_TRAFFIC))
    traffic.axhline(1, color="0.7", zorder=0)
    traffic.axhline(SHARE, color="0.7", zorder=0)
    plot.one_legend(axes)


@figure.claim("load 0.8: CONGA is not slower than LetFlow, and LetFlow is faster than ECMP")
def in_order(table: pl.DataFrame) -> Verdict:
    pairs = ((LETFLOW, CONGA), (ECMP, LETFLOW))
    return all_at_least(
        {
            f"{upper} over {lower}": ratio(table, upper, lower, metric=MEAN, load=HIGH)
            for upper, lower in pairs
        },
        1,
    )


@figure.claim("load 0.8: LetFlow's mean FCT is at most 2.5 times CONGA's")
def near_conga(table: pl.DataFrame) -> Verdict:
    value = ratio(table, LETFLOW, CONGA, metric=MEAN, load=HIGH)
    return at_most(value, 2.5, f"{LETFLOW} over {CONGA}")


@figure.claim("LetFlow sends a slow cable between a fifth and half of an even share at every load")
def flowlets_are_elastic(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            metrics.at(table, scheme=LETFLOW, metric=SLOW_TRAFFIC, load=load),
            SHARE,
            0.5,
            f"slow cable at load {load:g}",
        )
        for load in loads(table)
    )
