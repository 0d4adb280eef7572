"""Paths of fields, such as `workload.load`: entries of lists by index, parts of a mix by class.

A part of a mixed workload is `workload.parts.0` or, by the class of its flows, `workload.incast`.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from sojourn._core import ScenarioError
from sojourn.base.messages import did_you_mean
from sojourn.scenario import fidelity
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.reading import shortened

WORKLOAD, PARTS = "workload", "parts"

TRANSPORT, ANY = "transport", "dctcp"
"""Field that a change may add, and a value with which the other fields can be read."""

SHOWN_CHOICES = 8
"""Largest number of paths that an error lists."""


def parts_of(workload: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the parts of a mixed workload and of mixes in it, or the workload as its only part."""
    if workload["kind"] != "mixed":
        return [workload]
    return [part for mixed in workload[PARTS] for part in parts_of(mixed)]


def find(scenario: Mapping[str, Any], name: str, complete: Mapping[str, Any] | None = None) -> str:
    """Return the path of the field that `name` denotes, such as `workload.load` for `load`.

    Entries of lists are searched if no other field matches. `complete` is the scenario with all
    defaults, if known. Raises `ScenarioError` for an unknown or ambiguous name.
    """
    complete = {fidelity.FIELD: fidelity.PACKETS} | dict(complete or completed(scenario))
    name = re.sub(r"\[(\d+)\]", r".\1", name)
    # Scenario files write the parameters of a Python controller without the level `parameters`.
    given = {path for table in (complete, scenario) for path in _paths(table)}
    paths = {path.replace(".parameters.", ".") for path in given}
    if found := _match(complete, paths, name):
        return found
    paths |= set(_paths(complete, in_lists=True))
    path = _indexed(complete, name, paths)
    if found := _match(complete, paths, path):
        return found
    # A component may have fields without a default; the core checks their names.
    parent, _, _ = path.rpartition(".")
    if parent in paths:
        return path
    last_words = {path.rpartition(".")[2]: path for path in sorted(paths, reverse=True)}
    near = difflib.get_close_matches(name, [*paths, *last_words], n=1)
    hint = f"; did you mean `{last_words.get(near[0], near[0])}`?" if near else ""
    raise ScenarioError(f"{name}: unknown field{hint}")


def completed(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the scenario with all defaults; without a transport, with one that has no fields.

    A change may give the transport, so that it may be missing before.
    """
    try:
        return Prepared(scenario).complete()
    except ScenarioError:
        if TRANSPORT in scenario:
            raise
    return Prepared({**scenario, TRANSPORT: ANY}).complete() | {TRANSPORT: ANY}


def _match(scenario: Mapping[str, Any], paths: Iterable[str], name: str) -> str | None:
    """Return the path that `name` is or ends, if any; raise `ScenarioError` for several."""
    if name in paths:
        return name
    matches = sorted(path for path in paths if path.endswith(f".{name}"))
    if len(matches) > 1:
        raise _ambiguous(name, [_by_class(scenario, path) for path in matches])
    return matches[0] if matches else None


def _ambiguous(name: str, matches: Sequence[str]) -> ScenarioError:
    choices = ", ".join(f"`{path}`" for path in matches[:SHOWN_CHOICES])
    more = ", …" if len(matches) > SHOWN_CHOICES else ""
    return ScenarioError(f"{name}: ambiguous, could be {choices}{more}; give the full path")


def _paths(value: Any, prefix: str = "", *, in_lists: bool = False) -> Iterator[str]:
    """Yield the paths of all fields, optionally also those of entries of lists."""
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        entries = value.items()
    elif in_lists and isinstance(value, list):
        entries = enumerate(value)
    for key, inner in entries:
        yield f"{prefix}{key}"
        yield from _paths(inner, f"{prefix}{key}.", in_lists=in_lists)


def _indexed(scenario: Mapping[str, Any], name: str, paths: Iterable[str]) -> str:
    """Return the path with indices that a path with a class denotes, or the name itself."""
    workload = scenario.get(WORKLOAD)
    words = name.removeprefix(f"{WORKLOAD}.").split(".")
    is_path = name.startswith(f"{WORKLOAD}.")
    if name in paths or not _is_mixed(workload) or words[0] in workload:
        return name
    places = _places(workload, words[0])
    if not places and not is_path:
        return name
    place = _only(workload, words[0], places, f"{WORKLOAD}.{'.'.join(words)}")
    return ".".join((WORKLOAD, PARTS, str(place), *words[1:]))


def _by_class(scenario: Mapping[str, Any], path: str) -> str:
    """Return a path in a part of a mixed workload with the class of the part, if only it has it."""
    workload = scenario.get(WORKLOAD)
    place, _, rest = path.removeprefix(f"{WORKLOAD}.{PARTS}.").partition(".")
    if not (_is_mixed(workload) and place.isdecimal() and rest):
        return path
    name = _class_of(workload[PARTS][int(place)])
    return f"{WORKLOAD}.{name}.{rest}" if len(_places(workload, name)) == 1 else path


def with_indices(workload: Any, changes: Any) -> Any:
    """Return changes of a mixed workload with indices of parts in place of classes."""
    if not (_is_mixed(workload) and isinstance(changes, Mapping)):
        return changes
    if "kind" in changes and changes["kind"] != workload.get("kind"):
        return changes
    classes = [name for name in changes if name not in ("kind", PARTS)]
    by_index = {
        str(_only(workload, name, _places(workload, name), f"{WORKLOAD}.{name}")): changes[name]
        for name in classes
    }
    if not by_index:
        return changes
    if PARTS in changes:
        raise ScenarioError(f"{WORKLOAD}: change parts by class or by index, not by both")
    return {**{key: changes[key] for key in changes if key not in classes}, PARTS: by_index}


def _is_mixed(workload: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(workload, Mapping) and isinstance(workload.get(PARTS), list)


def _class_of(part: Any) -> str:
    """Return the class of a part's flows, which is its kind by default."""
    return str(part.get("class", part.get("kind")) if isinstance(part, Mapping) else part)


def _places(workload: Mapping[str, Any], name: str) -> list[int]:
    return [index for index, part in enumerate(workload[PARTS]) if _class_of(part) == name]


def _only(workload: Mapping[str, Any], name: str, places: Sequence[int], path: str) -> int:
    """Return the only place of a class; raise `ScenarioError` for none and for several."""
    if len(places) > 1:
        raise _ambiguous(path, [f"{WORKLOAD}.{PARTS}.{place}" for place in places])
    if not places:
        classes = list(dict.fromkeys(map(_class_of, workload[PARTS])))
        hint = did_you_mean(name, classes)
        raise ScenarioError(
            f"{shortened(path)}: unknown class `{shortened(name)}` of the mixed workload"
            f"{hint} (classes: {', '.join(classes)})"
        )
    return places[0]


def has_indices(changes: Any) -> bool:
    """Return true for a table of changes of a list's entries by index."""
    return (
        isinstance(changes, Mapping)
        and bool(changes)
        and all(str(key).isdecimal() for key in changes)
    )


def index(key: str, values: Sequence[Any], path: str) -> int:
    """Return the index that a key of a change denotes; raise `ScenarioError` if it is invalid."""
    if key.isdecimal() and int(key) < len(values):
        return int(key)
    allowed = f"an index from 0 to {len(values) - 1}" if values else "a list that is not empty"
    raise ScenarioError(f"{shortened(path)}.{shortened(key)}: expected {allowed}")


def value_at(complete: Mapping[str, Any], path: str) -> Any:
    """Return the value of a complete scenario at a path, or `none` if it is missing."""
    value: Any = complete
    for name in path.split("."):
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, Mapping):
            # Parameters of a controller in Python are in a table of their own.
            value = value.get(name, value.get("parameters", {}).get(name, "none"))
        else:
            return "none"
    return value
