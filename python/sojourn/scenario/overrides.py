"""Changes of scenarios: merging, finding fields by name, and lists of values."""

import difflib
import itertools
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.scenario import controller_files
from sojourn.scenario.encoding import apart
from sojourn.scenario.reading import MOST_DEPTH, TOO_DEEP, Labels, Scenario, shortened


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
    classes = {value.rpartition(":")[2] for value in values if controller_files.is_name(value)}
    if len(classes) == sum(map(controller_files.is_name, values)):
        values = [v.rpartition(":")[2] if controller_files.is_name(v) else v for v in values]
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
        raise ScenarioError(f"--vary {shortened(text)}: {TOO_DEEP}") from None
    except ValueError:
        return text
    # What has lines of its own is no value.
    return value["value"] if value.keys() == {"value"} else text
