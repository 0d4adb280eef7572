"""Seeds that draw nothing: runs that are the same, or that have the same flows.

The interval over seeds of equal runs has the width zero, whatever the accuracy of the runs.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from sojourn.runs.results import RESPONSE, Result, Run

BY_CORE = ("counts", "simulated_s", "realised_load")
"""Fields of a summary that differ between nearly all different runs, and are read at once."""

DRAWN = ("flow", "source", "target", "size_bytes", "class")
"""Columns of flows that do not depend on the network."""


def by_scheme(runs: Iterable[Run]) -> list[list[Run]]:
    """Return the runs of each combination of labels other than the seed."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        labels = {name: value for name, value in run.labels.items() if name != "seed"}
        groups.setdefault(str(labels), []).append(run)
    return list(groups.values())


def are_same(results: Sequence[Result]) -> bool:
    """Return true for two or more results with equal flows and counters."""
    return len(results) > 1 and all(_is_same(results[0], other) for other in results[1:])


def _is_same(one: Result, other: Result) -> bool:
    return (
        all(one.summary.get(name) == other.summary.get(name) for name in BY_CORE)
        and one.flows.equals(other.flows)
        and one.links.equals(other.links)
        and one.samples.equals(other.samples)
    )


def have_same_flows(results: Sequence[Result]) -> bool:
    """Return true for two or more results whose flows are equal, apart from effects of the network.

    These are the starts of flows that follow others: later steps of jobs, responses, and calls of
    callers that wait for a response.
    """
    if len(results) < 2 or len({result.flows.height for result in results}) > 1:
        return False
    first = _drawn(results[0])
    return not first.is_empty() and all(_drawn(each).equals(first) for each in results[1:])


def _drawn(result: Result) -> pl.DataFrame:
    """Return what the workload alone decides of the flows."""
    follows = pl.col("class").str.ends_with(RESPONSE)
    follows |= pl.col("class").is_in(list(result.summary.get("measured_until_s") or {}))
    if "step" in result.flows.columns:
        follows |= pl.col("step").fill_null(0) > 0
    start = pl.when(~follows).then("start_s").alias("start_s")
    return result.flows.select(*DRAWN, start).sort("flow")


def distinct(runs: Iterable[Run]) -> list[Run]:
    """Return the runs, and of schemes whose runs are the same with all seeds only the first."""
    runs = list(runs)
    repeated = {
        id(run)
        for group in by_scheme(runs)
        if are_same([run.result for run in group])
        for run in group[1:]
    }
    return [run for run in runs if id(run) not in repeated]


class Repetition:
    """Test whether each scheme's runs so far are the same with all seeds.

    Of each scheme it keeps the first run, until runs of some scheme differ.
    """

    def __init__(self) -> None:
        self._first: dict[str, Run] | None = {}
        self._seeds: set[Any] = set()

    def add(self, run: Run) -> bool:
        """Add a run; return true for the first one of its scheme, while no runs differ."""
        if self._first is None or "seed" not in run.labels:
            self._first = None
            return False
        self._seeds.add(run.labels["seed"])
        key = str({name: value for name, value in run.labels.items() if name != "seed"})
        first = self._first.setdefault(key, run)
        if first is not run and (
            first.labels["seed"] == run.labels["seed"] or not _is_same(first.result, run.result)
        ):
            self._first = None
        return first is run

    def __bool__(self) -> bool:
        return self._first is not None and len(self._seeds) > 1
