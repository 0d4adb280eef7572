"""Ablations: runs of a folder of cases once more, each time without a part of what they have."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean
from sojourn.show.table import Table, markdown
from sojourn.validate.cases import Replay, check_scenario, read_cases, read_file
from sojourn.validate.record import section
from sojourn.validate.replay import Outcome, totals_table, validate
from sojourn.validate.schema import Ablation

Outcomes = Mapping[str, Sequence[Outcome]]
"""The runs without each part, by its name; under "" as they are."""


def read(folder: Path) -> dict[str, list[Replay]]:
    """Return the runs from which something is taken out: whole under "", then without each part.

    Raises `FileError` as `read_cases` does, and `ScenarioError` if there is nothing to take out.
    """
    file, ablations = folder / "cases.toml", read_file(folder).ablations
    if not ablations:
        raise ScenarioError(f"{file}: has no `ablations`, which say what to take out")
    whole = read_cases(folder)
    without = {
        name: _without(ablation, whole, f"{file}: ablations.{name}")
        for name, ablation in ablations.items()
    }
    touched = {one.full_name for replays in without.values() for one in replays}
    return {"": [one for one in whole if one.full_name in touched], **without}


def _without(ablation: Ablation, whole: Sequence[Replay], place: str) -> list[Replay]:
    _check_names(ablation.cases, {one.case for one in whole}, f"{place}: cases")
    _check_names(ablation.runs, {one.name for one in whole}, f"{place}: runs")
    changed = [
        one.changed(ablation.scenario)
        for one in whole
        if one.case in ablation.cases and one.name in ablation.runs
    ]
    if not changed:
        raise FileError(f"{place}: none of these cases has one of these runs")
    for replay in changed:
        check_scenario(place, replay)
    return changed


def _check_names(wanted: Iterable[str], known: set[str], place: str) -> None:
    for name in wanted:
        if name not in known:
            raise FileError(f"{place}: there is no `{name}`{did_you_mean(name, sorted(known))}")


def run(ablations: Mapping[str, Sequence[Replay]], **options: Any) -> Outcomes:
    """Run everything, and put it beside the other's; the options are those of `run_many`."""
    outcomes = iter(validate([one for each in ablations.values() for one in each], **options))
    return {name: [next(outcomes) for _ in replays] for name, replays in ablations.items()}


def rows(outcomes: Outcomes, simulator: str) -> Table:
    """Return a table with a row for each part that is taken out and a column for each run."""
    whole = outcomes[""]
    columns = [f"{one.replay.settings.label}, {one.replay.case}" for one in whole]
    table = [[simulator, *(_theirs(one) for one in whole)]]
    for name, of_name in outcomes.items():
        cells = {one.replay.full_name: _ours(one) for one in of_name}
        what = f"without {name}" if name else "all"
        table.append([what, *(cells.get(one.replay.full_name, "") for one in whole)])
    return Table("Mean completion time, and time-outs, without a part", ["", *columns], table)


def _theirs(one: Outcome) -> str:
    mean = one.theirs["mean"]
    return "-" if mean is None else f"{mean:.3g}{_timeouts(one.theirs)}"


def _ours(one: Outcome) -> str:
    ours, theirs = one.ours["mean"], one.theirs["mean"]
    if ours is None or theirs is None:
        return "-"
    return f"{100 * (ours / theirs - 1):+.1f} %{_timeouts(one.ours)}"


def _timeouts(totals: Mapping[str, float | None]) -> str:
    count = totals["timeouts"]
    return "" if count is None else f", {count:.3g}"


def write(outcomes: Outcomes, out: Path) -> str:
    """Write all numbers of all runs into a file in `out`, and return its name."""
    tables = [
        totals_table(of_name).select(pl.lit(name).alias("without"), pl.all())
        for name, of_name in outcomes.items()
    ]
    file = out / "ablations.csv"
    files.write_text(file, pl.concat(tables, how="vertical_relaxed").write_csv())
    return file.name


SECTION = " ablations"
"""What the names of sections with these tables end in."""


def record(table: Table, folder: Path) -> Path:
    """Write the table into the folder's page, between the marks of its section."""
    page, before, after = section(folder, SECTION)
    name = folder.resolve().name
    made = f"Made by `sojourn validate {name} --ablate --record`, version {_core.VERSION}."
    parts = [before, made, markdown(table), after]
    files.write_text(page, "\n\n".join(parts))
    return page
