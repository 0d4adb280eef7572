"""Choice of the fidelity `auto`: the same one for all scenarios that are run together.

Packets, if each run fits the memory and the time; else samples, if the parts of the network are
alike; else flows. The time is that of the core's estimate at a fixed speed, so that the choice does
not depend on the speed, the load or the threads of the machine.
"""

import copy
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from sojourn.base.errors import naming
from sojourn.base.units import format_long_time, format_memory
from sojourn.runs.results import Result
from sojourn.scale.fold import are_alike
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.fidelity import AUTO, FIELD, FIELDS, FLOWS, PACKETS, SAMPLE, read
from sojourn.scenario.reading import Scenario, ScenarioLike, as_scenario

LONGEST_S = 600.0
"""Expected time of a run on one core up to which packets are simulated."""

HOPS_PER_SECOND = 4e6
"""Packet-hops per second of one core in networks of 8192 hosts, where 3 to 6 million are usual."""


def resolved(
    names: Sequence[str], scenarios: Sequence[ScenarioLike], memory_limit: int
) -> list[tuple[Mapping[str, Any], str]]:
    """Return the scenarios with a chosen fidelity in place of `auto`, and the reason of the choice.

    The reason is empty for other scenarios. Errors begin with names, if not empty.
    """
    given = [as_scenario(scenario) for scenario in scenarios]
    needs = {}
    for number, (name, scenario) in enumerate(zip(names, given, strict=True)):
        with naming(name):
            if read(scenario.get(FIELD, PACKETS)).kind == AUTO:
                needs[number] = _needs(scenario)
    if not needs:
        return [(scenario, "") for scenario in given]
    seconds, memory, alike = zip(*needs.values(), strict=True)
    kind, reason = _choose(max(seconds), max(memory), memory_limit, alike=all(alike))
    return [
        (_with_kind(scenario, kind), reason) if number in needs else (scenario, "")
        for number, scenario in enumerate(given)
    ]


def with_reason(result: Result, reason: str) -> Result:
    """Return a result whose summary has the reason of the choice; the same one without a reason."""
    if not reason:
        return result
    chosen = copy.copy(result)
    fidelity = {"kind": PACKETS} | result.summary.get("fidelity", {}) | {"reason": reason}
    chosen.summary = result.summary | {"fidelity": fidelity}
    return chosen


def _needs(scenario: Mapping[str, Any]) -> tuple[float, float, bool]:
    """Return the expected seconds on one core, the bytes, and if all parts are alike."""
    prepared = Prepared({name: value for name, value in scenario.items() if name != FIELD})
    estimate = json.loads(prepared.core.estimate())
    seconds = estimate["packet_hops"] / HOPS_PER_SECOND
    return seconds, estimate["bytes"], are_alike(prepared.complete()["workload"])


def _choose(seconds: float, memory: float, memory_limit: float, *, alike: bool) -> tuple[str, str]:
    time = f"{format_long_time(seconds)} on one core (limit {format_long_time(LONGEST_S)})"
    space = f"{format_memory(memory)} of memory"
    if memory_limit < sys.maxsize:
        space += f" (limit {format_memory(memory_limit)})"
    if seconds <= LONGEST_S and memory <= memory_limit:
        return PACKETS, f"{AUTO} chose {PACKETS}: about {time}, {space}"
    kind, why = (SAMPLE, "all racks are alike") if alike else (FLOWS, "racks of a trace differ")
    cost = time if seconds > LONGEST_S else space
    return kind, f"{AUTO} chose {kind}: packets need about {cost}, and {why}"


def _with_kind(scenario: Mapping[str, Any], kind: str) -> Scenario:
    given = read(scenario[FIELD]).as_table()
    table = {name: given[name] for name in FIELDS[kind] if name in given}
    return {**scenario, FIELD: {"kind": kind, **table}}
