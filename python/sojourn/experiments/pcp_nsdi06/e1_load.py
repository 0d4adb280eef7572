"""Figure E1: FCT, queue and losses against load under PCP, TCP and processor sharing."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, all_at_most, between, plot, theory

from .paper import (
    ALMOST_NOTHING,
    BASE,
    DEVIATION,
    FORMULA,
    LOAD_LABEL,
    LOADS,
    MEAN,
    PCP,
    ROUTER,
    SCALES,
    SHARING,
    TCP,
    draw_four,
    losses,
    measured,
    over_loads,
    paper,
    ratios,
    schemes,
    value,
)

figure = Figure(
    paper,
    id="e1",
    title="Completion times, queue and losses against load",
    source="Figure 4",
    scales=SCALES,
    deviations=(
        "Almost no losses means at most 0.1 % of the packets. PCP loses a few packets with every "
        "setting of the sweep: two flows can claim the same free capacity at the same time, and "
        "the overload lasts until both have detected the queue.",
        "The defaults were chosen to be no slower than TCP and to lose at most 0.1 % up to 0.75. "
        "At 0.9 no setting meets both criteria: of about 70 settings those with TCP's mean or less "
        "lose at least 0.5 %, and those with the fewest losses, 0.3 %, have 1.08 to 1.13 times "
        "TCP's mean (1 to 4 seeds). A mechanism is probably missing: the paper's section on rate "
        "compensation was not available to us.",
    ),
    panels=(2, 2),
    size=(11, 8),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from over_loads(scale, schemes)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return pl.concat([measured(runs), formula()], how="diagonal")


def formula() -> pl.DataFrame:
    """Return the closed forms of processor sharing by load, with random RTTs."""
    loads = np.linspace(LOADS[0], LOADS[-1], 31).round(3)
    rtt_deviation_s = theory.SHAKEN * BASE.rtt_spread_s
    means = [float(theory.processor_sharing(BASE.link, load, BASE.packets)) for load in loads]
    shared = [theory.processor_sharing_deviation(BASE.link, load, BASE.packets) for load in loads]
    forms = {MEAN: means, DEVIATION: [math.hypot(spread, rtt_deviation_s) for spread in shared]}
    return pl.concat(
        pl.DataFrame({"scheme": FORMULA, "load": loads, "metric": metric, "value": values})
        for metric, values in forms.items()
    )


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    draw_four(axes.flat, table, "load", LOAD_LABEL)
    plot.one_legend(axes)


def judge_at_most(table: pl.DataFrame, metric: str, scheme: str, baseline: str) -> Verdict:
    """Judge that a metric under `scheme` is at most that under `baseline`, at every load."""
    return all_at_most(ratios(table, metric, scheme, baseline), 1)


for metric in (MEAN, DEVIATION):
    for scheme, baseline in ((PCP, TCP), (ROUTER, PCP)):
        # The sweep of PCP's parameters required a mean of at most TCP's.
        figure.claim(
            f"{metric}: that of {scheme} is at most that of {baseline}, at every load",
            stated=(metric, scheme) != (MEAN, PCP),
        )(partial(judge_at_most, metric=metric, scheme=scheme, baseline=baseline))


def judge_losses(table: pl.DataFrame, scheme: str, up_to: float) -> Verdict:
    """Judge that the queue drops almost no packets of a scheme, up to a load."""
    light = table.filter(pl.col("load") <= up_to)
    return all_at_most(losses(light, scheme), ALMOST_NOTHING)


for scheme in (ROUTER, PCP):
    # The sweep of PCP's parameters limited its losses.
    figure.claim(
        f"{scheme} loses almost nothing (0.1 % of its packets) at every load",
        stated=scheme != PCP,
    )(partial(judge_losses, scheme=scheme, up_to=1))


def judge_distance(table: pl.DataFrame, below: str) -> Verdict:
    """Judge that at the lowest load PCP takes 2 round trips longer than scheme `below`."""
    load = LOADS[0]
    longer = value(table, MEAN, PCP, load=load) - value(table, MEAN, below, load=load)
    description = f"distance from {below.lower()} at load {load} in round trips"
    trips = longer / BASE.rtt_s
    return between(trips, 2 / 1.5, 2 * 1.5, description)


for below, stated in ((ROUTER, True), (SHARING, False)):
    figure.claim(
        "at low load PCP takes about 2 round trips (within a factor of 1.5) longer than "
        f"{below.lower()}",
        stated=stated,
    )(partial(judge_distance, below=below))
