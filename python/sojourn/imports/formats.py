"""The formats, and their recognition by content."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from sojourn._core import ScenarioError
from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean
from sojourn.imports import goal, hpcc, htsim, pairs, sizes, traces
from sojourn.imports.document import Document
from sojourn.imports.parts import Options, Part


@dataclass(frozen=True)
class Format:
    """Format of a file.

    Attributes:
        name: value of `--as`.
        shape: short description of the content.
        matches: returns true for a file that looks like this format; its reader finds errors.
        read: returns the part of a scenario.
        options: options that its reader uses, by their name in `Options`.

    """

    name: str
    shape: str
    matches: Callable[[Document], bool]
    read: Callable[[Document, Options], Part]
    options: tuple[str, ...] = ()


FORMATS = (
    Format("htsim-topology", htsim.TOPOLOGY_SHAPE, htsim.is_topology, htsim.read_topology),
    Format("htsim-matrix", htsim.MATRIX_SHAPE, htsim.is_matrix, htsim.read_matrix, ("unit",)),
    Format("hpcc-topology", hpcc.TOPOLOGY_SHAPE, hpcc.is_topology, hpcc.read_topology),
    Format("hpcc-flows", hpcc.FLOWS_SHAPE, hpcc.is_flows, hpcc.read_flows),
    Format("mahimahi", traces.MAHIMAHI_SHAPE, traces.is_mahimahi, traces.read_mahimahi),
    Format("sizes", sizes.SHAPE, sizes.is_sizes, sizes.read, ("unit",)),
    Format("goal", goal.SHAPE, goal.is_goal, goal.read),
    Format(
        "pensieve", traces.PENSIEVE_SHAPE, traces.is_pensieve, traces.read_pensieve, ("rates_hold",)
    ),
)
"""Formats in the order in which they are tried."""

NAMES = tuple(known.name for known in FORMATS)

LINE = re.compile(r"(\d+): ")
"""Number of a line at the beginning of an error."""


def named(name: str) -> Format:
    """Return the format of a name."""
    for known in FORMATS:
        if known.name == name:
            return known
    hint = did_you_mean(name, NAMES) or f" (of {', '.join(NAMES)})"
    raise ScenarioError(f"--as: unknown format `{name}`{hint}")


def recognised(document: Document) -> Format:
    """Return the format of a file by its content."""
    for known in FORMATS:
        if known.matches(document):
            return known
    if pairs.is_ambiguous(document):
        readings = (("sizes", "sizes and cumulative values"), ("pensieve", "seconds and Mb/s"))
        either = " or ".join(_reading(document, named(name), words) for name, words in readings)
        raise document.error(
            f"two columns of numbers may be {either}: give --as sizes or --as pensieve"
        )
    raise pairs.near_miss(document) or _furthest(document)


def _furthest(document: Document) -> FileError:
    """Return the errors of the readers that read most lines, or the shapes of all formats."""
    reached: dict[int, list[str]] = {}
    for known in FORMATS:
        problem = _problem(document, known)
        if problem is None:
            return document.error(
                f"format not recognised; give `--as {known.name}` if it is {known.shape}"
            )
        line = LINE.match(problem)
        if line and int(line[1]) > document.lines[0].number:
            reached.setdefault(int(line[1]), []).append(
                f"`--as {known.name}`: {problem[line.end() :]}"
            )
    if not reached:
        shapes = "; ".join(f"{known.name}: {known.shape}" for known in FORMATS)
        return document.error(f"format not recognised; expected one of {shapes}")
    last = max(reached)
    readers = "; ".join(reached[last])
    return FileError(f"{document.path}:{last}: format not recognised; {readers}")


def _problem(document: Document, known: Format) -> str | None:
    """Return the error of a reader without the name of the file; `None` without an error."""
    try:
        known.read(document, Options(unit="bytes" if known.name == "sizes" else None))
    except FileError as error:
        return str(error).removeprefix(f"{document.path}:").strip()
    return None


def _reading(document: Document, known: Format, columns: str) -> str:
    """Return a possible meaning of the columns, with the error of its reader in parentheses."""
    problem = _problem(document, known)
    if problem is None:
        return columns
    return f"{columns} ({'line ' if LINE.match(problem) else ''}{problem})"
