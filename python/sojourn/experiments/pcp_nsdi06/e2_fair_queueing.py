"""Figure E2: FCT, queue and losses against load with fair queueing at the router."""

from collections.abc import Iterator
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
    every,
    override,
    plot,
)

from .paper import (
    BASE,
    DEVIATION,
    LOAD_LABEL,
    LOADS,
    MEAN,
    PCP,
    SCALES,
    TCP,
    draw_four,
    measured,
    over_loads,
    paper,
    ratios,
    schemes,
)

HIGH = LOADS[-2:]
"""Loads that count as high."""

figure = Figure(
    paper,
    id="e2",
    title="FCT, queue and losses against load with fair queueing",
    source="Figure 5",
    scales=SCALES | {"quick": {**SCALES["quick"], "loads": HIGH}},
    deviations=(
        "The buffer holds 100 packets for all flows together, and when it is full the flow with "
        "the longest queue loses its last packet. Dotted lines are those of E1, with drop-tail.",
        "TCP loses twice as many packets as with drop-tail, as in the paper, but is faster: equal "
        "shares lower the means. Dropping packets beyond an equal share of the buffer "
        "(`queue.room` equal, the literal reading of the paper) does not change the result: at a "
        "load of 0.9 TCP's mean is 0.939 times that with drop-tail instead of 0.941 (3 seeds). It "
        "makes PCP lose 2.5 % and router-based control 0.04 %, where the paper reports no losses, "
        "so it is not used here.",
        "The decisive factor is the recovery of several losses in a window: with NewReno, one "
        "retransmission per round trip, TCP gains nothing; a claim below judges this, without a "
        "curve. The paper's TCP has SACK, and so has ours; an undocumented setting of its loss "
        "recovery is the most likely cause.",
    ),
    panels=(2, 2),
    size=(11, 8),
)

FAIR = {"queue": {"kind": "fair_queueing", "capacity": f"{BASE.link.bandwidth_delay:.0f} packets"}}


NEW_RENO = "TCP, NewReno"

new_reno = override(schemes[TCP], {"transport.reliability.recovery": "new_reno"})
"""TCP that recovers one loss of a window per round trip."""


def at_drop_tail(scheme: str) -> str:
    """Return the name of a scheme of E1."""
    return f"{scheme}, drop-tail"


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from over_loads(scale, schemes, FAIR)
    drop_tail = {at_drop_tail(scheme): schemes[scheme] for scheme in (TCP, PCP)}
    yield from over_loads(scale, drop_tail)
    high = {**scale, "loads": [load for load in scale["loads"] if load in HIGH]}
    yield from over_loads(high, {NEW_RENO: new_reno}, FAIR)
    yield from over_loads(high, {at_drop_tail(NEW_RENO): new_reno})


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return measured(runs)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    drawn_rows = table.filter(~pl.col("scheme").str.starts_with(NEW_RENO))
    draw_four(axes.flat, drawn_rows, "load", LOAD_LABEL)
    plot.one_legend(axes)


def over_drop_tail(table: pl.DataFrame, scheme: str, metric: str) -> dict[str, float]:
    """Return a metric of a scheme over the same with drop-tail, at high loads."""
    high = table.filter(pl.col("load").is_in(HIGH))
    return ratios(high, metric, scheme, at_drop_tail(scheme))


@figure.claim("PCP gains at high load: its mean and deviation fall, at loads from 75 %")
def pcp_gains(table: pl.DataFrame) -> Verdict:
    return every(all_at_most(over_drop_tail(table, PCP, metric), 1) for metric in (MEAN, DEVIATION))


@figure.claim("TCP does not: its mean is not lower than with drop-tail (within 2 %)")
def tcp_does_not(table: pl.DataFrame) -> Verdict:
    return all_at_least(over_drop_tail(table, TCP, MEAN), 0.98)


@figure.claim(
    "TCP with NewReno's recovery does not: its mean is not lower than with drop-tail (within 2 %)",
    stated=False,
)
def new_reno_does_not(table: pl.DataFrame) -> Verdict:
    return all_at_least(over_drop_tail(table, NEW_RENO, MEAN), 0.98)
