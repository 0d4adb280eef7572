"""Plans: what figures at a scale will take, before anything runs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.figures.figure import Figure
from sojourn.runs.machine import GAUGE
from sojourn.runs.runner import key, run
from sojourn.scenario.encoding import encode


@dataclass(frozen=True)
class Plan:
    """What a figure will take."""

    figure: str
    runs: int
    known: int
    """Runs whose results are in the cache."""
    packet_hops: float
    """Of the other runs: packets and ACKs that links carry, each counted at each link."""


def plans(figures: Iterable[Figure], scale: str, cache: Path | None) -> list[Plan]:
    """Return what each figure will take; a run that several share counts for the first of them."""
    seen: set[str] = set()
    found = []
    for figure in figures:
        scenarios = {key(scenario): scenario for _, scenario in figure.plan(scale)}
        missing = {name: one for name, one in scenarios.items() if not _is_known(cache, name)}
        hops = sum(_hops(one) for name, one in missing.items() if name not in seen)
        seen |= missing.keys()
        found.append(Plan(figure.id, len(scenarios), len(scenarios) - len(missing), hops))
    return found


def _is_known(cache: Path | None, name: str) -> bool:
    return cache is not None and (cache / name).exists()


def _hops(scenario: Mapping[str, Any]) -> float:
    return float(json.loads(_core.estimate(*encode(scenario), 1))["packet_hops"])


def hops_per_cpu_second() -> float:
    """Measure how fast this machine simulates; hops on 1024 hosts take four times as long."""
    summary = run(GAUGE, threads=1).summary
    return float(sum(summary["counts"]["packet_hops"].values()) / summary["cpu_seconds"])
