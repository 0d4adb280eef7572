"""The picture of calls: what their mean latency is made of, from request to response."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sojourn.analysis.breakdown import CALL, LEGS, PARTS, SERVER, TOTAL
from sojourn.base import files
from sojourn.base.units import PER_UNIT
from sojourn.explain import waterfall
from sojourn.show import plot
from sojourn.show.style import BLACK

STEP, THICKNESS = 0.28, 0.26
"""How far a leg is below the one before it, and how thick; 1 is a scheme."""

SEEN = 0.001
"""What is a smaller share of the longest call is thinner than a line, and left out of pictures."""

SERVING: Any = {"color": "white", "edgecolor": BLACK, "hatch": "//////", "linewidth": 0.8}
"""How a server's time is drawn, unlike any part."""


def write(table: pl.DataFrame, labels: Sequence[str], show: Any, out: Path) -> list[str]:
    """Write what `accounts.by_call` says, if anything, and its picture; return the files' names."""
    if table.is_empty():
        return []
    files.write_text(out / "calls.csv", table.write_csv())
    draw(table, labels, show, out / "calls")
    return ["calls.csv", "calls.svg", "calls.png"]


def draw(table: pl.DataFrame, labels: Sequence[str], show: Any, stem: Path) -> None:
    """Draw what `accounts.by_call` says: a panel a kind of calls, each on its own scale.

    A scheme's bar goes down in three steps, each of which begins where the one before it ends: the
    request in its parts, the server, the response in its parts. `show` writes seconds.
    """
    value, is_part = pl.col("value"), pl.col("metric").is_in(list(PARTS))
    unseen = is_part & (value < SEEN * value.max().over("kind"))
    table = table.with_columns(pl.when(unseen).then(0.0).otherwise(value).alias("value"))
    kinds = [
        kind.partition_by(labels, maintain_order=True) if labels else [kind]
        for kind in table.partition_by("kind", maintain_order=True)
    ]
    counts = [len(schemes) for schemes in kinds]
    size = (9.6, len(kinds) + 0.75 * sum(counts))
    with plot.canvas(len(kinds), 1, size, salt="calls") as (picture, axes):
        panels = np.atleast_1d(axes)
        panels[0].get_gridspec().set_height_ratios(counts)
        drawn: dict[str, Any] = {}
        for panel, schemes in zip(panels, kinds, strict=True):
            _steps(panel, schemes, labels, show)
            panel.set_title(f"{schemes[0]['kind'][0]} calls: mean latency", fontsize=10, loc="left")
            handles, names = panel.get_legend_handles_labels()
            drawn |= dict(zip(names, handles, strict=True))
        names = [name for name in (*PARTS, SERVER) if name in drawn]
        style: dict[str, Any] = {"fontsize": 9, "frameon": False}
        picture.legend([drawn[name] for name in names], names, loc="outside right center", **style)
        plot.save(picture, stem)


def _steps(panel: Any, schemes: Sequence[pl.DataFrame], labels: Sequence[str], show: Any) -> None:
    """Draw the calls of one kind, a scheme below the other."""
    calls = [{(row["leg"], row["metric"]): row for row in one.to_dicts()} for one in schemes]
    longest_s = max(call[CALL, TOTAL]["value"] for call in calls)
    unit = plot.unit_of_time(longest_s)
    by = PER_UNIT[unit]
    rows, ends = np.arange(len(calls)), np.zeros(len(calls))
    for step, leg in enumerate(LEGS):
        places, begins = rows + STEP * step, ends
        ends = begins + by * np.array([call[leg, TOTAL]["value"] for call in calls])
        if leg == SERVER:
            panel.barh(places, ends - begins, THICKNESS, begins, label=SERVER, **SERVING)
        else:
            parts = [{part: by * call[leg, part]["value"] for part in PARTS} for call in calls]
            waterfall.lay(panel, places, begins, pl.DataFrame(parts), THICKNESS)
        beside: Any = {"xytext": (4, 0), "textcoords": "offset points", "annotation_clip": False}
        beside |= {"va": "center", "fontsize": 8}
        for call, end, place in zip(calls, ends, places, strict=True):
            panel.annotate(f"{leg} {show(call[leg, TOTAL])}", (end, place), **beside)
    names = [", ".join(str(one[label][0]) for label in labels) for one in schemes]
    takes = [show(call[CALL, TOTAL]) for call in calls]
    heads = [f"{name}\n{time}".strip() for name, time in zip(names, takes, strict=True)]
    panel.set_yticks(rows + STEP, heads)
    panel.set_ylim(len(calls) - 0.5 + STEP, STEP - 0.5)
    panel.grid(visible=False, axis="y")
    # What stands beside the longest bar has room beside the panel.
    panel.set_xlim(0, longest_s * by)
    panel.set_xlabel(plot.with_unit("time since the call's start", unit))
