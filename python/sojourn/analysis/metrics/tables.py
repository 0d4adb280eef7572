"""Tables from runs: by size and class, by size in bins, distributions, time series, flows."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

from sojourn.analysis.metrics.buckets import (
    ALL,
    BUCKETS,
    Bucket,
    censored,
    class_buckets,
    counts,
    timed,
    with_bounds,
)
from sojourn.analysis.metrics.statistics import STATISTICS, Floats, reported
from sojourn.runs.results import Result, Run
from sojourn.scenario.reading import Labels

Reduced = TypeVar("Reduced")


def by_size(
    result: Result,
    column: str,
    buckets: Iterable[Bucket] = BUCKETS,
    statistics: Sequence[str] = STATISTICS,
) -> pl.DataFrame:
    """Return one row per size bucket: number of flows, of unfinished flows, and statistics.

    `column` is `fct_s` or `slowdown`; `at_least` names the statistics that are lower bounds.
    A percentile of fewer than `least_flows` flows is NaN. Terminated flows have a column, and are
    not among `flows`.
    """
    return _by("size", result, column, buckets, statistics)


def by_class(result: Result, column: str, statistics: Sequence[str] = STATISTICS) -> pl.DataFrame:
    """Return one row per class of flows, in the columns of `by_size`; no rows with one class."""
    return _by("class", result, column, class_buckets([result]), statistics)


def _by(
    head: str,
    result: Result,
    column: str,
    buckets: Iterable[Bucket],
    statistics: Sequence[str],
) -> pl.DataFrame:
    rows = []
    for bucket in buckets:
        finished, unfinished = censored(result, bucket, column)
        values = {name: reported(name, finished, unfinished) for name in statistics}
        rows.append(
            {
                head: bucket.name,
                "flows": len(finished) + len(unfinished),
                "unfinished": len(unfinished),
                "terminated": counts(result, bucket)[1],
                **{name: statistic.value for name, statistic in values.items()},
                "at_least": ",".join(name for name, value in values.items() if value.at_least),
            }
        )
    return pl.DataFrame(rows)


def size_curve(
    runs: Iterable[Run],
    *,
    payload: int,
    column: str = "fct_s",
    bins_per_octave: int = 2,
    where: pl.Expr | None = None,
) -> pl.DataFrame:
    """Return `column` in bins of flow size, for each set of labels; seeds are pooled.

    Sizes are in packets of `payload` bytes; `bins_per_octave` bins double the size. The columns are
    the labels, `size_lo` and `size_hi` (the smallest and largest flow), `size` (the mean), `flows`,
    `unfinished`, `mean`, `stderr` (of the mean), `max` (the mean over runs of each run's maximum,
    since the maximum of all runs would grow with their number) and `at_least`, true if unfinished
    flows make mean and maximum lower bounds. `where` filters flows.
    """

    def sums(result: Result) -> pl.DataFrame:
        flows = with_bounds(timed(result), result, column)
        flows = flows if where is None else flows.filter(where)
        return _size_sums(flows, payload, bins_per_octave)

    return pl.concat(
        labelled(labels, _size_rows(pl.concat(parts))) for labels, parts in pooled(runs, sums)
    )


def log_bin(column: str, base: int, bins: int) -> pl.Expr:
    """Return the number of the bin of a value, of `bins` in each power of a base.

    A value on an edge, such as 2 packets, belongs to the bin above despite rounding errors.
    """
    return (pl.col(column).log(base) * bins + 1e-9).floor().cast(pl.Int32)


def _size_sums(flows: pl.DataFrame, payload: int, bins_per_octave: int) -> pl.DataFrame:
    """Return one row per bin with sums, which can be added to those of other runs."""
    return (
        flows.with_columns(packets=pl.col("size_bytes") / payload)
        .group_by(bin=log_bin("packets", 2, bins_per_octave))
        .agg(
            size_lo=pl.col("packets").min(),
            size_hi=pl.col("packets").max(),
            packets=pl.col("packets").sum(),
            flows=pl.len(),
            unfinished=(pl.col("outcome") != "finished").sum(),
            total=pl.col("value").sum(),
            squares=(pl.col("value") ** 2).sum(),
            max=pl.col("value").max(),
        )
    )


def _size_rows(sums: pl.DataFrame) -> pl.DataFrame:
    """Return one row per bin with means, from the sums of all runs."""
    totals = pl.col("packets", "flows", "unfinished", "total", "squares").sum()
    count, mean = pl.col("flows"), pl.col("total") / pl.col("flows")
    variance = (pl.col("squares") - count * mean**2).clip(lower_bound=0) / (count - 1)
    return (
        sums.group_by("bin", maintain_order=True)
        .agg(pl.col("size_lo").min(), pl.col("size_hi").max(), pl.col("max").mean(), totals)
        .sort("bin")
        .select(
            "size_lo",
            "size_hi",
            size=pl.col("packets") / count,
            flows=count.cast(pl.Int64),
            unfinished=pl.col("unfinished").cast(pl.Int64),
            mean=mean,
            stderr=pl.when(count > 1).then((variance / count).sqrt()).otherwise(math.nan),
            max="max",
            at_least=pl.col("unfinished") > 0,
        )
    )


def cdf(
    runs: Iterable[Run], column: str = "fct_s", bucket: Bucket = ALL, points: int = 400
) -> pl.DataFrame:
    """Return the distribution of `column` for each set of labels, seeds pooled.

    The columns are the labels, `value` and `fraction`, which begins with 0 at the smallest value.
    Unfinished flows count in the denominator of the fraction, so a curve ends at the share of
    finished flows.
    """
    return cumulative(runs, lambda result: censored(result, bucket, column), points)


def cumulative(
    runs: Iterable[Run], observed: Callable[[Result], tuple[Floats, Floats]], points: int = 400
) -> pl.DataFrame:
    """Return the distribution of values for each set of labels, in the form of `cdf`.

    `observed` returns the values of finished flows or calls, and a bound for each unfinished one.
    """
    tables = []
    for labels, samples in pooled(runs, observed):
        values = np.sort(np.concatenate([finished for finished, _ in samples]))
        total = len(values) + sum(len(unfinished) for _, unfinished in samples)
        ranks = np.unique(np.linspace(0, len(values) - 1, min(points, len(values))).astype(int))
        columns = {"value": values[ranks], "fraction": (ranks + 1) / max(total, 1)}
        tables.append(labelled(labels, from_zero(pl.DataFrame(columns))))
    return pl.concat(tables)


def from_zero(distribution: pl.DataFrame) -> pl.DataFrame:
    """Return a distribution, sorted by `value`, with its first step: from 0 at the first value."""
    return pl.concat([distribution.head(1).with_columns(fraction=pl.lit(0.0)), distribution])


def series(
    runs: Iterable[Run],
    probe: str,
    points: int = 2000,
    *,
    per_second: bool = False,
    least_s: float = 0.0,
) -> pl.DataFrame:
    """Return samples of `probe` over time: the labels, `time_s`, `value`, and `high`.

    Long series are reduced to `points` spans, each with its mean and its highest value. With
    `per_second`, the values are rates of a counter, such as `transmitted_bytes left->right`, in
    bytes per second, from `time_s` on; the counter of a flow begins at its start. With `least_s`,
    no span is shorter than this time in seconds, except that of a whole series. The documentation
    of `sojourn.plot` contains an example.

    The table `samples` of the scenario chooses the probes: `queue_bytes LINK` and
    `transmitted_bytes LINK` of its `queues` and `links`; `delivered_bytes flow N` of its `flows`,
    and values of their controllers, such as `window_bytes flow N` or `rate_bps flow N`;
    `measured_rtt_s flow N` of its `rtt_flows`; and always `active_flows`. Raises `ValueError` if
    no run has samples of the probe.
    """
    columns, mean = {"time_s": pl.col("time_s"), "value": pl.col("value")}, pl.col("value").mean()
    if per_second:
        lasts = pl.col("time_s").diff()
        value = pl.col("value").diff() / lasts
        columns = {"time_s": pl.col("time_s").shift(1), "value": value, "lasts": lasts}
        # The first interval of a flow may be shorter than the others.
        mean = (pl.col("value") * pl.col("lasts")).sum() / pl.col("lasts").sum()
    tables, probes = [], set[str]()
    for run in runs:
        samples = run.result.samples.filter(pl.col("probe") == probe)
        samples = _from_start(samples, probe, run.result) if per_second else samples
        span = max(math.ceil(samples.height / points), _rows_in(samples["time_s"], least_s), 1)
        values = samples.select(**columns).drop_nulls()
        number = pl.col("row") // span
        if least_s:
            # The rest of the series belongs to the last span, since it may be short.
            number = number.clip(upper_bound=max(values.height // span, 1) - 1)
        spans = (
            values.with_row_index("row")
            .group_by(number, maintain_order=True)
            .agg(
                pl.col("time_s").first(),
                mean.alias("value"),
                pl.col("value").max().alias("high"),
            )
        )
        tables.append(labelled(run.labels, spans.select("time_s", "value", "high")))
        probes |= set(run.result.samples["probe"])
    if probe not in probes:
        names = ", ".join(sorted(probes)) or "nothing; the scenario needs a table `samples`"
        raise ValueError(f"probe {probe!r}: not sampled (sampled: {names})")
    return pl.concat(tables)


def _from_start(samples: pl.DataFrame, probe: str, result: Result) -> pl.DataFrame:
    """Return the samples of a counter, of a flow with 0 at its start, which has no sample."""
    counter, _, flow = probe.partition(" flow ")
    if counter != "delivered_bytes" or samples.is_empty():
        return samples
    zero = samples.head(1).with_columns(
        time_s=pl.lit(result.flows.filter(flow=int(flow))["start_s"][0]), value=pl.lit(0.0)
    )
    return pl.concat([zero.filter(pl.col("time_s") < samples["time_s"][0]), samples])


def _rows_in(times: pl.Series, least_s: float) -> int:
    """Return how many samples at regular times last at least this time in seconds."""
    lasts = float(times[-1] - times[0]) if len(times) > 1 else 0.0
    # Times have rounding errors.
    return math.ceil(least_s / lasts * (len(times) - 1) - 1e-6) if lasts else 1


def in_progress(runs: Iterable[Run], points: int = 500) -> pl.DataFrame:
    """Return the number of flows in progress at instants: the labels, `time_s` and `value`.

    The number is counted from flow records, so ideals have it too. Terminated flows are excluded,
    because their records do not contain the time of termination.
    """
    tables = []
    for run in runs:
        times = np.linspace(0, run.result.summary["simulated_s"], points + 1)[1:]
        starts, ends = _starts_and_ends(run.result)
        count = np.searchsorted(starts, times, "right") - np.searchsorted(ends, times, "right")
        columns = pl.DataFrame({"time_s": times, "value": count.astype(np.float64)})
        tables.append(labelled(run.labels, columns))
    return pl.concat(tables)


def in_progress_in_bins(result: Result, bins: int) -> pl.DataFrame:
    """Return the mean and the largest number of flows in progress in bins of equal length.

    The columns are `time_s`, at which a bin begins, `mean` and `max`. Flows are those of
    `in_progress`, in whole picoseconds.
    """
    starts, ends = (np.rint(times * 1e12) for times in _starts_and_ends(result))
    end = result.summary["simulated_s"] * 1e12
    # A run without events has one bin, of 1 ps.
    edges = np.unique(np.rint(np.linspace(0, max(end, 1), bins + 1)))
    times = np.unique(np.concatenate([edges, starts, ends]))
    times = times[times <= edges[-1]]
    count = np.searchsorted(starts, times, "right") - np.searchsorted(ends, times, "right")
    first = np.searchsorted(times, edges)
    total = np.concatenate([[0], np.cumsum(count[:-1] * np.diff(times))])[first]
    return pl.DataFrame(
        {
            "time_s": edges[:-1] / 1e12,
            "mean": np.diff(total) / np.diff(edges),
            "max": np.maximum.reduceat(count[:-1], first[:-1]),
        }
    )


def _starts_and_ends(result: Result) -> tuple[Floats, Floats]:
    """Return the sorted times in seconds at which flows start and end, without terminated flows."""
    flows = result.flows.filter(pl.col("outcome") != "terminated")
    ends = (flows["start_s"] + flows["fct_s"]).drop_nulls()
    return flows["start_s"].sort().to_numpy(), ends.sort().to_numpy()


def pooled(
    runs: Iterable[Run], reduce: Callable[[Result], Reduced]
) -> list[tuple[Labels, list[Reduced]]]:
    """Return each set of labels without the seed, with the reduced results of its runs."""
    pools: dict[tuple[tuple[str, Any], ...], list[Reduced]] = {}
    for run in runs:
        labels = tuple((name, value) for name, value in run.labels.items() if name != "seed")
        pools.setdefault(labels, []).append(reduce(run.result))
    return [(dict(labels), reduced) for labels, reduced in pools.items()]


def labelled(labels: Mapping[str, Any], table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with the labels as its first columns."""
    return table.select(*label_columns(labels), pl.all())


def label_columns(labels: Mapping[str, Any]) -> list[pl.Expr]:
    """Return the labels as columns of one value each."""
    # With a Series, unlike `pl.lit`, integers have 64 bits, as in the other tables.
    return [pl.lit(pl.Series([value])).first().alias(name) for name, value in labels.items()]


def throughput_bps(result: Result) -> pl.DataFrame:
    """Return each flow's mean throughput from its start to its end or the end of the run.

    A long-lived flow with a `stop` counts to the end of the run.
    """
    duration = pl.coalesce("fct_s", result.summary["simulated_s"] - pl.col("start_s"))
    rate = (pl.col("delivered_bytes") * 8 / duration).alias("throughput_bps")
    return result.flows.select("flow", "source", "target", "class", rate)
