"""Scenarios as plain data: reading them, changing them, and taking products of changes.

A scenario is a dictionary of what a scenario file says. Its meaning, defaults and errors are the
core's; the lab only merges dictionaries, finds short names and reads the files that they name.
"""

import difflib
import errno
import itertools
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn import _core, controllers, files
from sojourn._core import ScenarioError
from sojourn.memory import budget
from sojourn.wording import did_you_mean

Scenario = dict[str, Any]
Labels = dict[str, Any]

MOST_DEPTH = 60
"""How many tables and lists may lie in each other."""

TOO_DEEP = f"nested too deeply, at most {MOST_DEPTH} levels are allowed"


FILES = (".file", "topology.losses", "topology.rate_trace", "topology.delay_trace")
"""How the paths of fields end that name files."""

TRANSPORT = re.compile(r"transport|transports\.[^.]+")
"""The paths of transports."""


class FileError(ScenarioError):
    """A problem with a file; the message begins with the file's name."""


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
            raise ScenarioError(_in_one_line(f"{_shortened(field)}: {TOO_DEEP}"))
        if TRANSPORT.fullmatch(field):
            value = controllers.as_transport(
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
    if TRANSPORT.fullmatch(transport) and controllers.is_name(value):
        return str(value.rpartition(":")[0])
    is_file = field.endswith(FILES) and isinstance(value, str) and value != "none"
    return value if is_file else None


def _shortened(field: str) -> str:
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
    return _merge(base, changes, 1)


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any], depth: int) -> Scenario:
    if depth > MOST_DEPTH:
        raise ScenarioError(TOO_DEEP)
    merged = dict(base)
    for key, new in changes.items():
        merged[key] = _merge_value(merged.get(key), new, depth)
    return merged


def _merge_value(old: Any, new: Any, depth: int) -> Any:
    if isinstance(old, Mapping) and isinstance(new, str) and old.get("kind") == new:
        return old
    is_name = isinstance(old, str) and old != "none"
    if is_name and isinstance(new, Mapping) and "kind" not in new:
        return {"kind": old, **new}
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    changes_kind = "kind" in new and new["kind"] != old.get("kind")
    return dict(new) if changes_kind else _merge(old, new, depth + 1)


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
    # A class's own parameters stand beside the others.
    paths = {*_paths(shown), *_paths(scenario)}
    known = {path.replace(".parameters.", ".") for path in paths}
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
    labelled = [
        zip(labels_of(given := list(values)), given, strict=True) for values in variations.values()
    ]
    combinations = []
    for pairs in itertools.product(*labelled):
        labels = {name: label for name, (label, _) in zip(variations, pairs, strict=True)}
        scenario = dict(base)
        for name, (_, value) in zip(variations, pairs, strict=True):
            scenario = override(scenario, {find(scenario, name): value})
        combinations.append((labels, scenario))
    return combinations


def labels_of(values: Sequence[Any]) -> list[Any]:
    """Return what tells values apart in a column of a table, which has values of one kind."""
    classes = {value.rpartition(":")[2] for value in values if controllers.is_name(value)}
    if len(classes) == sum(map(controllers.is_name, values)):
        values = [v.rpartition(":")[2] if controllers.is_name(v) else v for v in values]
    kinds = {type(value) for value in values}
    if kinds <= {str} or kinds <= {bool} or kinds <= {int}:
        return list(values)
    if kinds <= {int, float}:
        return [float(value) for value in values]
    # Such as `none` beside a number, or a table.
    return [value if isinstance(value, str) else _as_label(value) for value in values]


def _as_label(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(value)


def parse_variations(texts: Iterable[str]) -> dict[str, list[Any]]:
    """Read several of what `parse_variation` does, each of another name."""
    variations: dict[str, list[Any]] = {}
    for text in texts:
        name, values = parse_variation(text)
        if name in variations:
            raise ScenarioError(f"--vary {text}: `{name}` is given twice; one list has all values")
        variations[name] = values
    return variations


def parse_variation(text: str) -> tuple[str, list[Any]]:
    """Read `load=0.2,0.8` into its name and values; values are TOML, or else plain words."""
    name, equals, listed = text.partition("=")
    values = split_values(listed)
    if not (equals and name.strip() and values):
        raise ScenarioError(f"--vary {text}: expected NAME=VALUE,VALUE, such as load=0.2,0.8")
    if name.strip() == "seed":
        raise ScenarioError(f"--vary {text}: expected no seeds; `--seeds N` runs N of them")
    return name.strip(), values


def split_values(text: str) -> list[Any]:
    """Read values between commas, TOML or else plain words; none if one of them is missing."""
    items = [item.strip() for item in _split(text)]
    return [_parse_value(item) for item in items] if all(items) else []


def _split(values: str) -> Iterator[str]:
    """Split at the commas that stand in no brackets and no quotes."""
    begin = depth = 0
    quote, fresh = "", True
    for place, sign in enumerate(values):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'" and (fresh or depth):
            quote = sign
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth = max(0, depth - 1)
        elif sign == "," and not depth:
            yield values[begin:place]
            begin = place + 1
        fresh = sign == "," or (fresh and sign.isspace())
    yield values[begin:]


def _parse_value(text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")
    except RecursionError:
        raise ScenarioError(f"--vary {_shortened(text)}: {TOO_DEEP}") from None
    except ValueError:
        return text
    # What has lines of its own is no value.
    return value["value"] if value.keys() == {"value"} else text


def parts() -> dict[str, Any]:
    """Return the parts of every family, each with its parameters."""
    families: dict[str, Any] = json.loads(_core.parts())
    return families


def schema() -> dict[str, Any]:
    """Return what may be written in a scenario's file, as a JSON schema (draft 7).

    It knows fields, parts, forms and what must be given. That numbers are within their ranges and
    fields fit each other is for `check`.
    """
    made: dict[str, Any] = json.loads(_core.schema())
    # Beside the fields of a controller of Python's stand its class's own, and its name is enough.
    transports = made["definitions"]["transport"]["anyOf"]
    of_class = next(one for one in transports if one.get("title") == controllers.KIND)
    of_class["additionalProperties"] = True
    by_name = {"type": "string", "pattern": controllers.NAME.pattern}
    transports += [by_name, {"properties": {"kind": by_name}, "required": ["kind"]}]
    return made
