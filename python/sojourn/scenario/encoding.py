"""Encoding of scenarios for the core: JSON and, separately, the texts of files."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base.memory import budget
from sojourn.scenario import controller_files, fidelity
from sojourn.scenario.reading import Scenario, ScenarioLike, as_scenario, with_files

SCHEMES = "schemes"
"""Table of a scenario file with changes by name of the scheme; a run has one scheme."""


def check(scenario: ScenarioLike, memory: int | None = None) -> Scenario:
    """Return the scenario with all defaults filled in.

    Raises `ScenarioError` for an invalid scenario, and for one that needs more than `memory` bytes
    (default: 90 % of the free memory).
    """
    prepared = Prepared(scenario)
    prepared.core.check(budget(memory))
    return prepared.complete()


def queues(scenario: ScenarioLike) -> list[dict[str, Any]]:
    """Return the queues in force, as `queues` of a run's summary; an empty list for an ideal."""
    in_force: list[dict[str, Any]] = json.loads(Prepared(scenario).core.queues())
    return in_force


def trace(scenario: ScenarioLike) -> dict[str, Any]:
    """Return the columns of the flows of the workload."""
    return Prepared(scenario).core.trace(budget())


class Prepared:
    """Scenario encoded for the core. The core parses it and builds its network once.

    Attributes:
        text: the scenario as JSON, with indices in place of the texts of files.
        texts: the texts of files.

    """

    def __init__(self, scenario: ScenarioLike) -> None:
        """Read the files of the scenario; raise `ScenarioError` if the core cannot parse it."""
        scenario = as_scenario(scenario)
        if SCHEMES in scenario:
            raise ScenarioError(
                f"{SCHEMES}: a run has one scheme: `sojourn run --scheme NAME` runs one, "
                "`sojourn compare` all; in Python `expand` returns the scenario of each"
            )
        # How the scenario is answered is not the core's concern.
        self._fidelity = scenario.get(fidelity.FIELD)
        if self._fidelity is not None:
            self._fidelity = fidelity.read(self._fidelity).as_table()
        fields = {name: value for name, value in scenario.items() if name != fidelity.FIELD}
        self.text, self.texts = encode(fields)
        self._core: _core.Prepared | None = _core.prepare(self.text, self.texts)
        _check_classes(fields.get("workload"), "workload")

    @property
    def core(self) -> _core.Prepared:
        """The parsed scenario of the core; parsed again after `release`."""
        if self._core is None:
            self._core = _core.prepare(self.text, self.texts)
        return self._core

    def release(self) -> None:
        """Free the parsed scenario and its network, which a large sweep cannot keep for all."""
        self._core = None

    def complete(self) -> Scenario:
        """Return the scenario with all defaults filled in."""
        given = {} if self._fidelity is None else {fidelity.FIELD: self._fidelity}
        return with_texts(json.loads(self.core.show()), self.texts) | given


ALL_FLOWS = "all"
"""Name of all flows in tables beside those of classes."""

OF_CALLS = (" request", " response")
"""Endings of the classes of the two flows of a call."""


def _check_classes(workload: Any, field: str) -> None:
    """Raise `ScenarioError` for a class whose flows would count as all flows or as calls."""
    if not isinstance(workload, Mapping):
        return
    for index, part in enumerate(workload.get("parts", ())):
        _check_classes(part, f"{field}.parts[{index}]")
    name = str(workload.get("class", ""))
    if name == ALL_FLOWS:
        raise ScenarioError(f"{field}.class: must not be `{ALL_FLOWS}`, which names all flows")
    if name.endswith(OF_CALLS):
        endings = " or ".join(f"`{ending}`" for ending in OF_CALLS)
        raise ScenarioError(
            f"{field}.class: must not end in {endings}, as classes of calls do, not `{name}`"
        )


def encode(scenario: ScenarioLike) -> tuple[str, list[str]]:
    """Return the scenario as JSON, and the texts of its files as a list.

    The JSON contains indices into the list in place of the texts, so that long texts are not
    copied.
    """
    texts: dict[str, int] = {}

    def index(text: Any) -> Any:
        return texts.setdefault(text, len(texts)) if isinstance(text, str) else text

    return as_json(_with_texts(with_files(scenario), index)), list(texts)


def with_texts(scenario: Mapping[str, Any], texts: Sequence[str]) -> Scenario:
    """Return a scenario of the core with the texts of files in place of their indices."""
    replaced: Scenario = _with_texts(
        scenario, lambda index: texts[index] if isinstance(index, int) else index
    )
    return replaced


OF_CONTROLLER = "parameters"
"""Field with the parameters of a controller in Python, whose values are its own."""


def _with_texts(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a value in which `replace` has replaced the texts of files."""
    if isinstance(value, Mapping):
        is_file, replaced = value.keys() == {"name", "text"}, {}
        for key, inner in value.items():
            if is_file and key == "text":
                replaced[key] = replace(inner)
            else:
                replaced[key] = inner if key == OF_CONTROLLER else _with_texts(inner, replace)
        return replaced
    if isinstance(value, list | tuple):
        return [_with_texts(inner, replace) for inner in value]
    return value


def as_json(scenario: Mapping[str, Any]) -> str:
    """Return the scenario as canonical JSON: equal scenarios have equal texts."""
    try:
        return json.dumps(scenario, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ScenarioError(
            f"scenario: must contain only strings, numbers, lists and tables: {error}"
        ) from None


def parts() -> dict[str, Any]:
    """Return the components of every family, each with its parameters."""
    families: dict[str, Any] = json.loads(_core.parts())
    families["scenario"][0]["parameters"] += fidelity.parameters()
    return families


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 7) of scenario files.

    The schema covers fields, components, types and mandatory fields. Ranges of numbers and
    dependencies between fields are checked by `check`.
    """
    document: dict[str, Any] = json.loads(_core.schema())
    # A Python controller may have any parameters, and may be given by its name only.
    transports = document["definitions"]["transport"]["anyOf"]
    python = next(item for item in transports if item.get("title") == controller_files.KIND)
    python["additionalProperties"] = True
    by_name = {"type": "string", "pattern": controller_files.NAME.pattern}
    transports += [by_name, {"properties": {"kind": by_name}, "required": ["kind"]}]
    for field in ("queue", "host_queue"):
        # Parameters alone are of the queue that the transport was designed for.
        document["properties"][field]["anyOf"].append(
            {"not": {"required": ["kind"]}} | {"type": "object"}
        )
    document["properties"][fidelity.FIELD] = fidelity.SCHEMA
    document["properties"][SCHEMES] = {
        "description": "Schemes to compare, by name: changes of the other fields, as in "
        "`[schemes.pfc]` with `switch.pause = {}`. An entry of a list is named by its index, and a "
        "part of a mixed workload by its class.",
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "object"},
    }
    return document
