"""Figure B10: RED and ECN make flows longer that leave slow start."""

from collections.abc import Iterator

import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_least, at_most, every, plot

from .paper import (
    BY_SIZE,
    DROP_TAIL,
    FEW_FLOWS,
    FEW_FLOWS_SCALES,
    RED_ECN,
    along_size,
    drawn_formulas,
    paper,
    queues,
    ratios,
)

figure = Figure(
    paper,
    id="b10",
    title="HighSpeed TCP with RED and ECN",
    source="Figure 10",
    # With large flows enough for a bin of them to be judged.
    scales=FEW_FLOWS_SCALES | {"smoke": {"rate_bps": 200e6, "length_s": 400}},
    deviations=(
        "Flows finish in slow start for certain if they are small; judged are up to 200 packets, "
        "and 2000 and more, which a window that was halved once takes many round trips for.",
    ),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = FEW_FLOWS.at(scale)
    yield from setting.runs(scale, queues(setting.link))


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return along_size(FEW_FLOWS, runs)


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    forms = drawn_formulas(table)
    plot.along_sizes(axes, table.filter(metric=BY_SIZE), curves=forms, limits=(50, 2e5))


def longer(table: pl.DataFrame, *, up_to: float = float("inf"), above: float = 0) -> float:
    """Return how much longer flows take with RED and ECN than with drop-tail: the mean of bins."""
    found = ratios(table, RED_ECN, DROP_TAIL, up_to=up_to, above=above)["ratio"]
    return float(found.mean()) if found.len() else float("nan")  # type: ignore[arg-type]


@figure.claim("flows that leave slow start take longer than with drop-tail (1.3 times at least)")
def longer_beyond_slow_start(table: pl.DataFrame) -> Verdict:
    return at_least(longer(table, above=2000), 1.3, "RED and ECN over drop-tail, 2000 packets up,")


@figure.claim("flows that finish in slow start are affected much less (a third at most)")
def small_are_spared(table: pl.DataFrame) -> Verdict:
    small, large = longer(table, up_to=200), longer(table, above=2000)
    return every(
        [
            at_most(small, 1.2, "RED and ECN over drop-tail up to 200 packets"),
            at_most((small - 1) / (large - 1), 1 / 3, "what is added to small ones, over large"),
        ]
    )
