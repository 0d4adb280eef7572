"""Durations of jobs and latencies of calls: metrics of comparisons, by job and by kind of calls."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from sojourn.analysis import jobs, rpc
from sojourn.analysis.metrics import Floats, Metric, Statistic
from sojourn.runs.results import Result

DURATION, OVER_BOUND, CALLS, LATENCY = "duration", "over bound", "calls", "latency"

LATENCY_MEAN = f"{LATENCY} mean"


class Group(NamedTuple):
    """A job, or the calls of one kind."""

    name: str
    is_job: bool

    @property
    def ratio(self) -> str:
        """Metric of the ratio to a baseline."""
        return DURATION if self.is_job else LATENCY_MEAN

    def is_in(self, result: Result) -> bool:
        """Return true if the run has the job, or calls of the kind."""
        return self.name in (jobs.names(result) if self.is_job else rpc.kinds(result))

    def observed(self, result: Result) -> tuple[Floats, Floats]:
        """Return times in seconds, and the lower bounds of what did not finish."""
        if self.is_job:
            return jobs.observed(result, self.name)
        return rpc.observed(result, rpc.of_kind(self.name))

    def metrics(self, percentiles: Sequence[str]) -> dict[str, Metric]:
        """Return the metrics of the group by name; NaN in a run without it."""
        if self.is_job:
            of = {DURATION: jobs.duration(self.name), OVER_BOUND: jobs.over_bound(self.name)}
        else:
            kind = rpc.of_kind(self.name)
            of = {CALLS: lambda result: Statistic(float(rpc.calls(result, kind).height))}
            of |= {f"{LATENCY} {name}": rpc.latency(name, kind) for name in ("mean", *percentiles)}
        return {name: self._where_present(metric) for name, metric in of.items()}

    def _where_present(self, metric: Metric) -> Metric:
        return lambda result: metric(result) if self.is_in(result) else Statistic(math.nan)


def groups(results: Iterable[Result]) -> list[Group]:
    """Return the jobs of runs, then the kinds of their calls."""
    results = list(results)
    found = [Group(name, is_job=True) for result in results for name in jobs.names(result)]
    found += [Group(name, is_job=False) for result in results for name in rpc.kinds(result)]
    return list(dict.fromkeys(found))


def is_metric() -> pl.Expr:
    """Return the condition on `metric` that a row of a comparison is of a job or of calls."""
    metric = pl.col("metric")
    return metric.is_in([DURATION, OVER_BOUND, CALLS]) | metric.str.starts_with(f"{LATENCY} ")
