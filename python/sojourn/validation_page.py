"""What a validation shows: its tables for the screen and for a page, and its picture."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from sojourn import _core, files, looks, places, plot
from sojourn._core import ScenarioError
from sojourn.scenario import FileError
from sojourn.validate import Outcome, apart, bins_table, shares_table, totals_table

Drawn = Sequence[tuple[Outcome, looks.Look]]


@dataclass(frozen=True)
class Rows:
    """A table of texts, for the screen and for pages."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def every_table(outcomes: Sequence[Outcome], abreast: int) -> list[Rows]:
    """Return all tables, with so many runs side by side where they are compared by size."""
    by_size = bin_rows(outcomes, max(abreast, 1))
    by_period = share_rows(outcomes, max(abreast, 1))
    return [*by_size, *by_period, *total_rows(outcomes), verdict_rows(outcomes)]


def total_rows(outcomes: Sequence[Outcome]) -> list[Rows]:
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
    for case in _by_case(outcomes):
        known = [one for one in case if one.theirs["mean"] is not None]
        cells = {
            name: [_pair(one.ours[key], one.theirs[key], by, form) for one in known]
            for name, (key, by, form) in shown.items()
        }
        cells = {name: column for name, column in cells.items() if {*column} != {"-"}}
        if known:
            rows = zip((one.replay.settings.label for one in known), *cells.values(), strict=True)
            columns = ["run", *(_titled(case[0], name) for name in cells)]
            tables.append(Rows(case[0].replay.settings.title, columns, [list(row) for row in rows]))
    return tables


def bin_rows(outcomes: Sequence[Outcome], abreast: int) -> list[Rows]:
    """Return tables of mean completion times by size, with so many runs side by side."""
    tables = []
    for case in _by_case(outcomes):
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
                tables.append(Rows(case[0].replay.settings.title, columns, rows))
    return tables


def share_rows(outcomes: Sequence[Outcome], abreast: int) -> list[Rows]:
    """Return tables of each flow's share in each period, with so many runs side by side."""
    tables = []
    for case in _by_case([one for one in outcomes if not one.shares.is_empty()]):
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
            tables.append(Rows(title, columns, rows))
    return tables


def _period(row: Mapping[str, Any]) -> tuple[str, str]:
    return f"{row['from_s']:g} to {row['to_s']:g} s", f"{row['flow']}"


def _share_cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "-"
    points = 100 * (row["share"] - row["share_other"])
    return f"{_pair(row['share'], row['share_other'], 100, '{:.1f}')} ({points:+.1f})"


def verdict_rows(outcomes: Iterable[Outcome]) -> Rows:
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
    return Rows(f"verdicts: {held} of {len(rows)} held", columns, rows)


def _by_case(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
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


def write(outcomes: Sequence[Outcome], simulator: str, out: Path) -> list[str]:
    """Write tables that have rows, and the picture, into a folder; return the files' names."""
    tables = {
        "bins.csv": bins_table(outcomes),
        "totals.csv": totals_table(outcomes),
        "shares.csv": shares_table(outcomes),
    }
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    for name, table in tables.items():
        files.write_text(out / name, table.write_csv())
    return [*tables, *draw(outcomes, simulator, out / "validation")]


def draw(outcomes: Iterable[Outcome], simulator: str, stem: Path) -> list[str]:
    """Draw completion times by size, and below them ours over the other's, a column for a case.

    Return the names of the files: none where no case goes by size.
    """
    binned = [one for one in outcomes if not one.bins.is_empty()]
    cases = [case for case in _by_case(binned) if case[0].replay.settings.by == "size"]
    if not cases:
        return []
    labels = list(dict.fromkeys(one.replay.settings.label for case in cases for one in case))
    with plot.canvas(2, len(cases), (6.4 * len(cases), 8)) as (picture, axes):
        for column, case in enumerate(cases):
            above, below = axes[:, column] if len(cases) > 1 else axes
            drawn = [(one, _look(labels.index(one.replay.settings.label))) for one in case]
            _draw_times(above, drawn, simulator)
            _draw_ratios(below, drawn, simulator)
        plot.save(picture, stem)
    return [f"{stem.name}{ending}" for ending in (".svg", ".png")]


def _draw_times(axes: Axes, drawn: Drawn, simulator: str) -> None:
    for one, look in drawn:
        size = _middle(one.bins)
        line: Any = {"color": look.colour, "marker": look.marker, "linewidth": 1}
        axes.plot(size, one.bins["mean"].to_numpy(), label=one.replay.settings.label, **line)
        hollow: Any = line | {"markerfacecolor": "none", "linestyle": "--", "alpha": 0.7}
        axes.plot(size, one.bins["mean_other"].to_numpy(), **hollow)
    axes.plot(
        [],
        [],
        color="#222222",
        marker="o",
        markerfacecolor="none",
        linestyle="--",
        label=f"{simulator} (hollow)",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylabel("mean flow completion time (s)")
    plot.legend(axes, columns=3)


def _draw_ratios(axes: Axes, drawn: Drawn, simulator: str) -> None:
    for one, look in drawn:
        bins = one.judged
        axes.errorbar(
            _middle(bins),
            100 * bins["difference"].to_numpy(),
            yerr=100 * bins["error"].to_numpy(),
            color=look.colour,
            marker=look.marker,
            linewidth=1,
            elinewidth=0.8,
        )
    allowed = {str(one.replay.settings.within): one.replay.settings.within for one, _ in drawn}
    for within in allowed.values():
        if not isinstance(within, float):
            continue
        for side in (-100, 100):
            axes.axhline(side * within, color=looks.GREY, linewidth=0.8, linestyle=":")
    axes.axhline(0, color="#222222", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel(f"flow size (packets)\n{drawn[0][0].replay.settings.title}")
    axes.set_ylabel(f"ours against {simulator} (%), ± 2 standard errors")


def _look(number: int) -> looks.Look:
    """Return a colour and a marker: here a dozen variants of few schemes must differ."""
    return looks.Look(looks.COLOURS[number % 7], "osD^vPX*ph<>"[number % 12])


def _middle(bins: pl.DataFrame) -> Any:
    """Return the middle of each bin on a logarithmic axis."""
    return np.sqrt(bins["low"].to_numpy() * bins["high"].to_numpy())


def page_of(folder: Path) -> Path:
    """Return the page on which a folder's results are recorded: `docs/validation.md`.

    That of the folders which ship with the package lies in the checkout; a user's own folder
    `validation` has one beside it.
    """
    root: Path | None = folder.resolve().parents[1]
    if root == places.PACKAGE:
        root = places.checkout()
    if root is None:
        raise ScenarioError("--record: keeps what ships with Sojourn, and so wants its checkout")
    return root / "docs" / "validation.md"


def record(outcomes: Sequence[Outcome], simulator: str, folder: Path) -> Path:
    """Write the results into the folder's page, between the marks of its section."""
    page, before, after = section(folder)
    name = folder.resolve().name
    stem = page.with_name(f"validation_{name}")
    drawn = draw(outcomes, simulator, stem)
    stem.with_suffix(".svg").unlink(missing_ok=True)
    parts = [
        f"Made by `sojourn validate {name} --record`, version {_core.VERSION}.",
        *([f"![Completion times by size]({stem.name}.png)"] if drawn else []),
        *_markdown(outcomes, simulator),
    ]
    files.write_text(page, "\n\n".join([before, *parts, after]))
    return page


def section(folder: Path, of: str = "") -> tuple[Path, str, str]:
    """Return the page of a folder's section, and its text up to and from the section."""
    page, name = page_of(folder), f"{folder.resolve().name}{of}"
    begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    try:
        text = files.read_text(page, files.MOST_SETTINGS)
    except OSError as error:
        raise FileError(f"{page}: cannot be read: {error.strerror}") from None
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise FileError(f"{page}: lacks the lines `{begin}` and `{end}`")
    return page, before + begin, end + after


def _markdown(outcomes: Sequence[Outcome], simulator: str) -> list[str]:
    parts = [f"Numbers are ours / {simulator}; in brackets the difference ± two standard errors."]
    for one in every_table(outcomes, abreast=len(outcomes)):
        parts += [f"**{one.title}**", markdown(one)]
    return parts


def markdown(table: Rows) -> str:
    """Return a table as text of a page."""
    header = ["| " + " | ".join(table.columns) + " |", "| --- " * len(table.columns) + "|"]
    return "\n".join(header + ["| " + " | ".join(row) + " |" for row in table.rows])
