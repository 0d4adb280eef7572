"""Elements that several commands share: options, output folders, errors of scenario files."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base.errors import ClusterError, FileError
from sojourn.base.messages import did_you_mean

if TYPE_CHECKING:
    from sojourn.scenario.reading import Scenario

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for the results.")]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=_core.MOST_THREADS,
        help="Number of threads (default: all cores). A single large run uses several.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://HOST:PORT."),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="AMOUNT",
        help="Memory of all runs together, such as `4 GB` (default: 90 % of free memory).",
    ),
]
Formats = Annotated[
    str,
    typer.Option("--format", metavar="FORMAT,…", help="Formats of pictures: svg, png, pdf."),
]
Fresh = Annotated[bool, typer.Option(help="Ignore the cache.")]
Seeds = Annotated[int, typer.Option(min=1, help="Number of seeds of each combination.")]
Percentiles = Annotated[
    str | None,
    typer.Option(metavar="P1,P2", help="Percentiles of completion times, such as 50,99,99.9."),
]
Scheme = Annotated[
    str | None, typer.Option(metavar="NAME", help="Scheme of the scenario's table `schemes`.")
]
Fidelity = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="`packets` of the whole network, a `sample` (some racks that stand for all), "
        "`flows` (a fluid, corrected by samples), or `auto`: the first that suits.",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="Add samples until the 95 % interval of each p99 is within this share, such as 5%.",
    ),
]
VARY = typer.Option(
    metavar="NAME=V1,V2", help="Parameter and its values, or FIRST:LAST:STEP; may be repeated."
)


caches_in_use: set[Path] = set()
"""Caches in which the running command stores its runs; `sojourn run` has none."""


def run_options(
    threads: int | None, cluster: str | None, memory: str | None, fresh: bool
) -> dict[str, Any]:
    """Return the keyword arguments of `run_many` for these options."""
    from sojourn.runs.cache import default_cache

    cache = None if fresh else default_cache()
    caches_in_use.update(set() if cache is None else {cache})
    return {"threads": threads, "cluster": cluster, "memory": memory, "cache": cache}


def with_fidelity(
    scenario: "Scenario", kind: str | None, precision: str | None = None
) -> "Scenario":
    """Return the scenario with this fidelity, and those of its parameters that this kind has.

    Schemes that name a fidelity of their own have the kind and the precision, too.
    """
    from sojourn.scenario import overrides
    from sojourn.scenario.encoding import SCHEMES
    from sojourn.scenario.fidelity import FIELD

    if (kind is None and precision is None) or SCHEMES not in scenario:
        return _with_fidelity(scenario, kind, precision)
    schemes, are_all_own = {}, True
    for labels, each in overrides.schemes_of(scenario):
        name = labels[overrides.SCHEME]
        changes = scenario[SCHEMES][name]
        others = {key: changes[key] for key in changes if key.partition(".")[0] != FIELD}
        own = {FIELD: _with_fidelity(each, kind, precision)[FIELD]} if others != changes else {}
        schemes[name] = others | own
        are_all_own = are_all_own and bool(own)
    base = scenario if are_all_own else _with_fidelity(scenario, kind, precision)
    return {**base, SCHEMES: schemes}


def _with_fidelity(scenario: "Scenario", kind: str | None, precision: str | None) -> "Scenario":
    """Return the scenario with this fidelity in the place of that of all schemes."""
    from sojourn.scenario import fidelity, overrides

    if kind is not None:
        if kind not in fidelity.KINDS:
            hint = did_you_mean(kind, fidelity.KINDS)
            allowed = ", ".join(fidelity.KINDS)
            raise ScenarioError(f"--fidelity {kind}: expected one of {allowed}{hint}")
        scenario = fidelity.with_kind(scenario, kind)
    if precision is not None:
        given = scenario.get(fidelity.FIELD, fidelity.PACKETS)
        if fidelity.read(given).kind != fidelity.SAMPLE:
            raise ScenarioError("--precision: is for samples; add `--fidelity sample`")
        try:
            fidelity.share(precision)
        except ScenarioError as error:
            raise ScenarioError(f"--precision: {error}") from None
        scenario = overrides.merge(
            {**scenario, fidelity.FIELD: fidelity.read(given).as_table()},
            {fidelity.FIELD: {"precision": precision}},
        )
        fidelity.read(scenario[fidelity.FIELD])
    return scenario


def parse_formats(text: str) -> list[str]:
    """Return the formats of pictures in an option."""
    from sojourn.show.style import FORMATS

    return split_names("--format", text, FORMATS)


def split_list(text: str | None) -> list[str]:
    """Return the items of an option that are separated by commas, without duplicates."""
    names = (name.strip() for name in (text or "").split(","))
    return list(dict.fromkeys(name for name in names if name))


def split_names(option: str, text: str, allowed: Sequence[str]) -> list[str]:
    """Return the names in an option, without duplicates; raise `ScenarioError` for others."""
    names = split_list(text)
    for name in names or [text]:
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            raise ScenarioError(f"{option} {name}: expected some of {', '.join(allowed)}{hint}")
    return names


def parse_percentiles(text: str) -> list[str]:
    """Return percentiles such as `50,99.9` as `p50` and `p99.9`, in ascending order."""
    numbers = [part.strip().lower().removeprefix("p") for part in text.split(",")]
    is_valid = [re.fullmatch(r"\d+(\.\d+)?", part) and 0 < float(part) < 100 for part in numbers]
    if not all(is_valid):
        raise ScenarioError(
            f"--percentiles {text}: expected numbers above 0 and below 100, such as 50,99,99.9"
        )
    return [f"p{number}" for number in sorted(set(numbers), key=float)]


def output_directory(out: Path | None, command: str, name: str) -> Path:
    """Return the checked folder for results, by default `results/COMMAND/NAME`."""
    return checked_directory(out or Path("results") / command / name)


def checked_directory(out: Path) -> Path:
    """Return a folder for results; raise `FileError` if it cannot be created or written to.

    The check precedes the runs, which may take hours.
    """
    if os.path.lexists(out) and not out.is_dir():
        raise FileError(f"{out}: is not a directory")
    parent = out
    while not os.path.lexists(parent):
        parent = parent.parent
    if not (parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)):
        raise FileError(
            f"{out}: cannot be created: {parent.absolute()} is not a writable directory"
        )
    return out


def read_scenarios(paths: Iterable[Path]) -> "dict[Path, Scenario]":
    """Return the scenarios in files by the path; raise `FileError` for a file that occurs twice."""
    from sojourn.scenario import reading

    scenarios: dict[Path, Scenario] = {}
    for path in paths:
        if path in scenarios:
            raise FileError(f"{path}: is given twice")
        with prefix_errors(path):
            scenarios[path] = reading.read(path)
    return scenarios


@contextlib.contextmanager
def prefix_errors(*paths: Path) -> Iterator[None]:
    """Prepend the paths of the scenario's files to errors of the scenario."""
    try:
        yield
    except (FileError, ClusterError):
        raise
    except ScenarioError as error:
        file_error = FileError(f"{', '.join(map(str, paths))}: {error}")
        for note in getattr(error, "__notes__", ()):
            file_error.add_note(note)
        raise file_error from None
