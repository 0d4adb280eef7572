"""Tables and notes of `sojourn compare`."""

from collections.abc import Iterable

import polars as pl
from rich.table import Table
from rich.text import Text

from sojourn.analysis import metrics
from sojourn.compare import comparison
from sojourn.runs.results import Result, Run
from sojourn.show.console import rich_table
from sojourn.show.environment import difference_lines, environment_line
from sojourn.show.intervals import COUNTS, format_value
from sojourn.show.result import (
    convergence_warnings,
    scenario_warnings,
    too_few_flows,
    trend_warnings,
)


def comparison_tables(table: pl.DataFrame) -> list[Table]:
    """Return values with their intervals, one table for each size and class."""
    labels = comparison.labels(table)
    table, _ = comparison.split_parts(table)
    tables: list[Table] = []
    parts = table.partition_by("size", "class", maintain_order=True)
    for part in parts:
        names = part["metric"].unique(maintain_order=True).to_list()
        measured = part.filter(~pl.col("metric").is_in(COUNTS))["value"]
        if not measured.is_finite().any() or (tables and _repeats(part, parts[0])):
            continue
        head = "size" if part["class"][0] == metrics.ALL.name else "class"
        output = rich_table(*labels, *names, title=f"{head}: {part[head][0]}")
        for row in part.partition_by(labels, maintain_order=True):
            heads = [Text(str(row[label][0])) for label in labels]
            output.add_row(*heads, *(format_value(cell) for cell in row.to_dicts()))
        tables.append(output)
    return tables


def _repeats(part: pl.DataFrame, all_flows: pl.DataFrame) -> bool:
    """Return true if a size or class contains all flows, so that its values are those of all."""
    same = all_flows.filter(pl.col("metric").is_in(part["metric"].unique().to_list()))
    return part.drop("size", "class").equals(same.drop("size", "class"))


def comparison_notes(table: pl.DataFrame, runs: Iterable[Run], *, median: bool) -> list[str]:
    """Return notes on a comparison's statistics, scenario warnings, and means not converged."""
    runs = list(runs)
    variations = comparison.labels(table)
    labels = [*variations, "size", "class"]
    remedy = "run for a longer time or more seeds"
    seeds = table["seeds"].to_list()
    if max(seeds) == 1:
        statistic = "one run each, means ± 95 % confidence by ten batches"
        remedy += ", or use the median"
    elif median:
        statistic = "medians over seeds ± 95 % confidence, by order statistics"
        if min(seeds) < metrics.LEAST_FOR_MEDIAN:
            least = metrics.LEAST_FOR_MEDIAN
            statistic = f"medians over seeds; too few seeds for an interval (least: {least})"
    else:
        statistic = "means over seeds ± 95 % confidence"
        remedy += ", or use --median"
    return [
        f"{statistic}; slowdown: FCT over ideal FCT, at line rate over the idle path",
        environment_line(runs[0].result),
        *difference_lines(runs, variations[0]),
        *_few_flows_note(table),
        *scenario_warnings(run.result for run in runs),
        *convergence_warnings(table, labels, remedy),
        *trend_warnings(_seeds_of_schemes(runs)),
    ]


def _few_flows_note(table: pl.DataFrame) -> list[str]:
    """Return a note if some percentile lacks flows under some scheme, else nothing."""
    identity = [*comparison.labels(table), "size", "class"]
    flows = table.filter(pl.col("metric") == "flows", pl.col("value") > 0).select(identity)
    missing = table.filter(pl.col("value").is_nan()).join(flows, on=identity, how="semi")
    words = (str(name).rpartition(" ")[2] for name in missing["metric"])
    names = sorted({word for word in words if word in metrics.STATISTICS})
    return [too_few_flows(names)] if names else []


def _seeds_of_schemes(runs: Iterable[Run]) -> list[list[Result]]:
    """Return the results of each combination of variations."""
    groups: dict[str, list[Result]] = {}
    for run in runs:
        labels = {name: value for name, value in run.labels.items() if name != "seed"}
        groups.setdefault(str(labels), []).append(run.result)
    return list(groups.values())
