"""Scenarios as plain data: reading them, changing them, and taking products of changes.

A scenario is a dictionary of what a scenario file says. Its meaning, defaults and errors are the
core's; the lab only merges dictionaries, finds short names and reads the files that they name.
"""

import difflib
import itertools
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.memory import budget

Scenario = dict[str, Any]
Labels = dict[str, Any]


class FileError(ScenarioError):
    """A problem with a file; the message begins with the file's name."""


def read(path: str | Path) -> Scenario:
    """Read a scenario from a TOML file, together with the files that it names."""
    path = Path(path)
    return with_files(parse(path), path.parent)


def parse(path: Path) -> Scenario:
    """Read a TOML file without the files that it names."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: is not a text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(_syntax_error(path, str(error))) from None


def _syntax_error(path: Path, message: str) -> str:
    """Turn `message (at line 3, column 5)` into `path:3: message`."""
    place = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if place is None:
        return f"{path}: not TOML: {message}"
    return f"{path}:{place[2]}: not TOML: {place[1]} (column {place[3]})"


def with_files(scenario: Mapping[str, Any], directory: Path | None = None) -> Scenario:
    """Replace the name under every key `file` by `{name, text}`, looking in `directory`."""

    def load(value: Any, field: str) -> Any:
        if isinstance(value, Mapping):
            return {key: load(inner, f"{field}.{key}") for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [load(inner, f"{field}[{i}]") for i, inner in enumerate(value)]
        if field.endswith(".file") and isinstance(value, str) and value != "none":
            return _load_file(value, field.removeprefix("."), directory or Path())
        return value

    return {key: load(value, f".{key}") for key, value in scenario.items()}


def _load_file(name: str, field: str, directory: Path) -> dict[str, str]:
    path = directory / name
    try:
        return {"name": name, "text": path.read_text(encoding="utf-8")}
    except UnicodeDecodeError:
        raise ScenarioError(f"{field}: the file `{path}` is not a text in UTF-8") from None
    except OSError as error:
        folder = path.parent
        beside = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        hint = did_you_mean(path.name, beside)
        raise ScenarioError(f"{field}: cannot read `{path}`: {error.strerror}{hint}") from None


def check(scenario: Mapping[str, Any], memory: int | None = None) -> Scenario:
    """Return the scenario with every default filled in, or raise `ScenarioError`.

    What needs more than so many bytes of `memory` is refused; `None` is what the machine has free.
    """
    text, texts = apart(scenario)
    return together(json.loads(_core.check(text, texts, budget(memory))), texts)


def trace(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the flows that the workload asks for."""
    return _core.trace(*apart(scenario), budget())


def apart(scenario: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return what the core reads: the scenario as JSON, and the texts of its files beside it.

    In the JSON they are numbers, so that long ones are not copied.
    """
    texts: dict[str, int] = {}

    def take(value: Any) -> Any:
        if isinstance(value, Mapping):
            if value.keys() == {"name", "text"} and isinstance(value["text"], str):
                return {**value, "text": texts.setdefault(value["text"], len(texts))}
            return {key: take(inner) for key, inner in value.items()}
        return [take(inner) for inner in value] if isinstance(value, list | tuple) else value

    return as_json(take(with_files(scenario))), list(texts)


def together(scenario: Mapping[str, Any], texts: Sequence[str]) -> Scenario:
    """Return what the core shows of a scenario with the texts in place of their numbers."""

    def put(value: Any) -> Any:
        if isinstance(value, Mapping):
            if value.keys() == {"name", "text"} and isinstance(value["text"], int):
                return {**value, "text": texts[value["text"]]}
            return {key: put(inner) for key, inner in value.items()}
        return [put(inner) for inner in value] if isinstance(value, list) else value

    return {key: put(inner) for key, inner in scenario.items()}


def as_json(scenario: Mapping[str, Any]) -> str:
    """Return the scenario as the text that the core reads: one text for equal scenarios."""
    try:
        return json.dumps(scenario, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"a scenario holds texts, numbers, lists and tables: {error}") from None


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Scenario:
    """Merge tables deeply; where a part's `kind` changes, the old kind's parameters go."""
    merged = dict(base)
    for key, new in changes.items():
        merged[key] = _merge_value(merged.get(key), new)
    return merged


def _merge_value(old: Any, new: Any) -> Any:
    if isinstance(old, Mapping) and isinstance(new, str) and old.get("kind") == new:
        return old
    is_name = isinstance(old, str) and old != "none"
    if is_name and isinstance(new, Mapping) and "kind" not in new:
        return {"kind": old, **new}
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    changes_kind = "kind" in new and new["kind"] != old.get("kind")
    return dict(new) if changes_kind else merge(old, new)


def override(base: Mapping[str, Any], *changes: Mapping[str, Any]) -> Scenario:
    """Return `base` with changes: tables are merged, keys with dots set one field inside.

    >>> override({"transport": {"kind": "dctcp"}}, {"transport.gain": 0.1})
    {'transport': {'kind': 'dctcp', 'gain': 0.1}}
    """
    scenario = dict(base)
    for change in changes:
        for key, value in change.items():
            scenario = merge(scenario, _nested(key.split("."), value))
    return scenario


def _nested(path: Sequence[str], value: Any) -> Scenario:
    for name in reversed(path):
        value = {name: value}
    return dict(value)


def find(scenario: Mapping[str, Any], name: str) -> str:
    """Return the path of the one field that `name` can mean, such as `workload.load` for `load`."""
    shown = json.loads(_core.show(*apart(scenario)))
    known = set(_paths(shown)) | set(_paths(scenario))
    if name in known:
        return name
    places = sorted(path for path in known if path.endswith(f".{name}"))
    if len(places) == 1:
        return places[0]
    if places:
        choices = ", ".join(f"`{place}`" for place in places)
        raise ScenarioError(f"{name}: could be any of {choices}; give the whole path")
    # The part may have fields that are not shown: the core knows, and names the nearest.
    parent, _, _ = name.rpartition(".")
    if parent in known:
        return name
    last_words = {path.rpartition(".")[2]: path for path in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name, [*known, *last_words], n=1)
    hint = f"; did you mean `{last_words.get(near[0], near[0])}`?" if near else ""
    raise ScenarioError(f"{name}: unknown field{hint}")


def _paths(table: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in table.items():
        yield f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _paths(value, f"{prefix}{key}.")


def expand(
    base: Mapping[str, Any], variations: Mapping[str, Iterable[Any]]
) -> list[tuple[Labels, Scenario]]:
    """Return every combination of the variations, each with its labels, in order."""
    combinations = []
    for values in itertools.product(*variations.values()):
        labels = dict(zip(variations, values, strict=True))
        scenario = dict(base)
        for name, value in labels.items():
            scenario = override(scenario, {find(scenario, name): value})
        combinations.append((labels, scenario))
    return combinations


def parse_variation(text: str) -> tuple[str, list[Any]]:
    """Read `load=0.2,0.8` into its name and values; values are TOML, or else plain words."""
    name, equals, values = text.partition("=")
    items = [item.strip() for item in re.split(r",(?![^\[{]*[\]}])", values)]
    if not (equals and name.strip() and all(items)):
        raise ScenarioError(f"--vary {text}: expected NAME=VALUE,VALUE, such as load=0.2,0.8")
    if name.strip() == "seed":
        raise ScenarioError(f"--vary {text}: expected no seeds; `--seeds N` runs N of them")
    return name.strip(), [_parse_value(item) for item in items]


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def parts() -> dict[str, Any]:
    """Return the parts of every family, each with its parameters."""
    families: dict[str, Any] = json.loads(_core.parts())
    return families


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """Return the nearest of `names` as the end of an error message, or nothing."""
    near = difflib.get_close_matches(given, list(names), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
