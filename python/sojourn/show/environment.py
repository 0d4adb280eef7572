"""Environment of runs in words: what surrounds the congestion control law, and how schemes differ.

The environment is hosts, loss recovery, queues, switches and packets.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sojourn.runs.results import Result, Run
from sojourn.scenario.overrides import SCHEME

LAW = "transport"
"""Field of the control law; its table `reliability` belongs to the environment."""

SHOWN_DIFFERENCES = 8
"""Most differences that a line lists."""


def environment_line(result: Result) -> str:
    """Return the environment of a run in one line."""
    scenario = result.summary["scenario"]
    packet = scenario["packet"]
    parts = [f"packets of {packet['payload']} + {packet['header']}"]
    if reliability := _reliability(scenario[LAW]):
        parts += _recovery(reliability)
    if queues := result.summary.get("queues"):
        parts += [_queue(queues[0]["switch"]), *_switch(scenario["switch"])]
    return f"environment: {scenario['environment']}: {', '.join(parts)}"


def _reliability(transport: Any) -> Mapping[str, Any]:
    """Return the reliability of a transport, or that of the transport that it extends."""
    if not isinstance(transport, Mapping):
        return {}
    tables = [transport, *(value for value in transport.values() if isinstance(value, Mapping))]
    return next((table["reliability"] for table in tables if "reliability" in table), {})


def _recovery(reliability: Mapping[str, Any]) -> list[str]:
    handshake = "a handshake" if reliability["handshake"] else "open connections"
    fixed = reliability["fixed_rto"]
    rto = f"RTO ≥ {reliability['min_rto']}" if fixed == "none" else f"RTO {fixed}"
    return [handshake, reliability["recovery"], rto]


def _queue(queue: Mapping[str, Any]) -> str:
    limit = queue.get("capacity", "none")
    size = "without limit of its own" if limit == "none" else f"of {limit}"
    return f"{queue['kind']} {size}"


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
    are_named = by == SCHEME
    if len(scenarios) < 2 or not (are_named or by.startswith(LAW)):
        return []
    fields = {
        name: dict([*_environment(summary), *(_experiment(summary) if are_named else ())])
        for name, summary in scenarios.items()
    }
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
    yield from _leaves(_reliability(scenario[LAW]), "reliability")
    if queues := summary.get("queues"):
        yield "queue", queues[0]["switch"]["kind"]
        yield "queue.capacity", queues[0]["switch"].get("capacity", "none")
        yield "host_queue", queues[0]["host"]["kind"]


def _experiment(summary: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a run's network and workload with their paths."""
    for name in ("topology", "workload", "model", "warm_up", "time_limit"):
        yield from _leaves(summary["scenario"][name], name)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list) and any(isinstance(entry, Mapping) for entry in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{index}")
    else:
        yield path, value


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
