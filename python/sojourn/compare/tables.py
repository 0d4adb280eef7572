"""Tables and notes of `sojourn compare`."""

from collections.abc import Iterable

import polars as pl
from rich.table import Table
from rich.text import Text

from sojourn.analysis import metrics
from sojourn.compare import comparison
from sojourn.runs.results import Run
from sojourn.show.console import rich_table
from sojourn.show.intervals import COUNTS, format_value
from sojourn.show.result import convergence_warnings, scenario_warnings


def comparison_tables(table: pl.DataFrame) -> list[Table]:
    """Return what `sojourn compare` prints: values with their intervals, by size and by class."""
    labels = comparison.labels(table)
    table, _ = comparison.divided(table)
    tables: list[Table] = []
    parts = table.partition_by("size", "class", maintain_order=True)
    for part in parts:
        metrics_here = part["metric"].unique(maintain_order=True).to_list()
        measured = part.filter(~pl.col("metric").is_in(COUNTS))["value"]
        if not measured.is_finite().any() or (tables and _repeats(part, parts[0])):
            continue
        head = "size" if part["class"][0] == metrics.ALL.name else "class"
        shown = rich_table(*labels, *metrics_here, title=f"{head}: {part[head][0]}")
        for row in part.partition_by(labels, maintain_order=True):
            heads = [Text(str(row[label][0])) for label in labels]
            shown.add_row(*heads, *(format_value(cell) for cell in row.to_dicts()))
        tables.append(shown)
    return tables


def _repeats(part: pl.DataFrame, of_all: pl.DataFrame) -> bool:
    """Tell whether a size or class has all flows, so that its numbers are those of all."""
    same = of_all.filter(pl.col("metric").is_in(part["metric"].unique().to_list()))
    return part.drop("size", "class").equals(same.drop("size", "class"))


def comparison_notes(table: pl.DataFrame, runs: Iterable[Run], *, median: bool) -> list[str]:
    """Say what a comparison's numbers are, what is unwise, and which means are not converged."""
    labels = [*comparison.labels(table), "size", "class"]
    remedy = "more time or seeds"
    seeds = table["seeds"].to_list()
    if max(seeds) == 1:
        statistic = "one run each, means ± 95 % confidence by ten batches"
        remedy += ", or the median"
    elif median:
        statistic = "medians over seeds ± 95 % confidence, bootstrapped"
        # Of five values even the least and the greatest hold the median between them less often.
        statistic += " (less with fewer than six seeds)" if min(seeds) < 6 else ""
    else:
        statistic = "means over seeds ± 95 % confidence"
        remedy += ", or --median"
    return [
        f"{statistic}; slowdown over the same flow alone in the network",
        *scenario_warnings(run.result for run in runs),
        *convergence_warnings(table, labels, remedy),
    ]
