"""Figure A2: the median completion time of small flows against load."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sojourn import Figure, Run, Verdict, at_least, at_most, between, every, metrics

from .paper import (
    DOCUMENTED,
    PATCHED,
    SCALES,
    SMALL,
    TIMELY,
    along_load,
    dctcp,
    ideal,
    over_loads,
    paper,
    schemes,
)

figure = Figure(
    paper,
    id="a2",
    title="Median completion time of small flows",
    source="Figure: median and 90th percentile of FCT of small flows, left",
    # The intervals of ten seeds are too wide at load 0.2: TIMELY over DCQCN is within 5 or 6 %.
    scales={**SCALES, "paper": {**SCALES["paper"], "seeds": 20}},
    panels=(1, 3),
    size=(12, 4.4),
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield from over_loads(scale, schemes | dctcp | ideal)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    measured = metrics.measure(runs, **{"FCT p50": metrics.fct("p50", SMALL, few=True)})
    return metrics.across_seeds(measured, median=True)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    along_load(axes, table, published, "median FCT of small flows")


@figure.claim(f"DCQCN and {TIMELY} are equal (within 5 %) at load 0.2 and below")
def equal_at_low_load(table: pl.DataFrame) -> Verdict:
    def ratio(load: float) -> Verdict:
        dcqcn, timely = (metrics.at(table, scheme=s, load=load) for s in ("DCQCN", TIMELY))
        return between(timely / dcqcn, 0.95, 1.05, f"{TIMELY} over DCQCN at load {load}")

    return every(ratio(load) for load in (0.1, 0.2))


def judge_median(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that TIMELY's median is far above DCQCN's at full load."""
    high, low = (metrics.at(table, scheme=s, load=1.0) for s in (timely, "DCQCN"))
    return at_least(high / low, 3, f"{timely} over DCQCN")


@figure.claim(f"at load 1.0 the median of {TIMELY} is at least 3 times DCQCN's", stated=False)
def timely_suffers(table: pl.DataFrame) -> Verdict:
    return judge_median(table, TIMELY)


@figure.claim(f"with {DOCUMENTED}, as documented, the median is as high, too", stated=False)
def documented_suffers(table: pl.DataFrame) -> Verdict:
    return judge_median(table, DOCUMENTED)


@figure.claim(f"patched TIMELY lies between DCQCN and {TIMELY} at load 0.8 and above", stated=False)
def patched_between(table: pl.DataFrame) -> Verdict:
    def in_order(load: float) -> list[Verdict]:
        dcqcn, patched, high = (
            metrics.at(table, scheme=s, load=load) for s in ("DCQCN", PATCHED, TIMELY)
        )
        return [
            at_least(patched / dcqcn, 1, f"patched TIMELY over DCQCN at load {load}"),
            at_most(patched / high, 1, f"patched TIMELY over {TIMELY} at load {load}"),
        ]

    return every(verdict for load in (0.8, 1.0) for verdict in in_order(load))
