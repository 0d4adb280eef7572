"""One flow's chain of causes, piece by piece: as a table, and as a waterfall.

`result.chain` has it for the flows in `account_flows`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn import accounts, files, looks, plot
from sojourn._core import ScenarioError
from sojourn.accounts import COLOURS, PARTS
from sojourn.results import Result, Run
from sojourn.validation_page import Rows

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


def pieces(result: Result, flow: int) -> pl.DataFrame:
    """Return the chain of a flow: a row a piece, in order of time.

    `reason`, when it `begins_s` after the flow's start, how long it `lasts_s`, and each of `PARTS`
    in seconds, which add up to that. Neighbours of one reason are one piece, but for round trips
    of the window. Raises `ScenarioError` if the flow has no chain.
    """
    chain = result.chain.filter(flow=flow)
    if chain.is_empty():
        known = flow in result.flows["flow"]
        raise ScenarioError(
            f"--flow {flow}: "
            + ("did not finish, and so has no account" if known else "is not among the flows")
        )
    places = [name for name in chain.columns if name not in ("flow", "reason", "begins_ps")]
    rows: list[dict[str, Any]] = []
    for row in chain.iter_rows(named=True):
        piece = {"reason": row["reason"], "begins_s": row["begins_ps"] / 1e12}
        piece |= dict.fromkeys(PARTS, 0.0)
        for place in places:
            piece[accounts.part_of(f"{row['reason']}_{place}")] += row[place] / 1e12
        if rows and row["reason"] != "window" and rows[-1]["reason"] == row["reason"]:
            for part in PARTS:
                rows[-1][part] += piece[part]
        else:
            rows.append(piece)
    return pl.DataFrame(rows).with_columns(lasts_s=pl.sum_horizontal(*PARTS))


@dataclass(frozen=True)
class Chain:
    """What held back a flow in one run."""

    title: str
    """The flow, and the scheme if there are several."""
    pieces: pl.DataFrame
    ideal_s: float
    """What the flow would take alone."""

    @property
    def fct_s(self) -> float:
        """How long it took."""
        return float(self.pieces["begins_s"][-1] + self.pieces["lasts_s"][-1])


def of_runs(runs: Sequence[Run], flow: int) -> list[Chain]:
    """Return the chain of a flow under each scheme, in the first of its runs.

    Raises `ScenarioError` if there is none: the flow has no account, or the run is of an ideal.
    """
    if any(accounts.is_ideal(run.result) for run in runs):
        raise ScenarioError(f"--flow {flow}: an ideal divides no flow's time by cause")
    chains = {}
    for run in runs:
        scheme = ", ".join(str(value) for name, value in run.labels.items() if name != "seed")
        title = f"{scheme}: flow {flow}" if scheme else f"flow {flow}"
        if title not in chains:
            found = pieces(run.result, flow)
            ideal_s = float(run.result.flows.filter(flow=flow)["ideal_fct_s"].item())
            chains[title] = Chain(title, found, ideal_s)
    return list(chains.values())


def table(chain: Chain, show: Callable[[float], str]) -> Rows:
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
    return Rows(f"{chain.title}: {took}", ["at", "it", "for", "of which"], rows)


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
            _waterfall(panel, chain, plot.UNITS[unit])
            panel.set_xlim(0, 1.02 * longest_s * plot.UNITS[unit])
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
        mark: dict[str, Any] = {"color": looks.BLACK, "markersize": 6, "label": LOST}
        panel.plot(begins[lost], lost, "x", **mark)
    alone = chain.ideal_s * by
    panel.axvline(alone, color=looks.BLACK, linestyle="--", linewidth=1, label=ALONE)
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
