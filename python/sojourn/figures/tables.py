"""Tables of `sojourn figure`: values, plans and claims."""

from collections.abc import Iterable, Sequence

import polars as pl
from rich.table import Table
from rich.text import Text

from sojourn.base.units import format_long_time
from sojourn.figures.figure import Made
from sojourn.figures.plan import Plan
from sojourn.show.console import MARKS, rich_table
from sojourn.show.intervals import with_interval


def figure_table(table: pl.DataFrame, title: str, most: int = 60) -> Table | None:
    """Return a figure's table with its first label as columns, if it is one of single values.

    Metrics are shown by the ends of their names: `_s` are seconds, `_bytes` bytes.
    """
    if "value" not in table.columns or table.height > most:
        return None
    first, *others = table.columns[: table.columns.index("value")] or [""]
    if not others:
        return None
    schemes = table[first].unique(maintain_order=True).to_list()
    shown = rich_table(*others, *map(str, schemes), title=title)
    for rows in table.partition_by(others, maintain_order=True):
        cells = {row[first]: with_interval(row) for row in rows.to_dicts()}
        heads = [Text(str(rows[name][0])) for name in others]
        shown.add_row(*heads, *(cells.get(scheme, "-") for scheme in schemes))
    return shown


def plan_table(plans: Sequence[Plan], hops_per_cpu_second: float) -> Table:
    """Return what figures will take, and all of them together."""
    table = rich_table("figure", "runs", "in the cache", "packet-hops", "CPU time, about")
    together = Plan(
        "all",
        sum(one.runs for one in plans),
        sum(one.known for one in plans),
        sum(one.packet_hops for one in plans),
    )
    for one in [*plans, together] if len(plans) > 1 else plans:
        takes = format_long_time(one.packet_hops / hops_per_cpu_second)
        hops = f"{one.packet_hops / 1e6:,.0f} million"
        table.add_row(one.figure, f"{one.runs:,}", f"{one.known:,}", hops, takes)
    return table


def claim_table(figures: Iterable[Made]) -> Table:
    """Return every claim of the figures, with its verdict and numbers."""
    table = rich_table("figure", "claim", "verdict", "numbers")
    for column in table.columns[1:]:
        column.justify = "left"
    for made in figures:
        for claim in made.claims:
            row = (made.id, Text(claim.statement), MARKS[claim.verdict])
            table.add_row(*row, Text(claim.numbers))
    return table
