"""Mean slowdown against load."""

from collections.abc import Iterator

import polars as pl
from matplotlib.axes import Axes

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_least,
    at_most,
    every,
    metrics,
    not_judged,
    override,
    plot,
)

from .paper import base, paper, schemes

figure = Figure(
    paper,
    id="t1",
    title="Mean slowdown against load",
    source="Figure 1",
    scales={
        "smoke": {"seeds": 2, "flows": 100, "loads": (0.2, 0.8)},
        "quick": {"seeds": 3, "flows": 300, "loads": (0.2, 0.8)},
    },
    deviations=("Fewer flows than the source.",),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for scheme, change in schemes.items():
        for load in scale["loads"]:
            workload = {"workload.load": load, "workload.flows": scale["flows"]}
            yield {"scheme": scheme, "load": load}, override(base, change, workload)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return metrics.across_seeds(metrics.measure(runs, mean=metrics.slowdown("mean")))


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    plot.against(axes, table, published=published, labels=("load", "mean slowdown"))


@figure.claim("flows are slower at a higher load", scales=("smoke", "quick"))
def grows(table: pl.DataFrame) -> Verdict:
    low, high = (metrics.at(table, scheme="DCTCP", load=load) for load in (0.2, 0.8))
    return at_least(high / low, 1.0, "slowdown at load 0.8 over that at 0.2")


@figure.claim("flows are never slow", scales=("smoke",))
def never_slow(table: pl.DataFrame) -> Verdict:
    slow = (metrics.at(table, scheme="DCTCP", load=load) for load in (0.2, 0.8))
    return every(at_most(value, 0.5, "slowdown") for value in slow)


@figure.claim("a third load is in between", stated=False, scales=("smoke",))
def between(table: pl.DataFrame) -> Verdict:
    return not_judged("there are two loads")


@figure.check("no slowdown is below 1", scales=("smoke",))
def at_least_one(table: pl.DataFrame) -> Verdict:
    return at_least(min(table["value"]), 1, "the least mean slowdown")
