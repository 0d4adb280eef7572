"""Figure A6: the utilisation of the middle link against load."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Run, Verdict, at_most, metrics, plot

from .paper import LOADS, MIDDLE, SCALES, TIMELYS, over_loads, paper, schemes, why

figure = Figure(
    paper,
    id="a6",
    title="Utilisation of the middle link",
    source="In the text: the utilisation is roughly the same with both schemes",
    scales=SCALES,
    deviations=(
        "Utilisation counts all that is sent. At load 1.0 patched TIMELY, and TIMELY with the "
        "patch's beta, overflow the buffer, and a fifth of what they send is sent again: their "
        "utilisation is above DCQCN's, their goodput 2 % below it.",
    ),
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield from over_loads(scale, schemes | why)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return metrics.across_seeds(metrics.measure(runs, utilisation=metrics.utilisation(MIDDLE)))


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    labels = ("load (1 = 8 Gb/s of payload)", "utilisation of the middle link")
    plot.against(axes, table, unit="%", labels=labels)


def about_equal(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that all schemes use the link alike, at every load."""
    judged = [timely if scheme == "TIMELY" else scheme for scheme in schemes]

    def spread(load: float) -> float:
        used = [metrics.at(table, scheme=scheme, load=load) for scheme in judged]
        return max(used) / min(used) - 1

    widest = max(LOADS, key=spread)
    return at_most(spread(widest), 0.03, f"the widest spread, at load {widest},")


for name in TIMELYS:
    figure.claim(
        f"all schemes, with {name}, use the link about equally (within 3 %)",
        stated=name == "TIMELY",
    )(partial(about_equal, timely=name))
