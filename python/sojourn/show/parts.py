"""Tables and stacked bars of FCT breakdowns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn.analysis import metrics
from sojourn.analysis.breakdown import (
    ALONE,
    CONNECTION,
    CONTROL,
    CREDIT,
    FLIGHT,
    HANDSHAKE,
    LABELS,
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
from sojourn.show.style import BLACK, BLUE, BROWN, GREEN, ORANGE, PURPLE, RED, SKY, YELLOW
from sojourn.show.table import Table

CALLS = "calls"


GROUP_COLUMNS = (CALLS, "size", "class")
"""Columns that identify the calls or flows of a row; a table has some of them."""


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
    CONNECTION: "#B5A17A",
    CREDIT: "#4B7A75",
    SHARED: BROWN,
}
"""Colours of parts: grey for parts that the ideal FCT has too, colours for other waits."""


HEADS = {TOTAL: "FCT", ALONE: "ideal FCT", **LABELS}
"""Column heads of metrics in printed tables."""


def stack(  # noqa: PLR0913 - each parameter is an option of the picture
    axes: Any,
    places: npt.ArrayLike,
    heights: pl.DataFrame,
    widths: npt.ArrayLike = 0.8,
    align: str = "center",
    *,
    horizontal: bool = False,
) -> None:
    """Draw a stacked bar at each of the places, from the columns `PARTS` of `heights`.

    Negative parts are stacked below the axis. The legend has the names in `LABELS`. With
    `horizontal`, bars grow to the right.
    """
    draw, start = (axes.barh, "left") if horizontal else (axes.bar, "bottom")
    tops, bottoms = np.zeros(heights.height), np.zeros(heights.height)
    style: Any = {"align": align, "edgecolor": "white", "linewidth": 0.3}
    for name, colour in COLOURS.items():
        part = heights[name].to_numpy()
        foot = np.where(part < 0, bottoms, tops)
        draw(places, part, widths, label=LABELS[name], color=colour, **{start: foot}, **style)
        tops, bottoms = tops + part.clip(min=0), bottoms + part.clip(max=0)


def breakdown_tables(
    table: pl.DataFrame, labels: Sequence[str], show: Any, prefix: str = ""
) -> list[Table]:
    """Return a result of `accounts.by_size` or `differences` as one table per size and class.

    Parts below 1 % of the time in all rows are omitted, and sizes that contain all flows. `show`
    formats a row's value in seconds; titles begin with `prefix`.
    """
    names = [] if table.is_empty() else significant_metrics(table)
    if not names:
        return []
    group_columns = [name for name in GROUP_COLUMNS if name in table.columns]
    tables: list[Table] = []
    for part in table.partition_by(group_columns, maintain_order=True):
        rows = []
        for group in part.partition_by(labels, maintain_order=True) if labels else [part]:
            values = {row["metric"]: row for row in group.to_dicts()}
            cells = [show(values[name]) if name in values else "-" for name in names]
            rows.append([*(str(group[label][0]) for label in labels), *cells])
        if not (tables and rows == tables[0].rows):
            column = next(
                (name for name in group_columns if part[name][0] != metrics.ALL.name),
                group_columns[0],
            )
            title = f"{prefix}{column}: {part[column][0]}"
            columns = [*labels, *(HEADS[name] for name in names)]
            tables.append(Table(title, columns, rows, labels=max(len(labels), 1)))
    return tables


def breakdown_summary(
    table: pl.DataFrame, labels: Sequence[str], show: Any, title: str
) -> list[Table]:
    """Return a result of `accounts.by_size` or `differences` as one table, without intervals.

    A row is a size or a class under a scheme. Parts and sizes are omitted as in
    `breakdown_tables`.
    """
    names = [] if table.is_empty() else significant_metrics(table)
    if not names:
        return []
    group_columns = [name for name in GROUP_COLUMNS if name in table.columns]
    rows: list[list[str]] = []
    first: list[list[str]] = []
    for part in table.partition_by(group_columns, maintain_order=True):
        groups = [part[name][0] for name in group_columns]
        group = next((name for name in groups if name != metrics.ALL.name), metrics.ALL.name)
        cells = []
        for case in part.partition_by(labels, maintain_order=True) if labels else [part]:
            values = dict(zip(case["metric"], case["value"], strict=True))
            times = [show(values[name]) if name in values else "-" for name in names]
            cells.append([*(str(case[label][0]) for label in labels), *times])
        first = first or cells
        if not rows or cells != first:
            rows += [[group, *line] for line in cells]
    head = "size or class" if "class" in group_columns else "size"
    columns = [head, *labels, *(HEADS[name] for name in names)]
    return [Table(title, columns, rows, labels=1 + len(labels))]


def legend(table: pl.DataFrame) -> list[str]:
    """Return the meaning of each part in a breakdown table, and the names of parts without it."""
    shown = significant_metrics(table)
    present = table.filter(pl.col("value") != 0)["metric"].unique()
    omitted = [LABELS[name] for name in PARTS if name in present and name not in shown]
    lines = [f"{LABELS[name]}: {PARTS[name]}" for name in shown if name in PARTS]
    return lines + ([f"omitted, below 1 % everywhere: {', '.join(omitted)}"] if omitted else [])


def significant_metrics(table: pl.DataFrame) -> list[str]:
    """Return the metrics of a breakdown table that are at least 1 % of the time in some row."""
    case = [name for name in table.columns[: table.columns.index("value")] if name != "metric"]
    size = pl.col("value").abs()
    present = table.filter(size > 0, size >= 0.01 * size.max().over(case))["metric"].unique()
    return [name for name in (TOTAL, ALONE, *PARTS) if name in present]
