"""Tables of a validation, for the console and for the page of results."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sojourn.show.table import Table
from sojourn.validate.replay import Outcome, difference_text

QUEUE_STATISTICS = {
    "mean_kb": "mean",
    "p95_kb": "p95",
    "p99_kb": "p99",
    "p999_kb": "p99.9",
    "max_kb": "maximum",
}
"""Titles of the columns of `queues.csv`."""


def all_tables(outcomes: Sequence[Outcome], columns: int) -> list[Table]:
    """Return all tables; tables by size, period or ports have at most `columns` runs."""
    by_size = bin_rows(outcomes, max(columns, 1))
    by_period = share_rows(outcomes, max(columns, 1))
    by_ports = queue_rows(outcomes, max(columns, 1))
    return [*by_size, *by_period, *by_ports, *total_rows(outcomes), verdict_rows(outcomes)]


def total_rows(outcomes: Sequence[Outcome]) -> list[Table]:
    """Return a table for each case with the totals of the runs that have a reference."""
    totals = {
        "mean": ("mean", 1, "{:.3f}"),
        "median": ("median", 1, "{:.3f}"),
        "p99": ("p99", 1, "{:.2f}"),
        "active flows": ("active_flows", 1, "{:.1f}"),
        "utilisation, %": ("utilisation", 100, "{:.1f}"),
        "queue, packets": ("queue_packets", 1, "{:.1f}"),
        "drop rate, %": ("drop_rate", 100, "{:.2f}"),
        "retransmission rate, %": ("retransmit_rate", 100, "{:.2f}"),
        "retransmissions": ("retransmits", 1, "{:.0f}"),
        "timeouts": ("timeouts", 1, "{:.1f}"),
        "pauses": ("pauses", 1, "{:.0f}"),
        "unfinished": ("unfinished", 1, "{:.0f}"),
    }
    tables = []
    for case in by_case(outcomes):
        runs = [outcome for outcome in case if outcome.reference["mean"] is not None]
        cells = {
            name: [_pair(run.simulated[key], run.reference[key], factor, form) for run in runs]
            for name, (key, factor, form) in totals.items()
        }
        cells = {name: column for name, column in cells.items() if {*column} != {"-"}}
        if runs:
            rows = zip((run.replay.settings.label for run in runs), *cells.values(), strict=True)
            columns = ["run", *(_column_title(case[0], name) for name in cells)]
            tables.append(
                Table(case[0].replay.settings.title, columns, [list(row) for row in rows])
            )
    return tables


def bin_rows(outcomes: Sequence[Outcome], columns: int) -> list[Table]:
    """Return tables of mean completion times by size, with at most `columns` runs each."""
    tables = []
    for case in by_case(outcomes):
        for first in range(0, len(case), columns):
            runs = case[first : first + columns]
            bins = [{(row["low"], row["high"]): row for row in run.bins.to_dicts()} for run in runs]
            has_groups = runs[0].replay.settings.by == "group"
            percentiles = {
                ", p95": partial(_percentile_cell, "p95"),
                ", p99": partial(_percentile_cell, "p99"),
            }
            cells = {"": _bin_cell} | (percentiles if has_groups else {})
            rows = [
                [runs[0].bin_name(row) + ending, f"{row['flows_other']}"]
                + [cell(run_bins.get((row["low"], row["high"]))) for run_bins in bins]
                for row in runs[0].bins.to_dicts()
                for ending, cell in cells.items()
            ]
            rows = [row for row in rows if {*row[2:]} != {"-"}]
            heads = ["", "flows", *(run.replay.settings.label for run in runs)]
            if rows:
                tables.append(Table(case[0].replay.settings.title, heads, rows))
    return tables


def share_rows(outcomes: Sequence[Outcome], columns: int) -> list[Table]:
    """Return tables of each flow's share in each period, with at most `columns` runs each."""
    tables = []
    for case in by_case([outcome for outcome in outcomes if not outcome.shares.is_empty()]):
        for first in range(0, len(case), columns):
            runs = case[first : first + columns]
            shares = [{_row_head(row): row for row in run.shares.to_dicts()} for run in runs]
            row_heads = dict.fromkeys(head for run_shares in shares for head in run_shares)
            rows = [
                [*head, *(_share_cell(run_shares.get(head)) for run_shares in shares)]
                for head in row_heads
            ]
            heads = ["", "flow", *(run.replay.settings.label for run in runs)]
            title = f"{case[0].replay.settings.title}: shares of delivered bytes, %"
            tables.append(Table(title, heads, rows))
    return tables


def _row_head(row: Mapping[str, Any]) -> tuple[str, str]:
    return f"{row['from_s']:g} to {row['to_s']:g} s", f"{row['flow']}"


def _share_cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "-"
    points = 100 * (row["share"] - row["share_other"])
    return f"{_pair(row['share'], row['share_other'], 100, '{:.1f}')} ({points:+.1f})"


def queue_rows(outcomes: Sequence[Outcome], columns: int) -> list[Table]:
    """Return tables of the queues of each group of ports, with at most `columns` runs each."""
    tables = []
    for case in by_case([outcome for outcome in outcomes if not outcome.queues.is_empty()]):
        for first in range(0, len(case), columns):
            runs = case[first : first + columns]
            queues = [{row["ports"]: row for row in run.queues.to_dicts()} for run in runs]
            groups = dict.fromkeys(group for run_queues in queues for group in run_queues)
            rows = [
                [group, title, *(_queue_cell(run_queues.get(group), name) for run_queues in queues)]
                for group in groups
                for name, title in QUEUE_STATISTICS.items()
            ]
            heads = ["ports", "", *(run.replay.settings.label for run in runs)]
            tables.append(Table(f"{case[0].replay.settings.title}: queues, KB", heads, rows))
    return tables


def _queue_cell(row: Mapping[str, Any] | None, name: str) -> str:
    if row is None:
        return "-"
    pair = _pair(row[name], row[f"{name}_other"], 1, "{:.2f}" if name == "mean_kb" else "{:.0f}")
    if name != "mean_kb" or row["difference"] is None:
        return pair
    return f"{pair} ({100 * row['difference']:+.1f} %)"


def verdict_rows(outcomes: Iterable[Outcome]) -> Table:
    """Return a table of all verdicts with their numbers."""
    rows = [
        [
            outcome.replay.case,
            outcome.replay.settings.label,
            criterion,
            verdict.word,
            verdict.sentence,
        ]
        for outcome in outcomes
        for criterion, verdict in (
            *outcome.completions,
            *outcome.periods,
            *outcome.mean_queues,
            *outcome.counts,
            ("utilisation", outcome.utilisation),
        )
        if verdict.held is not None
    ]
    held = sum(row[3] == "held" for row in rows)
    columns = ["case", "run", "criterion", "verdict", "numbers"]
    title = f"verdicts: {held} of {len(rows)} held"
    return Table(title, columns, rows, labels=2, sentences=["criterion", "numbers"])


def by_case(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Return the outcomes grouped by case."""
    cases: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        cases.setdefault(outcome.replay.case, []).append(outcome)
    return list(cases.values())


def _pair(simulated: float | None, reference: float | None, factor: float, form: str) -> str:
    if simulated is None or reference is None:
        return "-"
    return f"{form.format(factor * simulated)} / {form.format(factor * reference)}"


def _bin_cell(row: Mapping[str, Any] | None) -> str:
    if row is None or row["difference"] is None:
        return "-"
    pair = _pair(row["mean"], row["mean_other"], 1, "{:.3f}")
    return f"{pair} ({difference_text(row)})"


def _percentile_cell(percentile: str, row: Mapping[str, Any] | None) -> str:
    if row is None or row[f"{percentile}_difference"] is None:
        return "-"
    pair = _pair(row[percentile], row[f"{percentile}_other"], 1, "{:.3f}")
    return f"{pair} ({100 * row[f'{percentile}_difference']:+.1f} %)"


def _column_title(outcome: Outcome, name: str) -> str:
    """Return the title of a column, with the unit of times."""
    is_time = name in ("mean", "median", "p99")
    return f"{name}, s" if is_time and not outcome.replay.is_slowdown else name
