"""Reading of scenario files, and of the files that scenarios name.

A scenario is a dictionary with the content of a scenario file. The core defines its meaning,
defaults and errors; this package merges dictionaries, finds short names, and reads files.
"""

import errno
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from sojourn._core import ScenarioError
from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean, printable
from sojourn.scenario import controller_files, syntax_errors
from sojourn.scenario.conversion import plain

T = TypeVar("T")

Scenario = dict[str, Any]


ScenarioLike = Mapping[str, Any] | str | os.PathLike[str]
"""A scenario, or the path of a scenario file."""


Labels = dict[str, Any]


MAX_DEPTH = 60
"""Largest nesting depth of tables and lists."""


TOO_DEEP = f"nested too deeply, at most {MAX_DEPTH} levels are allowed"


FILES = (".file", "topology.losses", "topology.rate_trace", "topology.delay_trace")
"""Suffixes of the paths of fields that name files."""


TRANSPORT = re.compile(r"(?:schemes\..+\.)?(?:transport|transports\.[^.]+)")
"""Pattern of the paths of transports."""


def read(path: str | os.PathLike[str]) -> Scenario:
    """Return the scenario in a TOML file, with the content of the files that it names."""
    path = Path(path)
    return with_files(parse(path), path.parent)


def kind_of(component: Any) -> Any:
    """Return the kind of a component: a table with its parameters, or the kind alone."""
    return component.get("kind") if isinstance(component, Mapping) else component


def parse(path: Path) -> Scenario:
    """Return the content of a TOML file, with the names of files."""
    text = ""
    try:
        text = files.read_text(path, files.MAX_SETTINGS_BYTES)
        return tomllib.loads(text)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(syntax_errors.message(str(path), text, str(error))) from None
    except RecursionError:
        raise FileError(f"{path}: {TOO_DEEP}") from None
    except ValueError as error:
        # For example an integer with more digits than Python accepts.
        raise FileError(f"{path}: not TOML: {error}") from None


def as_scenario(scenario: ScenarioLike) -> Mapping[str, Any]:
    """Return a scenario; a path is that of a scenario file, which is read."""
    if isinstance(scenario, Mapping):
        return scenario
    if isinstance(scenario, str | os.PathLike):
        return read(scenario)
    kind = type(scenario).__name__
    raise ScenarioError(f"scenario: must be a dictionary or the path of a TOML file, not {kind}")


def with_files(scenario: ScenarioLike, directory: Path | None = None) -> Scenario:
    """Return the scenario with `{name, text}` in place of names of files in `directory`.

    Controllers written in Python become transports of kind `python`, arrays lists, and paths texts.
    """
    scenario, directory = as_scenario(scenario), directory or Path()

    def load(value: Any, field: str, depth: int = 1) -> Any:
        if depth > MAX_DEPTH:
            raise ScenarioError(printable(f"{shortened(field)}: {TOO_DEEP}"))
        if TRANSPORT.fullmatch(field):
            value = controller_files.as_transport(
                value,
                field,
                lambda name: _bytes(name, field, directory),
                lambda name: (directory / name).is_file(),
            )
        value = plain(value, shortened(field))
        if isinstance(value, Mapping):
            if unnamed := [key for key in value if not isinstance(key, str)]:
                raise ScenarioError(
                    f"{shortened(field)}: names must be strings, not {unnamed[0]!r}"
                )
            return {key: load(inner, f"{field}.{key}", depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [load(inner, f"{field}[{i}]", depth + 1) for i, inner in enumerate(value)]
        if (name := named_file(field, value)) is not None:
            return {"name": name, "text": _text(name, field, directory)}
        return value

    if unnamed := [key for key in scenario if not isinstance(key, str)]:
        raise ScenarioError(f"scenario: names must be strings, not {unnamed[0]!r}")
    return {key: load(value, str(key)) for key, value in scenario.items()}


def named_file(field: str, value: Any) -> str | None:
    """Return the file that a field with this path and value names, or `None`."""
    transport = field.removesuffix(".controller").removesuffix(".kind")
    if TRANSPORT.fullmatch(transport) and controller_files.is_name(value):
        return str(value.rpartition(":")[0])
    is_file = field.endswith(FILES) and isinstance(value, str) and value != "none"
    return value if is_file else None


def is_file(value: Any) -> bool:
    """Return true for a file that `with_files` has read."""
    return isinstance(value, Mapping) and value.keys() == {"name", "text"}


def files_of(value: Any, directory: Path) -> Iterator[Path]:
    """Yield the files whose texts a scenario contains, as `with_files` reads them."""
    if isinstance(value, Mapping) and value.keys() >= {"name", "text"}:
        name = str(value["name"])
        yield directory / (name.rpartition(":")[0] if controller_files.is_name(name) else name)
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from files_of(inner, directory)


def shortened(field: str) -> str:
    """Return the name of a field, shortened for an error message."""
    return field if len(field) < 60 else f"{field[:60]}…"


def _text(name: str, field: str, directory: Path) -> str:
    return _read(files.read_text, name, field, directory)


def _bytes(name: str, field: str, directory: Path) -> bytes:
    return _read(files.read_bytes, name, field, directory)


def _read(read: Callable[[Path, int], T], name: str, field: str, directory: Path) -> T:
    path = directory / name
    try:
        return read(path, files.MAX_DATA_BYTES)
    except OSError as error:
        hint = did_you_mean(path.name, _siblings(path)) if error.errno == errno.ENOENT else ""
        message = f"{field}: cannot read `{path}`: {error.strerror}{hint}"
        raise ScenarioError(printable(message)) from None


def _siblings(path: Path) -> list[str]:
    try:
        return os.listdir(path.parent)
    except OSError:
        return []
