"""Figure E6 (ours): transports after TCP and PCP, on the paper's network."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, all_at_most, plot

from .paper import (
    FEWER_LOADS,
    LOAD_LABEL,
    MEAN,
    PCP,
    SCALES,
    SHARING,
    TCP,
    draw_four,
    measured,
    over_loads,
    paper,
    ratios,
    reliable,
    schemes,
)

figure = Figure(
    paper,
    id="e6",
    title="Later transports on PCP's network",
    source="ours: the paper has no such figure",
    scales=SCALES | {"quick": {**SCALES["quick"], "loads": FEWER_LOADS[::3]}},
    deviations=(
        "Each column shows one class of transports, with PCP and processor sharing. All have the "
        "paper's delayed ACKs and timeouts, and an initial window of 10 packets (RFC 6928), except "
        "the paper's TCP, JumpStart (the whole flow) and Quick-Start (the rate that routers "
        "approve). Lines are means over the seeds; confidence intervals are in the table only. The "
        "scale of losses is linear up to 0.1 % and logarithmic above.",
    ),
    panels=(4, 4),
    size=(19, 15),
)

IW10, HYSTART, CUBIC = "TCP, 10 packets", "HyStart++", "CUBIC"

VEGAS, COPA, BBR, BBR3 = "Vegas", "Copa", "BBR", "BBRv3"

JUMP, QUICK = "JumpStart", "Quick-Start"

KINDS: dict[str, dict[str, dict[str, Any]]] = {
    "loss-based window": {
        TCP: schemes[TCP],
        IW10: reliable("tcp"),
        HYSTART: reliable("tcp", window={"hystart": "plus_plus"}),
        CUBIC: reliable("cubic", window={"hystart": "plus_plus"}),
    },
    "delay-based": {
        VEGAS: reliable("vegas", variant="linux"),
        COPA: reliable("copa"),
    },
    "model of the path": {
        BBR: reliable("bbr"),
        BBR3: reliable("bbr3"),
    },
    "paced first round trip": {
        JUMP: reliable("jump_start"),
        QUICK: reliable("quick_start"),
    },
}
"""Transports of each column, by congestion signal."""

REFERENCES = {name: schemes[name] for name in (PCP, SHARING)}


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    kinds = (*KINDS.values(), REFERENCES)
    yield from over_loads(scale, {name: kind[name] for kind in kinds for name in kind})


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return measured(runs)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    # Bands would hide the lines.
    table = table.with_columns(low=float("nan"), high=float("nan"))
    for column, (title, kind) in zip(axes.T, KINDS.items(), strict=True):
        part = table.filter(pl.col("scheme").is_in([*kind, *REFERENCES]))
        draw_four(column, part, "load", LOAD_LABEL, columns=3)
        plot.one_legend(column)
        column[0].set_title(title, fontsize=11, pad=56)
    for panel in axes[-1]:
        panel.set_yscale("symlog", linthresh=0.1)
        panel.set_yticks([0, 0.1, 1, 10], ["0", "0.1", "1", "10"])
    for row in axes:
        lows, highs = zip(*(panel.get_ylim() for panel in row), strict=True)
        for panel in row:
            panel.set_ylim(max(min(lows), 0), max(highs))


@figure.claim(
    "an initial window of 10 packets makes TCP faster than 2, at every load", stated=False
)
def ten_packets(table: pl.DataFrame) -> Verdict:
    return all_at_most(ratios(table, MEAN, IW10, TCP), 1)
