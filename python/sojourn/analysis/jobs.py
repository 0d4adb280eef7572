"""Jobs: collective operations, whose messages are the flows of a class, in steps.

A job lasts from the start of its first rank, which may compute before it sends, to the delivery of
its last message. A host is done when it has received all its messages.
"""

from typing import Any

import numpy as np
import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis.metrics import Floats, Metric, Statistic, reported
from sojourn.base.messages import did_you_mean
from sojourn.runs.results import Result

PICOSECONDS = 10**12


def jobs(result: Result) -> pl.DataFrame:
    """Return a row for each job of a run; the table of a run without jobs is empty.

    The columns are `job` (its class), `ranks`, `steps`, `flows` (messages, of which some may not
    have started), `unfinished` (messages that were not delivered), `not_started` (of these),
    `start_s`, `duration_s` (null if a message is unfinished), `bound_s`, `ratio` (of the two),
    `median_host_s` and `last_host_s` (after which half of the hosts, and all, are done), and
    `last_host`.
    """
    rows = []
    for job in result.summary.get("jobs", []):
        flows = _flows(result, job["class"])
        start = job["start_s"]
        hosts = flows.group_by("target").agg(pl.col("end_s").max()).sort("end_s", "target")
        unfinished = job["messages"] - flows["fct_s"].count()
        is_done = unfinished == 0
        done: Any = hosts["end_s"] - start
        rows.append(
            {
                "job": job["class"],
                "ranks": job["ranks"],
                "steps": job["steps"],
                "flows": job["messages"],
                "unfinished": unfinished,
                "not_started": job["messages"] - flows.height,
                "start_s": start,
                "duration_s": done.max() if is_done else None,
                "bound_s": job["bound_s"],
                "ratio": done.max() / job["bound_s"] if is_done else None,
                "median_host_s": done.median() if is_done else None,
                "last_host_s": done.max() if is_done else None,
                "last_host": hosts["target"][-1] if is_done else None,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def with_lower_bounds(result: Result, table: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `jobs` in which an unfinished job lasts until the end of the run."""
    lasted = (result.summary["simulated_s"] - pl.col("start_s")).clip(lower_bound=0.0)
    return table.with_columns(
        pl.col("duration_s").fill_null(lasted),
        pl.col("ratio").fill_null(lasted / pl.col("bound_s")),
    )


def duration(job: str | None = None) -> Metric:
    """Measure the duration of a job in seconds; by default the longest of all jobs.

    A job with an unfinished flow counts with the time until the end of the run, a lower bound.
    """
    return lambda result: _longest(result, job, "duration_s")


def durations(statistic: str, job: str | None = None) -> Metric:
    """Measure a statistic of the durations of jobs in seconds: `mean`, `max` or a percentile.

    Jobs with unfinished flows count as in `duration`. Raises `ScenarioError` for an unknown job,
    and if the run has no jobs.
    """
    return lambda result: reported(statistic, *observed(result, job))


def observed(result: Result, job: str | None = None) -> tuple[Floats, Floats]:
    """Return the durations of finished jobs in seconds, and the lower bounds of unfinished ones.

    Raises `ScenarioError` for an unknown job, and if the run has no jobs.
    """
    table = _chosen(result, job)
    is_done = table["duration_s"].is_not_null()
    times = with_lower_bounds(result, table)["duration_s"]
    return times.filter(is_done).to_numpy(), times.filter(~is_done).to_numpy()


def names(result: Result) -> list[str]:
    """Return the names of the jobs of a run, which are their classes."""
    return [row["class"] for row in result.summary.get("jobs", [])]


def over_bound(job: str | None = None) -> Metric:
    """Measure the duration of a job over its bound; by default the largest of all jobs."""
    return lambda result: _longest(result, job, "ratio")


def _longest(result: Result, job: str | None, column: str) -> Statistic:
    table = _chosen(result, job)
    at_least = table["duration_s"].null_count() > 0
    values = with_lower_bounds(result, table)[column].to_numpy()
    return Statistic(float(values.max()), at_least=at_least)


def _chosen(result: Result, job: str | None) -> pl.DataFrame:
    """Return the row of a job, or all; raise `ScenarioError` for an unknown job."""
    # A batch of a run has no jobs, and raises `NotInABatch`.
    known = [row["class"] for row in result.summary["jobs"]]
    if not known:
        raise ScenarioError("the run has no jobs; give a workload of kind `collective`")
    if job is not None and job not in known:
        raise ScenarioError(f"job: unknown job `{job}`{did_you_mean(job, known)}")
    table = jobs(result)
    return table if job is None else table.filter(pl.col("job") == job)


def _of_job(result: Result, job: str) -> dict[str, Any]:
    """Return what the summary has on a job."""
    return next(row for row in result.summary["jobs"] if row["class"] == job)


def _flows(result: Result, job: str) -> pl.DataFrame:
    """Return the flows of a job with their ends."""
    flows = result.flows.filter(pl.col("class") == job, pl.col("step").is_not_null())
    return flows.with_columns(end_s=pl.col("start_s") + pl.col("fct_s"))


def steps(result: Result, job: str) -> pl.DataFrame:
    """Return a row for each step of a job that has begun.

    The columns are `step`, `flows`, `begins_s` and `ends_s` (after the start of the job: the first
    start and the last end of its flows), and `slowest` and `slowest_s`, the number of the flow with
    the largest FCT, and its FCT. An unfinished flow has no end.
    """
    flows = _flows(result, job)
    start = _of_job(result, job)["start_s"]
    slowest = pl.col("fct_s").arg_max()
    return (
        flows.group_by(pl.col("step").cast(pl.Int64))
        .agg(
            flows=pl.len(),
            begins_s=pl.col("start_s").min() - start,
            ends_s=pl.col("end_s").max() - start,
            slowest=pl.col("flow").get(slowest, null_on_oob=True),
            slowest_s=pl.col("fct_s").max(),
        )
        .sort("step")
    )


def critical_path(result: Result, job: str) -> pl.DataFrame:
    """Return the flows of a job for which its end waited, in order of start.

    The last flow of the job is the last of the path. Before each flow comes the one whose end at
    its source, by delivery or by acknowledgement, was the last before the rank began to compute;
    or the one between the same hosts whose acknowledgement let it start.
    The columns are those of the flow records and `waited_s`, the time from that end, or from the
    start of the job, to the start. These times and those of the flows to these ends add up to the
    duration of the job.
    """
    flows = _flows(result, job).filter(pl.col("fct_s").is_not_null())
    if flows.is_empty():
        return flows.with_columns(waited_s=pl.lit(None, pl.Float64))

    def picoseconds(times: pl.Series) -> Any:
        return np.rint(times.to_numpy() * PICOSECONDS).astype(np.int64)

    starts, delivered = (picoseconds(flows[name]) for name in ("start_s", "end_s"))
    row_of_job = _of_job(result, job)
    first_computed, end_computed = row_of_job["computed_steps"]
    is_computed = flows["step"].is_between(first_computed, end_computed, closed="left").to_numpy()
    begun = starts - is_computed * round(row_of_job["compute_s"] * PICOSECONDS)
    # Ideals have no acknowledgements.
    acked = picoseconds(flows["start_s"] + flows["acked_s"].fill_null(flows["fct_s"]))
    sources, targets = flows["source"].to_numpy(), flows["target"].to_numpy()
    rows = np.arange(flows.height)
    hosts = np.concatenate([targets, sources])
    times = np.concatenate([delivered, acked])
    row_of = np.concatenate([rows, rows])
    order = np.lexsort((times, hosts))
    hosts, times, row_of, is_ack = hosts[order], times[order], row_of[order], order >= len(rows)
    path = [int(delivered.argmax())]
    waits = []
    while True:
        row = path[-1]
        first, last = np.searchsorted(hosts, [sources[row], sources[row] + 1])
        # The last end at the source up to the start, and up to the begin of the computation.
        latest, before = (
            int(first + np.searchsorted(times[first:last], time, side="right")) - 1
            for time in (starts[row], begun[row])
        )
        if latest >= first and times[latest] == starts[row] and is_ack[latest]:
            before = latest if targets[row_of[latest]] == targets[row] else before
        if before < first:
            break
        waits.append((starts[row] - times[before]) / PICOSECONDS)
        path.append(int(row_of[before]))
    begins = starts[path[-1]] / PICOSECONDS - row_of_job["start_s"]
    waited = pl.Series("waited_s", [begins, *reversed(waits)])
    return flows[path[::-1]].with_columns(waited)
