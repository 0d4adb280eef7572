"""Figure I3: what flows wait for under DCQCN, TIMELY and DCTCP on one dumbbell."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, accounts, metrics, override
from sojourn.experiments.ecn_or_delay_conext16.paper import (
    DOCUMENTED,
    SMALL,
    TIMELY,
    at_load,
    dctcp,
    schemes,
)

from .paper import (
    COUNTED,
    IN_SWITCHES,
    made_of,
    over_size,
    panels,
    paper,
)

LOAD = 0.8

figure = Figure(
    paper,
    id="i3",
    title="Small and large flows on a dumbbell at load 0.8: DCQCN, TIMELY, DCTCP",
    source="ours, in the setting of A2 (ECN or Delay, CoNEXT 2016)",
    scales={
        "smoke": {"length": "50 ms"},
        "quick": {"length": "200 ms", "seeds": 4},
        "paper": {"length": "1 s", "seeds": 10},
    },
    deviations=(
        "After the time that A2's runs have, flows have as long again to finish, and all do at the "
        "scale `quick`. Without it 52 of the 144 flows of more than 1 MB would be missing under "
        "TIMELY with beta 0.8: those that take longest.",
        "Senders that pace wait for their host's port meanwhile: `turn` is what is left of that "
        "beyond what sending the flow takes, because their other flows have the port.",
    ),
    panels=(1, 3),
    size=(15, 4.8),
)

LARGE = metrics.Bucket("more than 1 MB", 1e6)

MEDIUM = metrics.Bucket("100 packets to 1 MB", SMALL.up_to, LARGE.above)

SIZES = (SMALL, MEDIUM, LARGE)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    # As long again for the flows of the end to finish: a run is over when all have.
    given = {"time_limit": f"{2 * metrics.seconds(scale['length']):g} s"}
    for scheme, change in (schemes | dctcp).items():
        yield {"scheme": scheme}, override(at_load(scale, change, LOAD), COUNTED, given)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return over_size(runs, SIZES)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    panels(axes, table, "size", {bucket.name: f"flows of {bucket.name}" for bucket in SIZES})


@figure.claim(
    f"{DOCUMENTED}: at least 80 % of the excess of flows of more than 1 MB is their pace",
    stated=False,
)
def large_flows_are_slow(table: pl.DataFrame) -> Verdict:
    return made_of(table, [accounts.PACE], 0.8, scheme=DOCUMENTED, size=LARGE.name)


@figure.claim(
    f"{TIMELY}: at least 80 % of the excess of small flows is waiting for others' packets at the "
    "middle link",
    stated=False,
)
def small_flows_wait(table: pl.DataFrame) -> Verdict:
    # Of the switches on the way only the left one has a queue: the right one gets no more than
    # the middle link carries, for receivers whose links are as fast.
    return made_of(table, [IN_SWITCHES], 0.8, scheme=TIMELY, size=SMALL.name)
