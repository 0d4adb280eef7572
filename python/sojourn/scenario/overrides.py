"""Changes of scenarios: merging, fields by short names, and products of variations."""

import difflib
import itertools
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sojourn._core import ScenarioError
from sojourn.scenario import controller_files, environments
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.reading import MAX_DEPTH, TOO_DEEP, Labels, Scenario, shortened


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Scenario:
    """Merge tables deeply; if a component's `kind` changes, its old parameters are dropped."""
    return _merge(base, changes, 1)


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any], depth: int) -> Scenario:
    if depth > MAX_DEPTH:
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
    """Return `base` with changes: tables are merged, and keys with dots set nested fields.

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
    """Return the path of the field that `name` denotes, such as `workload.load` for `load`.

    Raises `ScenarioError` for an unknown or ambiguous name.
    """
    complete = json.loads(Prepared(scenario).core.show())
    # Scenario files write the parameters of a Python controller without the level `parameters`.
    names = {*_paths(complete), *_paths(scenario)}
    paths = {path.replace(".parameters.", ".") for path in names}
    if name in paths:
        return name
    matches = sorted(path for path in paths if path.endswith(f".{name}"))
    if len(matches) == 1:
        return matches[0]
    if matches:
        choices = ", ".join(f"`{path}`" for path in matches)
        raise ScenarioError(f"{name}: ambiguous, could be {choices}; give the full path")
    # A component may have fields without a default; the core checks their names.
    parent, _, _ = name.rpartition(".")
    if parent in paths:
        return name
    last_words = {path.rpartition(".")[2]: path for path in sorted(paths, reverse=True)}
    near = difflib.get_close_matches(name, [*paths, *last_words], n=1)
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
    """Return every combination of the variations as pairs of labels and scenario, in order.

    All have one environment, unless they name several (`environments.unify`).
    """
    lists = [list(values) for values in variations.values()]
    labelled = [zip(labels_of(values), values, strict=True) for values in lists]
    combinations = []
    for pairs in itertools.product(*labelled):
        labels = {name: label for name, (label, _) in zip(variations, pairs, strict=True)}
        scenario = dict(base)
        for name, (_, value) in zip(variations, pairs, strict=True):
            scenario = override(scenario, {find(scenario, name): value})
        combinations.append((labels, scenario))
    return environments.unify(combinations)


def labels_of(values: Sequence[Any]) -> list[Any]:
    """Return labels that distinguish the values, all of one type, for a column of a table."""
    classes = {value.rpartition(":")[2] for value in values if controller_files.is_name(value)}
    if len(classes) == sum(map(controller_files.is_name, values)):
        values = [v.rpartition(":")[2] if controller_files.is_name(v) else v for v in values]
    kinds = {type(value) for value in values}
    if kinds <= {str} or kinds <= {bool} or kinds <= {int}:
        return list(values)
    if kinds <= {int, float}:
        return [float(value) for value in values]
    # For example `none` and a number, or a table.
    return [value if isinstance(value, str) else _as_label(value) for value in values]


def _as_label(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(value)


def parse_variations(texts: Iterable[str]) -> dict[str, list[Any]]:
    """Parse variations of different parameters."""
    variations: dict[str, list[Any]] = {}
    for text in texts:
        name, values = parse_variation(text)
        if name in variations:
            raise ScenarioError(
                f"--vary {text}: `{name}` is given twice; list all values in one --vary"
            )
        variations[name] = values
    return variations


def parse_variation(text: str) -> tuple[str, list[Any]]:
    """Parse a variation such as `load=0.2,0.8`; values are TOML or plain words."""
    name, equals, listed = text.partition("=")
    values = split_values(listed)
    if not (equals and name.strip() and values):
        raise ScenarioError(f"--vary {text}: expected NAME=VALUE,VALUE, such as load=0.2,0.8")
    if name.strip() == "seed":
        raise ScenarioError(f"--vary {text}: cannot vary seeds; `--seeds N` runs N seeds")
    return name.strip(), values


def split_values(text: str) -> list[Any]:
    """Parse values between commas, TOML or plain words; an empty list if a value is missing."""
    items = [item.strip() for item in _split(text)]
    return [_parse_value(item) for item in items] if all(items) else []


def _split(values: str) -> Iterator[str]:
    """Split at the commas outside of brackets and quotes."""
    begin = depth = 0
    quote, is_start = "", True
    for position, char in enumerate(values):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and (is_start or depth):
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth = max(0, depth - 1)
        elif char == "," and not depth:
            yield values[begin:position]
            begin = position + 1
        is_start = char == "," or (is_start and char.isspace())
    yield values[begin:]


def _parse_value(text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")
    except RecursionError:
        raise ScenarioError(f"--vary {shortened(text)}: {TOO_DEEP}") from None
    except ValueError:
        return text
    # A text with several lines may define further keys; it is not a single value.
    return value["value"] if value.keys() == {"value"} else text
