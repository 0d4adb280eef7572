"""What several commands share: their options, where results go, and how errors name a scenario."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base.errors import FileError
from sojourn.runs.cache import default_cache
from sojourn.runs.cluster import ClusterError

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario in TOML.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where to write results.")]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=_core.MOST_THREADS,
        help="Runs at a time; else all cores. One large run uses them too.",
    ),
]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, as tcp://HOST:PORT.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="AMOUNT", help="What all runs may take, as `4 GB`; else most of what is free."
    ),
]
Fresh = Annotated[bool, typer.Option(help="Run again what is known.")]
Seeds = Annotated[int, typer.Option(min=1, help="Runs of each combination.")]
VARY = typer.Option(metavar="NAME=V1,V2", help="Values to take; may be repeated.")


def run_options(
    threads: int | None, cluster: str | None, memory: str | None, fresh: bool
) -> dict[str, Any]:
    """Return what these options mean to `run_many`."""
    cache = None if fresh else default_cache()
    return {"threads": threads, "cluster": cluster, "memory": memory, "cache": cache}


def place(out: Path | None, command: str, name: str) -> Path:
    """Return where results go: `results/COMMAND/NAME` if the user does not say, and checked."""
    return checked_out(out or Path("results") / command / name)


def checked_out(out: Path) -> Path:
    """Return a place for results, or refuse it before hours are spent on them."""
    if os.path.lexists(out) and not out.is_dir():
        raise FileError(f"{out}: is not a directory")
    there = out
    while not os.path.lexists(there):
        there = there.parent
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        raise FileError(
            f"{out}: cannot be made: {there.absolute()} is no directory that can be written to"
        )
    return out


@contextlib.contextmanager
def about(path: Path) -> Iterator[None]:
    """Name the scenario's file in what goes wrong with the scenario."""
    try:
        yield
    except (FileError, ClusterError):
        raise
    except ScenarioError as error:
        told = FileError(f"{path}: {error}")
        for note in getattr(error, "__notes__", ()):
            told.add_note(note)
        raise told from None
