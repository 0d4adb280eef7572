"""Choice of the fidelity `auto`: the same one for all scenarios that are run together.

Packets, if each run fits the memory and the time; else samples, if the parts of the network are
alike; else flows. The time is that of the core's estimate at a fixed speed, so that the choice does
not depend on the speed, the load or the threads of the machine.
"""

import copy
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sojourn._core import ScenarioError
from sojourn.base.errors import naming
from sojourn.base.units import format_long_time, format_memory
from sojourn.runs.results import Result
from sojourn.scale.fold import are_alike
from sojourn.scale.network import read_network
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.fidelity import AUTO, FIELD, FLOWS, PACKETS, SAMPLE, read, with_kind
from sojourn.scenario.reading import ScenarioLike, as_scenario

LONGEST_S = 600.0
"""Expected time of a run on one core up to which packets are simulated."""

HOPS_PER_SECOND = 4e6
"""Assumed packet-hops per second of one core: 2 to 11 million were measured with 8192 hosts."""


def resolved(
    names: Sequence[str], scenarios: Sequence[ScenarioLike], memory_limit: int
) -> list[tuple[Mapping[str, Any], str]]:
    """Return the scenarios with a chosen fidelity in place of `auto`, and the reason of the choice.

    The reason is empty for other scenarios. Errors begin with names, if not empty.
    """
    given = [as_scenario(scenario) for scenario in scenarios]
    costs: dict[int, _Cost] = {}
    for number, (name, scenario) in enumerate(zip(names, given, strict=True)):
        with naming(name):
            if read(scenario.get(FIELD, PACKETS)).kind == AUTO:
                costs[number] = _cost(scenario)
    if not costs:
        return [(scenario, "") for scenario in given]
    kind, reason = _choose([*costs.values()], memory_limit)
    return [
        (with_kind(scenario, kind), reason) if number in costs else (scenario, "")
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


class _Cost(NamedTuple):
    """Cost of a run of the packets, and what could replace it."""

    seconds: float
    """Expected time on one core."""
    memory: float
    """Expected memory in bytes."""
    can_shrink: bool
    """False if the network is as small as its fold."""
    are_alike: bool
    """True if all racks have the same load."""


def _cost(scenario: Mapping[str, Any]) -> _Cost:
    prepared = Prepared({name: value for name, value in scenario.items() if name != FIELD})
    estimate = json.loads(prepared.core.estimate())
    seconds = estimate["packet_hops"] / HOPS_PER_SECOND
    complete = prepared.complete()
    try:
        can_shrink = read_network(complete["topology"]).hosts > read(scenario[FIELD]).hosts
    except ScenarioError:
        # A topology that does not fold is an error of the plan.
        can_shrink = True
    return _Cost(seconds, estimate["bytes"], can_shrink, are_alike(complete["workload"]))


def _choose(costs: Sequence[_Cost], memory_limit: int) -> tuple[str, str]:
    """Return the fidelity that suits all runs, and why."""
    seconds, memory = max(run.seconds for run in costs), max(run.memory for run in costs)
    time = f"about {format_long_time(max(1.0, seconds))} on one core"
    time += f" (limit {format_long_time(LONGEST_S)})"
    space = f"about {format_memory(memory)} of memory"
    if memory_limit < sys.maxsize:
        space += f" (limit {format_memory(memory_limit)})"
    if seconds <= LONGEST_S and memory <= memory_limit:
        return PACKETS, f"{AUTO} chose {PACKETS}: {time}, {space}"
    cost = time if seconds > LONGEST_S else space
    if not all(run.can_shrink for run in costs):
        raise ScenarioError(
            f"{FIELD}: packets need {cost}, and the network is as small as its fold; shorten "
            f"the run, or name `{PACKETS}`"
        )
    alike = all(run.are_alike for run in costs)
    kind, why = (SAMPLE, "all racks are alike") if alike else (FLOWS, "racks of a trace differ")
    return kind, f"{AUTO} chose {kind}: packets need {cost}, and {why}"
