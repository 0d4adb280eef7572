"""Tables and bars of the parts of completion times."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn.analysis import metrics
from sojourn.analysis.breakdown import (
    ALONE,
    CONTROL,
    FLIGHT,
    HANDSHAKE,
    OTHERS,
    OWN,
    PACE,
    PARTS,
    PAUSED,
    REPAIRS,
    ROUND_TRIPS,
    SHARED,
    TIME_OUTS,
    TOTAL,
    TURN,
)
from sojourn.show.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, YELLOW
from sojourn.show.table import Table

CALLS = "calls"


OF_WHICH = (CALLS, "size", "class")
"""The columns that tell which calls or flows a row is of, as far as a table has them."""


COLOURS = {
    FLIGHT: "#E5E7EB",
    HANDSHAKE: "#B6BCC6",
    ROUND_TRIPS: "#7C8593",
    OTHERS: RED,
    OWN: ORANGE,
    CONTROL: YELLOW,
    PAUSED: BLACK,
    PACE: SKY,
    TURN: BLUE,
    REPAIRS: PURPLE,
    TIME_OUTS: GREEN,
    SHARED: "#7A4B2A",
}
"""Grey is what a flow alone has too; colours are what costs."""


def stack(
    axes: Any,
    places: npt.ArrayLike,
    heights: pl.DataFrame,
    widths: npt.ArrayLike = 0.8,
    align: str = "center",
) -> None:
    """Draw a bar at each of the places: the columns of `heights` that are of `PARTS`, stacked.

    What is less than nothing hangs below the axis.
    """
    tops, bottoms = np.zeros(heights.height), np.zeros(heights.height)
    style: Any = {"align": align, "edgecolor": "white", "linewidth": 0.3}
    for name, colour in COLOURS.items():
        part = heights[name].to_numpy()
        foot = np.where(part < 0, bottoms, tops)
        axes.bar(places, part, widths, bottom=foot, label=name, color=colour, **style)
        tops, bottoms = tops + part.clip(min=0), bottoms + part.clip(max=0)


def shown(table: pl.DataFrame, labels: Sequence[str], show: Any, words: str = "") -> list[Table]:
    """Return what `accounts.by_size` or `differences` says, a table a size, and a class.

    Parts that are nowhere a hundredth of the time are left out, and sizes that have all flows.
    `show` writes seconds; titles begin with the `words`.
    """
    if table.is_empty():
        return []
    heads = that_matter(table)
    told = [name for name in OF_WHICH if name in table.columns]
    tables: list[Table] = []
    for part in table.partition_by(told, maintain_order=True):
        rows = []
        for group in part.partition_by(labels, maintain_order=True) if labels else [part]:
            values = {row["metric"]: row for row in group.to_dicts()}
            named = [str(group[label][0]) for label in labels]
            rows.append(
                [*named, *(show(values[head]) if head in values else "-" for head in heads)]
            )
        if not (tables and rows == tables[0].rows):
            of = next((name for name in told if part[name][0] != metrics.ALL.name), told[0])
            tables.append(Table(f"{words}{of}: {part[of][0]}", [*labels, *heads], rows))
    return tables


def that_matter(table: pl.DataFrame) -> list[str]:
    """Return the metrics of such a table that are somewhere a hundredth of the time."""
    case = [name for name in table.columns[: table.columns.index("value")] if name != "metric"]
    size = pl.col("value").abs()
    matters = table.filter(size > 0, size >= 0.01 * size.max().over(case))["metric"].unique()
    return [name for name in (TOTAL, ALONE, *PARTS) if name in matters]
