"""Figure A2: the median completion time of small flows against load."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Run, Verdict, at_least, at_most, every, metrics, plot

from .paper import SCALES, SMALL, TIMELYS, ideals, over_loads, paper, schemes, why

figure = Figure(
    paper,
    id="a2",
    title="Median completion time of small flows",
    source="Figure: median and 90th percentile of FCT of small flows, left",
    scales=SCALES,
    deviations=(
        "Ten seeds tell the medians at load 0.2 to 11 to 15 % only. Which of two packets that come "
        "at the same moment goes first, and the draw of marks, move the difference of DCQCN and "
        "TIMELY there between 1 and 6 %, about the bound of 5 %.",
    ),
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield from over_loads(scale, schemes | why | ideals)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    measured = metrics.measure(runs, **{"FCT p50": metrics.fct("p50", SMALL)})
    return metrics.across_seeds(measured, median=True)


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    labels = ("load (1 = 8 Gb/s of payload)", "median FCT of small flows")
    plot.against(axes, table, published=published, unit="us", labels=labels, log=True)


@figure.claim("DCQCN and TIMELY are equal (within 5 %) at load 0.2 and below")
def equal_at_low_load(table: pl.DataFrame) -> Verdict:
    def apart(load: float) -> Verdict:
        dcqcn, timely = (metrics.at(table, scheme=s, load=load) for s in ("DCQCN", "TIMELY"))
        return at_most(abs(timely / dcqcn - 1), 0.05, f"their difference at load {load}")

    return every(apart(load) for load in (0.1, 0.2))


def suffers(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that TIMELY's median is far above DCQCN's at full load."""
    high, low = (metrics.at(table, scheme=s, load=1.0) for s in (timely, "DCQCN"))
    return at_least(high / low, 3, f"{timely} over DCQCN")


def patched_between(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that patched TIMELY lies between DCQCN and TIMELY at high load."""

    def between(load: float) -> list[Verdict]:
        dcqcn, patched, high = (
            metrics.at(table, scheme=s, load=load) for s in ("DCQCN", "Patched TIMELY", timely)
        )
        return [
            at_least(patched / dcqcn, 1, f"patched TIMELY over DCQCN at load {load}"),
            at_most(patched / high, 1, f"patched TIMELY over {timely} at load {load}"),
        ]

    return every(verdict for load in (0.8, 1.0) for verdict in between(load))


for name in TIMELYS:
    figure.claim(f"at load 1.0 the median of {name} is at least 3 times DCQCN's", stated=False)(
        partial(suffers, timely=name)
    )
    figure.claim(
        f"patched TIMELY lies between DCQCN and {name} at load 0.8 and above", stated=False
    )(partial(patched_between, timely=name))
