"""Scenarios as plain data: reading them, changing them, and taking products of changes.

A scenario is a dictionary of what a scenario file says. Its meaning, defaults and errors are the
core's; the lab only merges dictionaries, finds short names and reads the files that they name.
"""

import errno
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean
from sojourn.scenario import controller_files

Scenario = dict[str, Any]


Labels = dict[str, Any]


MOST_DEPTH = 60
"""How many tables and lists may lie in each other."""


TOO_DEEP = f"nested too deeply, at most {MOST_DEPTH} levels are allowed"


FILES = (".file", "topology.losses", "topology.rate_trace", "topology.delay_trace")
"""How the paths of fields end that name files."""


TRANSPORT = re.compile(r"transport|transports\.[^.]+")
"""The paths of transports."""


def read(path: str | Path) -> Scenario:
    """Read a scenario from a TOML file, together with the files that it names."""
    path = Path(path)
    return with_files(parse(path), path.parent)


def parse(path: Path) -> Scenario:
    """Read a TOML file without the files that it names."""
    try:
        return tomllib.loads(files.read_text(path, files.MOST_SETTINGS))
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(_syntax_error(path, str(error))) from None
    except RecursionError:
        raise FileError(f"{path}: {TOO_DEEP}") from None
    except ValueError as error:
        # Such as an integer of more digits than Python reads.
        raise FileError(f"{path}: not TOML: {error}") from None


def _syntax_error(path: Path, message: str) -> str:
    """Turn `message (at line 3, column 5)` into `path:3: message`."""
    place = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if place is None:
        return f"{path}: not TOML: {message}"
    return f"{path}:{place[2]}: not TOML: {place[1]} (column {place[3]})"


def with_files(scenario: Mapping[str, Any], directory: Path | None = None) -> Scenario:
    """Replace the names of files (`named_file`) by `{name, text}`, looking in `directory`.

    Controllers written in Python become what the core reads of them.
    """
    directory = directory or Path()

    def load(value: Any, field: str, depth: int) -> Any:
        if depth > MOST_DEPTH:
            raise ScenarioError(_in_one_line(f"{shortened(field)}: {TOO_DEEP}"))
        if TRANSPORT.fullmatch(field):
            value = controller_files.as_transport(
                value, field, lambda name: _text(name, field, directory)
            )
        if isinstance(value, Mapping):
            return {key: load(inner, f"{field}.{key}", depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [load(inner, f"{field}[{i}]", depth + 1) for i, inner in enumerate(value)]
        if (name := named_file(field, value)) is not None:
            return {"name": name, "text": _text(name, field, directory)}
        return value

    return {key: load(value, str(key), 1) for key, value in scenario.items()}


def named_file(field: str, value: Any) -> str | None:
    """Return the file that a field of this path and value names, if it names one."""
    transport = field.removesuffix(".controller").removesuffix(".kind")
    if TRANSPORT.fullmatch(transport) and controller_files.is_name(value):
        return str(value.rpartition(":")[0])
    is_file = field.endswith(FILES) and isinstance(value, str) and value != "none"
    return value if is_file else None


def shortened(field: str) -> str:
    """Shorten the name of a field for an error message."""
    return field if len(field) < 60 else f"{field[:60]}…"


def _in_one_line(message: str) -> str:
    """Write what would move a terminal's cursor, or hide, as escapes: names may hold anything."""
    signs = (sign if sign.isprintable() else ascii(sign)[1:-1] for sign in message)
    return "".join(signs)


def _text(name: str, field: str, directory: Path) -> str:
    path = directory / name
    try:
        return files.read_text(path, files.MOST_DATA)
    except OSError as error:
        hint = did_you_mean(path.name, _beside(path)) if error.errno == errno.ENOENT else ""
        told = f"{field}: cannot read `{path}`: {error.strerror}{hint}"
        raise ScenarioError(_in_one_line(told)) from None


def _beside(path: Path) -> list[str]:
    try:
        return os.listdir(path.parent)
    except OSError:
        return []
