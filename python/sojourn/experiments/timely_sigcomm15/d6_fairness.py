"""Figure D6: the throughput of every connection, with four a client."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_least,
    at_most,
    every,
    looks,
    metrics,
    plot,
    steady,
)

from .paper import paper
from .testbed import GOODPUT_BPS, MEAN, SCALES, TAIL, THROUGHPUT, measures, rack

WINDOW_S = 5e-3

SHARE_BPS = GOODPUT_BPS / 40

RATE, OVER_TIME, OVERALL = "rate", "over time", "Jain's index"

figure = Figure(
    paper,
    id="d6",
    title="The throughput of 40 connections, four a client",
    source="Figure: fairness",
    scales=SCALES | {"quick": {"seeds": 3, "warm_up": 150, "measured": 200}},
    deviations=(
        "A fair share is 500 Mb/s on the wire, 481 Mb/s of payload. The panels show "
        "the first seed.",
    ),
    panels=(1, 2),
    size=(11, 4.2),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield {"scheme": "TIMELY"}, rack(scale)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    rates = steady.flow_rates(runs, WINDOW_S).with_columns(metric=pl.lit(RATE))
    index = steady.jain_over_time(runs, WINDOW_S).with_columns(metric=pl.lit(OVER_TIME))
    others = metrics.measure(runs, **measures, **{OVERALL: steady.fairness()})
    return pl.concat([rates, index, others.drop("at_least")], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    left, right = axes
    first = table.filter(pl.col("seed") == table["seed"].min())
    means = first.filter(metric=RATE).group_by("flow").agg(pl.col("value").mean()).sort("value")
    left.bar(
        range(means.height), means["value"].to_numpy() / 1e6, color=looks.look("timely").colour
    )
    left.axhline(SHARE_BPS / 1e6, color="#222222", ls=":", lw=1.2, label="fair share")
    left.set_xlabel("connection, in order of throughput")
    left.set_ylabel("throughput, payload (Mb/s)")
    left.grid(visible=False, axis="x")
    plot.legend(left)
    index = first.filter(metric=OVER_TIME)
    plot.series(right, index, unit="", label="Jain's index of windows of 5 ms")
    right.set_ylim(0, 1.02)


@figure.claim("the Jain index of the 40 connections is at least 0.9")
def fair(table: pl.DataFrame) -> Verdict:
    index = float(table.filter(metric=OVERALL)["value"].min())  # type: ignore[arg-type]
    return at_least(index, 0.9, "the least of all seeds")


@figure.claim("each is near 500 Mb/s: within 20 % of its fair share of payload")
def near_share(table: pl.DataFrame) -> Verdict:
    means = table.filter(metric=RATE).group_by("seed", "flow").agg(pl.col("value").mean())
    off = (means["value"] / SHARE_BPS - 1).abs().max()
    return at_most(float(off), 0.2, "the greatest distance")  # type: ignore[arg-type]


@figure.claim("the RTT remains low: p99 below T_high, 500 µs, and at least 95 % of the link used")
def low_rtt(table: pl.DataFrame) -> Verdict:
    tail = float(table.filter(metric=TAIL)["value"].max())  # type: ignore[arg-type]
    used = float(table.filter(metric=THROUGHPUT)["value"].min())  # type: ignore[arg-type]
    mean = float(table.filter(metric=MEAN)["value"].mean())  # type: ignore[arg-type]
    return every(
        [
            at_most(tail * 1e6, 500, f"with a mean of {mean * 1e6:.0f} µs, the p99 in µs"),
            at_least(used / GOODPUT_BPS, 0.95, "the share of the link"),
        ]
    )
