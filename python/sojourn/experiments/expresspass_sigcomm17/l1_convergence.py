"""Figure L1: time until a second flow and the first have equal rates."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    all_at_most,
    at_least,
    metrics,
    not_judged,
    override,
    plot,
    steady,
)

from .paper import DCTCP, EXPRESSPASS, RTT_S, dumbbell, paper, schemes

START_S = 20e-3
"""Start of the second flow."""

NEAR = 0.2
"""Largest distance from the fair share, relative to it."""

WINDOW = 10
"""RTTs over which a rate is averaged.

A window protocol can send a window's packets in a burst per RTT, on either side of an edge of the
interval, so that its rate in n RTTs has an error of up to 1/n: here half of `NEAR`.
"""

SETTLED = 5
"""Number of such intervals in a row, an RTT apart, in which both flows must be near it."""

RATE, TIME = "throughput", "RTTs to the fair share"

figure = Figure(
    paper,
    id="l1",
    title="A second flow joins the first",
    source="Convergence of two flows",
    scales={
        "smoke": {"gbps": (10,), "length_ms": 100},
        "quick": {"gbps": (10, 100), "length_ms": 100},
        "paper": {"gbps": (10, 100), "length_ms": 400},
    },
    deviations=(
        "Two flows share a link with a round trip of 100 µs; the second starts 20 ms after the "
        "first. They have converged when both have 80 to 120 % of half their total throughput in "
        "each of five intervals in a row; the time is the middle of the first. Intervals are 10 "
        "RTTs long and begin an RTT apart, so that the least time is 5 RTTs: in single RTTs the "
        "rates of windows that leave as bursts alternate, and never count as equal. The curves "
        "are averages over 10 RTTs too.",
        "A scheme that has not converged by the end of the run counts with the time to the end. "
        "Its value, drawn hollow, is a lower bound; claims that it cannot decide are not judged.",
        "The published times of ExpressPass are 3 to 6 RTTs, from memory.",
        "RCP falls to its minimum rate, 0.01 packets per RTT, when the second flow joins, as its "
        "equation 2 demands: the new flow starts at the link rate, so after an RTT the queue "
        "is a bandwidth-delay product, and with one update per RTT (the interval of 10 ms is "
        "longer) the factor of the rate is below 0. From the minimum it grows by alpha, 10 %, per "
        "update. The equation integrated as a fluid at 10 Gb/s falls as far and is back at 40 % of "
        "the link after 200 RTTs, the packets after 223. With updates every 10 µs the rate falls "
        "to 4 % of the link only, and is back after 62 RTTs. Both flows have the same rate from "
        "the start, the least time; the link is almost idle meanwhile.",
    ),
    panels=(1, 3),
    size=(15, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    flows = [{"source": 0, "target": 2}, {"source": 1, "target": 3, "start": f"{START_S} s"}]
    for gbps in scale["gbps"]:
        shared = override(
            dumbbell(2, gbps),
            {
                "workload": {"kind": "flows", "flows": flows},
                "samples": {"interval": f"{RTT_S} s", "flows": [0, 1]},
                "time_limit": f"{START_S * 1e3 + scale['length_ms']} ms",
            },
        )
        for scheme, change in schemes(gbps).items():
            yield {"scheme": scheme, "gbps": gbps}, override(shared, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    labels = ["scheme", "gbps", "seed"]
    rates = steady.flow_rates(runs, RTT_S).filter(pl.col("time_s") > START_S + RTT_S / 2)
    rates = averaged(rates, [*labels, "flow"])
    shares = rates.with_columns(
        share=pl.col("value") / pl.col("value").mean().over(*labels, "time_s")
    )
    times = [
        {**dict(zip(labels, key, strict=True)), "metric": TIME, **convergence(part)}
        for key, part in shares.group_by(labels, maintain_order=True)
    ]
    first = pl.col("seed") == runs[0].labels["seed"]
    return pl.concat(
        [
            rates.filter(first).with_columns(metric=pl.lit(RATE)),
            metrics.across_seeds(pl.DataFrame(times)),
        ],
        how="diagonal",
    )


def averaged(rates: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return the rates of flows in intervals of `WINDOW` RTTs, at the middle of each."""
    mean = pl.col("value").rolling_mean(WINDOW).over(by)
    middle = pl.col("time_s") - WINDOW * RTT_S / 2
    return rates.with_columns(mean, middle).drop_nulls("value")


def convergence(shares: pl.DataFrame) -> dict[str, Any]:
    """Return the RTTs from the start of the second flow until both have the fair share."""
    distance = shares.group_by("time_s", maintain_order=True).agg(
        (pl.col("share") - 1).abs().max().alias("distance")
    )
    near = (distance["distance"] <= NEAR).cast(pl.Int64)
    settled = near.rolling_sum(SETTLED).fill_null(0) == SETTLED
    ends = distance["time_s"].filter(settled)
    if ends.is_empty():
        last = math.floor((distance["time_s"][-1] - START_S) / RTT_S)
        return {"value": float(last), "at_least": True}
    return {"value": (ends[0] - START_S) / RTT_S - SETTLED + 1, "at_least": False}


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    rates = table.filter(metric=RATE)
    *panels, last = axes
    for panel, gbps in itertools.zip_longest(panels, speeds(table)):
        if gbps is None:
            panel.set_axis_off()
            continue
        part = rates.filter(
            pl.col("gbps") == gbps, pl.col("flow") == 1, pl.col("time_s") < START_S + 10e-3
        )
        plot.series(panel, part, unit="Gb/s", label="throughput of the second flow")
        panel.set_title(f"{gbps} Gb/s", loc="right", fontsize=10)
    times = table.filter(metric=TIME).with_columns(link=pl.format("{} Gb/s", "gbps"))
    plot.levels(last, times, group="link", label=TIME, values="{:.0f}")
    plot.one_legend(axes)


def time(table: pl.DataFrame, scheme: str, gbps: int) -> float:
    """Return the convergence time of a scheme in RTTs."""
    return metrics.at(table, metric=TIME, scheme=scheme, gbps=gbps)


def ratio(table: pl.DataFrame, gbps: int) -> float:
    """Return the convergence time of DCTCP over that of ExpressPass."""
    return time(table, DCTCP, gbps) / time(table, EXPRESSPASS, gbps)


def unless_bound(table: pl.DataFrame, verdict: Verdict, scheme: str, gbps: int) -> Verdict:
    """Return a verdict, not judged if the time of the scheme is a lower bound."""
    if metrics.at(table, "at_least", metric=TIME, scheme=scheme, gbps=gbps):
        return not_judged(f"{scheme} at {gbps} Gb/s has not converged by the end of the run")
    return verdict


def speeds(table: pl.DataFrame) -> list[int]:
    """Return the rates of the links in Gb/s."""
    return table["gbps"].unique().sort().to_list()


@figure.claim("ExpressPass converges in at most 10 RTTs")
def fast(table: pl.DataFrame) -> Verdict:
    return all_at_most(
        {f"RTTs at {gbps} Gb/s": time(table, EXPRESSPASS, gbps) for gbps in speeds(table)}, 10
    )


@figure.claim("10 Gb/s: DCTCP takes at least 20 times as long", scales=("quick", "paper"))
def dctcp_is_slower(table: pl.DataFrame) -> Verdict:
    verdict = at_least(ratio(table, 10), 20, f"{DCTCP} over {EXPRESSPASS}")
    # A larger time of DCTCP changes only a ratio that is too small.
    if not verdict.held:
        verdict = unless_bound(table, verdict, DCTCP, 10)
    return unless_bound(table, verdict, EXPRESSPASS, 10)


@figure.claim("the ratio grows with the rate of the link", scales=("quick", "paper"))
def grows(table: pl.DataFrame) -> Verdict:
    growth = ratio(table, 100) / ratio(table, 10)
    verdict = at_least(growth, 1, "the ratio at 100 Gb/s over that at 10 Gb/s")
    divisors = [(DCTCP, 10), (EXPRESSPASS, 100)]
    factors = [] if verdict.held else [(DCTCP, 100), (EXPRESSPASS, 10)]
    for scheme, gbps in divisors + factors:
        verdict = unless_bound(table, verdict, scheme, gbps)
    return verdict
