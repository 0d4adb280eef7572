"""Figure D4: what noise in measured RTTs costs."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    all_at_most,
    at_most,
    every,
    metrics,
    override,
)

from .paper import paper
from .testbed import SCALES, THROUGHPUT, draw_sweep, measured, rack

NOISES_US = (0, 10, 25, 50, 75, 100, 150, 200)

TIMELY, QUICKER = "TIMELY", "TIMELY, weight 0.05"

SCHEMES = {TIMELY: 0.02, QUICKER: 0.05}

figure = Figure(
    paper,
    id="d4",
    title="Throughput against noise in measured RTTs",
    source="Figure: uniformly distributed noise from 0 to n",
    scales=SCALES,
    panels=(1, 2),
    size=(11, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for scheme, weight in SCHEMES.items():
        for most in NOISES_US if scale["name"] != "smoke" else NOISES_US[::4]:
            noise = {"kind": "uniform", "most": f"{most} us"} if most else "none"
            change = {"transport.ewma_weight": weight, "host": {"rtt_noise": noise}}
            yield {"scheme": scheme, "noise": most}, override(rack(scale), change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return measured(runs)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    draw_sweep(axes, table, "noise", "most noise (µs)")
    axes[1].set_ylabel("RTT as measured, with the noise (µs)")


def falls(table: pl.DataFrame, scheme: str) -> Verdict:
    """Judge that throughput falls with noise."""

    def at(noise: int) -> float:
        return metrics.at(table, scheme=scheme, noise=noise, metric=THROUGHPUT)

    steps = {f"{more} µs over {less} µs": at(more) / at(less) for less, more in pairwise(NOISES_US)}
    overall = at_most(at(NOISES_US[-1]) / at(0), 0.9, f"{NOISES_US[-1]} µs over none")
    return every([all_at_most(steps, 1.005), overall])


for name in SCHEMES:
    figure.claim(
        f"the throughput of {name} falls as noise grows: no step up by more than 0.5 %, and at the "
        "end at least 10 % less",
        stated=name == TIMELY,
    )(partial(falls, scheme=name))
