"""Files of `sojourn compare`: an index of the runs, their flow records, and old files to remove."""

import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sojourn.analysis.metrics.tables import label_columns
from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.runs.result_tables import FLOWS
from sojourn.runs.results import SUMS, Run
from sojourn.show.style import FORMATS

INDEX = "index.csv"

TABLE = "comparison.csv"

MAX_NAME_LENGTH = 100
"""Characters of the name of a folder that contains the names of all scenarios."""

FILES = (
    *(TABLE, *(f"comparison.{suffix}" for suffix in FORMATS)),
    *("pairs.csv", *(f"pairs.{suffix}" for suffix in FORMATS)),
    *("differences.csv", INDEX, FLOWS),
)
"""All files that a comparison may write."""


def check_folder(out: Path) -> None:
    """Raise `FileError` if a folder contains the result of a run, whose flows have this name."""
    if (out / SUMS).exists():
        raise FileError(f"{out}: {FLOWS} is that of a run; choose another folder with --out")


def remove_old(out: Path) -> None:
    """Remove the files of an earlier comparison, which may have answered another question."""
    if (out / TABLE).exists():
        of_run = {FLOWS} if (out / SUMS).exists() else set()
        files.remove(out / name for name in FILES if name not in of_run)


def folder_name(scenarios: Sequence[Path]) -> str:
    """Return the name of the folder of a comparison of scenario files."""
    stem, *others = (path.stem for path in scenarios)
    joined = "_".join([stem, *others])
    return joined if len(joined) < MAX_NAME_LENGTH else f"{stem}_and_{len(others)}_others"


def write_index(runs: Sequence[Run], out: Path) -> list[str]:
    """Write the labels, the seed and the folder of every run; return the file's name."""
    rows = []
    for run in runs:
        directory = run.result.directory
        folder = None if directory is None else Path(os.path.relpath(directory, out)).as_posix()
        rows.append({**run.labels, "folder": folder})
    table = pl.DataFrame(rows, infer_schema_length=None)
    files.write_text(out / INDEX, table.write_csv())
    return [INDEX]


def write_flows(runs: Sequence[Run], out: Path) -> list[str]:
    """Write the flow records of all runs, after columns of their labels; return the file's name."""
    with files.writing(out / FLOWS):
        frames = [
            run.result.scan_flows().select(*label_columns(run.labels), pl.all()) for run in runs
        ]
        # Answers by samples have a column more.
        pl.concat(frames, how="diagonal_relaxed").sink_parquet(out / FLOWS)
    return [FLOWS]
