"""Figure I5: FCT breakdown of victims, flows that share only a cable with an incast."""

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
    title="An incast of 40 senders, and victims that share a cable with it but no port",
    source="ours",
    scales={
        "smoke": {"incasts": 2},
        "quick": {"incasts": 10},
        "paper": {"incasts": 100},
    },
    deviations=(
        "40 hosts at 10 Gb/s and 10 more, the victims, are connected to one switch; the target of "
        "the incast and 10 other hosts, one for each victim, to another. The cable between the "
        "switches has 400 Gb/s, the sum of all 40 senders: only the target's port is overloaded. "
        "An incast is 40 flows of 1 MB that start together every 40 ms, of which the target needs "
        "34 ms; each victim sends 100 KB during each incast, at evenly distributed times. Switches "
        "share 12 MB, pause at 1/8 of the free buffer, and have priority for ACKs, as in D. With "
        "pause frames alone hosts send at line rate.",
        "The claims on DCQCN, DCTCP and Swift were added after first runs. They depend on flow "
        "size: DCQCN needs a notification first, and 256 KB from each sender are mostly sent by "
        "then. With that size victims take 19 times their ideal FCT, against 33 times with pause "
        "frames alone: a ratio of 0.6, not half.",
        "PFC pause is the wait of packets in paused ports, and of data at a host whose port is "
        "paused: 96 % of the incast's excess with pause frames alone. Victims' own ports are never "
        "paused: their PFC pause is all in the switch.",
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
    """Return the scenario of the two switches and their flows."""
    target = SENDERS + VICTIMS
    flows = []
    for number in range(incasts):
        begin_ms = number * PERIOD_MS
        incast = {"target": target, "size": "1 MB", "start": f"{begin_ms} ms", "class": INCAST.name}
        flows += [{"source": sender, **incast} for sender in range(SENDERS)]
        for victim in range(VICTIMS):
            # Evenly distributed within an incast, with different offsets in each incast.
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
"""Step (golden ratio) whose multiples modulo 1 fill the unit interval evenly."""


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return over_size(runs, [VICTIM, INCAST])


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    titles = {VICTIM.name: "victims: 100 KB to other hosts", INCAST.name: "incast: 1 MB from each"}
    panels(axes, table, "size", titles)


@figure.claim(
    "with pause frames alone at least half of the victims' excess is PFC pause", stated=False
)
def victims_are_paused(table: pl.DataFrame) -> Verdict:
    return made_of(table, [accounts.PAUSED], 0.5, scheme=PAUSE, size=VICTIM.name)


@figure.claim(
    "under DCQCN victims take at most half as long as with pause frames alone", stated=False
)
def fewer_pauses(table: pl.DataFrame) -> Verdict:
    dcqcn_s, pause_s = (
        value(table, accounts.TOTAL, scheme=name, size=VICTIM.name) for name in (DCQCN, PAUSE)
    )
    return at_most(dcqcn_s / pause_s, 0.5, "DCQCN over pause alone")


@figure.claim(
    "under DCTCP and Swift victims take at most 10 % longer than their ideal FCT", stated=False
)
def victims_are_near_ideal(table: pl.DataFrame) -> Verdict:
    return all_at_most(
        {
            f"{scheme}'s victims, mean FCT over mean ideal FCT,": slowdown(
                table, scheme=scheme, size=VICTIM.name
            )
            for scheme in (DCTCP, SWIFT)
        },
        1.1,
    )
