"""Figure I3: FCT breakdown under DCQCN, TIMELY and DCTCP on one dumbbell."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, accounts, metrics, override
from sojourn.experiments.ecn_or_delay_conext16.paper import (
    SMALL,
    SMALL_BETA,
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
        "quick": {"length": "200 ms"},
        "paper": {"length": "1 s"},
    },
    deviations=(
        "Runs last twice as long as those of A2, so that flows can finish; at the scale `quick` "
        "all do. Otherwise 52 of the 144 flows of more than 1 MB, the slowest, would be missing "
        "under TIMELY with beta 0.8.",
        "Paced senders also wait for their host's port: the NIC wait is the part of that wait "
        "beyond the flow's own transmission, while other flows of the host use the port.",
    ),
    panels=(1, 3),
    size=(15, 4.8),
)

LARGE = metrics.Bucket("more than 1 MB", 1e6)

MEDIUM = metrics.Bucket("100 packets to 1 MB", SMALL.up_to, LARGE.above)

SIZES = (SMALL, MEDIUM, LARGE)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    # The second half lets the last flows finish; a run ends when all flows have finished.
    time_limit = {"time_limit": f"{2 * metrics.seconds(scale['length']):g} s"}
    for scheme, change in (schemes | dctcp).items():
        yield {"scheme": scheme}, override(at_load(scale, change, LOAD), COUNTED, time_limit)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return over_size(runs, SIZES)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    panels(axes, table, "size", {bucket.name: f"flows of {bucket.name}" for bucket in SIZES})


@figure.claim(
    f"{TIMELY}: at least 80 % of the excess of flows of more than 1 MB is pacing",
    stated=False,
)
def large_flows_are_slow(table: pl.DataFrame) -> Verdict:
    return made_of(table, [accounts.PACE], 0.8, scheme=TIMELY, size=LARGE.name)


@figure.claim(
    f"{SMALL_BETA}: at least 80 % of the excess of small flows is cross-traffic queueing at the "
    "middle link",
    stated=False,
)
def small_flows_wait(table: pl.DataFrame) -> Verdict:
    # Only the left switch of the forward path has a queue: the right one receives at most the
    # rate of the middle link, and the receivers' links are as fast.
    return made_of(table, [IN_SWITCHES], 0.8, scheme=SMALL_BETA, size=SMALL.name)
