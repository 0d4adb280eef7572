"""What a validation shows: its tables for the screen and for a page, and its picture."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sojourn.show.table import Table
from sojourn.validate.replay import Outcome, apart


def every_table(outcomes: Sequence[Outcome], abreast: int) -> list[Table]:
    """Return all tables, with so many runs side by side where they are compared by size."""
    by_size = bin_rows(outcomes, max(abreast, 1))
    by_period = share_rows(outcomes, max(abreast, 1))
    return [*by_size, *by_period, *total_rows(outcomes), verdict_rows(outcomes)]


def total_rows(outcomes: Sequence[Outcome]) -> list[Table]:
    """Return a table of each case's runs as a whole, as far as the other's are known."""
    shown = {
        "mean": ("mean", 1, "{:.3f}"),
        "median": ("median", 1, "{:.3f}"),
        "p99": ("p99", 1, "{:.2f}"),
        "flows in progress": ("active_flows", 1, "{:.1f}"),
        "used, %": ("utilisation", 100, "{:.1f}"),
        "queue, packets": ("queue_packets", 1, "{:.1f}"),
        "drops, %": ("drop_rate", 100, "{:.2f}"),
        "sent again, %": ("retransmit_rate", 100, "{:.2f}"),
        "sent again": ("retransmits", 1, "{:.0f}"),
        "time-outs": ("timeouts", 1, "{:.1f}"),
        "unfinished": ("unfinished", 1, "{:.0f}"),
    }
    tables = []
    for case in by_case(outcomes):
        known = [one for one in case if one.theirs["mean"] is not None]
        cells = {
            name: [_pair(one.ours[key], one.theirs[key], by, form) for one in known]
            for name, (key, by, form) in shown.items()
        }
        cells = {name: column for name, column in cells.items() if {*column} != {"-"}}
        if known:
            rows = zip((one.replay.settings.label for one in known), *cells.values(), strict=True)
            columns = ["run", *(_titled(case[0], name) for name in cells)]
            tables.append(
                Table(case[0].replay.settings.title, columns, [list(row) for row in rows])
            )
    return tables


def bin_rows(outcomes: Sequence[Outcome], abreast: int) -> list[Table]:
    """Return tables of mean completion times by size, with so many runs side by side."""
    tables = []
    for case in by_case(outcomes):
        for first in range(0, len(case), abreast):
            runs = case[first : first + abreast]
            bins = [{(r["low"], r["high"]): r for r in one.bins.to_dicts()} for one in runs]
            by_group = runs[0].replay.settings.by == "group"
            of_group = {
                ", p95": partial(_percentile_cell, "p95"),
                ", p99": partial(_percentile_cell, "p99"),
            }
            cells = {"": _bin_cell} | (of_group if by_group else {})
            rows = [
                [runs[0].bin_name(row) + ending, f"{row['flows_other']}"]
                + [cell(of_run.get((row["low"], row["high"]))) for of_run in bins]
                for row in runs[0].bins.to_dicts()
                for ending, cell in cells.items()
            ]
            rows = [row for row in rows if {*row[2:]} != {"-"}]
            columns = ["", "flows", *(one.replay.settings.label for one in runs)]
            if rows:
                tables.append(Table(case[0].replay.settings.title, columns, rows))
    return tables


def share_rows(outcomes: Sequence[Outcome], abreast: int) -> list[Table]:
    """Return tables of each flow's share in each period, with so many runs side by side."""
    tables = []
    for case in by_case([one for one in outcomes if not one.shares.is_empty()]):
        for first in range(0, len(case), abreast):
            runs = case[first : first + abreast]
            of_runs = [{_period(row): row for row in one.shares.to_dicts()} for one in runs]
            places = dict.fromkeys(place for of_run in of_runs for place in of_run)
            rows = [
                [*place, *(_share_cell(of_run.get(place)) for of_run in of_runs)]
                for place in places
            ]
            columns = ["", "flow", *(one.replay.settings.label for one in runs)]
            title = f"{case[0].replay.settings.title}: shares of what arrived, %"
            tables.append(Table(title, columns, rows))
    return tables


def _period(row: Mapping[str, Any]) -> tuple[str, str]:
    return f"{row['from_s']:g} to {row['to_s']:g} s", f"{row['flow']}"


def _share_cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "-"
    points = 100 * (row["share"] - row["share_other"])
    return f"{_pair(row['share'], row['share_other'], 100, '{:.1f}')} ({points:+.1f})"


def verdict_rows(outcomes: Iterable[Outcome]) -> Table:
    """Return every verdict, with its numbers."""
    rows = [
        [one.replay.case, one.replay.settings.label, what, verdict.word, verdict.sentence]
        for one in outcomes
        for what, verdict in (
            *one.completions,
            *one.periods,
            *one.counts,
            ("utilisation", one.utilisation),
        )
        if verdict.held is not None
    ]
    held = sum(row[3] == "held" for row in rows)
    columns = ["case", "run", "what", "verdict", "numbers"]
    return Table(f"verdicts: {held} of {len(rows)} held", columns, rows)


def by_case(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Group outcomes by case."""
    cases: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        cases.setdefault(outcome.replay.case, []).append(outcome)
    return list(cases.values())


def _pair(ours: float | None, theirs: float | None, by: float, form: str) -> str:
    one, other = ("-" if value is None else form.format(by * value) for value in (ours, theirs))
    return "-" if "-" in (one, other) else f"{one} / {other}"


def _bin_cell(row: Mapping[str, Any] | None) -> str:
    if row is None or row["difference"] is None:
        return "-"
    pair = _pair(row["mean"], row["mean_other"], 1, "{:.3f}")
    return f"{pair} ({apart(row)})"


def _percentile_cell(which: str, row: Mapping[str, Any] | None) -> str:
    if row is None or row[f"{which}_difference"] is None:
        return "-"
    pair = _pair(row[which], row[f"{which}_other"], 1, "{:.3f}")
    return f"{pair} ({100 * row[f'{which}_difference']:+.1f} %)"


def _titled(one: Outcome, name: str) -> str:
    """Return the title of a column, with the unit of times."""
    is_time = name in ("mean", "median", "p99")
    return f"{name}, s" if is_time and not one.replay.is_slowdown else name
