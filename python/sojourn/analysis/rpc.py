"""Numbers of remote calls: their latency, what a network delivers of what is offered, its pauses.

A call is a request and its response. What counts is the caller's time, from the start of the
request to the last byte of the response.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from sojourn.analysis.metrics import Floats, Metric, Statistic, cumulative, statistic_of, warm_up_s
from sojourn.runs.results import REQUEST, RESPONSE, Result, Run


def calls(result: Result, kind: str = "") -> pl.DataFrame:
    """Return the calls that began after the warm-up: `kind`, `size_bytes`, `start_s`, `latency_s`.

    The kind is the class without its ending, such as `rpc` or `read`; only those are returned that
    begin with `kind`. The size is that of request and response together. The latency of a call that
    was not answered is null.
    """
    return numbered(result, kind).drop("request", "response")


def numbered(result: Result, kind: str = "") -> pl.DataFrame:
    """Return what `calls` does, after the numbers of the flows: `request`, `response`.

    The response of a request that has not arrived is null.
    """
    flow, name = pl.col("flow"), pl.col("class")
    responses = result.flows.filter(name.str.ends_with(RESPONSE)).select(
        flow - _parts(result), "latency_s", response="flow", answer_bytes="size_bytes"
    )
    requests = result.flows.filter(
        name.str.starts_with(kind) & name.str.ends_with(REQUEST),
        pl.col("start_s") >= warm_up_s(result),
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


def _parts(result: Result) -> int:
    """Return how far apart the numbers of a request and its response are."""
    return len(result.summary["scenario"]["workload"].get("parts", [None]))


def _observed(result: Result, kind: str) -> tuple[Floats, Floats]:
    """Return the latencies of answered calls, and how long the others have waited."""
    made = calls(result, kind)
    waiting = made.filter(pl.col("latency_s").is_null())["start_s"].to_numpy()
    answered = made["latency_s"].drop_nulls().to_numpy()
    return answered, result.summary["simulated_s"] - waiting


def latency(statistic: str, kind: str = "") -> Metric:
    """Measure calls' latency in seconds: `mean`, `max` or a percentile; unanswered ones count."""
    return lambda result: statistic_of(statistic, *_observed(result, kind))


def latency_cdf(runs: Iterable[Run], kind: str = "", points: int = 400) -> pl.DataFrame:
    """Return the distribution of latencies for each set of labels, as `metrics.cdf` does."""
    return cumulative(runs, lambda result: _observed(result, kind), points)


def delivered(kind: str = "", until_s: float | None = None) -> Metric:
    """Measure the payload delivered a second, from the warm-up to `until_s` or the end of the run.

    In bits a second, of flows whose class begins with `kind`. The bytes of a flow that began or
    ended outside are spread evenly over the time that it took.
    """

    def measure_one(result: Result) -> Statistic:
        end = result.summary["simulated_s"]
        window = warm_up_s(result), end if until_s is None else until_s
        stop = pl.coalesce(pl.col("start_s") + pl.col("fct_s"), end)
        flows = result.flows.filter(
            pl.col("class").str.starts_with(kind), pl.col("delivered_bytes") > 0
        ).with_columns(stop=stop)
        inside = pl.min_horizontal("stop", window[1]) - pl.max_horizontal("start_s", window[0])
        share = inside.clip(lower_bound=0) / (pl.col("stop") - pl.col("start_s"))
        payload: Any = flows.select((pl.col("delivered_bytes") * share).sum()).item()
        return Statistic(8 * float(payload) / (window[1] - window[0]))

    return measure_one


def paused(links: str) -> Metric:
    """Measure the mean share of the run for which the links that begin with `links` were paused."""

    def measure_one(result: Result) -> Statistic:
        elapsed = result.summary["simulated_s"]
        chosen = [
            link["paused_s"] / elapsed
            for link in result.summary["links"]
            if link["name"].startswith(links)
        ]
        if not chosen:
            raise ValueError(f"no link's name begins with {links!r}")
        return Statistic(float(np.mean(chosen)))

    return measure_one
