"""Causal chain of one flow as a table and as a waterfall chart.

`result.chain` contains the chains of the flows in `account_flows`.
"""

import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn.analysis.breakdown import LABELS, PARTS
from sojourn.analysis.chains import Chain
from sojourn.base import files
from sojourn.base.units import PER_UNIT
from sojourn.show import plot
from sojourn.show.parts import COLOURS
from sojourn.show.style import BLACK, DEFAULT_FORMATS
from sojourn.show.table import Table

REASONS = {
    "handshake": "handshake",
    "window": "congestion window",
    "rate": "pacing",
    "turn": "NIC wait",
    "recovery_gap": "loss recovery after ACKs or credits",
    "recovery_timeout": "loss recovery after timer",
    "flight": "last packet",
    "connection": "earlier flows of the connection",
    "credit": "credit of the receiver",
}
"""Reasons of waits in printed tables, by their names in files."""


RECOVERY = ("recovery_gap", "recovery_timeout")


LOST, IDEAL = "lost packet sent", "ideal FCT"
"""Legend entries of marks."""


TITLE_CHARACTERS = 50
"""Characters in a line of a panel's title."""


MAX_ROWS = 40
"""Largest number of rows in a table; the middle of a longer chain is only in the file."""


MAX_BARS = 60
"""Largest number of bars in a picture; in a longer chain, each stands for several intervals."""


def table(chain: Chain, show: Callable[[float], str]) -> Table:
    """Return a chain as a table: begin, reason, duration and largest parts of each interval.

    `show` formats seconds.
    """
    rows, rounds = [], 0
    for interval in chain.pieces.iter_rows(named=True):
        reason, duration_s = REASONS[interval["reason"]], interval["lasts_s"]
        if interval["reason"] == "window":
            rounds += 1
            reason += f", RTT {rounds}"
        present = [part for part in PARTS if interval[part] > 0]
        largest = sorted(present, key=lambda part: -interval[part])[:3]
        parts = ", ".join(
            f"{LABELS[part]} {100 * interval[part] / duration_s:.0f} %" for part in largest
        )
        rows.append([_begin(interval["begins_s"], chain.fct_s), reason, show(duration_s), parts])
    omitted = len(rows) - MAX_ROWS
    if omitted > 0:
        half = MAX_ROWS // 2
        rows[half:-half] = [_summary(chain.pieces[half:-half], show)]
    times = f"FCT {show(chain.fct_s)}, ideal FCT {show(chain.ideal_s)}"
    columns = ["begin", "reason", "duration", "largest parts"]
    return Table(f"{chain.title}: {times}", columns, rows)


def _begin(begins_s: float, fct_s: float) -> str:
    """Return the begin of an interval in the unit of the FCT, with digits that distinguish it."""
    unit = plot.unit_of_time(fct_s)
    digits = {"s": 6, "ms": 3}.get(unit, 1)
    return f"{begins_s * PER_UNIT[unit]:.{digits}f} {unit}".replace("us", "\N{MICRO SIGN}s")


def _summary(pieces: pl.DataFrame, show: Callable[[float], str]) -> list[str]:
    """Return the row that stands for omitted intervals: their number, duration and parts."""
    duration_s = float(pieces["lasts_s"].sum())
    sums = {part: float(pieces[part].sum()) for part in PARTS}
    largest = sorted(filter(sums.__getitem__, PARTS), key=lambda part: -sums[part])[:3]
    parts = ", ".join(f"{LABELS[part]} {100 * sums[part] / duration_s:.0f} %" for part in largest)
    return ["…", f"{pieces.height:,} more", show(duration_s), parts]


def write(
    chains: Sequence[Chain], out: Path, formats: Sequence[str] = DEFAULT_FORMATS
) -> list[str]:
    """Write all intervals of chains and their picture to a directory; return the files' names."""
    tables = [chain.pieces.select(pl.lit(chain.title).alias("chain"), pl.all()) for chain in chains]
    files.write_text(out / "chain.csv", pl.concat(tables).write_csv())
    pictures = draw(chains, out / "chain", formats)
    return ["chain.csv", *(file.name for file in pictures)]


def draw(
    chains: Sequence[Chain], stem: Path, formats: Sequence[str] = DEFAULT_FORMATS
) -> list[Path]:
    """Draw chains as waterfall charts, one panel each: the intervals over time, in their parts.

    The parts of a narrower bar could not be distinguished, so that in long chains a bar stands
    for several intervals. A dashed line is the ideal FCT; crosses mark transmissions of lost
    packets. Returns the files.
    """
    longest_s = max(chain.fct_s for chain in chains)
    unit = plot.unit_of_time(longest_s)
    with plot.panels(len(chains), (5.5, 4.8), 2.5, "waterfall") as (picture, panels):
        for panel, chain in zip(panels, chains, strict=True):
            _waterfall(panel, chain, PER_UNIT[unit])
            panel.set_xlim(0, 1.02 * longest_s * PER_UNIT[unit])
            panel.set_title(_title(chain), fontsize=10)
            panel.set_xlabel(plot.with_unit("time since the flow's start", unit))
        for panel in panels[:: plot.MOST_IN_A_ROW]:
            panel.set_ylabel("intervals of the causal chain")
        plot.side_legend(picture, panels, (*LABELS.values(), LOST, IDEAL))
        return plot.save(picture, stem, formats)


def _title(chain: Chain) -> str:
    """Return the title of a chain's panel, with the intervals in a bar if there are several."""
    title = textwrap.fill(chain.title, TITLE_CHARACTERS)
    each = _intervals_in_a_bar(chain)
    return f"{title}\na bar: {each} intervals" if each > 1 else title


def _intervals_in_a_bar(chain: Chain) -> int:
    return max(1, math.ceil(chain.pieces.height / MAX_BARS))


def _waterfall(panel: Any, chain: Chain, scale: float) -> None:
    pieces = chain.pieces.with_row_index("bar").with_columns(
        pl.col("bar") // _intervals_in_a_bar(chain), pl.col("begins_s", *PARTS) * scale
    )
    bars = pieces.group_by("bar", maintain_order=True).agg(
        pl.col("begins_s").first(), pl.col(*PARTS).sum()
    )
    draw_bars(panel, bars["bar"].to_numpy(), bars["begins_s"].to_numpy(), bars)
    lost = pieces.filter(pl.col("reason").is_in(RECOVERY))
    if not lost.is_empty():
        mark: dict[str, Any] = {"color": BLACK, "markersize": 6, "label": LOST}
        panel.plot(lost["begins_s"].to_numpy(), lost["bar"].to_numpy(), "x", **mark)
    panel.axvline(chain.ideal_s * scale, color=BLACK, linestyle="--", linewidth=1, label=IDEAL)
    panel.invert_yaxis()
    panel.set_yticks([])


def draw_bars(
    axes: Any,
    places: npt.NDArray[Any],
    begins: npt.NDArray[np.float64],
    widths: pl.DataFrame,
    height: float = 0.9,
) -> None:
    """Draw a horizontal bar at each of the places, from `begins`: `PARTS` one after the other."""
    left = begins
    for part in PARTS:
        width = widths[part].to_numpy()
        drawn = width > 0
        if drawn.any():
            # The edge makes the shortest bars visible.
            style: Any = {"color": COLOURS[part], "edgecolor": COLOURS[part], "linewidth": 0.8}
            style["label"] = LABELS[part]
            axes.barh(places[drawn], width[drawn], height, left[drawn], **style)
            left = left + width
