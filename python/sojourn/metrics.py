"""Numbers from results: completion times by size and class, censoring, fairness, confidence.

Flows that started during the warm-up and long-lived flows are left out. A flow that did not finish
is not left out: it is censored. It takes at least as long as it has waited, so every statistic that
could lie among such flows is a lower bound and marked so. A flow that was terminated, given up lest
it miss its deadline, has no completion time to wait for: it counts only where deadlines do.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from sojourn.results import REQUEST, RESPONSE, Result, Run

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bucket:
    """Flows of more than `above` and up to `up_to` bytes of payload, of all classes or of one."""

    name: str
    above: float = 0
    up_to: float = math.inf
    of_class: str | None = None

    @property
    def where(self) -> dict[str, str]:
        """The `size` and `class` that tell in tables which flows a row is of."""
        size = self.name if self.of_class is None else ALL.name
        return {"size": size, "class": self.of_class or ALL.name}


class Statistic(NamedTuple):
    """A number, and whether unfinished flows make it a lower bound."""

    value: float
    at_least: bool = False


Metric = Callable[[Result], Statistic]

ALL = Bucket("all")
STATISTICS = ("mean", "p50", "p95", "p99")


def size_buckets(*edges: float, packet_bytes: int | None = None) -> tuple[Bucket, ...]:
    """Cut sizes at `edges`, in bytes, or in packets of `packet_bytes` of payload."""
    unit = packet_bytes or 1

    def name(edge: float) -> str:
        return _bytes(edge) if packet_bytes is None else f"{edge:g} packets"

    cuts = [0.0, *sorted(edges), math.inf]
    buckets = []
    for low, high in itertools.pairwise(cuts):
        if high == math.inf:
            label = f"> {name(low)}"
        elif low == 0:
            label = f"≤ {name(high)}"
        else:
            label = f"{name(low)} to {name(high)}"
        buckets.append(Bucket(label, low * unit, high * unit))
    return tuple(buckets)


def _bytes(amount: float) -> str:
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if amount >= scale:
            return f"{amount / scale:g} {unit}"
    return f"{amount:g} B"


BUCKETS = (ALL, *size_buckets(100e3, 10e6))
"""All flows; then small, medium and large ones: up to 100 KB, up to 10 MB, and above."""


def class_buckets(results: Iterable[Result]) -> tuple[Bucket, ...]:
    """Return a bucket for each class of flows, by name, if there is more than one.

    Requests and responses have none: the caller's time is that of both (`calls`).
    """
    names = {name for result in results for name in judged(result)["class"].unique()}
    flows = [name for name in sorted(names) if not name.endswith((REQUEST, RESPONSE))]
    return tuple(Bucket(name, of_class=name) for name in flows if len(names) > 1)


def sizes_and_classes(results: Iterable[Result]) -> tuple[Bucket, ...]:
    """Return `BUCKETS`, and those of `class_buckets`."""
    return (*BUCKETS, *class_buckets(results))


def seconds(text: str) -> float:
    """Read a time as scenarios give it, such as `10 us`."""
    match = re.fullmatch(r"\s*([\d.]+)\s*(ps|ns|us|ms|s)\s*", text)
    if match is None:
        raise ValueError(f"not a time with its unit: {text!r}")
    return float(match[1]) * {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[match[2]]


def warm_up_s(result: Result) -> float:
    """Return when the warm-up ended, in seconds: what began before is not judged."""
    return seconds(result.summary["scenario"].get("warm_up", "0 s"))


def judged(result: Result, bucket: Bucket = ALL) -> pl.DataFrame:
    """Return the flows that are judged: started after the warm-up, with a size, in `bucket`."""
    return result.flows.filter(
        pl.col("outcome") != "long_lived",
        pl.col("start_s") >= warm_up_s(result),
        *within(bucket),
    )


def within(bucket: Bucket) -> list[pl.Expr]:
    """Return what holds of the flows in a bucket."""
    size = pl.col("size_bytes")
    of_class = [] if bucket.of_class is None else [pl.col("class") == bucket.of_class]
    return [size > bucket.above, size <= bucket.up_to, *of_class]


def timed(result: Result, bucket: Bucket = ALL) -> pl.DataFrame:
    """Return the flows that statistics of completion times are made of: none was terminated."""
    return judged(result, bucket).filter(pl.col("outcome") != "terminated")


def _observed(result: Result, bucket: Bucket, column: str) -> tuple[Floats, Floats]:
    """Return the values of finished flows, and what those of unfinished ones are at least."""
    flows = with_bounds(timed(result, bucket), result, column)
    finished = flows.filter(pl.col(column).is_not_null())["value"]
    unfinished = flows.filter(pl.col(column).is_null())["value"]
    return finished.to_numpy(), unfinished.to_numpy()


def in_order(result: Result, column: str, bucket: Bucket = ALL) -> tuple[Floats, bool]:
    """Return `column` of the flows in order of start, and whether it holds lower bounds."""
    flows = with_bounds(timed(result, bucket), result, column)
    values = flows.sort("start_s", maintain_order=True)["value"]
    return values.to_numpy(), flows[column].null_count() > 0


def with_bounds(flows: pl.DataFrame, result: Result, column: str) -> pl.DataFrame:
    """Add `value`: of a finished flow `column`, of an unfinished one what it is at least."""
    waited = pl.max_horizontal(result.summary["simulated_s"] - pl.col("start_s"), "ideal_fct_s")
    least = waited if column == "fct_s" else waited / pl.col("ideal_fct_s")
    return flows.with_columns(value=pl.coalesce(column, least))


def percentile(finished: Floats, unfinished: Floats, share: float) -> Statistic:
    """Return the smallest value that a `share` of all flows do not exceed (nearest rank).

    `unfinished` holds lower bounds. If larger values in their place would change the answer, the
    answer is a lower bound itself.
    """
    count = len(finished) + len(unfinished)
    if count == 0:
        return Statistic(math.nan)
    rank = max(math.ceil(share * count - 1e-9), 1) - 1
    least = np.sort(np.concatenate([finished, unfinished]))[rank]
    if rank >= len(finished):
        return Statistic(float(least), at_least=True)
    most = np.sort(finished)[rank]
    return Statistic(float(least), at_least=bool(most != least))


def mean(finished: Floats, unfinished: Floats) -> Statistic:
    """Return the mean, a lower bound if any flow is unfinished."""
    values = np.concatenate([finished, unfinished])
    if len(values) == 0:
        return Statistic(math.nan)
    return Statistic(float(values.mean()), at_least=len(unfinished) > 0)


def statistic_of(name: str, finished: Floats, unfinished: Floats) -> Statistic:
    """Return `mean`, `max` or a percentile such as `p99`; `unfinished` holds lower bounds."""
    if name == "mean":
        return mean(finished, unfinished)
    return percentile(finished, unfinished, share_of(name))


def share_of(name: str) -> float:
    """Return the share that a percentile such as `p99` speaks of; `max` speaks of all."""
    share = re.fullmatch(r"p(\d+(?:\.\d+)?)", name)
    if name != "max" and (share is None or float(share[1]) > 100):
        raise ValueError(f"unknown statistic {name!r}: mean, max, or a percentile such as p99")
    return 1.0 if share is None else float(share[1]) / 100


def fct(statistic: str, bucket: Bucket = ALL) -> Metric:
    """Measure flow completion time in seconds: `mean`, `max` or a percentile such as `p99`."""
    return lambda result: statistic_of(statistic, *_observed(result, bucket, "fct_s"))


def slowdown(statistic: str, bucket: Bucket = ALL) -> Metric:
    """Measure completion time over that of the same flow alone in the network."""
    return lambda result: statistic_of(statistic, *_observed(result, bucket, "slowdown"))


def utilisation(link: str) -> Metric:
    """Measure the share of time that the link, such as `left->right`, was sending."""
    return lambda result: Statistic(float(link_counters(result, link)["utilisation"]))


def count(name: str) -> Metric:
    """Measure one of the run's counts, such as `drops` or `marks`; NaN if the model has none."""
    return lambda result: Statistic(float(result.summary["counts"].get(name, math.nan)))


def realised_load() -> Metric:
    """Measure what the flows that started did offer, as a share of the topology's load reference.

    On the wire, headers included, from the first start to the last, warm-up and all. Sizes and gaps
    with a heavy tail offer what was asked for only in the long run. NaN if all started together.
    """

    def measure_one(result: Result) -> Statistic:
        realised = result.summary.get("realised_load")
        return Statistic(math.nan if realised is None else float(realised))

    return measure_one


def flows(bucket: Bucket = ALL) -> Metric:
    """Measure how many flows the statistics of `bucket` are made of."""
    return lambda result: Statistic(float(timed(result, bucket).height))


def terminated(bucket: Bucket = ALL) -> Metric:
    """Measure how many flows were given up lest they miss their deadlines."""

    def measure_one(result: Result) -> Statistic:
        return Statistic(float(judged(result, bucket).height - timed(result, bucket).height))

    return measure_one


def deadlines_met(bucket: Bucket = ALL) -> Metric:
    """Measure application throughput: the share of flows with a deadline that finish by it.

    It is a lower bound while a flow is in progress of which the deadline has not passed.
    """

    def measure_one(result: Result) -> Statistic:
        flows = judged(result, bucket).filter(pl.col("deadline_s").is_not_null())
        met = (flows["fct_s"] <= flows["deadline_s"]).sum()
        undecided = flows.filter(
            pl.col("outcome") == "unfinished",
            pl.col("start_s") + pl.col("deadline_s") > result.summary["simulated_s"],
        )
        share = float(met) / flows.height if flows.height else math.nan
        return Statistic(share, at_least=not undecided.is_empty())

    return measure_one


def ratio_of_means(bucket: Bucket = ALL) -> Metric:
    """Measure the mean completion time over the mean of the same flows alone in the network.

    Large flows weigh more than in the mean of the ratios, which is `slowdown`.
    """

    def measure_one(result: Result) -> Statistic:
        value, at_least = mean(*_observed(result, bucket, "fct_s"))
        alone = timed(result, bucket)["ideal_fct_s"].to_numpy()
        return Statistic(value / float(alone.mean()) if len(alone) else math.nan, at_least)

    return measure_one


def sampled(probe: str, statistic: str) -> Metric:
    """Measure a sampled quantity over the run after the warm-up: `mean`, `max` or a percentile."""

    def measure_one(result: Result) -> Statistic:
        warm_up = warm_up_s(result)
        samples = result.samples.filter(pl.col("probe") == probe, pl.col("time_s") >= warm_up)
        return statistic_of(statistic, samples["value"].to_numpy(), np.empty(0))

    return measure_one


def link_counters(result: Result, link: str) -> dict[str, Any]:
    """Return the counters of one link."""
    for counters in result.summary["links"]:
        if counters["name"] == link:
            return dict(counters)
    names = ", ".join(counters["name"] for counters in result.summary["links"])
    raise KeyError(f"there is no link {link!r} among {names}")


def by_size(
    result: Result,
    column: str,
    buckets: Iterable[Bucket] = BUCKETS,
    statistics: Sequence[str] = STATISTICS,
) -> pl.DataFrame:
    """Return one row a size bucket: flows, unfinished ones, and statistics of `column`.

    `column` is `fct_s` or `slowdown`; `at_least` names the statistics that are lower bounds.
    Terminated flows are counted apart.
    """
    return _by("size", result, column, buckets, statistics)


def by_class(result: Result, column: str, statistics: Sequence[str] = STATISTICS) -> pl.DataFrame:
    """Return one row a class of flows, as `by_size` does; none if there is only one class."""
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
        finished, unfinished = _observed(result, bucket, column)
        values = {name: statistic_of(name, finished, unfinished) for name in statistics}
        rows.append(
            {
                head: bucket.name,
                "flows": len(finished) + len(unfinished),
                "unfinished": len(unfinished),
                "terminated": int(terminated(bucket)(result).value),
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
    """Return `column` along flow size, for each set of labels; seeds are pooled.

    Sizes are in packets of `payload` bytes. A row is a bin, of which `bins_per_octave` double the
    size: the labels, `size_lo` and `size_hi` (its smallest and largest flow), `size` (their mean),
    `flows`, `unfinished`, `mean`, `stderr` (of the mean), `max` and `at_least`: whether unfinished
    flows make mean and maximum lower bounds. `where` keeps some flows only.
    """
    pooled: dict[tuple[tuple[str, Any], ...], list[pl.DataFrame]] = {}
    for run in runs:
        labels = tuple((name, value) for name, value in run.labels.items() if name != "seed")
        flows = with_bounds(timed(run.result), run.result, column)
        flows = flows if where is None else flows.filter(where)
        pooled.setdefault(labels, []).append(_size_sums(flows, payload, bins_per_octave))
    return pl.concat(
        labelled(dict(labels), _size_rows(pl.concat(sums))) for labels, sums in pooled.items()
    )


def _size_sums(flows: pl.DataFrame, payload: int, bins_per_octave: int) -> pl.DataFrame:
    """Return one row a bin with sums, which may be added to those of other runs."""
    # A size on an edge, such as 2 packets, is the first of the bin above, whatever rounding says.
    octaves = (pl.col("packets").log(2) * bins_per_octave + 1e-9).floor().cast(pl.Int32)
    return (
        flows.with_columns(packets=pl.col("size_bytes") / payload)
        .group_by(bin=octaves)
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
    """Return one row a bin with means, from the sums of all runs."""
    added = pl.col("packets", "flows", "unfinished", "total", "squares").sum()
    count, mean = pl.col("flows"), pl.col("total") / pl.col("flows")
    spread = (pl.col("squares") - count * mean**2).clip(lower_bound=0) / (count - 1)
    return (
        sums.group_by("bin", maintain_order=True)
        .agg(pl.col("size_lo").min(), pl.col("size_hi", "max").max(), added)
        .sort("bin")
        .select(
            "size_lo",
            "size_hi",
            size=pl.col("packets") / count,
            flows=count.cast(pl.Int64),
            unfinished=pl.col("unfinished").cast(pl.Int64),
            mean=mean,
            stderr=pl.when(count > 1).then((spread / count).sqrt()).otherwise(math.nan),
            max="max",
            at_least=pl.col("unfinished") > 0,
        )
    )


class NotInABatch(Exception):
    """What is asked of some flows of a run is told of whole runs only."""


def _measured(metric: Metric, result: Result) -> Statistic:
    try:
        return metric(result)
    except NotInABatch:
        return Statistic(math.nan)


def measure(runs: Iterable[Run], **metrics: Metric) -> pl.DataFrame:
    """Return one row a run and metric: the labels, `metric`, `value`, `at_least`."""
    return pl.DataFrame(
        [
            {**run.labels, "metric": name, **_measured(metric, run.result)._asdict()}
            for run in runs
            for name, metric in metrics.items()
        ],
        infer_schema_length=None,
    )


def across_seeds(table: pl.DataFrame, *, median: bool = False) -> pl.DataFrame:
    """Reduce what `measure` returned over its seeds, with 95 % confidence bounds.

    The mean has bounds from Student's t distribution, the median from the bootstrap. `value`,
    `low`, `high`, `seeds` and `at_least` follow the labels and `metric`.
    """
    labels = [name for name in table.columns if name not in ("seed", "value", "at_least")]
    interval = bootstrap_median if median else t_interval
    rows = []
    for group in table.partition_by(labels, maintain_order=True):
        values = group["value"].to_numpy()
        value, low, high = interval(values)
        rows.append(
            {
                **group.select(labels).row(0, named=True),
                "value": value,
                "low": low,
                "high": high,
                "seeds": len(values),
                "at_least": group["at_least"].any(),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def t_interval(values: Iterable[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the mean and its confidence interval; the bounds of a single value are NaN."""
    data = np.asarray(list(values), dtype=np.float64)
    centre = float(data.mean()) if len(data) else math.nan
    if len(data) < 2:
        return centre, math.nan, math.nan
    error = float(data.std(ddof=1)) / math.sqrt(len(data))
    reach = float(stats.t.ppf((1 + confidence) / 2, len(data) - 1)) * error
    return centre, centre - reach, centre + reach


def bootstrap_median(
    values: Iterable[float], confidence: float = 0.95, resamples: int = 2000
) -> tuple[float, float, float]:
    """Return the median and its bootstrap interval, the same on every call."""
    data = np.asarray(list(values), dtype=np.float64)
    centre = float(np.median(data)) if len(data) else math.nan
    if len(data) < 2:
        return centre, math.nan, math.nan
    draws = np.random.default_rng(0).choice(data, size=(resamples, len(data)))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.median(draws, axis=1), [tail, 1 - tail])
    return centre, float(low), float(high)


def at(table: pl.DataFrame, column: str = "value", **labels: Any) -> float:
    """Return the one value of `column` in the row with these labels; NaN if there is none."""
    rows = table.filter(*(pl.col(name) == value for name, value in labels.items()))
    if rows.height > 1:
        raise ValueError(f"{rows.height} rows have {labels}: give more labels")
    return float(rows[column][0]) if rows.height else math.nan


def cdf(
    runs: Iterable[Run], column: str = "fct_s", bucket: Bucket = ALL, points: int = 400
) -> pl.DataFrame:
    """Return the distribution of `column` for each set of labels, seeds pooled.

    `value` and `fraction` follow the labels. Unfinished flows count in the fraction's denominator,
    so a curve that ends below 1 shows how many there are.
    """
    return cumulative(runs, lambda result: _observed(result, bucket, column), points)


def cumulative(
    runs: Iterable[Run], observed: Callable[[Result], tuple[Floats, Floats]], points: int = 400
) -> pl.DataFrame:
    """Return the distribution of what is observed of finished and of unfinished, as `cdf` does."""
    pooled: dict[tuple[tuple[str, Any], ...], list[tuple[Floats, Floats]]] = {}
    for run in runs:
        labels = tuple((name, value) for name, value in run.labels.items() if name != "seed")
        pooled.setdefault(labels, []).append(observed(run.result))
    tables = []
    for labels, parts in pooled.items():
        values = np.sort(np.concatenate([finished for finished, _ in parts]))
        total = len(values) + sum(len(unfinished) for _, unfinished in parts)
        ranks = np.unique(np.linspace(0, len(values) - 1, min(points, len(values))).astype(int))
        columns = {"value": values[ranks], "fraction": (ranks + 1) / max(total, 1)}
        constants = [pl.lit(value).alias(name) for name, value in labels]
        tables.append(pl.DataFrame(columns).select(*constants, "value", "fraction"))
    return pl.concat(tables)


def series(
    runs: Iterable[Run], probe: str, points: int = 2000, *, per_second: bool = False
) -> pl.DataFrame:
    """Return samples of `probe` over time: the labels, `time_s`, `value`, and `high`.

    Long series are thinned to `points` spans, each with its mean and its highest value. Of a count,
    such as `transmitted_bytes left->right`, how fast it grows may be wanted: `per_second`.
    """
    value = pl.col("value").diff() / pl.col("time_s").diff() if per_second else pl.col("value")
    tables = []
    for run in runs:
        samples = run.result.samples.filter(pl.col("probe") == probe)
        span = max(math.ceil(samples.height / points), 1)
        thin = (
            samples.select("time_s", value=value)
            .drop_nulls()
            .with_row_index("row")
            .group_by(pl.col("row") // span, maintain_order=True)
            .agg(
                pl.col("time_s").first(),
                pl.col("value").mean(),
                pl.col("value").max().alias("high"),
            )
        )
        tables.append(labelled(run.labels, thin.select("time_s", "value", "high")))
    return pl.concat(tables)


def in_progress(runs: Iterable[Run], points: int = 500) -> pl.DataFrame:
    """Return the number of flows in progress over time: the labels, `time_s` and `value`.

    It is counted from the flow records, so ideals have it too. Terminated flows are left out: when
    they were given up is not recorded.
    """
    tables = []
    for run in runs:
        times = np.linspace(0, run.result.summary["simulated_s"], points + 1)[1:]
        flows = run.result.flows.filter(pl.col("outcome") != "terminated")
        flows = flows.select("start_s", end_s=pl.col("start_s") + pl.col("fct_s"))
        begun, ended = (flows[name].drop_nulls().sort().to_numpy() for name in flows.columns)
        count = np.searchsorted(begun, times, "right") - np.searchsorted(ended, times, "right")
        columns = pl.DataFrame({"time_s": times, "value": count.astype(np.float64)})
        tables.append(labelled(run.labels, columns))
    return pl.concat(tables)


def labelled(labels: Mapping[str, Any], table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with the labels as its first columns."""
    # Series, not `pl.lit`: whole numbers then have 64 bits, as in the other tables.
    constants = [pl.lit(pl.Series([value])).first().alias(name) for name, value in labels.items()]
    return table.select(*constants, pl.all())


def jain(values: Iterable[float]) -> float:
    """Return Jain's fairness index: 1 if all are equal, 1/n if one has everything."""
    data = np.asarray(list(values), dtype=np.float64)
    squares = float((data**2).sum())
    return float(data.sum()) ** 2 / (len(data) * squares) if squares > 0 else math.nan


def throughput_bps(result: Result) -> pl.DataFrame:
    """Return each flow's mean rate from its start to its end or the end of the run."""
    duration = pl.coalesce("fct_s", result.summary["simulated_s"] - pl.col("start_s"))
    rate = (pl.col("delivered_bytes") * 8 / duration).alias("throughput_bps")
    return result.flows.select("flow", "source", "target", "class", rate)
