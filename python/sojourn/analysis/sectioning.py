"""Sections of a figure's runs, for the confidence intervals of claims (see `claims`).

With several seeds, a section is all runs of one seed. With one seed, or seeds that give the same
runs, a section is a batch: flows that started consecutively, the same in every run. Samples and
counters exist only for complete runs; a batch raises `NotInABatch` when they are read.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from sojourn.analysis.metrics import NotInABatch, without_repetition
from sojourn.base.statistics import BATCHES
from sojourn.runs.results import FlowSelection, Result, Run

LEAST_FLOWS = 10 * BATCHES
"""Least number of flows of a run that is divided into batches."""


def sections(runs: Iterable[Run]) -> list[list[Run]]:
    """Return the runs by seed, or of a single seed by batches; empty if a run has too few flows."""
    runs = without_repetition(runs)
    by_seed: dict[Any, list[Run]] = {}
    for run in runs:
        by_seed.setdefault(run.labels.get("seed"), []).append(run)
    if len(by_seed) > 1:
        return list(by_seed.values())
    if not runs or min(run.result.flows.height for run in runs) < LEAST_FLOWS:
        return []
    return [list(_batch(runs, number)) for number in range(BATCHES)]


def _batch(runs: Iterable[Run], number: int) -> Iterator[Run]:
    for run in runs:
        flows = run.result.flows.sort("start_s", maintain_order=True)
        first, end = (flows.height * part // BATCHES for part in (number, number + 1))
        yield Run(run.labels, _Batch(flows[first:end], run.result))


class _Batch(FlowSelection):
    """A batch of the flows of a run."""

    COMMON = ("scenario", "seed", "simulated_s", "load", "load_reference")
    """Fields of a run's summary that are valid for each batch of its flows."""

    def __init__(self, flows: pl.DataFrame, result: Result) -> None:
        super().__init__(flows, result)
        fields = {name: result.summary[name] for name in self.COMMON if name in result.summary}
        self.summary = _Summary(fields)

    @property
    def samples(self) -> pl.DataFrame:
        raise NotInABatch("samples")


class _Summary(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        raise NotInABatch(name)
