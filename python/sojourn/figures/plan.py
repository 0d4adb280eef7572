"""Plans: estimated cost of figures at a scale, before their runs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn.base.memory import budget
from sojourn.figures.figure import Figure
from sojourn.runs import answers, choice
from sojourn.runs.machine import REFERENCE
from sojourn.runs.runner import key, run
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.reading import as_scenario

BREAKDOWN_COST = 2.0
"""CPU time per packet-hop with the FCT breakdown over that without (docs/performance.md)."""


@dataclass(frozen=True)
class Plan:
    """Estimated cost of a figure."""

    figure: str
    runs: int
    cached: int
    """Number of runs with results in the cache."""
    packet_hops: float
    """Packet-hops of the other runs: each packet or ACK counts once per link."""
    cost: float
    """CPU time of the other runs, as the packet-hops that runs without breakdown do in it."""


def plan_figures(figures: Iterable[Figure], scale: str, cache: Path | None) -> list[Plan]:
    """Return the plan of each figure; a run that several figures share counts for the first."""
    seen: set[str] = set()
    plans = []
    for figure in figures:
        planned = [scenario for _, scenario in figure.plan(scale)]
        chosen = choice.resolved([""] * len(planned), planned, budget())
        parts = (part for scenario, _ in chosen for part in answers.plan(scenario).scenarios)
        scenarios = {key(part): part for part in parts}
        missing = {name: item for name, item in scenarios.items() if not _is_cached(cache, name)}
        new = [as_scenario(item) for name, item in missing.items() if name not in seen]
        seen |= missing.keys()
        hops = [_estimated_hops(item) for item in new]
        cost = sum(count * _cost_per_hop(item) for count, item in zip(hops, new, strict=True))
        cached = len(scenarios) - len(missing)
        plans.append(Plan(figure.id, len(scenarios), cached, sum(hops), cost))
    return plans


def _is_cached(cache: Path | None, name: str) -> bool:
    return cache is not None and (cache / name).exists()


def _estimated_hops(scenario: Mapping[str, Any]) -> float:
    return float(json.loads(Prepared(scenario).core.estimate())["packet_hops"])


def _cost_per_hop(scenario: Mapping[str, Any]) -> float:
    return BREAKDOWN_COST if scenario.get("account") else 1.0


def hops_per_cpu_second() -> float:
    """Measure the speed of this machine on a small network.

    A packet-hop in a network of 1024 hosts takes four times as long.
    """
    summary = run(REFERENCE | {"time_limit": "3 ms"}, threads=1).summary
    return float(sum(summary["counts"]["packet_hops"].values()) / summary["cpu_seconds"])
