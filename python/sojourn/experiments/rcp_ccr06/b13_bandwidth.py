"""Figure B13: improvement of FCT with bandwidth, in slow start on an idle link."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
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
    looks,
    plot,
    theory,
)

from .paper import NOT_RANDOM, paper

MILESTONES = {
    "45 Mb/s": 45e6,
    "155 Mb/s": 155e6,
    "622 Mb/s": 622e6,
    "2.4 Gb/s": 2.4e9,
    "10 Gb/s": 10e9,
    "40 Gb/s": 40e9,
}
"""Capacities of backbone links, the first of 1980."""

SIZES = {"1 MB": 1000, "10 MB": 10_000, "100 MB": 100_000}
"""Packets of 1000 B."""

RTT_S = 0.040

EVERYWHERE = ("smoke", "quick", "paper")

figure = Figure(
    paper,
    id="b13",
    title="Completion times lag behind bandwidth",
    source="Figure 13",
    one_seed=NOT_RANDOM,
    scales={name: {} for name in EVERYWHERE},
    deviations=(
        "The dates of the milestones come from a source that is not published; ours are the usual "
        "capacities of backbone links.",
        "The figure is a formula without simulation: the only flow of the link doubles its window, "
        "from 1 packet, until it is done. The published picture shows less than 20 times for 100 "
        "MB; the formula gives 17.9 at 2.4 Gb/s, 53 times the bandwidth, and 23.7 at 10 Gb/s, 222 "
        "times. The claim is judged at 10 Gb/s, the first beyond 100 times, to within a quarter.",
    ),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    """Yield nothing: the figure is a formula."""
    yield from ()


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    packets = np.array(list(SIZES.values()))
    first = theory.slow_start(theory.Link(45e6, RTT_S), packets)
    rows = [
        {"size": size, "link": name, "bandwidth": rate / 45e6, "fct_s": float(fct_s), "value": gain}
        for name, rate in MILESTONES.items()
        for times in [theory.slow_start(theory.Link(rate, RTT_S), packets)]
        for size, fct_s, gain in zip(SIZES, times, (first / times).tolist(), strict=True)
    ]
    return pl.DataFrame(rows)


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    line: Any = {"color": looks.GREY, "linewidth": 1, "linestyle": ":"}
    highest = float(table["bandwidth"].max())  # type: ignore[arg-type]
    axes.plot([1, highest], [1, highest], label="in proportion to bandwidth", **line)
    labels = ("bandwidth, relative to 45 Mb/s", "improvement of completion time")
    plot.against(axes, table, x="bandwidth", by="size", labels=labels, log=True)
    axes.set_xscale("log")
    axes.set_ylim(0.9, 100)
    milestones = table.unique("link", maintain_order=True)
    names = [f"{x:.3g}\n{name}" for x, name in milestones.select("bandwidth", "link").iter_rows()]
    axes.set_xticks(milestones["bandwidth"].to_list(), names)
    axes.minorticks_off()


def judge_improvement(table: pl.DataFrame, size: str, bound: float) -> Verdict:
    """Judge the improvement of a flow at the first milestone beyond 100 times the bandwidth."""
    rows = table.filter(pl.col("size") == size, pl.col("bandwidth") > 100).sort("bandwidth")
    link, bandwidth, gain = rows.select("link", "bandwidth", "value").row(0)
    return every(
        [
            at_least(bandwidth, 100, f"the bandwidth of {link} over 45 Mb/s"),
            at_most(gain, bound, f"the improvement of {size}"),
        ]
    )


for size, words, bound in (
    ("1 MB", "less than 2 times", 2),
    ("10 MB", "less than 5 times", 5),
    ("100 MB", "about 20 times (within a quarter) or less", 25),
):
    figure.check(
        f"with more than 100 times the bandwidth, a flow of {size} is {words} as fast",
        scales=EVERYWHERE,
        exact=True,
    )(partial(judge_improvement, size=size, bound=bound))
