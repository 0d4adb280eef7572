"""Figure G3: victims beside an incast, FCT breakdown by transport."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    accounts,
    all_at_most,
    at_least,
    at_most,
    every,
    metrics,
    override,
)
from sojourn.experiments.where_time_went.paper import over_size, panels, share, slowdown

from .paper import BOTH, DCQCN, EQDS, HPCC, NDP, NSCC, RCCC, SWIFT, fabric, paper, schemes

TRIMMING = (NSCC, RCCC, BOTH, EQDS, NDP)

SENDERS = (*range(16, 28), *range(32, 44))
"""Hosts at the leaves 1 and 2 that send to host 0."""

INTO = metrics.Bucket("into", of_class="into")
"""Victims from leaf 3 to other hosts of the target's leaf."""

FROM = metrics.Bucket("from", of_class="from")
"""Victims from other hosts of the senders' leaves to leaf 3."""

PAIRS = {
    INTO.name: [(56 + number, 1 + number) for number in range(8)],
    FROM.name: [
        *((28 + number, 48 + number) for number in range(4)),
        *((44 + number, 52 + number) for number in range(4)),
    ],
}

figure = Figure(
    paper,
    id="g3",
    title="Victims: flows that share switches with an incast, but no host",
    source="ours",
    scales={
        "smoke": {"messages": 2},
        "quick": {"messages": 10},
        "paper": {"messages": 40},
    },
    deviations=(
        "4 leaves with 16 hosts each, and 4 spines at 400 Gb/s. 24 hosts at two leaves send 1 MB "
        "each to one host, which needs 2 ms. Meanwhile victims send messages of 100 KB, at even "
        "distances: 8 hosts to other hosts of the target's leaf, and 8 other hosts of the "
        "senders' leaves to the fourth leaf, whose ports are idle. Ports between switches have "
        "four times the rate of a host. Seeds differ in the choice of paths.",
        "Under DCQCN the leaf of the target pauses spines, but the queues of these remain too "
        "short to pause the senders' leaves: only victims to the target's leaf wait. HPCC sends a "
        "bandwidth-delay product from each sender, too little for pauses.",
    ),
    panels=(1, 2),
    size=(12, 4.8),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for scheme, transport in schemes.items():
        yield {"scheme": scheme}, override(network(scale["messages"]), transport)


INCAST_US = 1900
"""Time in which victims start, a little less than the incast's 1.97 ms."""


def network(messages: int) -> dict[str, Any]:
    """Return the scenario of an incast, and of this number of messages of each victim."""
    flows = [{"source": host, "target": 0, "size": "1 MB", "class": "incast"} for host in SENDERS]
    for name, pairs in PAIRS.items():
        for number, (source, target) in enumerate(pairs):
            for message in range(messages):
                start_us = INCAST_US * (message + number / len(pairs)) / messages
                flows.append(
                    {
                        "source": source,
                        "target": target,
                        "size": "100 KB",
                        "start": f"{start_us:.0f} us",
                        "class": name,
                    }
                )
    return {
        "name": "An incast, and victims beside it",
        **fabric(leaves=4, hosts=16, spines=4, fabric_rate="400 Gbps"),
        "workload": {"kind": "flows", "flows": flows},
        "time_limit": "1 s",
        "account": True,
    }


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return over_size(runs, [INTO, FROM])


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    titles = {
        INTO.name: "to other hosts of the target's leaf",
        FROM.name: "from other hosts of the senders' leaves",
    }
    panels(axes, table, "size", titles)


@figure.claim(
    "UET, EQDS and NDP, which trim packets, and Swift: victims take at most 1.3 of their ideal FCT",
    stated=False,
)
def victims_are_near_ideal(table: pl.DataFrame) -> Verdict:
    return all_at_most(
        {
            f"{name}, {victim.name}:": slowdown(table, scheme=name, size=victim.name)
            for name in (*TRIMMING, SWIFT)
            for victim in (INTO, FROM)
        },
        1.3,
    )


@figure.claim(
    "DCQCN: victims take at least 1.5 of their ideal FCT, and half of their excess is PFC pause",
    stated=False,
)
def victims_are_paused(table: pl.DataFrame) -> Verdict:
    verdicts = []
    for victim in (INTO, FROM):
        labels = {"scheme": DCQCN, "size": victim.name}
        pauses = share(table, [accounts.PAUSED], **labels)
        verdicts += [
            at_least(slowdown(table, **labels), 1.5, f"DCQCN, {victim.name}:"),
            at_least(pauses, 0.5, f"PFC pause over the excess, DCQCN, {victim.name},"),
        ]
    return every(verdicts)


@figure.claim("HPCC: victims take no longer than under DCQCN", stated=False)
def hpcc_pauses_less(table: pl.DataFrame) -> Verdict:
    return every(
        at_most(
            slowdown(table, scheme=HPCC, size=victim.name)
            / slowdown(table, scheme=DCQCN, size=victim.name),
            1,
            f"HPCC over DCQCN, {victim.name},",
        )
        for victim in (INTO, FROM)
    )
