"""Paired comparison: ratio of two schemes' completion times on the same flows and seeds.

Compared schemes have the same flows: a run's workload depends on its seed and not on its transport.
The effect of a seed is largely common to all schemes, so the intervals of each scheme's own mean
are much wider than the interval of the ratio within each seed.

Each seed gives one number, the logarithm of the ratio; seeds are independent, so the mean of the
numbers has Student's interval. Logarithms are used since ratios are skewed and since A/B should be
the inverse of B/A. Within a single run, flows that overlap are not independent; the interval is
then by batches in order of start (`convergence.batch_means`), of each flow's contribution to the
logarithm of the ratio. A percentile has no such contributions, and no interval from one seed; nor
have flows that are no batches (`convergence.are_batches`).

If the start of flows depends on the transport (responses of calls follow requests), or if schemes
have different workloads (a load), flows differ. Then schemes are compared by seed only, and
`same_flows` is false.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import convergence, durations, long_lived, metrics
from sojourn.analysis.metrics import Bucket, Floats
from sojourn.base.messages import did_you_mean
from sojourn.runs.answers import SAMPLE, by_sample
from sojourn.runs.results import Result, Run
from sojourn.scenario.fidelity import FLOWS

COLUMNS = (
    "against",
    "size",
    "class",
    "metric",
    "value",
    "low",
    "high",
    "seeds",
    "same_flows",
    "pairs",
    "unfinished",
    "unfinished_against",
    "unfinished_both",
    "terminated",
    "with_unfinished",
    "one_sided",
    "repeated",
)
"""The columns after the labels of the runs."""

BY_FLOW = "flow by flow"

METRICS = {
    "FCT mean": ("fct", "mean"),
    "FCT p99": ("fct", "p99"),
    "slowdown mean": ("slowdown", "mean"),
    BY_FLOW: ("fct", "mean"),
}
"""Metrics of ratios: the column and the statistic of both schemes.

`flow by flow` is the geometric mean of the ratios of single flows: each flow has the same weight,
so that few long FCTs do not dominate.
"""

THROUGHPUT = "throughput"
"""Metric of ratios of the throughput of long-lived flows, by class."""

TIMES = (durations.DURATION, durations.LATENCY_MEAN)
"""Metrics of ratios of the durations of jobs, and of the mean latencies of calls."""

IDENTITY = ("source", "target", "size_bytes", "start_s")
"""Columns that are equal, besides the number, if a flow is the same under another scheme."""


def ratios(
    runs: Iterable[Run],
    *,
    by: str = "scheme",
    against: Any = None,
    buckets: Iterable[Bucket] | None = None,
) -> pl.DataFrame:
    """Return the ratio of each scheme's completion times to those of a baseline, on the same flows.

    `by` is the label whose values are the schemes; `against` is the baseline, by default the value
    of the first run. A row is a scheme, a combination of the other labels except the seed, a bucket
    of sizes or a class (by default `metrics.BUCKETS` and all classes) and one of `METRICS`; or a
    class of long-lived flows and `THROUGHPUT`, where a ratio above 1 is that of a faster scheme;
    or a job or a kind of calls, as the `class`, and one of `TIMES`.
    The columns are the labels, `against`, `size`, `class`, `metric`, and

    * `value`, `low`, `high`: the ratio and its 95 % interval; below 1 if the scheme is faster;
    * `seeds`: number of seeds; with one seed, the interval is by batches, or NaN; with two, NaN;
    * `same_flows`: true if flows were paired one by one;
    * `pairs`: number of flows that finished under both schemes, from which the ratio is computed;
    * `unfinished`, `unfinished_against`, `unfinished_both`: number of other flows, which did not
      finish under the scheme only, under the baseline only, or under both;
    * `terminated`: number of other flows, which were terminated under either or both;
    * `with_unfinished`: the ratio if unfinished flows count with their waiting times: a lower bound
      if flows are unfinished under the scheme only, an upper bound if under the baseline only.
      Terminated flows do not count;
    * `one_sided`: number of flows that only one of the two runs has or measures, because they start
      after the end of the other or during its warm-up, or have another size. They are not among
      the other numbers.

    Raises `ScenarioError` if no run has the value `against`, or if all runs have it.
    """
    runs = list(runs)
    if not runs:
        return pl.DataFrame()
    schemes = _distinct(run.labels[by] for run in runs)
    reference = reference_of(schemes, against)
    if buckets is None:
        buckets = metrics.sizes_and_classes(run.result for run in runs)
    buckets = tuple(buckets)
    rows = []
    for labels, seeds in _grouped(runs, by):
        for scheme in schemes:
            sides = _sides(str(scheme), str(reference), seeds.values())
            kept = _distinct_sides(sides)
            pairs: dict[Bucket, list[_Pair]] = {}
            for side in kept:
                for bucket, pair in _pairs(*side, buckets):
                    pairs.setdefault(bucket, []).append(pair)
            named = {**labels, by: scheme}
            of_scheme = [
                row
                for bucket in buckets
                for row in _rows(named, reference, bucket, pairs.get(bucket, []))
            ]
            of_scheme += _throughput_rows(named, reference, kept)
            of_scheme += _time_rows(named, reference, kept)
            rows += [{**row, "repeated": len(sides) - len(kept)} for row in of_scheme]
    names = [name for name in runs[0].labels if name != "seed"]
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.select(*names, *COLUMNS) if rows else table


def reference_of(schemes: Sequence[Any], against: Any = None) -> Any:
    """Return the scheme named `against`, by default the first.

    Raises `ScenarioError` if `against` is not a scheme, or the only one.
    """
    if against is None:
        return schemes[0]
    names = {str(scheme): scheme for scheme in schemes}
    if str(against) not in names:
        hint = did_you_mean(str(against), names)
        raise ScenarioError(f"--against {against}: expected one of {', '.join(names)}{hint}")
    if len(names) == 1:
        raise ScenarioError(f"--against {against}: no other scheme to compare; vary more values")
    return names[str(against)]


def interval(logs: Floats) -> tuple[float, float, float]:
    """Return the ratio and its 95 % bounds from the logarithms of independent seeds' ratios.

    The bounds are NaN below `metrics.LEAST_FOR_MEAN` seeds.
    """
    value, low, high = map(_exp, metrics.seed_interval(logs))
    return value, low, high


def interval_within(
    numerators: Floats, denominators: Floats, samples: npt.NDArray[Any] | None = None
) -> tuple[float, float, float]:
    """Return the ratio of two means over the same flows of one run, and its 95 % bounds.

    The values are in order of start, in each of the `samples` if there are any. To first order the
    error of the logarithm of the ratio is the mean of a/A - b/B over the flows, where a and b are a
    flow's times and A and B their means; its interval is by batch means.
    """
    value = float(numerators.mean() / denominators.mean())
    terms = numerators / numerators.mean() - denominators / denominators.mean()
    half_width = convergence.batch_means(terms, samples=samples)[2] - float(terms.mean())
    return value, value * _exp(-half_width), value * _exp(half_width)


def _exp(logarithm: float) -> float:
    """Return the exponential, infinite in place of an overflow."""
    return math.exp(logarithm) if not logarithm > 700 else math.inf


BASELINE = "_baseline"
"""Suffix of the columns of flows under the baseline."""


class _Pair:
    """The flows of one bucket in one seed under two schemes, in order of start."""

    def __init__(
        self,
        flows: pl.DataFrame,
        baseline_flows: pl.DataFrame,
        in_both: pl.DataFrame,
        *,
        are_others: bool,
    ) -> None:
        """Select the flows that finished under both schemes, if the flows are the same.

        `in_both` are the flows of both runs, in whatever bucket. They decide for a bucket without
        common flows. Flows of runs that `are_others` are never the same.
        """
        both = flows.join(baseline_flows, on="flow", how="full", suffix=BASELINE, coalesce=True)
        both = both.sort("start_s", "flow", maintain_order=True)
        is_done = pl.col("outcome") == "finished"
        is_done_baseline = pl.col(f"outcome{BASELINE}") == "finished"
        common = both.drop_nulls(["outcome", f"outcome{BASELINE}"])
        # A flow that is in another bucket under the other scheme is another flow.
        one_sided = both.filter(
            pl.any_horizontal(pl.col("outcome", f"outcome{BASELINE}").is_null())
        )
        self.same = not are_others and one_sided.join(in_both, on="flow", how="semi").is_empty()
        compared = in_both if common.is_empty() else common
        self.same = self.same and all(
            compared[name].equals(compared[f"{name}{BASELINE}"]) for name in IDENTITY
        )
        is_timed = pl.col("outcome") != "terminated"
        counted = common.filter(is_timed, pl.col(f"outcome{BASELINE}") != "terminated")
        self.unfinished = counted.filter(~is_done & is_done_baseline).height
        self.unfinished_against = counted.filter(is_done & ~is_done_baseline).height
        self.unfinished_both = counted.filter(~is_done & ~is_done_baseline).height
        self.terminated = common.height - counted.height
        self.one_sided = one_sided.height
        paired = by_sample(both.filter(is_done & is_done_baseline))
        self.samples = convergence.samples_of(paired)
        self.are_batches = convergence.are_batches(paired)
        self.sides = {
            "paired": [_times(paired, suffix) for suffix in ("", BASELINE)],
            "counted": [_times(counted, suffix) for suffix in ("", BASELINE)],
        }
        if not self.same:
            sides = [flows.sort("start_s"), baseline_flows.sort("start_s")]
            is_finished = pl.col("outcome") == "finished"
            self.sides["paired"] = [_times(side.filter(is_finished), "") for side in sides]
            self.sides["counted"] = [_times(side.filter(is_timed), "") for side in sides]
            # Without pairs, unfinished flows are counted under each scheme.
            self.unfinished, self.unfinished_against, self.unfinished_both = (
                flows.filter(is_timed, ~is_finished).height,
                baseline_flows.filter(is_timed, ~is_finished).height,
                0,
            )
            self.terminated = sum(side.filter(~is_timed).height for side in sides)
            self.one_sided = 0
        self.count, self.counted = (
            min(side["fct"].size for side in self.sides[name]) for name in ("paired", "counted")
        )

    def log_ratio(self, metric: str, selection: str = "paired") -> float:
        """Return the logarithm of the ratio; NaN without flows."""
        times, baseline_times = self.sides[selection]
        if times["fct"].size == 0 or baseline_times["fct"].size == 0:
            return math.nan
        if metric == BY_FLOW:
            same = self.same and times["fct"].size == baseline_times["fct"].size
            return float(np.log(times["fct"] / baseline_times["fct"]).mean()) if same else math.nan
        column, statistic = METRICS[metric]
        unfinished = np.empty(0)
        value, baseline_value = (
            metrics.reported(statistic, side[column], unfinished).value
            for side in (times, baseline_times)
        )
        return math.log(value / baseline_value)

    def interval(self, metric: str) -> tuple[float, float, float]:
        """Return the ratio and its bounds from the flows of this seed only."""
        value = math.exp(self.log_ratio(metric))
        times, baseline_times = self.sides["paired"]
        column, statistic = METRICS[metric]
        has_interval = self.same and statistic == "mean" and self.are_batches
        if not has_interval or self.count == 0:
            return value, math.nan, math.nan
        if metric == BY_FLOW:
            logs = np.log(times["fct"] / baseline_times["fct"])
            bounds = convergence.batch_means(logs, samples=self.samples)
            value, low, high = map(_exp, bounds)
            return value, low, high
        return interval_within(times[column], baseline_times[column], self.samples)


def _times(flows: pl.DataFrame, suffix: str) -> dict[str, Floats]:
    return {name: flows[f"{name}{suffix}"].to_numpy() for name in ("fct", "slowdown")}


def _pairs(
    result: Result, baseline: Result, buckets: Iterable[Bucket]
) -> Iterable[tuple[Bucket, _Pair]]:
    """Yield the pair of two runs of one seed for each bucket."""
    sides = [_with_bounds(side) for side in (result, baseline)]
    are_drawn = any(
        side.summary.get("fidelity", {}).get("kind") == FLOWS for side in (result, baseline)
    )
    are_others = are_drawn or are_disjoint(*sides)
    in_both = sides[0].join(sides[1], on="flow", suffix=BASELINE)
    for bucket in buckets:
        selected, selected_baseline = (flows.filter(*metrics.within(bucket)) for flows in sides)
        yield bucket, _Pair(selected, selected_baseline, in_both, are_others=are_others)


def are_disjoint(flows: pl.DataFrame, others: pl.DataFrame) -> bool:
    """Return true if both tables have flows, but no common number, so that none are the same."""
    common = flows.join(others, on="flow", how="semi")
    return common.is_empty() and not (flows.is_empty() or others.is_empty())


def _with_bounds(result: Result) -> pl.DataFrame:
    """Return the flows after the warm-up, with their FCTs, or waiting times if unfinished."""
    flows = metrics.with_bounds(metrics.judged(result), result, "fct_s")
    flows = flows.rename({"value": "fct"})
    slowdown = pl.col("fct") / pl.col("ideal_fct_s")
    optional = [name for name in (convergence.STEP, SAMPLE) if name in flows.columns]
    names = ("flow", *IDENTITY, "class", "outcome", "fct", *optional)
    return flows.select(*names, slowdown=slowdown)


def _rows(
    labels: dict[str, Any], reference: Any, bucket: Bucket, pairs: Sequence[_Pair]
) -> list[dict[str, Any]]:
    """Return a row for each metric; no rows without flows."""
    unfinished = {
        name: sum(getattr(pair, name) for pair in pairs)
        for name in ("unfinished", "unfinished_against", "unfinished_both", "terminated")
    }
    if not any(pair.count for pair in pairs) and not any(unfinished.values()):
        return []
    rows = []
    # Seeds without flows in the bucket have no ratio.
    with_flows = [pair for pair in pairs if pair.count]
    for metric in METRICS:
        if len(with_flows) == 1:
            value, low, high = with_flows[0].interval(metric)
        else:
            value, low, high = interval(np.array([pair.log_ratio(metric) for pair in with_flows]))
        counted = [pair.log_ratio(metric, "counted") for pair in pairs if pair.counted]
        rows.append(
            {
                **labels,
                "against": reference,
                **bucket.where,
                "metric": metric,
                "value": value,
                "low": low,
                "high": high,
                "seeds": len(with_flows),
                "same_flows": all(pair.same for pair in pairs),
                "pairs": sum(pair.count for pair in pairs),
                **unfinished,
                "one_sided": sum(pair.one_sided for pair in pairs),
                "with_unfinished": math.exp(np.mean(counted)) if counted else math.nan,
            }
        )
    return rows


Sides = list[tuple[Result, Result]]
"""The results of a scheme and of the baseline in each seed that both have."""


def _sides(scheme: str, reference: str, seeds: Iterable[dict[str, Run]]) -> Sides:
    """Return the results of a scheme and the baseline; none of the baseline itself."""
    if scheme == reference:
        return []
    both = (runs for runs in seeds if scheme in runs and reference in runs)
    return [(runs[scheme].result, runs[reference].result) for runs in both]


def _distinct_sides(sides: Sides) -> Sides:
    """Return the sides of the first seed only, if those of all seeds are the same."""
    is_same = all(metrics.are_same(results) for results in zip(*sides, strict=True))
    return sides[:1] if sides and is_same else sides


def _throughput_rows(labels: dict[str, Any], reference: Any, sides: Sides) -> list[dict[str, Any]]:
    """Return a row for each class of long-lived flows under a scheme other than the baseline."""
    rows = []
    for name in long_lived.classes(result for side in sides for result in side):
        throughput = long_lived.throughput(name)
        values = [[throughput(result).value for result in side] for side in sides]
        flows = long_lived.flow_count(name)
        pairs = sum(min(flows(result) for result in side) for side in sides)
        row = {**labels, "against": reference, **Bucket(name, of_class=name).where}
        rows.append({**row, "metric": THROUGHPUT, **_by_seed(values), "pairs": pairs})
    return rows


def _time_rows(labels: dict[str, Any], reference: Any, sides: Sides) -> list[dict[str, Any]]:
    """Return a row for each job and kind of calls under a scheme other than the baseline."""
    rows = []
    for group in durations.groups(result for side in sides for result in side):
        observed = [
            [group.observed(result) for result in side]
            for side in sides
            if all(map(group.is_in, side))
        ]
        finished = [[_mean(times) for times, _ in side] for side in observed]
        counted = [[_mean(np.concatenate(both)) for both in side] for side in observed]
        row = {**labels, "against": reference, **Bucket(group.name, of_class=group.name).where}
        rows.append(
            {
                **row,
                "metric": group.ratio,
                **_by_seed(finished),
                "same_flows": group.is_job,
                "pairs": sum(min(len(times) for times, _ in side) for side in observed),
                "unfinished": sum(len(side[0][1]) for side in observed),
                "unfinished_against": sum(len(side[1][1]) for side in observed),
                "with_unfinished": _by_seed(counted)["value"],
            }
        )
    return rows


def _mean(times: Floats) -> float:
    return float(times.mean()) if len(times) else math.nan


def _by_seed(values: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the columns of the ratio of two values in each seed that has both."""
    pairs = np.array(values).reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1) & (pairs > 0).all(axis=1)]
    value, low, high = interval(np.log(pairs[:, 0] / pairs[:, 1]))
    names = ("unfinished", "unfinished_against", "unfinished_both", "terminated", "one_sided")
    unfinished = dict.fromkeys(names, 0)
    ratio = {"value": value, "low": low, "high": high, "seeds": len(pairs), "same_flows": True}
    return {**ratio, **unfinished, "with_unfinished": math.nan}


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return the distinct values in order; values may be tables, which are not hashable."""
    return list({str(value): value for value in values}.values())


Seeds = dict[Any, dict[str, Run]]
"""For each seed, the run of each scheme."""


def _grouped(runs: Iterable[Run], by: str) -> list[tuple[dict[str, Any], Seeds]]:
    """Return the runs by their labels other than `by` and the seed."""
    groups: dict[str, tuple[dict[str, Any], Seeds]] = {}
    for run in runs:
        labels = {name: run.labels[name] for name in run.labels if name not in (by, "seed")}
        _, seeds = groups.setdefault(str(labels), (labels, {}))
        seeds.setdefault(run.labels.get("seed"), {})[str(run.labels[by])] = run
    return list(groups.values())
