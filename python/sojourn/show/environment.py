"""Environment of runs in words: what surrounds the congestion control law, and how schemes differ.

The environment is hosts, loss recovery, queues, switches and packets.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sojourn.runs.results import Result, Run

LAW = "transport"
"""Field of the control law; its table `reliability` belongs to the environment."""

SHOWN_DIFFERENCES = 8
"""Most differences that a line lists."""


def environment_line(result: Result) -> str:
    """Return the environment of a run in one line."""
    scenario = result.summary["scenario"]
    packet = scenario["packet"]
    parts = [f"packets of {packet['payload']} + {packet['header']}"]
    if isinstance(scenario[LAW], Mapping) and "reliability" in scenario[LAW]:
        parts += _reliability(scenario[LAW]["reliability"])
    if result.summary.get("queues"):
        parts += [_queue(queues["switch"]) for queues in result.summary["queues"][:1]]
        parts += _switch(scenario["switch"])
    return f"environment: {scenario['environment']}: {', '.join(parts)}"


def _reliability(reliability: Mapping[str, Any]) -> list[str]:
    handshake = "a handshake" if reliability["handshake"] else "open connections"
    fixed = reliability["fixed_rto"]
    rto = f"RTO ≥ {reliability['min_rto']}" if fixed == "none" else f"RTO {fixed}"
    return [handshake, reliability["recovery"], rto]


def _queue(queue: Mapping[str, Any]) -> str:
    limit = queue.get("capacity", "none")
    return f"{queue['kind']} {'without limit of its own' if limit == 'none' else f'of {limit}'}"


def _switch(switch: Mapping[str, Any]) -> list[str]:
    if switch["shared_buffer"] == "none":
        return []
    pauses = "" if switch["pause"] == "none" else " with pause frames"
    return [f"shared buffer of {switch['shared_buffer']}{pauses}"]


def difference_lines(runs: Iterable[Run], by: str) -> list[str]:
    """Return a line on how schemes differ beyond their law, or nothing if they do not.

    Schemes are the values of the label `by`.
    """
    scenarios = {run.labels[by]: run.result.summary for run in runs}
    if len(scenarios) < 2 or not by.startswith(LAW):
        return []
    fields = {name: dict(_environment(summary)) for name, summary in scenarios.items()}
    paths = list(dict.fromkeys(path for table in fields.values() for path in table))
    lines = []
    for path in paths:
        values = {name: table.get(path) for name, table in fields.items()}
        if len({json.dumps(value) for value in values.values()}) > 1:
            each = (f"{name} {_word(value)}" for name, value in values.items() if value is not None)
            lines.append(f"{path} ({', '.join(each)})")
    if not lines:
        return ["the schemes differ in nothing but their law and its parameters"]
    more = f"; {len(lines) - SHOWN_DIFFERENCES} more" if len(lines) > SHOWN_DIFFERENCES else ""
    return [f"beyond their law, schemes differ in {', '.join(lines[:SHOWN_DIFFERENCES])}{more}"]


def _environment(summary: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a run's environment with their paths."""
    scenario = summary["scenario"]
    for name in ("environment", "packet", "host", "switch", "routing"):
        yield from _leaves(scenario[name], name)
    if isinstance(scenario[LAW], Mapping):
        yield from _leaves(scenario[LAW].get("reliability", {}), "reliability")
    for queues in summary.get("queues", [])[:1]:
        yield "queue", queues["switch"]["kind"]
        yield from _leaves({"capacity": queues["switch"].get("capacity", "none")}, "queue")
        yield "host_queue", queues["host"]["kind"]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    else:
        yield path, value


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
