"""Figure I2: FCT breakdown of small and large flows in a fabric: TCP, DCTCP, PDQ and pFabric."""

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
    name,
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
        "Web-search sizes only. Large flows have more than 1 MB here, so that short runs have "
        "enough of them; in C2 they have more than 10 MB. FCTs end at the receiver, as breakdowns "
        "do; the FCTs of C1 end when the last ACK arrives at the sender.",
        "Under TCP and DCTCP a part of cross-traffic queueing is on the reverse path, where ACKs "
        "queue behind data of other flows: 30 and 18 % of the excess of small flows.",
        "Large flows under pFabric: destinations are as random as sources, so they meet other "
        "flows at the receiver's port as often as at their own host, and ACKs queue too: 37 % of "
        "cross-traffic queueing is at the own host. Timeouts, by which pFabric detects that a "
        "packet was dropped in favour of a smaller flow, cost more.",
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
"""Parts in which PDQ's flows wait for a rate: the SYN, and time paused or at a lower rate."""

EXPECTED = {
    "under DCTCP small flows queue behind cross traffic": (DCTCP, SMALL, (accounts.OTHERS,), 0.5),
    "under TCP small flows wait in queues and for loss recovery": (
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
    "under pFabric large flows wait for cross traffic and timeouts": (
        PFABRIC,
        LARGE,
        (accounts.OTHERS, accounts.TIME_OUTS),
        0.8,
    ),
}
"""The scheme, the size, the parts, and the minimum of their share in the excess."""


def as_expected(table: pl.DataFrame, statement: str) -> Verdict:
    scheme, bucket, parts, min_share = EXPECTED[statement]
    return made_of(table, parts, min_share, scheme=scheme, size=bucket.name)


for statement in EXPECTED:
    figure.claim(
        f"{statement}: at least {100 * EXPECTED[statement][-1]:g} % of their excess", stated=False
    )(partial(as_expected, statement=statement))


@figure.claim("under pFabric small flows take at most 1.2 times their ideal FCT", stated=False)
def small_flows_are_near_ideal(table: pl.DataFrame) -> Verdict:
    ratio = slowdown(table, scheme=PFABRIC, size=SMALL.name)
    return at_most(ratio, 1.2, f"mean FCT over mean ideal FCT, flows {SMALL.name},")


@figure.claim(
    "at least half of the cross-traffic queueing of pFabric's large flows is at their own host",
    stated=False,
)
def queue_at_own_host(table: pl.DataFrame) -> Verdict:
    labels = {"scheme": PFABRIC, "size": LARGE.name}
    all_places = sum(value(table, leg, **labels) for leg in LEGS.values())
    host_share = value(table, AT_HOST, **labels) / all_places
    return at_least(host_share, 0.5, f"{name(AT_HOST)}, over all places,")
