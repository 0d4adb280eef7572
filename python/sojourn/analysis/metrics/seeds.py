"""Seeds that draw nothing: runs that are the same, or that have the same flows.

The interval over seeds of equal runs has the width zero, whatever the accuracy of the runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from sojourn.base.units import parse_time
from sojourn.runs.results import RESPONSE, Result, Run
from sojourn.scenario.fields import parts_of

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


def draws_flows(result: Result) -> bool:
    """Return false if the workload draws nothing from the seed: a trace, a list, fixed ranks."""
    return any(map(_draws, parts_of(result.summary["scenario"]["workload"])))


def _draws(workload: Mapping[str, Any]) -> bool:
    if workload["kind"] == "collective":
        return workload["placement"] == "random" or parse_time(workload["jitter"]) > 0
    return workload["kind"] not in ("trace", "flows")


def distinct(runs: Iterable[Run]) -> list[Run]:
    """Return the runs, and of schemes whose runs are the same with all seeds only the first."""
    runs = list(runs)
    repeated = {id(run) for group in by_scheme(runs) if _repeats(group) for run in group[1:]}
    return [run for run in runs if id(run) not in repeated]


def _repeats(group: Sequence[Run]) -> bool:
    seeds = {run.labels.get("seed") for run in group}
    return len(seeds) == len(group) and are_same([run.result for run in group])


def without_repetition(runs: Iterable[Run]) -> list[Run]:
    """Return the runs; only the first of each scheme if those of all are the same with all seeds.

    Where schemes are joined by seed, those that differ need the seeds of the others.
    """
    runs = list(runs)
    first = distinct(runs)
    return first if len(first) == len(by_scheme(runs)) else runs
