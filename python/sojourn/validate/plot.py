"""The picture of a validation: completion times by size, and their differences."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from sojourn.show import plot, style
from sojourn.validate.replay import Outcome
from sojourn.validate.tables import by_case

Drawn = Sequence[tuple[Outcome, style.Look]]


def draw(outcomes: Iterable[Outcome], simulator: str, stem: Path) -> list[str]:
    """Draw completion times by size, and below them ours over the other's, a column for a case.

    Return the names of the files: none where no case goes by size.
    """
    binned = [one for one in outcomes if not one.bins.is_empty()]
    cases = [case for case in by_case(binned) if case[0].replay.settings.by == "size"]
    if not cases:
        return []
    labels = list(dict.fromkeys(one.replay.settings.label for case in cases for one in case))
    with plot.canvas(2, len(cases), (6.4 * len(cases), 8)) as (picture, axes):
        for column, case in enumerate(cases):
            above, below = axes[:, column] if len(cases) > 1 else axes
            drawn = [(one, _look(labels.index(one.replay.settings.label))) for one in case]
            _draw_times(above, drawn, simulator)
            _draw_ratios(below, drawn, simulator)
        plot.save(picture, stem)
    return [f"{stem.name}{ending}" for ending in (".svg", ".png")]


def _draw_times(axes: Axes, drawn: Drawn, simulator: str) -> None:
    for one, look in drawn:
        size = _middle(one.bins)
        line: Any = {"color": look.colour, "marker": look.marker, "linewidth": 1}
        axes.plot(size, one.bins["mean"].to_numpy(), label=one.replay.settings.label, **line)
        hollow: Any = line | {"markerfacecolor": "none", "linestyle": "--", "alpha": 0.7}
        axes.plot(size, one.bins["mean_other"].to_numpy(), **hollow)
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


def _draw_ratios(axes: Axes, drawn: Drawn, simulator: str) -> None:
    for one, look in drawn:
        bins = one.judged
        axes.errorbar(
            _middle(bins),
            100 * bins["difference"].to_numpy(),
            yerr=100 * bins["error"].to_numpy(),
            color=look.colour,
            marker=look.marker,
            linewidth=1,
            elinewidth=0.8,
        )
    allowed = {str(one.replay.settings.within): one.replay.settings.within for one, _ in drawn}
    for within in allowed.values():
        if not isinstance(within, float):
            continue
        for side in (-100, 100):
            axes.axhline(side * within, color=style.GREY, linewidth=0.8, linestyle=":")
    axes.axhline(0, color="#222222", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel(f"flow size (packets)\n{drawn[0][0].replay.settings.title}")
    axes.set_ylabel(f"ours against {simulator} (%), ± 2 standard errors")


def _look(number: int) -> style.Look:
    """Return a colour and a marker: here a dozen variants of few schemes must differ."""
    return style.Look(style.COLOURS[number % 7], "osD^vPX*ph<>"[number % 12])


def _middle(bins: pl.DataFrame) -> Any:
    """Return the middle of each bin on a logarithmic axis."""
    return np.sqrt(bins["low"].to_numpy() * bins["high"].to_numpy())
