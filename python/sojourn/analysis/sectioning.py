"""Sections of a figure's runs, of which each is a small figure of its own: see `claims`.

With several seeds a section is all runs of one seed. With one, it is a batch: flows that started
one after the other, the same of every run. Samples and counters are of a whole run, not of some of
its flows: who asks a batch for them gets `NotInABatch`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from sojourn.analysis.convergence import BATCHES
from sojourn.analysis.metrics import NotInABatch
from sojourn.runs.results import OfFlows, Result, Run

LEAST_FLOWS = 10 * BATCHES
"""With fewer flows in a run, it is not cut into batches."""


def sections(runs: Iterable[Run]) -> list[list[Run]]:
    """Return the runs by seed, or those of a single seed by batches; none if neither can be."""
    runs = list(runs)
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
        first, after = (flows.height * part // BATCHES for part in (number, number + 1))
        yield Run(run.labels, _Batch(flows[first:after], run.result))


class _Batch(OfFlows):
    """Some of the flows of a run."""

    OF_ALL = ("scenario", "seed", "simulated_s", "load", "load_reference")
    """What the summary of a run says of each part of it."""

    def __init__(self, flows: pl.DataFrame, whole: Result) -> None:
        super().__init__(flows, whole)
        told = {name: whole.summary[name] for name in self.OF_ALL if name in whole.summary}
        self.summary = _Summary(told)

    @property
    def samples(self) -> pl.DataFrame:
        raise NotInABatch("samples")


class _Summary(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        raise NotInABatch(name)
