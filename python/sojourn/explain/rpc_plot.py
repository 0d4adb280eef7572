"""Picture of RPC calls: the parts of their mean latency, from request to response."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sojourn.analysis.breakdown import CALL, LABELS, LEGS, PARTS, SERVER, TOTAL
from sojourn.base import files
from sojourn.base.units import PER_UNIT
from sojourn.explain import waterfall
from sojourn.show import plot
from sojourn.show.style import BLACK, DEFAULT_FORMATS

STEP, THICKNESS = 0.28, 0.26
"""Distance between the legs of a call, and thickness of a leg, in units of a scheme's height."""

MIN_SHARE = 0.001
"""Least share of the longest call that is drawn; smaller parts are thinner than a line."""

SERVER_STYLE: Any = {"color": "white", "edgecolor": BLACK, "hatch": "//////", "linewidth": 0.8}
"""Style of a server's time, unlike that of any part."""


def write(
    table: pl.DataFrame,
    labels: Sequence[str],
    show: Any,
    out: Path,
    formats: Sequence[str] = DEFAULT_FORMATS,
) -> list[str]:
    """Write a table of `accounts.by_call` and its picture to a directory; return the files' names.

    Nothing is written if the table is empty.
    """
    if table.is_empty():
        return []
    files.write_text(out / "calls.csv", table.write_csv())
    pictures = draw(table, labels, show, out / "calls", formats)
    return ["calls.csv", *(file.name for file in pictures)]


def draw(
    table: pl.DataFrame,
    labels: Sequence[str],
    show: Any,
    stem: Path,
    formats: Sequence[str] = DEFAULT_FORMATS,
) -> list[Path]:
    """Draw a table of `accounts.by_call`: one panel for each kind of calls, each on its own scale.

    Each scheme has three bars, of which each begins at the end of the preceding one: the parts of
    the request, the server, the parts of the response. `show` formats a row's value in seconds.
    Returns the files.
    """
    value, is_part = pl.col("value"), pl.col("metric").is_in(list(PARTS))
    is_invisible = is_part & (value < MIN_SHARE * value.max().over("kind"))
    table = table.with_columns(pl.when(is_invisible).then(0.0).otherwise(value).alias("value"))
    kinds = [
        kind.partition_by(labels, maintain_order=True) if labels else [kind]
        for kind in table.partition_by("kind", maintain_order=True)
    ]
    counts = [len(schemes) for schemes in kinds]
    size = (9.6, len(kinds) + 0.75 * sum(counts))
    with plot.canvas(len(kinds), 1, size, salt="calls") as (picture, axes):
        panels = np.atleast_1d(axes)
        panels[0].get_gridspec().set_height_ratios(counts)
        for panel, schemes in zip(panels, kinds, strict=True):
            _steps(panel, schemes, labels, show)
            panel.set_title(f"{schemes[0]['kind'][0]} calls: mean latency", fontsize=10, loc="left")
        plot.side_legend(picture, panels, (*LABELS.values(), SERVER))
        return plot.save(picture, stem, formats)


def _steps(panel: Any, schemes: Sequence[pl.DataFrame], labels: Sequence[str], show: Any) -> None:
    """Draw the calls of one kind, one scheme below the other."""
    calls = [{(row["leg"], row["metric"]): row for row in part.to_dicts()} for part in schemes]
    longest_s = max(call[CALL, TOTAL]["value"] for call in calls)
    unit = plot.unit_of_time(longest_s)
    scale = PER_UNIT[unit]
    rows, ends = np.arange(len(calls)), np.zeros(len(calls))
    for step, leg in enumerate(LEGS):
        places, begins = rows + STEP * step, ends
        ends = begins + scale * np.array([call[leg, TOTAL]["value"] for call in calls])
        if leg == SERVER:
            panel.barh(places, ends - begins, THICKNESS, begins, label=SERVER, **SERVER_STYLE)
        else:
            parts = [{part: scale * call[leg, part]["value"] for part in PARTS} for call in calls]
            waterfall.draw_bars(panel, places, begins, pl.DataFrame(parts), THICKNESS)
        offset: Any = {"xytext": (4, 0), "textcoords": "offset points", "annotation_clip": False}
        offset |= {"va": "center", "fontsize": 8}
        for call, end, place in zip(calls, ends, places, strict=True):
            panel.annotate(f"{leg} {show(call[leg, TOTAL])}", (end, place), **offset)
    names = [", ".join(str(part[label][0]) for label in labels) for part in schemes]
    latencies = [show(call[CALL, TOTAL]) for call in calls]
    heads = [f"{name}\n{latency}".strip() for name, latency in zip(names, latencies, strict=True)]
    panel.set_yticks(rows + STEP, heads)
    panel.set_ylim(len(calls) - 0.5 + STEP, STEP - 0.5)
    panel.grid(visible=False, axis="y")
    # The text beside the longest bar extends beyond the panel.
    panel.set_xlim(0, longest_s * scale)
    panel.set_xlabel(plot.with_unit("time since the call's start", unit))
