"""Figure I2: what small and large flows wait for in a fabric: TCP, DCTCP, PDQ and pFabric."""

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
    accounts,
    at_least,
    at_most,
    metrics,
    override,
)
from sojourn.experiments.pfabric_sigcomm13.paper import (
    DCTCP,
    PDQ,
    PFABRIC,
    TCP,
    WEB_SEARCH,
    scenario,
    schemes,
)

from .paper import (
    AT_HOST,
    COUNTED,
    LEGS,
    made_of,
    over_size,
    panels,
    paper,
    slowdown,
    value,
)

LOAD = 0.8

figure = Figure(
    paper,
    id="i2",
    title="Small and large flows in pFabric's fabric at load 0.8",
    source="ours, in the setting of C1 (pFabric, SIGCOMM 2013)",
    scales={
        "smoke": {"flows": 40},
        "quick": {"flows": 400},
        "paper": {"flows": 20_000},
    },
    deviations=(
        "Web-search sizes only. Large are flows of more than 1 MB here, of which short runs have "
        "enough; C2's are above 10 MB. Completion times end at the receiver, as accounts do; those "
        "of C1 end when the last ACK is back.",
        "Under TCP and DCTCP part of the waiting for others is on the way back, where ACKs stand "
        "behind others' data: 30 and 18 % of the excess of small flows.",
        "Large flows under pFabric: destinations are as random as sources, so they meet others at "
        "the port of their receiver as often as at their own, and ACKs wait too: of what they wait "
        "for others 37 % is at the own host. Time-outs, which are how pFabric learns that a packet "
        "was dropped for a smaller flow's, cost more.",
    ),
    panels=(1, 3),
    size=(13, 4.4),
)

SMALL, MEDIUM, LARGE = SIZES = metrics.size_buckets(100e3, 1e6)

SCHEMES = (TCP, DCTCP, PDQ, PFABRIC)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    shared = scenario(WEB_SEARCH, LOAD, scale["flows"])
    for scheme in SCHEMES:
        yield {"scheme": scheme}, override(shared, schemes[scheme], COUNTED)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return over_size(runs, SIZES)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    panels(axes, table, "size", {bucket.name: f"flows {bucket.name}" for bucket in SIZES})


STARTING = (accounts.HANDSHAKE, accounts.PACE)
"""What PDQ's flows spend on getting a rate: on the SYN, and paused or at a rate that is less."""

EXPECTED = {
    "under DCTCP small flows wait behind others' packets": (DCTCP, SMALL, (accounts.OTHERS,), 0.5),
    "under TCP small flows wait in queues and for repairs": (
        TCP,
        SMALL,
        (accounts.OTHERS, accounts.REPAIRS, accounts.TIME_OUTS),
        0.8,
    ),
    "under PDQ small flows wait for their start, the handshake and a rate": (
        PDQ,
        SMALL,
        STARTING,
        0.5,
    ),
    "under pFabric large flows wait for others and for time-outs": (
        PFABRIC,
        LARGE,
        (accounts.OTHERS, accounts.TIME_OUTS),
        0.8,
    ),
}
"""The scheme, the size, the parts, and which share of the excess they are at least."""


def as_expected(table: pl.DataFrame, what: str) -> Verdict:
    scheme, bucket, parts, least = EXPECTED[what]
    return made_of(table, parts, least, scheme=scheme, size=bucket.name)


for what in EXPECTED:
    figure.claim(f"{what}: at least {100 * EXPECTED[what][-1]:g} % of their excess", stated=False)(
        partial(as_expected, what=what)
    )


@figure.claim(
    "under pFabric small flows take at most 1.2 times what they would alone", stated=False
)
def small_flows_are_free(table: pl.DataFrame) -> Verdict:
    ratio = slowdown(table, scheme=PFABRIC, size=SMALL.name)
    return at_most(ratio, 1.2, f"mean over that alone, flows {SMALL.name},")


@figure.claim(
    "of what pFabric's large flows wait for others at least half is at their own host", stated=False
)
def at_the_own_host(table: pl.DataFrame) -> Verdict:
    labels = {"scheme": PFABRIC, "size": LARGE.name}
    everywhere = sum(value(table, leg, **labels) for leg in LEGS.values())
    there = value(table, AT_HOST, **labels) / everywhere
    return at_least(there, 0.5, f"{AT_HOST}, over all of it,")
