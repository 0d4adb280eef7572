"""Figure B9: the queues of HighSpeed TCP and TCP fill and drain."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_least, every, plot

from .paper import (
    FEW_FLOWS,
    FEW_FLOWS_SCALES,
    HIGHSPEED,
    TCP,
    WAITING,
    after_warm_up,
    first_seed,
    over_time,
    paper,
    tcp,
)

figure = Figure(
    paper,
    id="b9",
    title="Queues of HighSpeed TCP and TCP",
    source="Figure 9",
    scales=FEW_FLOWS_SCALES,
    deviations=(
        "The claim of equal utilisation is not judged: at a load of 0.4 every scheme that serves "
        "all flows has the same utilisation, here within 0.02 %, so the claim could not fail. That "
        "queues fill and drain is a check for the same reason: at that load every queue drains, "
        "and a rise is measured by the longest queue of the run.",
    ),
    panels=(2, 1),
    size=(8, 6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = FEW_FLOWS.at(scale)
    link = setting.link
    yield from setting.runs(scale, {TCP: tcp(link), HIGHSPEED: tcp(link, "high_speed_tcp")})


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return over_time(runs, points=3000)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    queue = first_seed(table, WAITING)
    for panel, scheme in zip(axes, (TCP, HIGHSPEED), strict=True):
        rows = queue.filter(scheme=scheme)
        plot.series(panel, rows, unit="", time_unit="s", label="queue (packets)")
        panel.set_ylim(0, 1.05 * float(queue["high"].max()))  # type: ignore[arg-type]


def swings(table: pl.DataFrame, scheme: str) -> int:
    """Return the number of rises from 5 to 50 % of the longest queue, the minimum over seeds."""
    queue = after_warm_up(table, scheme, WAITING)
    top: Any = queue["high"].max()
    level = pl.when(pl.col("high") >= top / 2).then(1).when(pl.col("value") <= top / 20).then(0)
    levels = queue.select("seed", level=level).drop_nulls()
    rises = levels.group_by("seed").agg(rises=(pl.col("level").diff() == 1).sum())
    minimum: Any = rises["rises"].min()
    return int(minimum)


@figure.check("both queues fill and drain, and do so again")
def fill_and_drain(table: pl.DataFrame) -> Verdict:
    return every(
        at_least(swings(table, scheme), 2, f"the fewest rises of the queue of {scheme}")
        for scheme in (TCP, HIGHSPEED)
    )
