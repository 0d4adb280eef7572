"""One flow's chain of causes, piece by piece: as a table, and as a waterfall.

`result.chain` has it for the flows in `account_flows`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn.analysis.breakdown import PARTS
from sojourn.analysis.chains import Chain
from sojourn.base import files
from sojourn.base.units import PER_UNIT
from sojourn.show import plot
from sojourn.show.parts import COLOURS
from sojourn.show.style import BLACK
from sojourn.show.table import Table

REASONS = {
    "handshake": "opens the flow",
    "window": "waits for the window",
    "rate": "waits for its pace",
    "turn": "waits for its host's port",
    "recovery_gap": "lost: ACKs tell",
    "recovery_timeout": "lost: a time-out tells",
    "flight": "the last packet",
}
"""What a flow does meanwhile, by reason."""


REPAIRS = ("recovery_gap", "recovery_timeout")


LOST, ALONE = "sent, and lost", "alone in the network"
"""What marks stand for."""


MOST_ROWS = 40
"""Of a longer chain the middle is left out of the table; a file has all of it."""


def table(chain: Chain, show: Callable[[float], str]) -> Table:
    """Return a chain as a table: what the flow did when, how long, and on what it spent that.

    `show` writes seconds.
    """
    rows, rounds = [], 0
    for piece in chain.pieces.iter_rows(named=True):
        told = REASONS[piece["reason"]]
        if piece["reason"] == "window":
            rounds += 1
            told += f" ({rounds})"
        spent = sorted((part for part in PARTS if piece[part] > 0), key=lambda name: -piece[name])
        divided = ", ".join(f"{name} {piece[name] / piece['lasts_s']:.0%}" for name in spent[:3])
        rows.append([show(piece["begins_s"]), told, show(piece["lasts_s"]), divided])
    left = len(rows) - MOST_ROWS
    if left > 0:
        half = MOST_ROWS // 2
        rows[half:-half] = [["…", f"{left} more", "", ""]]
    took = f"{show(chain.fct_s)}, alone {show(chain.ideal_s)}"
    return Table(f"{chain.title}: {took}", ["at", "it", "for", "of which"], rows)


def write(chains: Sequence[Chain], out: Path) -> list[str]:
    """Write all pieces of chains and their picture into a folder; return the files' names."""
    titled = [chain.pieces.select(pl.lit(chain.title).alias("chain"), pl.all()) for chain in chains]
    files.write_text(out / "chain.csv", pl.concat(titled).write_csv())
    draw(chains, out / "chain")
    return ["chain.csv", "chain.svg", "chain.png"]


def draw(chains: Sequence[Chain], stem: Path) -> None:
    """Draw chains as waterfalls, a panel each: every piece where it is in time, in its parts.

    A dashed line shows what the flow would take alone, a mark what was lost.
    """
    longest_s = max(chain.fct_s for chain in chains)
    unit = plot.unit_of_time(longest_s)
    size = (2.5 + 5.5 * len(chains), 4.8)
    with plot.canvas(1, len(chains), size, salt="waterfall") as (picture, axes):
        panels = np.atleast_1d(axes)
        shown: dict[str, Any] = {}
        for panel, chain in zip(panels, chains, strict=True):
            _waterfall(panel, chain, PER_UNIT[unit])
            panel.set_xlim(0, 1.02 * longest_s * PER_UNIT[unit])
            panel.set_title(chain.title, fontsize=10)
            panel.set_xlabel(plot.with_unit("time since the flow's start", unit))
            handles, names = panel.get_legend_handles_labels()
            shown |= dict(zip(names, handles, strict=True))
        panels[0].set_ylabel("what held it back, one after the other")
        names = [name for name in (*PARTS, LOST, ALONE) if name in shown]
        handles = [shown[name] for name in names]
        style: dict[str, Any] = {"fontsize": 9, "frameon": False}
        picture.legend(handles, names, loc="outside right center", **style)
        plot.save(picture, stem)


def _waterfall(panel: Any, chain: Chain, by: float) -> None:
    rows = np.arange(chain.pieces.height)
    begins = chain.pieces["begins_s"].to_numpy() * by
    lay(panel, rows, begins, chain.pieces.select(pl.col(*PARTS) * by))
    lost = np.flatnonzero(chain.pieces["reason"].is_in(REPAIRS).to_numpy())
    if len(lost):
        mark: dict[str, Any] = {"color": BLACK, "markersize": 6, "label": LOST}
        panel.plot(begins[lost], lost, "x", **mark)
    alone = chain.ideal_s * by
    panel.axvline(alone, color=BLACK, linestyle="--", linewidth=1, label=ALONE)
    panel.invert_yaxis()
    panel.set_yticks([])


def lay(
    axes: Any,
    places: npt.NDArray[Any],
    begins: npt.NDArray[np.float64],
    widths: pl.DataFrame,
    height: float = 0.9,
) -> None:
    """Draw a lying bar at each of the places from where it begins: `PARTS` one after the other."""
    left = begins
    for part in PARTS:
        width = widths[part].to_numpy()
        there = width > 0
        if there.any():
            # With an edge, that the shortest are seen too.
            style: Any = {"color": COLOURS[part], "edgecolor": COLOURS[part], "linewidth": 0.8}
            axes.barh(places[there], width[there], height, left[there], label=part, **style)
            left = left + width
