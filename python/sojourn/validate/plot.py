"""Picture of a validation: completion times by size, and their differences."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from sojourn.show import plot, style
from sojourn.validate.replay import Outcome
from sojourn.validate.tables import by_case

StyledOutcomes = Sequence[tuple[Outcome, style.Look]]


def draw(outcomes: Iterable[Outcome], simulator: str, stem: Path) -> list[str]:
    """Draw completion times by size, and their differences, with a column for each case.

    Return the names of the files; an empty list if no case is compared by size.
    """
    binned = [outcome for outcome in outcomes if not outcome.bins.is_empty()]
    cases = [case for case in by_case(binned) if case[0].replay.settings.by == "size"]
    if not cases:
        return []
    labels = list(dict.fromkeys(item.replay.settings.label for case in cases for item in case))
    with plot.canvas(2, len(cases), (6.4 * len(cases), 8)) as (picture, axes):
        for column, case in enumerate(cases):
            above, below = axes[:, column] if len(cases) > 1 else axes
            styled = [(item, _look(labels.index(item.replay.settings.label))) for item in case]
            _draw_times(above, styled, simulator)
            _draw_differences(below, styled, simulator)
        plot.save(picture, stem)
    return [f"{stem.name}{ending}" for ending in (".svg", ".png")]


def _draw_times(axes: Axes, styled: StyledOutcomes, simulator: str) -> None:
    for outcome, look in styled:
        size = _middle(outcome.bins)
        line: Any = {"color": look.colour, "marker": look.marker, "linewidth": 1}
        axes.plot(
            size, outcome.bins["mean"].to_numpy(), label=outcome.replay.settings.label, **line
        )
        hollow: Any = line | {"markerfacecolor": "none", "linestyle": "--", "alpha": 0.7}
        axes.plot(size, outcome.bins["mean_other"].to_numpy(), **hollow)
    axes.plot(
        [],
        [],
        color="#222222",
        marker="o",
        markerfacecolor="none",
        linestyle="--",
        label=f"{simulator} (hollow)",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylabel("mean flow completion time (s)")
    plot.legend(axes, columns=3)


def _draw_differences(axes: Axes, styled: StyledOutcomes, simulator: str) -> None:
    for outcome, look in styled:
        bins = outcome.judged
        axes.errorbar(
            _middle(bins),
            100 * bins["difference"].to_numpy(),
            yerr=100 * bins["error"].to_numpy(),
            color=look.colour,
            marker=look.marker,
            linewidth=1,
            elinewidth=0.8,
        )
    allowed = {str(item.replay.settings.within): item.replay.settings.within for item, _ in styled}
    for within in allowed.values():
        if not isinstance(within, float):
            continue
        for side in (-100, 100):
            axes.axhline(side * within, color=style.GREY, linewidth=0.8, linestyle=":")
    axes.axhline(0, color="#222222", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel(f"flow size (packets)\n{styled[0][0].replay.settings.title}")
    axes.set_ylabel(f"Sojourn / {simulator} - 1 (%), ± 2 standard errors")


def _look(number: int) -> style.Look:
    """Return a colour and a marker, which differ for a dozen variants of few schemes."""
    return style.Look(style.COLOURS[number % 7], "osD^vPX*ph<>"[number % 12])


def _middle(bins: pl.DataFrame) -> Any:
    """Return the middle of each bin on a logarithmic axis."""
    return np.sqrt(bins["low"].to_numpy() * bins["high"].to_numpy())
