"""Figure I4: FCT breakdown of flows of one size against load: TCP, PCP, router-based control."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, accounts, metrics, override
from sojourn.experiments.pcp_nsdi06.paper import PCP, ROUTER, TCP, Setting, schemes, under

from .paper import COUNTED, made_of, over_size, panels, paper

LOW, MIDDLE, HIGH = LOADS = (0.15, 0.6, 0.9)

figure = Figure(
    paper,
    id="i4",
    title="Flows of one size against load: TCP, PCP, router-based control",
    source="ours, in the setting of E1 (PCP, NSDI 2006)",
    # Times are divided by the load, so that runs at all loads have about the same number of flows.
    scales={
        "smoke": {"warm_up": 10, "measured": 20},
        "quick": {"warm_up": 200, "measured": 200},
        "paper": {"warm_up": 600, "measured": 3000},
    },
    deviations=(
        "Runs have the same number of flows at each load; the scales of E1 have the same length of "
        "time.",
        "At load 0.15 pacing is 76 % of PCP's excess, not 80 %: the excess is 4.4 round trips, and "
        "one of them is the handshake.",
        "At load 0.9 queueing and loss recovery are 43 % of TCP's excess. They are 62 % of the "
        "increase from load 0.15, but slow start's round trips, which flows need at any load, "
        "remain, and reduced windows add to them (52 % together). PCP holds data back at its "
        "senders, so that flows wait for pacing (92 %) and hardly in queues (2 %).",
    ),
    panels=(1, 3),
    size=(12, 4.4),
)

SCHEMES = (TCP, PCP, ROUTER)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for scheme in SCHEMES:
        for load in LOADS:
            spans = {name: scale[name] / load for name in ("warm_up", "measured")}
            scenario = under(Setting(load).scenario(spans), schemes[scheme])
            yield {"scheme": scheme, "load": load}, override(scenario, COUNTED)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return over_size(runs, [metrics.ALL])


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    panels(axes, table, "load", {load: f"load {load:g}" for load in LOADS})


QUEUEING = (accounts.OTHERS, accounts.OWN, accounts.CONTROL)

RECOVERY = (accounts.REPAIRS, accounts.TIME_OUTS)

EXPECTED: dict[tuple[str, float], tuple[str, tuple[str, ...], float]] = {
    (TCP, LOW): ("round trips of the window", (accounts.ROUND_TRIPS,), 0.8),
    (PCP, LOW): ("pacing, as found by probes", (accounts.PACE,), 0.8),
    (TCP, HIGH): ("queueing and recovery", (*QUEUEING, *RECOVERY), 0.5),
    (PCP, HIGH): ("queueing and recovery", (*QUEUEING, *RECOVERY), 0.5),
}
"""Expected causes of the excess by scheme and load: in words, as parts, and their minimum share."""


def as_expected(table: pl.DataFrame, scheme: str, load: float) -> Verdict:
    _, parts, min_share = EXPECTED[scheme, load]
    return made_of(table, parts, min_share, scheme=scheme, load=load)


for (scheme, load), (words, _, min_share) in EXPECTED.items():
    figure.claim(
        f"{scheme} at load {load:g}: at least {100 * min_share:g} % of the excess is {words}",
        stated=False,
    )(partial(as_expected, scheme=scheme, load=load))
