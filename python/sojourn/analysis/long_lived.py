"""Metrics of long-lived flows: throughput by class, RTTs, rates, and fairness over time.

Long-lived flows have no completion time. Throughputs by class are those of the time in which all
of them send, from the summary: rates of different times do not add up, and shares compare flows of
the same time only. Other metrics are computed from samples after the warm-up.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np
import polars as pl

from sojourn.analysis.metrics import (
    ALL,
    Floats,
    Metric,
    Statistic,
    from_zero,
    jain,
    labelled,
    pooled,
    share_of,
    warm_up_s,
)
from sojourn.base.statistics import rank_of
from sojourn.runs.results import Result, Run
from sojourn.scenario.fidelity import PACKETS, SAMPLE

SINGLE_CLASS = 2
"""Number of rows by class if there is one class, which then contains all flows."""

DELIVERED = "delivered_bytes flow "
"""Prefix of the probes that count bytes delivered to a sampled flow's receiver."""


def classes(results: Iterable[Result]) -> list[str]:
    """Return the names of the classes of long-lived flows, after `all` if there are any."""
    names = {name for result in results for name in _throughputs(result)["class"].unique()}
    return [ALL.name, *sorted(names)] if names else []


def by_class(result: Result) -> pl.DataFrame:
    """Return one row for all long-lived flows and one per class; none without such flows.

    The columns are `class`, `flows`, `throughput` (bit/s, that of the function), `share` of the
    throughput of all long-lived flows, and `Jain index` of the flows of the row.
    """
    rows = [
        {
            "class": name,
            "flows": flow_count(name)(result),
            **{head: metric(name)(result).value for head, metric in METRICS.items()},
        }
        for name in classes([result])
    ]
    return pl.DataFrame(rows)


def flow_count(of_class: str = ALL.name) -> Callable[[Result], int]:
    """Count the long-lived flows of a class, or all."""
    return lambda result: len(_throughputs_of(result, of_class))


def throughput(of_class: str = ALL.name) -> Metric:
    """Measure the throughput of the long-lived flows of a class, or of all, in bit/s.

    That is the payload delivered in the time of `interval`, divided by this time; of samples, times
    the hosts of the network over those of all samples. NaN without such flows or such a time.
    """
    return lambda result: Statistic(_sum(_throughputs_of(result, of_class)) * _weight(result))


def _weight(result: Result) -> float:
    """Return the hosts of the network over the simulated ones of all samples."""
    fidelity = result.summary.get("fidelity", {"kind": PACKETS})
    if fidelity["kind"] != SAMPLE:
        return 1.0
    return float(fidelity["hosts"] / (fidelity["kept"] * len(fidelity["seeds"])))


def share(of_class: str) -> Metric:
    """Measure the share of a class in the throughput of all long-lived flows."""

    def measure_one(result: Result) -> Statistic:
        total = _sum(_throughputs_of(result, ALL.name))
        own = _sum(_throughputs_of(result, of_class))
        return Statistic(own / total if total > 0 else math.nan)

    return measure_one


def jain_index(of_class: str = ALL.name) -> Metric:
    """Measure Jain's index of the throughputs of the long-lived flows of a class, or of all."""
    return lambda result: Statistic(jain(_throughputs_of(result, of_class)))


METRICS: dict[str, Callable[[str], Metric]] = {
    "throughput": throughput,
    "share": share,
    "Jain index": jain_index,
}
"""Metrics of the long-lived flows of a class."""


def interval(result: Result) -> tuple[float, float] | None:
    """Return the time in seconds in which all long-lived flows send, after the warm-up, if any.

    It begins with the last start and ends with the first stop, or the end of the run.
    """
    measured = result.summary.get("long_lived")
    return (measured["from_s"], measured["to_s"]) if measured else None


def _throughputs(result: Result) -> pl.DataFrame:
    """Return the class and the throughput of long-lived flows that started.

    The throughputs are NaN if the flows never send at the same time.
    """
    flows = result.flows.filter(
        pl.col("outcome") == "long_lived", pl.col("start_s") < result.summary["simulated_s"]
    ).select("flow", "class")
    bounds = interval(result)
    if bounds is None:
        return flows.select("class", throughput_bps=pl.lit(math.nan))
    measured = result.summary["long_lived"]
    delivered = pl.DataFrame(
        {"flow": measured["flows"], "bytes": measured["bytes"]},
        schema={"flow": flows.schema["flow"], "bytes": pl.Float64},
    )
    rate = pl.col("bytes") * 8 / (bounds[1] - bounds[0])
    return flows.join(delivered, on="flow", how="left", maintain_order="left").select(
        "class", throughput_bps=rate.fill_null(math.nan)
    )


def _throughputs_of(result: Result, of_class: str) -> Floats:
    flows = _throughputs(result)
    if of_class != ALL.name:
        flows = flows.filter(pl.col("class") == of_class)
    return flows["throughput_bps"].to_numpy()


def _sum(rates: Floats) -> float:
    return float(rates.sum()) if len(rates) else math.nan


def rtt(statistic: str, *, of: str = "", less_s: float = 0.0) -> Metric:
    """Measure RTT samples of transports after the warm-up, in seconds.

    `statistic` is `mean`, `max` or a percentile. The scenario must enable `samples.rtts`. `of` is a
    prefix of the flows' classes. `less_s` is subtracted from each RTT, for example the transmission
    time of the data packet. Values are centres of bins at most 1.6 % wide.
    """

    def measure_one(result: Result) -> Statistic:
        bins = _rtt_bins(result, of, less_s)
        values, counts = bins["value"].to_numpy(), bins["count"].to_numpy()
        if not len(values):
            return Statistic(math.nan)
        if statistic == "mean":
            return Statistic(float(np.average(values, weights=counts)))
        rank = rank_of(share_of(statistic), int(counts.sum()))
        return Statistic(float(values[np.searchsorted(counts.cumsum(), rank)]))

    return measure_one


def _rtt_bins(result: Result, of: str, less_s: float) -> pl.DataFrame:
    """Return the centres of RTT bins, over all classes with prefix `of`, and their counts."""
    empty = pl.DataFrame(schema={"value": pl.Float64, "count": pl.Int64})
    tables = [
        pl.DataFrame({name: bins[name] for name in ("lower_s", "upper_s", "count")}).select(
            value=(pl.col("lower_s") + pl.col("upper_s")) / 2 - less_s,
            count=pl.col("count").cast(pl.Int64),
        )
        for bins in result.summary["rtts"]
        if bins["count"] and bins["class"].startswith(of)
    ]
    return pl.concat([empty, *tables]).group_by("value").agg(pl.col("count").sum()).sort("value")


def rtt_cdf(runs: Iterable[Run], *, of: str = "", less_s: float = 0.0) -> pl.DataFrame:
    """Return the RTT distribution for each set of labels, seeds pooled.

    The columns are the labels, `value` (seconds) and `fraction`, as of `metrics.cdf`; `of` and
    `less_s` are those of `rtt`.
    """
    tables = []
    for labels, bins in pooled(runs, lambda result: _rtt_bins(result, of, less_s)):
        table = pl.concat(bins).group_by("value").agg(pl.col("count").sum()).sort("value")
        fraction = pl.col("count").cum_sum() / pl.col("count").sum()
        tables.append(labelled(labels, from_zero(table.select("value", fraction=fraction))))
    return pl.concat(tables)


def flow_rates(runs: Iterable[Run], window_s: float) -> pl.DataFrame:
    """Return the throughput of sampled flows in intervals of `window_s` after the warm-up.

    The columns are the labels, `flow`, `time_s` (the end of the interval) and `value` (bit/s). The
    scenario must sample the flows (`samples.flows`) at least once per interval.
    """
    return pl.concat(labelled(run.labels, _delivery_rates(run.result, window_s)) for run in runs)


def _delivery_rates(result: Result, window_s: float) -> pl.DataFrame:
    warm_up = warm_up_s(result)
    probe, time = pl.col("probe"), pl.col("time_s")
    rate = pl.col("value").diff() * 8 / time.diff()
    return (
        result.samples.filter(probe.str.starts_with(DELIVERED), time >= warm_up - 1e-12)
        .with_columns(
            flow=probe.str.strip_prefix(DELIVERED).cast(pl.Int64),
            window=((time - warm_up) / window_s + 1e-6).floor(),
        )
        # The first sample of an interval ends the preceding interval.
        .group_by("flow", "window", maintain_order=True)
        .agg(time.first(), pl.col("value").first())
        .with_columns(value=rate.over("flow"))
        .filter(pl.col("value").is_not_null())
        .select("flow", "time_s", "value")
    )


def goodput() -> Metric:
    """Measure the total goodput of sampled flows after the warm-up, in bit/s."""
    return lambda result: Statistic(float(_mean_rates(result).sum()))


def fairness() -> Metric:
    """Measure Jain's index of the sampled flows' mean rates after the warm-up."""
    return lambda result: Statistic(jain(_mean_rates(result)))


def variation(window_s: float) -> Metric:
    """Measure the coefficient of variation of a flow's throughput in intervals of `window_s`.

    The result is the mean over sampled flows; flows without any delivered byte are excluded.
    """

    def measure_one(result: Result) -> Statistic:
        rate = pl.col("value")
        flows = _delivery_rates(result, window_s).group_by("flow").agg(rate.std() / rate.mean())
        variations = flows["value"].fill_nan(None).drop_nulls().to_numpy()
        return Statistic(float(variations.mean()) if len(variations) else math.nan)

    return measure_one


def _mean_rates(result: Result) -> Floats:
    """Return the mean rate of each sampled flow from the end of the warm-up to the last sample."""
    warm_up = warm_up_s(result)
    probe, time, value = pl.col("probe"), pl.col("time_s"), pl.col("value")
    ends = (
        result.samples.filter(probe.str.starts_with(DELIVERED), time >= warm_up - 1e-12)
        .group_by("probe", maintain_order=True)
        .agg(rate=(value.last() - value.first()) * 8 / (time.last() - time.first()))
    )
    return ends["rate"].to_numpy()


def jain_over_time(runs: Iterable[Run], window_s: float) -> pl.DataFrame:
    """Return Jain's index of sampled flows' rates over time: the labels, `time_s`, `value`."""
    rates = flow_rates(runs, window_s)
    labels = [name for name in rates.columns if name not in ("flow", "value")]
    index = pl.col("value").sum() ** 2 / (pl.len() * (pl.col("value") ** 2).sum())
    return rates.group_by(labels, maintain_order=True).agg(value=index)


def time_to_reach(table: pl.DataFrame, level: float, from_s: float = 0.0) -> float:
    """Return the time from `from_s` until `value` first reaches `level`; infinite if never."""
    reached = table.filter(pl.col("time_s") >= from_s, pl.col("value") >= level)["time_s"]
    return float(reached.min()) - from_s if len(reached) else math.inf  # type: ignore[arg-type]
