"""Scenarios as the core reads and shows them: JSON, with the texts of files beside it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base.memory import budget
from sojourn.scenario import controller_files
from sojourn.scenario.reading import Scenario, with_files


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
    of_class = next(one for one in transports if one.get("title") == controller_files.KIND)
    of_class["additionalProperties"] = True
    by_name = {"type": "string", "pattern": controller_files.NAME.pattern}
    transports += [by_name, {"properties": {"kind": by_name}, "required": ["kind"]}]
    return made
