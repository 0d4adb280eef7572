"""Ablations: replays of a folder of cases without one mechanism at a time."""

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
"""Outcomes by name of the removed mechanism; the key "" contains the unchanged runs."""


def read(folder: Path) -> dict[str, list[Replay]]:
    """Return the replays by name of the removed mechanism; the key "" contains the unchanged ones.

    Raises `FileError` as `read_cases` does, and `ScenarioError` if the folder has no ablations.
    """
    file, ablations = folder / "cases.toml", read_file(folder).ablations
    if not ablations:
        raise ScenarioError(f"{file}: missing table `ablations`")
    replays = read_cases(folder)
    ablated = {
        name: _ablate(ablation, replays, f"{file}: ablations.{name}")
        for name, ablation in ablations.items()
    }
    names = {replay.full_name for members in ablated.values() for replay in members}
    return {"": [replay for replay in replays if replay.full_name in names], **ablated}


def _ablate(ablation: Ablation, replays: Sequence[Replay], location: str) -> list[Replay]:
    _check_names(ablation.cases, {replay.case for replay in replays}, f"{location}: cases")
    _check_names(ablation.runs, {replay.name for replay in replays}, f"{location}: runs")
    changed = [
        replay.changed(ablation.scenario)
        for replay in replays
        if replay.case in ablation.cases and replay.name in ablation.runs
    ]
    if not changed:
        raise FileError(f"{location}: no run of `runs` is in a case of `cases`")
    for replay in changed:
        check_scenario(location, replay)
    return changed


def _check_names(names: Iterable[str], allowed: set[str], location: str) -> None:
    for name in names:
        if name not in allowed:
            hint = did_you_mean(name, sorted(allowed))
            raise FileError(f"{location}: unknown name `{name}`{hint}")


def run(ablations: Mapping[str, Sequence[Replay]], **options: Any) -> Outcomes:
    """Run all replays and compare them with the reference; `options` are those of `run_many`."""
    outcomes = iter(validate([item for group in ablations.values() for item in group], **options))
    return {name: [next(outcomes) for _ in replays] for name, replays in ablations.items()}


def rows(outcomes: Outcomes, simulator: str) -> Table:
    """Return a table with a row for each removed mechanism and a column for each run."""
    complete = outcomes[""]
    columns = [f"{item.replay.settings.label}, {item.replay.case}" for item in complete]
    table = [[simulator, *(_reference_cell(item) for item in complete)]]
    for name, members in outcomes.items():
        cells = {item.replay.full_name: _difference_cell(item) for item in members}
        head = f"without {name}" if name else "complete"
        table.append([head, *(cells.get(item.replay.full_name, "") for item in complete)])
    return Table("Mean completion time and timeouts without one mechanism", ["", *columns], table)


def _reference_cell(outcome: Outcome) -> str:
    mean = outcome.reference["mean"]
    return "-" if mean is None else f"{mean:.3g}{_timeouts(outcome.reference)}"


def _difference_cell(outcome: Outcome) -> str:
    simulated, reference = outcome.simulated["mean"], outcome.reference["mean"]
    if simulated is None or reference is None:
        return "-"
    return f"{100 * (simulated / reference - 1):+.1f} %{_timeouts(outcome.simulated)}"


def _timeouts(totals: Mapping[str, float | None]) -> str:
    count = totals["timeouts"]
    return "" if count is None else f", {count:.3g}"


def write(outcomes: Outcomes, out: Path) -> str:
    """Write the totals of all runs to a file in `out`; return its name."""
    tables = [
        totals_table(members).select(pl.lit(name).alias("without"), pl.all())
        for name, members in outcomes.items()
    ]
    file = out / "ablations.csv"
    files.write_text(file, pl.concat(tables, how="vertical_relaxed").write_csv())
    return file.name


SECTION = " ablations"
"""Suffix of the names of sections with these tables."""


def record(table: Table, folder: Path) -> Path:
    """Write the table to the folder's section of the page of results; return the page."""
    page, before, after = section(folder, SECTION)
    name = folder.resolve().name
    origin = f"Made by `sojourn validate {name} --ablate --record`, version {_core.VERSION}."
    parts = [before, origin, markdown(table), after]
    files.write_text(page, "\n\n".join(parts))
    return page
