"""Changes of scenarios: merging, products of variations, and schemes that a scenario names."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base.messages import did_you_mean
from sojourn.scenario import controller_files, environments, fields, values
from sojourn.scenario.conversion import without_array
from sojourn.scenario.encoding import SCHEMES, check
from sojourn.scenario.reading import (
    MAX_DEPTH,
    TOO_DEEP,
    Labels,
    Scenario,
    ScenarioLike,
    as_scenario,
    is_file,
    kind_of,
    shortened,
)

SCHEME = "scheme"
"""Label of the schemes that a scenario names."""


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Scenario:
    """Merge tables deeply; if a component's `kind` changes, its old parameters are dropped."""
    return _merge(base, changes, ())


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any], path: tuple[str, ...]) -> Scenario:
    if len(path) >= MAX_DEPTH:
        raise ScenarioError(TOO_DEEP)
    merged = dict(base)
    for key, new in changes.items():
        old = merged.get(key)
        change = fields.with_indices(old, new) if (*path, key) == (fields.WORKLOAD,) else new
        merged[key] = _merge_value(old, change, (*path, key))
    return merged


def _merge_value(old: Any, new: Any, path: tuple[str, ...]) -> Any:
    if controller_files.is_name(kind_of(new)):
        old = controller_files.as_written(old)
    if isinstance(old, Mapping) and isinstance(new, str) and old.get("kind") == new:
        return old
    is_name = isinstance(old, str | type) and old != "none"
    if is_name and isinstance(new, Mapping) and "kind" not in new:
        return {"kind": old, **new}
    if isinstance(old, list) and fields.has_indices(new):
        entries = list(old)
        for key, value in new.items():
            place = fields.index(key, old, ".".join(path))
            entries[place] = _merge_value(old[place], value, (*path, key))
        return entries
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    changes_kind = "kind" in new and new["kind"] != old.get("kind")
    return dict(new) if changes_kind else _merge(old, new, path)


def override(base: ScenarioLike, *changes: Mapping[str, Any]) -> Scenario:
    """Return `base` with changes: tables are merged, and keys with dots set nested fields.

    An entry of a list is named by its index, `workload.parts.1.size`, and a part of a mixed
    workload also by the class of its flows, `workload.incast.size`.

    Parameters belong to the `kind` of their component: those of `base` are kept if the kind stays,
    also if the change is only its name, and dropped if the kind changes. In one change, a component
    precedes its parameters.

    >>> override({"transport": {"kind": "dctcp"}}, {"transport.gain": 0.1})
    {'transport': {'kind': 'dctcp', 'gain': 0.1}}
    """
    scenario = dict(as_scenario(base))
    for change in changes:
        for key in sorted(change, key=_depth):
            scenario = merge(scenario, _nested(key.split("."), change[key]))
    return scenario


def _depth(path: str) -> int:
    """Return the depth of a field; a `kind` has that of its component."""
    return path.removesuffix(".kind").count(".")


def _nested(path: Sequence[str], value: Any) -> Scenario:
    for name in reversed(path):
        value = {name: value}
    return dict(value)


def expand(
    base: ScenarioLike, variations: Mapping[str, Iterable[Any]]
) -> list[tuple[Labels, Scenario]]:
    """Return every combination of the variations as pairs of labels and scenario, in order.

    The schemes of the table `schemes`, if there is one, come before the variations, with the label
    `scheme`. All have one environment, unless they name several (`environments.unify`).
    """
    return environments.unify(combinations(as_scenario(base), variations))


def shared_environment_lines(
    base: ScenarioLike, variations: Mapping[str, Iterable[Any]]
) -> list[str]:
    """Return a line if some combinations alone would have another environment, else nothing."""
    return environments.lines(combinations(as_scenario(base), variations))


def combinations(
    base: Mapping[str, Any], variations: Mapping[str, Iterable[Any]]
) -> list[tuple[Labels, Scenario]]:
    """Return every combination of the variations, each as it would be alone."""
    for name, listed in variations.items():
        check_listed(name, listed)
    lists = [[without_array(value) for value in listed] for listed in variations.values()]
    labelled = [list(zip(labels_of(listed), listed, strict=True)) for listed in lists]
    for name, pairs in zip(variations, labelled, strict=True):
        if not pairs:
            raise ScenarioError(f"{shortened(name)}: no values to vary; give at least one")
        _check_distinct(name, [label for label, _ in pairs])
    found = []
    for scheme, start in schemes_of(base):
        for combination in itertools.product(*labelled):
            labels = dict(scheme)
            values = (value for _, value in combination)
            scenario, paths = _changed(start, dict(zip(variations, values, strict=True)))
            for number, (name, path) in enumerate(paths.items()):
                _check_not_of_schemes(base, name, path)
                if path in list(paths.values())[:number]:
                    raise ScenarioError(f"{name}: `{path}` is varied twice")
                labels[name] = combination[number][0]
            found.append((labels, scenario))
    return found


def check_listed(name: str, listed: Any) -> None:
    """Raise `ScenarioError` unless the values of a variation are several, such as a list."""
    if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Iterable):
        value = shortened(repr(listed))
        raise ScenarioError(f"{shortened(name)}: expected a list of values, such as [{value}]")


def _check_distinct(name: str, labels: Sequence[Any]) -> None:
    seen = set()
    for label in map(str, labels):
        if label in seen:
            raise ScenarioError(f"{shortened(name)}: duplicate value `{shortened(label)}`")
        seen.add(label)


def _check_not_of_schemes(base: Mapping[str, Any], name: str, path: str) -> None:
    """Raise `ScenarioError` if schemes of a scenario set the field that `name` denotes.

    Files as schemes, without fields in common, may have the field.
    """
    if SCHEMES not in base or len(base) == 1:
        return
    words = path.split(".")
    schemes = base[SCHEMES].items()
    setting = [scheme for scheme, changes in schemes if _sets(override({}, changes), words)]
    if setting:
        raise ScenarioError(
            f"{name}: is set by the schemes ({', '.join(setting)}); vary another field, or remove "
            "it from the schemes"
        )


def _sets(changes: Any, path: Sequence[str]) -> bool:
    """Return true if a table of changes contains the field at a path."""
    for word in path:
        if not (isinstance(changes, Mapping) and word in changes):
            return False
        changes = changes[word]
    return True


def schemes_of(scenario: Mapping[str, Any]) -> list[tuple[Labels, Scenario]]:
    """Return the schemes that a scenario names, each with its label and its scenario.

    A scenario without a table `schemes` is returned without a label.
    """
    if SCHEMES not in scenario:
        return [({}, dict(scenario))]
    base = {key: value for key, value in scenario.items() if key != SCHEMES}
    table = scenario[SCHEMES]
    if not (isinstance(table, Mapping) and table):
        raise ScenarioError(f"{SCHEMES}: expected tables of changes, such as [{SCHEMES}.pfc]")
    combinations: list[tuple[Labels, Scenario]] = []
    for name, changes in table.items():
        if not name:
            raise ScenarioError(f"{SCHEMES}: a scheme needs a name")
        if not isinstance(changes, Mapping):
            raise ScenarioError(
                f'{SCHEMES}.{name}: expected a table of changes, such as transport = "dctcp"'
            )
        if SCHEMES in changes:
            raise ScenarioError(f"{SCHEMES}.{name}: a scheme cannot name schemes")
        try:
            combinations.append(({SCHEME: name}, override(base, changes)))
        except ScenarioError as error:
            raise ScenarioError(f"{SCHEMES}.{name}: {error}") from None
    (first, seed), *others = (
        (labels[SCHEME], each.get("seed", 1)) for labels, each in combinations
    )
    for name, other in others:
        if other != seed:
            raise ScenarioError(
                f"seed: `{first}` has {seed} and `{name}` has {other}; "
                "schemes are compared on the same seeds"
            )
    return combinations


def as_schemes(scenarios: Mapping[Path, Scenario]) -> Scenario:
    """Return the scenarios of files as one scenario with schemes.

    A scheme has the `name` of its scenario, or that of its file if names are not different.
    """
    for path, scenario in scenarios.items():
        if SCHEMES in scenario:
            raise ScenarioError(f"{path}: names schemes; compare its schemes without other files")
    names = [str(scenario.get("name", "")) for scenario in scenarios.values()]
    stems = [path.stem for path in scenarios]
    candidates = [[] if "" in names or len(scenarios) == 1 else names, stems]
    are_distinct = (each for each in candidates if each and len(set(each)) == len(each))
    labels = next(are_distinct, list(map(str, scenarios)))
    return {SCHEMES: dict(zip(labels, scenarios.values(), strict=True))}


def scheme_alone(scenario: Mapping[str, Any], name: str | None) -> Scenario:
    """Return the scenario of a scheme that exists, in the environment that it has alone."""
    return next(each for labels, each in schemes_of(scenario) if labels.get(SCHEME) == name)


def scheme_names(scenario: Mapping[str, Any]) -> list[str]:
    """Return the names of the schemes of a scenario; an empty list without a table `schemes`."""
    return [str(labels[SCHEME]) for labels, _ in schemes_of(scenario) if SCHEME in labels]


def scheme_name(label: str, value: Any) -> str:
    """Return the name of a scheme: a string as it is, a number with the name of its label."""
    return value if isinstance(value, str) else f"{label}={value}"


def choose_scheme(scenario: Mapping[str, Any], name: str | None) -> Scenario:
    """Return the scenario of a scheme, in the environment that it has in a comparison of all.

    Without a name, the scenario must not name schemes.
    """
    names = scheme_names(scenario)
    if name is None and not names:
        return dict(scenario)
    if name not in names:
        if not names:
            raise ScenarioError(f"--scheme {name}: the scenario has no table `{SCHEMES}`")
        if name is None:
            raise ScenarioError(f"{SCHEMES}: give --scheme NAME, one of {', '.join(names)}")
        hint = did_you_mean(name, names)
        raise ScenarioError(f"--scheme {name}: expected one of {', '.join(names)}{hint}")
    return expand(scenario, {})[names.index(name)][1]


def check_schemes(scenario: Mapping[str, Any]) -> Scenario:
    """Return the complete scenario; of several schemes, those fields in `schemes` that differ."""
    if SCHEMES not in scenario:
        return check(scenario)
    complete = {labels[SCHEME]: check(scheme) for labels, scheme in expand(scenario, {})}
    first = next(iter(complete.values()))
    common = {
        key: value
        for key, value in first.items()
        if all(scheme.get(key) == value for scheme in complete.values())
    }
    different = {
        name: {key: value for key, value in scheme.items() if key not in common}
        for name, scheme in complete.items()
    }
    return {**common, SCHEMES: different}


def dropped_parameters(
    base: Mapping[str, Any], variations: Mapping[str, Sequence[Any]]
) -> list[str]:
    """Return a warning for each variation of a kind that drops parameters that `base` sets."""
    (_, scenario), *_ = schemes_of(base)
    paths = {name: _path(scenario, name) for name in variations}
    lines = []
    for name, varied in variations.items():
        path = paths[name].removesuffix(".kind")
        component = controller_files.as_written(fields.value_at(scenario, path))
        if not isinstance(component, Mapping) or is_file(component):
            continue
        # Parameters without a kind are of the default one.
        own = component.get("kind", "the default kind")
        kinds = [kind_of(value) for value in varied]
        given = {each.removeprefix(f"{path}.") for each in paths.values()}
        parameters = [each for each in _paths(component) if each != "kind"]
        drops: dict[Any, list[str]] = {}
        for kind, value in zip(kinds, varied, strict=True):
            kept = {*given, *(_paths(value) if isinstance(value, Mapping) else ())}
            if kind not in (None, "none", own):
                drops.setdefault(str(kind), [each for each in parameters if each not in kept])
        lost = {key for keys in drops.values() for key in keys}
        if lost:
            names = ", ".join(kind for kind, keys in drops.items() if keys)
            dropped = ", ".join(each for each in parameters if each in lost)
            keeps = f"; {own} keeps them" if own in kinds else ""
            lines.append(
                f"warning: {path}: parameters of {own} that the scenario sets are "
                f"dropped for {names}: {dropped}{keeps}"
            )
    return lines


def replaced_values(base: Mapping[str, Any], variations: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return a warning for each variation of a field in which the schemes differ without it."""
    lines = []
    for name in variations:
        values = {
            labels[SCHEME]: kind_of(
                fields.value_at(scenario, _path(scenario, name).removesuffix(".kind"))
            )
            for labels, scenario in schemes_of(base)
            if SCHEME in labels
        }
        if len(set(map(str, values.values()))) > 1:
            each = ", ".join(f"`{value}` of {scheme}" for scheme, value in values.items())
            lines.append(f"warning: {name}: its varied values replace {each}")
    return lines


def _path(scenario: Mapping[str, Any], name: str) -> str:
    """Return the path of a varied field; its name, if another variation selects its component."""
    try:
        return fields.find(scenario, name)
    except ScenarioError:
        return name


def _paths(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of the parameters in a table and in its tables."""
    for name, value in table.items():
        if isinstance(value, Mapping) and value and not is_file(value):
            yield from (f"{name}.{path}" for path in _paths(value))
        else:
            yield name


def labels_of(given: Sequence[Any]) -> list[Any]:
    """Return labels that distinguish values, all of one type, for a column of a table."""
    classes = {value.rpartition(":")[2] for value in given if controller_files.is_name(value)}
    if len(classes) == sum(map(controller_files.is_name, given)):
        given = [v.rpartition(":")[2] if controller_files.is_name(v) else v for v in given]
    kinds = {type(value) for value in given}
    if kinds <= {str} or kinds <= {bool} or kinds <= {int}:
        return list(given)
    if kinds <= {int, float}:
        return [float(value) for value in given]
    # For example `none` and a number, or a table.
    return [value if isinstance(value, str) else _as_label(value) for value in given]


def _as_label(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(value)


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Parse settings such as `load=0.2`, each of one value."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        name, parsed = name.strip(), values.split(listed)
        if equals and name and len(parsed) > 1:
            raise ScenarioError(
                f"--set {text}: expected one value, not {len(parsed)} between commas; a list is "
                "[A, B], and a decimal point is `.`"
            )
        if not (equals and name and len(parsed) == 1):
            raise ScenarioError(f"--set {text}: expected NAME=VALUE, such as load=0.2")
        if name in settings:
            raise ScenarioError(f"--set {text}: `{name}` is given twice")
        settings[name] = parsed[0]
    return settings


def with_settings(scenario: Mapping[str, Any], settings: Mapping[str, Any]) -> Scenario:
    """Return the scenario with settings by short name or path."""
    return _changed(scenario, settings)[0]


def _changed(
    scenario: Mapping[str, Any], changes: Mapping[str, Any]
) -> tuple[Scenario, dict[str, str]]:
    """Return the scenario with changes by short name or path, and the path of each.

    The order of changes is irrelevant: a component precedes its parameters. The scenario may be
    invalid after some of the changes.
    """
    changed, complete, paths = dict(scenario), scenario, dict[str, str]()
    while pending := [name for name in changes if name not in paths]:
        errors, found = [], {}
        try:
            complete = fields.completed(changed)
        except ScenarioError as error:
            if not paths:
                raise
            errors.append(error)
        for name in pending:
            try:
                found[name] = fields.find(changed, name, complete)
            except ScenarioError as error:
                errors.append(error)
        if not found:
            raise errors[0]
        name = min(found, key=lambda name: _depth(found[name]))
        paths[name] = found[name]
        changed = override(changed, {found[name]: changes[name]})
    return changed, {name: paths[name] for name in changes}


def parse_variations(texts: Iterable[str]) -> dict[str, list[Any]]:
    """Parse variations of different parameters."""
    variations: dict[str, list[Any]] = {}
    for text in texts:
        name, parsed = parse_variation(text)
        if name in variations:
            raise ScenarioError(
                f"--vary {text}: `{name}` is given twice; list all values in one --vary"
            )
        variations[name] = parsed
    return variations


def parse_variation(text: str) -> tuple[str, list[Any]]:
    """Parse a variation such as `load=0.2,0.8` or `load=0.1:0.9:0.2` (first, last, step)."""
    name, equals, listed = text.partition("=")
    try:
        parsed = values.parse(listed)
    except ScenarioError as error:
        raise ScenarioError(f"--vary {shortened(text)}: {error}") from None
    if not (equals and name.strip() and parsed):
        raise ScenarioError(f"--vary {text}: expected NAME=VALUE,VALUE, such as load=0.2,0.8")
    if name.strip() == "seed":
        raise ScenarioError(f"--vary {text}: cannot vary seeds; `--seeds N` runs N seeds")
    return name.strip(), parsed
