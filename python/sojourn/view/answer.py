"""Answer of a page: one sentence on a run, or on two."""

from collections.abc import Sequence

import polars as pl

from sojourn.analysis import breakdown, jobs, metrics, paired
from sojourn.base.units import format_time
from sojourn.compare import paired_tables
from sojourn.explain import tables
from sojourn.runs.results import Result, Run
from sojourn.view import loading
from sojourn.view.flow_blocks import SCHEME

WORDING = paired_tables.Wording(time="mean FCT", no_interval="")
"""The page shows mean slowdowns beside the ratios of FCTs, and has no option for seeds."""


def sentence(runs: Sequence[Run], source: str) -> str:
    """Return the answer of a page; empty if no flow has finished.

    `source` are the arguments of the page's command. The clauses are separated by `; `.
    """
    text = _of_one(runs[0]) if len(runs) == 1 else _of_two(runs, source)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def grouped(number: int) -> str:
    """Return a whole number as the page's scripts write it, with narrow spaces."""
    return (
        f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") if number >= 10_000 else str(number)
    )


def _of_one(run: Run) -> str:
    """Return duration of the slowest job, mean slowdown and main cause of the largest group."""
    result = run.result
    found = _largest_group(result)
    if found is None:
        return ""
    bucket, slowdown = found
    count = metrics.judged(result, bucket).height
    total = metrics.judged(result).height
    flows = tables.flows_of(bucket)
    if breakdown.are_kept(result):
        what = tables.slowdown_of(run, bucket)
    else:
        what = f"{tables.mean_slowdown(slowdown, [run], bucket)}; {_missing(result)}"
    if count == 1:
        flows = flows.replace("flows", "flow", 1)
    in_all = "" if count == total else f", of {grouped(total)} in all,"
    verb = "has" if count == 1 else "have"
    return "; ".join([*_job(result), f"{grouped(count)} {flows}{in_all} {verb} {what}"])


def _largest_group(result: Result) -> tuple[metrics.Bucket, float] | None:
    """Return the size or class with most finished flows, and its mean slowdown.

    It is the one that a flow chosen at random is in most likely; of equal ones, a size comes before
    a class, and a small size before a large one. None if no flow has finished.
    """
    buckets = [one for one in metrics.sizes_and_classes([result]) if one != metrics.ALL]
    groups = [metrics.judged(result, bucket)["slowdown"].drop_nulls() for bucket in buckets]
    place = max(range(len(groups)), key=lambda index: groups[index].len())
    if groups[place].is_empty():
        return None
    return buckets[place], float(groups[place].to_numpy().mean())


def _missing(result: Result) -> str:
    """Return why a run has no main cause."""
    refusal = loading.refusal(result.summary["scenario"])
    return (
        f"no cause: {refusal}"
        if refusal
        else ("its cause needs `account = true` in the scenario, or `sojourn view SCENARIO`")
    )


def _job(result: Result) -> list[str]:
    """Return the finished job that takes longest over its bound; none without finished jobs."""
    table = jobs.jobs(result)
    if table.is_empty() or table["duration_s"].null_count() == table.height:
        return []
    done = table.drop_nulls("duration_s").sort("ratio", descending=True, maintain_order=True)
    job = done.row(0, named=True)
    name = job["job"]
    if table.height > 1:
        all_jobs = f"{table.height} jobs"
        if done.height < table.height:
            all_jobs = f"{done.height} finished jobs, of {table.height} in all"
        name = f"the slowest of {all_jobs}, {name},"
    return [f"{name} takes {format_time(job['duration_s'])}, {job['ratio']:.2f} of its bound"]


def _of_two(runs: Sequence[Run], source: str) -> str:
    """Return the ratio of mean FCTs by size, and what changed."""
    ratios = paired.ratios(runs, by=SCHEME)
    are_kept = all(breakdown.are_kept(run.result) for run in runs)
    differences = breakdown.differences(runs, SCHEME) if are_kept else None
    lines = paired_tables.sentences(ratios, SCHEME, differences, WORDING)
    if not lines:
        return ""
    means = ratios.filter(pl.col("metric") == "FCT mean", pl.col("value").is_not_nan())
    has_intervals = not means["low"].is_nan().any()
    if has_intervals or not any(metrics.draws_flows(run.result) for run in runs):
        return lines[0]
    is_one = "--vary" in source or (source.count(".toml") == 1 and " " not in source)
    command = f"sojourn compare {source if is_one else 'SCENARIO'} --seeds 5"
    return f"{lines[0]}; `{command}` gives intervals"
