"""Tables of `sojourn figure`: values, plans and claims."""

from collections import Counter
from collections.abc import Iterable, Sequence

import polars as pl
from rich.table import Table
from rich.text import Text

from sojourn.base.units import format_long_time
from sojourn.figures.figure import FigureResult
from sojourn.figures.plan import Plan
from sojourn.figures.recorded import WORDS
from sojourn.show.console import MARKS, rich_table
from sojourn.show.intervals import format_value

MAX_ROWS = 60
"""Largest number of rows of a figure's table that is printed."""


def figure_table(table: pl.DataFrame, title: str) -> Table | None:
    """Return a figure's table with its first label as columns.

    Return `None` if the table has no column `value`, has no second label, or is longer than
    `MAX_ROWS`. The suffix of a metric's name gives its unit: `_s` seconds, `_bytes` bytes.
    """
    if "value" not in table.columns or table.height > MAX_ROWS:
        return None
    first, *other_labels = table.columns[: table.columns.index("value")] or [""]
    if not other_labels:
        return None
    schemes = table[first].unique(maintain_order=True).to_list()
    output = rich_table(*other_labels, *map(str, schemes), title=title)
    for rows in table.partition_by(other_labels, maintain_order=True):
        cells = {row[first]: format_value(row) for row in rows.to_dicts()}
        heads = [Text(label_text(rows[name][0])) for name in other_labels]
        output.add_row(*heads, *(cells.get(scheme, "-") for scheme in schemes))
    return output


def label_text(label: object) -> str:
    """Return a label as text: a float without trailing digits, a missing label as a dash."""
    if label is None:
        return "-"
    return f"{label:g}" if isinstance(label, float) else str(label)


def figure_line(result: FigureResult) -> str:
    """Return a line with a figure's title, the number of claims per verdict, and the run time."""
    counts = Counter(claim.verdict for claim in result.claims)
    verdicts = ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])
    return f"{result.id:<4} {result.title}: {verdicts or 'no claims'} ({result.seconds:.1f} s)"


def plan_table(plans: Sequence[Plan], hops_per_cpu_second: float) -> Table:
    """Return the plans of figures, and their sum if there are several."""
    table = rich_table("figure", "runs", "in the cache", "packet-hops", "CPU time (estimate)")
    total = Plan(
        "all",
        sum(plan.runs for plan in plans),
        sum(plan.cached for plan in plans),
        sum(plan.packet_hops for plan in plans),
        sum(plan.cost for plan in plans),
    )
    for plan in [*plans, total] if len(plans) > 1 else plans:
        cpu_time = format_long_time(plan.cost / hops_per_cpu_second)
        hops = f"{plan.packet_hops / 1e6:,.0f} million"
        table.add_row(plan.figure, f"{plan.runs:,}", f"{plan.cached:,}", hops, cpu_time)
    return table


def claim_table(figures: Iterable[FigureResult]) -> Table:
    """Return all claims of the figures with verdicts and numbers."""
    table = rich_table("figure", "claim", "verdict", "numbers")
    for column in table.columns[1:]:
        column.justify = "left"
    for result in figures:
        for claim in result.claims:
            row = (result.id, Text(claim.statement), MARKS[claim.verdict])
            table.add_row(*row, Text(claim.numbers))
    return table
