"""Metrics of RPC calls: latency, delivered payload, and pauses of links.

A call is a request and its response. Its latency is the time from the start of the request to the
arrival of the last byte of the response.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis.metrics import (
    Floats,
    Metric,
    Statistic,
    cumulative,
    reported,
    statistic_of,
    warm_up_s,
)
from sojourn.runs import answers
from sojourn.runs.results import REQUEST, RESPONSE, Result, Run, measured_starts
from sojourn.scenario.fidelity import FIELD, FLOWS, PACKETS, RECORDS, SAMPLE

Integers = npt.NDArray[np.int64]


def calls(result: Result, kind: str = "") -> pl.DataFrame:
    """Return the calls that began in the measured time.

    The columns are `kind`, `size_bytes`, `start_s` and `latency_s`. The kind is the class without
    its suffix, such as `rpc` or `read`; the argument `kind` is a prefix of it. The size is the sum
    of request and response. The latency of an unanswered call is null.
    """
    return numbered(result, kind).drop("request", "response")


def numbered(result: Result, kind: str = "") -> pl.DataFrame:
    """Return the table of `calls`, preceded by the flow numbers `request` and `response`.

    The response is null if the request has not arrived.
    """
    flow, name = pl.col("flow"), pl.col("class")
    responses = _with_requests(result).select(
        flow="request", latency_s="latency_s", response="flow", answer_bytes="size_bytes"
    )
    requests = result.flows.filter(
        name.str.starts_with(kind) & name.str.ends_with(REQUEST),
        *measured_starts(result.summary),
    )
    return (
        requests.drop("latency_s")
        .join(responses, on="flow", how="left")
        .select(
            flow.alias("request"),
            "response",
            "start_s",
            "latency_s",
            kind=name.str.strip_suffix(REQUEST),
            size_bytes=pl.col("size_bytes") + pl.col("answer_bytes").fill_null(0),
        )
    )


def _with_requests(result: Result) -> pl.DataFrame:
    """Return the flow records of responses, with the number of the flow of each `request`."""
    flows = result.flows
    numbers = flows["flow"].to_numpy().astype(np.int64)
    if answers.SAMPLE in flows.columns:
        # Flows of a sample are numbered from the end of the one before.
        samples, places = np.unique(flows[answers.SAMPLE].to_numpy(), return_inverse=True)
        lasts = [int(numbers[places == place].max()) + 1 for place in range(len(samples))]
        numbers = numbers - np.array([0, *lasts], dtype=np.int64)[places]
    steps = _steps(result.summary["scenario"]["workload"], numbers)
    flows = flows.with_columns(request=pl.col("flow") - pl.Series(steps))
    return flows.filter(pl.col("class").str.ends_with(RESPONSE))


def _steps(workload: Mapping[str, Any], numbers: Integers) -> Integers:
    """Return the differences between the flow numbers of responses and their requests.

    The parts of a mix number their flows in turn.
    """
    steps = np.ones_like(numbers)
    if parts := workload.get("parts", ()):
        for place, part in enumerate(parts):
            of_part = numbers % len(parts) == place
            steps[of_part] = len(parts) * _steps(part, numbers[of_part] // len(parts))
    return steps


def kinds(result: Result) -> list[str]:
    """Return the kinds of the calls of a run; none if its records do not contain latencies."""
    if refusal(result):
        return []
    classes = set(result.flows["class"].unique())
    stems = [name.removesuffix(REQUEST) for name in classes if name.endswith(REQUEST)]
    return sorted(stem for stem in stems if f"{stem}{RESPONSE}" in classes)


def has_calls(result: Result) -> bool:
    """Return true if flows of a run are requests."""
    return any(name.endswith(REQUEST) for name in result.flows["class"].unique())


def refusal(result: Result) -> str:
    """Return why the records of a run do not contain the latencies of calls; empty if they do."""
    fidelity = result.summary.get(FIELD, {}).get("kind", PACKETS)
    if fidelity == FLOWS:
        return (
            f"{FIELD} `{FLOWS}` predicts FCTs of requests and responses, not latencies of calls; "
            f"use `{SAMPLE}`"
        )
    one_in = result.summary["scenario"].get(RECORDS, 1)
    if fidelity == PACKETS and one_in > 1:
        return f"{RECORDS} must be 1, not {one_in}, as calls need the records of both their flows"
    return ""


def of_kind(kind: str) -> str:
    """Return the prefix that selects the calls of one kind only."""
    return f"{kind}{REQUEST}"


def observed(result: Result, kind: str) -> tuple[Floats, Floats]:
    """Return the latencies of answered calls, and the waiting times of unanswered ones.

    Raises `ScenarioError` for a run whose records do not contain latencies.
    """
    if reason := refusal(result):
        raise ScenarioError(f"latency: {reason}")
    table = calls(result, kind)
    starts = table.filter(pl.col("latency_s").is_null())["start_s"].to_numpy()
    latencies = table["latency_s"].drop_nulls().to_numpy()
    return latencies, result.summary["simulated_s"] - starts


def latency(statistic: str, kind: str = "", *, few: bool = False) -> Metric:
    """Measure the latency of calls in seconds: `mean`, `max` or a percentile.

    An unanswered call counts with its waiting time, a lower bound. `few` is that of `metrics.fct`.
    """
    of = statistic_of if few else reported
    return lambda result: of(statistic, *observed(result, kind))


def latency_cdf(runs: Iterable[Run], kind: str = "", points: int = 400) -> pl.DataFrame:
    """Return the distribution of latencies for each set of labels, in the form of `metrics.cdf`."""
    return cumulative(runs, lambda result: observed(result, kind), points)


def delivered(kind: str = "", until_s: float | None = None) -> Metric:
    """Measure the delivered payload in bit/s, from the warm-up to `until_s` or the end of the run.

    `kind` is a prefix of the flows' classes. The bytes of a flow that is partly outside the
    interval are assumed to be spread evenly over its duration.
    """

    def measure_one(result: Result) -> Statistic:
        end = result.summary["simulated_s"]
        first, last = warm_up_s(result), end if until_s is None else until_s
        stop = pl.coalesce(pl.col("start_s") + pl.col("fct_s"), end)
        flows = result.flows.filter(
            pl.col("class").str.starts_with(kind), pl.col("delivered_bytes") > 0
        ).with_columns(stop=stop)
        inside = pl.min_horizontal("stop", last) - pl.max_horizontal("start_s", first)
        share = inside.clip(lower_bound=0) / (pl.col("stop") - pl.col("start_s"))
        payload: Any = flows.select((pl.col("delivered_bytes") * share).sum()).item()
        return Statistic(8 * float(payload) / (last - first))

    return measure_one


def paused(links: str) -> Metric:
    """Measure the share of the run for which links were paused: the mean over links.

    `links` is a prefix of the links' names. Raises `ValueError` if no link has it.
    """

    def measure_one(result: Result) -> Statistic:
        elapsed = result.summary["simulated_s"]
        shares = [
            link["paused_s"] / elapsed
            for link in result.summary["links"]
            if link["name"].startswith(links)
        ]
        if not shares:
            raise ValueError(f"links {links!r}: no link's name begins with it")
        return Statistic(float(np.mean(shares)))

    return measure_one
