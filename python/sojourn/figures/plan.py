"""Plans: estimated cost of figures at a scale, before their runs."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sojourn.figures.figure import Figure
from sojourn.runs import answers
from sojourn.runs.machine import REFERENCE
from sojourn.runs.runner import key, run
from sojourn.scenario.encoding import Prepared
from sojourn.scenario.reading import ScenarioLike


@dataclass(frozen=True)
class Plan:
    """Estimated cost of a figure."""

    figure: str
    runs: int
    cached: int
    """Number of runs with results in the cache."""
    packet_hops: float
    """Packet-hops of the other runs: each packet or ACK counts once per link."""


def plan_figures(figures: Iterable[Figure], scale: str, cache: Path | None) -> list[Plan]:
    """Return the plan of each figure; a run that several figures share counts for the first."""
    seen: set[str] = set()
    plans = []
    for figure in figures:
        parts = (
            part for _, scenario in figure.plan(scale) for part in answers.plan(scenario).scenarios
        )
        scenarios = {key(part): part for part in parts}
        missing = {name: item for name, item in scenarios.items() if not _is_cached(cache, name)}
        hops = sum(_estimated_hops(item) for name, item in missing.items() if name not in seen)
        seen |= missing.keys()
        plans.append(Plan(figure.id, len(scenarios), len(scenarios) - len(missing), hops))
    return plans


def _is_cached(cache: Path | None, name: str) -> bool:
    return cache is not None and (cache / name).exists()


def _estimated_hops(scenario: ScenarioLike) -> float:
    return float(json.loads(Prepared(scenario).core.estimate())["packet_hops"])


def hops_per_cpu_second() -> float:
    """Measure the speed of this machine on a small network.

    A packet-hop in a network of 1024 hosts takes four times as long.
    """
    summary = run(REFERENCE | {"time_limit": "3 ms"}, threads=1).summary
    return float(sum(summary["counts"]["packet_hops"].values()) / summary["cpu_seconds"])
