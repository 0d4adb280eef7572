"""Figure I5: what a flow waits for that only shares a cable with an incast."""

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
    at_most,
    metrics,
    override,
)
from sojourn.experiments.timely_sigcomm15.paper import LOSSLESS

from .paper import COUNTED, made_of, over_size, panels, paper, slowdown, value

PAUSE, DCQCN, DCTCP, SWIFT = "Pause alone", "DCQCN", "DCTCP", "Swift"

schemes = {PAUSE: "constant_rate", DCQCN: "dcqcn", DCTCP: "dctcp", SWIFT: "swift"}

SENDERS, VICTIMS = 40, 10

PERIOD_MS = 40

figure = Figure(
    paper,
    id="i5",
    title="An incast of 40 senders, and flows that share a cable with it and no port",
    source="ours",
    scales={
        "smoke": {"incasts": 2},
        "quick": {"incasts": 10},
        "paper": {"incasts": 100},
    },
    deviations=(
        "40 hosts at 10 Gb/s and 10 more, the victims, stand on one switch; the target of the "
        "incast and 10 other hosts, one for each victim, on another. The cable between them "
        "carries 400 Gb/s, as much as all 40 senders: the one port that more comes to than it "
        "carries is the target's. An incast is 40 flows of 1 MB that start together, every 40 ms, "
        "of which the target takes 34; each victim sends 100 KB during each, at times that are "
        "spread evenly over it. Switches share 12 MB, pause at 1/8 of what is free, and have "
        "priority for ACKs, as in D. With pause frames alone hosts send at line rate.",
        "What is claimed of DCQCN, DCTCP and Swift was added when first runs had been seen. It "
        "depends on the flows' size: DCQCN has to be told, and with 256 KB from each sender, which "
        "is sent by then for the most part, victims take 19 times as long as alone, and with "
        "pause frames alone 33 times: 0.6 of it, not half.",
        "`paused` is what packets wait for in ports that must not send, and data at a host whose "
        "port must not: 96 % of the incast's excess with pause frames alone is that. Victims' own "
        "ports are never paused: all that they wait for pauses is in the switch.",
    ),
    panels=(1, 2),
    size=(11, 4.4),
)

VICTIM, INCAST = (
    metrics.Bucket("victim", of_class="victim"),
    metrics.Bucket("incast", of_class="incast"),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for scheme, transport in schemes.items():
        yield {"scheme": scheme}, override(network(scale["incasts"]), {"transport": transport})


def network(incasts: int) -> dict[str, Any]:
    """Return the two switches, and what is sent."""
    target = SENDERS + VICTIMS
    flows = []
    for number in range(incasts):
        begin_ms = number * PERIOD_MS
        incast = {"target": target, "size": "1 MB", "start": f"{begin_ms} ms", "class": INCAST.name}
        flows += [{"source": sender, **incast} for sender in range(SENDERS)]
        for victim in range(VICTIMS):
            # Spread evenly within an incast, and at other times in each.
            at_ms = begin_ms + PERIOD_MS * (victim + number * GOLDEN % 1) / VICTIMS
            flows.append(
                {
                    "source": SENDERS + victim,
                    "target": target + 1 + victim,
                    "size": "100 KB",
                    "start": f"{1000 * at_ms:.0f} us",
                    "class": VICTIM.name,
                }
            )
    return {
        "name": "An incast, and victims beside it",
        "topology": {
            "kind": "dumbbell",
            "senders": SENDERS + VICTIMS,
            "receivers": 1 + VICTIMS,
            "rate": "10 Gbps",
            "bottleneck_rate": "400 Gbps",
            "delay": "1 us",
        },
        "switch": LOSSLESS,
        "workload": {"kind": "flows", "flows": flows},
        "time_limit": f"{(incasts + 10) * PERIOD_MS} ms",
        **COUNTED,
    }


GOLDEN = 0.618
"""A step by which many points fill the unit interval evenly."""


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return over_size(runs, [VICTIM, INCAST])


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    titles = {VICTIM.name: "victims: 100 KB to other hosts", INCAST.name: "incast: 1 MB from each"}
    panels(axes, table, "size", titles)


@figure.claim(
    "with pause frames alone at least half of the victims' excess is pauses", stated=False
)
def victims_are_paused(table: pl.DataFrame) -> Verdict:
    return made_of(table, [accounts.PAUSED], 0.5, scheme=PAUSE, size=VICTIM.name)


@figure.claim(
    "under DCQCN victims take at most half as long as with pause frames alone", stated=False
)
def fewer_pauses(table: pl.DataFrame) -> Verdict:
    took, alone = (
        value(table, accounts.TOTAL, scheme=name, size=VICTIM.name) for name in (DCQCN, PAUSE)
    )
    return at_most(took / alone, 0.5, "DCQCN over pause alone")


@figure.claim("under DCTCP and Swift victims take at most 10 % longer than alone", stated=False)
def left_alone(table: pl.DataFrame) -> Verdict:
    return all_at_most(
        {
            f"{scheme}'s victims, mean over that alone,": slowdown(
                table, scheme=scheme, size=VICTIM.name
            )
            for scheme in (DCTCP, SWIFT)
        },
        1.1,
    )
