"""The formats, and their recognition by content."""

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
    shapes = "; ".join(f"{known.name}: {known.shape}" for known in FORMATS)
    raise document.error(f"format not recognised; expected one of {shapes}")


def _reading(document: Document, known: Format, columns: str) -> str:
    """Return a possible meaning of the columns, with the error of its reader in parentheses."""
    try:
        known.read(document, Options(unit="bytes"))
    except FileError as error:
        line = str(error).removeprefix(f"{document.path}:").strip()
        return f"{columns} ({'line ' if line[:1].isdigit() else ''}{line})"
    return columns
