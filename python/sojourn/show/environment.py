"""Environment of runs in words: what surrounds the congestion control law, and how schemes differ.

The environment is hosts, loss recovery, queues, switches and packets.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sojourn.base.units import format_bit_rate
from sojourn.runs.results import Result, Run
from sojourn.scenario.overrides import SCHEME, scheme_name
from sojourn.scenario.reading import kind_of

LAW = "transport"
"""Field of the control law; its table `reliability` belongs to the environment."""

OF_CLASSES = "transports"
"""Field of the transports of classes of flows."""

ENVIRONMENT = "environment"
"""Field of the environment."""

REASONS = {
    "internet": " (automatic: base RTT of 1 ms or more)",
    "lossy_datacentre": " (automatic: base RTT below 1 ms)",
    "lossless_datacentre": " (automatic: base RTT below 1 ms, a transport for lossless networks)",
}
"""Reasons of automatic environments."""

OF_ENVIRONMENT = ("packet.", "host.", "switch.", "reliability.", "queue.", "routing")
"""Beginnings of the fields that an environment sets."""

ONE_PATH = ("flow_hash", "ecmp")
"""Routings that the line on the environment leaves out."""

ACKS_AT_END = ("expresspass", "homa", "phost")
"""Transports whose receivers acknowledge a flow when they have all of its data."""

WHOLE_SEGMENTS = ("none", "per_segment")
"""Window and sampling of segments with one ACK each."""

SHOWN_DIFFERENCES = 8
"""Most differences that a line lists."""


def environment_line(result: Result, *, is_automatic: bool = False) -> str:
    """Return the environment of a run in one line, with the reason if it `is_automatic`."""
    scenario = result.summary["scenario"]
    packet = scenario["packet"]
    parts = [f"packets of {packet['payload']} + {packet['header']}"]
    if reliability := _reliability(scenario[LAW]):
        parts += _recovery(reliability)
    if queues := result.summary.get("queues"):
        parts += [_queue(queues[0]["switch"]), *_switch(scenario["switch"])]
    if (routing := kind_of(scenario["routing"])) not in ONE_PATH:
        parts.append(f"routing {routing}")
    reason = REASONS.get(scenario["environment"], "") if is_automatic else ""
    return f"environment: {scenario['environment']}{reason}: {', '.join(parts)}"


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


def in_force_lines(scenario: Mapping[str, Any], queues: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the queues at each link rate, the buffers of switches, and hosts and ACKs.

    `scenario` is complete, and `queues` has the form of a run's summary; no lines for an ideal.
    """
    queues = list(queues)
    if not queues:
        return []
    switch, host = scenario["switch"], scenario["host"]
    buffers = _switch(switch) or ["no shared buffer"]
    pauses = [] if switch["pause"] != "none" else ["no pause frames"]
    hosts = [f"service {host['service']}", *_acks(scenario[LAW])]
    return [
        *queue_lines(queues),
        f"buffers: {', '.join([*buffers, *pauses])}",
        f"hosts: {'; '.join(hosts)}",
    ]


def queue_lines(queues: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each traffic class: its queues, with capacity and thresholds by rate."""
    queues = list(queues)
    lines = []
    for entry in queues:
        if not entry.get("ports"):
            continue
        sides = []
        for at, place in (("switch", "switches"), ("host", "hosts")):
            ports = [port for port in entry["ports"] if port["at"] == at]
            if ports:
                sides.append(f"{place}: {entry[at]['kind']}, {_limits(ports)}")
        traffic_class = f" of traffic class {entry['class']}" if len(queues) > 1 else ""
        lines.append(f"queues{traffic_class}: {'; '.join(sides)}")
    return lines


def fitted_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return the parameters of transports that follow the sizes of their flows, of a run."""
    lines = []
    for field, fitted in summary.get("fitted", {}).items():
        name = field.removeprefix(f"{OF_CLASSES}.")
        scenario = summary["scenario"]
        given = scenario[LAW] if field == LAW else scenario[OF_CLASSES][name]
        changed = [f"{key} {value}" for key, value in fitted.items() if value != given[key]]
        lines.append(f"{field}: {', '.join(changed)} (from the sizes of its flows)")
    return lines


def _limits(ports: Iterable[Mapping[str, Any]]) -> str:
    """Return the capacity and thresholds of ports: once if they are those of all rates."""
    ports = list(ports)
    names = [name for name in ports[0] if name not in ("at", "rate_bps", "links")]
    texts = []
    for name in sorted(names, key=lambda name: name == "capacity"):
        values = list(dict.fromkeys(port[name] for port in ports))
        if name == "capacity" and values == ["none"]:
            texts.append("no limit of its own")
        elif len(values) == 1 and len(ports) > 1:
            texts.append(f"{name} {values[0]}")
        else:
            each = (f"{port[name]} at {format_bit_rate(port['rate_bps'])}" for port in ports)
            texts.append(f"{name} {', '.join(each)}")
    return ", ".join(texts)


def _acks(transport: Any) -> list[str]:
    """Return what an ACK acknowledges; nothing for transports that define it otherwise."""
    reliability = _reliability(transport)
    if not reliability or transport["kind"] in ACKS_AT_END:
        return []
    if "ack_bytes" in transport:
        return [f"an ACK for every {transport['ack_bytes']} of new data"]
    if reliability["delayed_ack"] != "none":
        return [f"ACKs delayed by up to {reliability['delayed_ack']}"]
    segments = transport.get("segments", "none")
    if segments != "none" and (segments["window"], segments["sampling"]) == WHOLE_SEGMENTS:
        return [f"an ACK for every segment of {segments['size']}"]
    every = transport.get("ack_every", 1)
    return [f"an ACK for every {'data packet' if every == 1 else f'{every} data packets'}"]


def environment_lines(runs: Iterable[Run], by: str) -> list[str]:
    """Return a line for each environment of the runs, which are named by their label `by`.

    Queues and loss recovery of runs in one environment may differ: the line is that of the first.
    """
    runs = list(runs)
    first: dict[str, Run] = {}
    for run in runs:
        first.setdefault(str(run.result.summary["scenario"]["environment"]), run)
    texts = {environment_line(run.result) for run in runs}
    if len(texts) == 1:
        return list(texts)
    prefix = "environment"
    return [
        f"{prefix} of {scheme_name(by, run.labels[by])}"
        + environment_line(run.result).removeprefix(prefix)
        for run in first.values()
    ]


def difference_lines(runs: Iterable[Run], by: str) -> list[str]:
    """Return a line on how schemes differ apart from congestion control.

    Schemes are the values of the label `by`. Fields that follow from the environment are omitted if
    environments differ.
    """
    scenarios = {scheme_name(by, run.labels[by]): run.result.summary for run in runs}
    are_named = by == SCHEME
    # A component and its kind are one field, as in `queue=codel` and `queue.kind=codel`.
    varied = by.removesuffix(".kind")
    if len(scenarios) < 2:
        return []
    of_class = dict.fromkeys(
        cls for each in scenarios.values() for cls in each["scenario"][OF_CLASSES]
    )
    fields = {
        name: dict([*_environment(summary, of_class), *(_experiment(summary) if are_named else ())])
        for name, summary in scenarios.items()
    }
    paths = list(dict.fromkeys(path for table in fields.values() for path in table))
    environments = {name: str(table[ENVIRONMENT]) for name, table in fields.items()}
    lines = []
    for path in paths:
        values = {name: _value(table, path) for name, table in fields.items()}
        texts = {name: json.dumps(value) for name, value in values.items()}
        is_varied = f".{path}".endswith(f".{varied}")
        if len(set(texts.values())) < 2 or is_varied or _follows(path, texts, environments):
            continue
        each = (f"{name} {_word(value)}" for name, value in values.items() if value is not None)
        lines.append(f"{path} ({', '.join(each)})")
    # A table stands for its fields.
    lines = [line for line in lines if not any(_is_inside(line, other) for other in lines)]
    is_law = are_named or by.startswith(LAW)
    if not lines:
        same = "the schemes differ only in congestion control and its parameters"
        return [same] if is_law else []
    more = f"; {len(lines) - SHOWN_DIFFERENCES} more" if len(lines) > SHOWN_DIFFERENCES else ""
    shown = ", ".join(lines[:SHOWN_DIFFERENCES])
    subject = "apart from congestion control, schemes" if is_law else "runs also"
    return [f"{subject} differ in {shown}{more}"]


def _value(fields: Mapping[str, Any], path: str) -> Any:
    """Return the value of a field; `given` if it is a table, `None` if it is missing."""
    if path in fields or not any(name.startswith(f"{path}.") for name in fields):
        return fields.get(path)
    return "given"


def _follows(path: str, texts: Mapping[str, str], environments: Mapping[str, str]) -> bool:
    """Return true if a field of the environment has one value in each of several environments."""
    pairs = {(environments[name], text) for name, text in texts.items()}
    names = set(environments.values())
    is_set = path.startswith(OF_ENVIRONMENT) or _is_of_class(path)
    return is_set and 1 < len(names) == len(pairs)


def _is_of_class(path: str) -> bool:
    """Return true for a field of the loss recovery of a class."""
    return path.startswith(f"{OF_CLASSES}.") and ".reliability." in path


def _is_inside(line: str, other: str) -> bool:
    path, table = (text.partition(" (")[0] for text in (line, other))
    return path.startswith(f"{table}.")


def _environment(summary: Mapping[str, Any], classes: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a run's environment with their paths, of the transports of classes too.

    A class without a transport of its own has that of the scenario.
    """
    scenario = summary["scenario"]
    for name in (ENVIRONMENT, "packet", "host", "switch", "routing"):
        yield from _leaves(scenario[name], name)
    yield from _leaves(_reliability(scenario[LAW]), "reliability")
    for name in classes:
        transport = scenario[OF_CLASSES].get(name, scenario[LAW])
        yield from _leaves(_reliability(transport), f"{OF_CLASSES}.{name}.reliability")
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
