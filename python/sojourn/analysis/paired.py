"""Pairs: which scheme is faster on the same flows.

Schemes that are compared see the same flows: a run's workload depends on its seed and not on its
transport. What a seed changes, it changes for all of them, so an interval of each scheme's own mean
says little about their difference. That of their ratio within each seed says much more.

Of each seed there is one number, the logarithm of the ratio; seeds are independent, so the mean of
these numbers has Student's interval. Logarithms, since ratios are skewed and since A against B
should be the inverse of B against A. Within a single run flows that overlap are not independent;
there the interval is that of batches in order of start (`convergence.batch_means`), of each flow's
share in the logarithm of the ratio. A percentile has no such shares, and no interval from one seed.

Where the start of flows depends on the transport (calls, whose answers wait for requests), or where
what is varied changes the workload (a load), flows are not the same. Then schemes are compared by
seed only, and `same_flows` is false.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import convergence, metrics
from sojourn.analysis.metrics import Bucket, Floats
from sojourn.base.messages import did_you_mean
from sojourn.runs.results import Result, Run

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
    "with_unfinished",
)
"""The columns that follow the labels of the runs."""

BY_FLOW = "flow by flow"

METRICS = {
    "FCT mean": ("fct", "mean"),
    "FCT p99": ("fct", "p99"),
    "slowdown mean": ("slowdown", "mean"),
    BY_FLOW: ("fct", "mean"),
}
"""Of what there are ratios: of which times, and of which of their statistics.

`flow by flow` is the geometric mean of the flows' own ratios: each flow counts the same, and the
few that take long do not decide.
"""

IDENTITY = ("source", "target", "size_bytes", "start_s")
"""What makes a flow the same one under another scheme, besides its number."""


def ratios(
    runs: Iterable[Run],
    *,
    by: str = "scheme",
    against: Any = None,
    buckets: Iterable[Bucket] | None = None,
) -> pl.DataFrame:
    """Return the ratio of each scheme's times to those of one of them, on the same flows.

    `by` is the label whose values are the schemes; `against` is one of these values, by default
    that of the first run. A row is a scheme, a combination of the other labels but the seed, a
    bucket of sizes or a class (by default `metrics.BUCKETS` and the classes there are) and one of
    `METRICS`: first the labels, then `against`, and

    * `value`, `low`, `high`: the ratio and its 95 % interval, below 1 where the scheme is faster;
    * `seeds`: how many it is of; with one, the interval is by batches, or unknown (NaN);
    * `same_flows`: whether flows were paired one by one;
    * `pairs`: flows that finished under both, which the ratio is of. Of other flows: how many are
      `unfinished` under the scheme only, `unfinished_against` only the other, `unfinished_both`;
      flows that were given up are among them;
    * `with_unfinished`: the ratio with unfinished flows in it by how long they have waited. It is a
      lower bound if such flows are the scheme's only, an upper bound if they are the other's.

    Raises `ScenarioError` if no run has `against`, or all have it.
    """
    runs = list(runs)
    if not runs:
        return pl.DataFrame()
    schemes = _distinct(run.labels[by] for run in runs)
    reference = reference_of(schemes, against)
    if buckets is None:
        buckets = metrics.sizes_and_classes(run.result for run in runs)
    given = tuple(buckets)
    rows = []
    for labels, group in _grouped(runs, by):
        found: dict[tuple[str, Bucket], list[_Pair]] = {}
        for of_seed in group.values():
            other = of_seed.get(str(reference))
            for scheme, run in of_seed.items():
                if other is None or run is other:
                    continue
                for bucket, pair in _pairs(run.result, other.result, given):
                    found.setdefault((scheme, bucket), []).append(pair)
        for scheme in schemes:
            for bucket in given:
                pairs = found.get((str(scheme), bucket), [])
                rows += _rows({**labels, by: scheme}, reference, bucket, pairs)
    names = [name for name in runs[0].labels if name != "seed"]
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.select(*names, *COLUMNS) if rows else table


def reference_of(schemes: Sequence[Any], against: Any = None) -> Any:
    """Return the one of the schemes that is meant by `against`; the first by default."""
    if against is None:
        return schemes[0]
    names = {str(scheme): scheme for scheme in schemes}
    if str(against) not in names:
        hint = did_you_mean(str(against), names)
        raise ScenarioError(f"--against {against}: expected one of {', '.join(names)}{hint}")
    if len(names) == 1:
        raise ScenarioError(f"--against {against}: there is nothing else to hold to it")
    return names[str(against)]


def interval(logs: Floats) -> tuple[float, float, float]:
    """Return the ratio and its 95 % bounds, of the logarithms of independent seeds' ratios."""
    value, low, high = map(_exp, metrics.t_interval(logs))
    return value, low, high


def interval_within(ours: Floats, theirs: Floats) -> tuple[float, float, float]:
    """Return the ratio of two means over the same flows of one run, in order of start.

    To first order the logarithm of the ratio is off by the mean of a/A - b/B over the flows, where
    a and b are a flow's times and A and B their means; that has the interval of batch means.
    """
    value = float(ours.mean() / theirs.mean())
    shares = ours / ours.mean() - theirs / theirs.mean()
    reach = convergence.batch_means(shares)[2] - float(shares.mean())
    return value, value * _exp(-reach), value * _exp(reach)


def _exp(logarithm: float) -> float:
    """Return the ratio; that of an interval that reaches too far for a number is endless."""
    return math.exp(logarithm) if not logarithm > 700 else math.inf


class _Pair:
    """The flows of one bucket in one seed under two schemes, in order of start."""

    def __init__(self, ours: pl.DataFrame, theirs: pl.DataFrame) -> None:
        """Take the flows; if they are the same ones, keep those that finished under both."""
        both = ours.join(theirs, on="flow", how="full", suffix="_there", coalesce=True)
        both = both.sort("start_s", "flow", maintain_order=True)
        done = pl.col("outcome").fill_null("") == "finished"
        done_there = pl.col("outcome_there").fill_null("") == "finished"
        common = both.drop_nulls(["outcome", "outcome_there"])
        self.same = all(common[name].equals(common[f"{name}_there"]) for name in IDENTITY)
        self.unfinished = both.filter(~done & done_there).height
        self.unfinished_against = both.filter(done & ~done_there).height
        self.unfinished_both = both.filter(~done & ~done_there).height
        timed = pl.col("outcome") != "terminated"
        counted = common.filter(timed, pl.col("outcome_there") != "terminated")
        paired = both.filter(done & done_there)
        self.sides = {
            "paired": [_times(paired, suffix) for suffix in ("", "_there")],
            "counted": [_times(counted, suffix) for suffix in ("", "_there")],
        }
        if not self.same:
            each = [ours.sort("start_s"), theirs.sort("start_s")]
            finished = pl.col("outcome") == "finished"
            self.sides["paired"] = [_times(flows.filter(finished), "") for flows in each]
            self.sides["counted"] = [_times(flows.filter(timed), "") for flows in each]
            # Nothing is paired, so what is missing is counted on each side.
            self.unfinished, self.unfinished_against, self.unfinished_both = (
                ours.filter(~finished).height,
                theirs.filter(~finished).height,
                0,
            )
        self.count = min(side["fct"].size for side in self.sides["paired"])

    def log_ratio(self, metric: str, of: str = "paired") -> float:
        """Return the logarithm of the ratio; NaN without flows."""
        ours, theirs = self.sides[of]
        if ours["fct"].size == 0 or theirs["fct"].size == 0:
            return math.nan
        if metric == BY_FLOW:
            same = self.same and ours["fct"].size == theirs["fct"].size
            return float(np.log(ours["fct"] / theirs["fct"]).mean()) if same else math.nan
        column, statistic = METRICS[metric]
        none = np.empty(0)
        one, other = (
            metrics.statistic_of(statistic, side[column], none).value for side in (ours, theirs)
        )
        return math.log(one / other)

    def interval(self, metric: str) -> tuple[float, float, float]:
        """Return the ratio and its bounds from this seed alone."""
        value = math.exp(self.log_ratio(metric))
        ours, theirs = self.sides["paired"]
        column, statistic = METRICS[metric]
        if not self.same or statistic != "mean" or self.count == 0:
            return value, math.nan, math.nan
        if metric == BY_FLOW:
            logs = np.log(ours["fct"] / theirs["fct"])
            value, low, high = map(_exp, convergence.batch_means(logs))
            return value, low, high
        return interval_within(ours[column], theirs[column])


def _times(flows: pl.DataFrame, suffix: str) -> dict[str, Floats]:
    return {name: flows[f"{name}{suffix}"].to_numpy() for name in ("fct", "slowdown")}


def _pairs(
    ours: Result, theirs: Result, buckets: Iterable[Bucket]
) -> Iterable[tuple[Bucket, _Pair]]:
    """Yield what two runs of one seed have in each bucket."""
    sides = [_bounded(result) for result in (ours, theirs)]
    for bucket in buckets:
        yield bucket, _Pair(*(flows.filter(*metrics.within(bucket)) for flows in sides))


def _bounded(result: Result) -> pl.DataFrame:
    """Return the flows that are judged, with their times or how long they have waited."""
    flows = metrics.with_bounds(metrics.judged(result), result, "fct_s")
    flows = flows.rename({"value": "fct"})
    slowdown = pl.col("fct") / pl.col("ideal_fct_s")
    names = ("flow", *IDENTITY, "class", "outcome", "fct")
    return flows.select(*names, slowdown=slowdown)


def _rows(
    labels: dict[str, Any], reference: Any, bucket: Bucket, pairs: Sequence[_Pair]
) -> list[dict[str, Any]]:
    """Return a row for each metric, if there are flows."""
    if not any(pair.count or pair.unfinished or pair.unfinished_against for pair in pairs):
        return []
    counts = {
        name: sum(getattr(pair, name) for pair in pairs)
        for name in ("unfinished", "unfinished_against", "unfinished_both")
    }
    rows = []
    # A seed without such flows says nothing.
    some = [pair for pair in pairs if pair.count]
    for metric in METRICS:
        if len(some) == 1:
            value, low, high = some[0].interval(metric)
        else:
            value, low, high = interval(np.array([pair.log_ratio(metric) for pair in some]))
        counted = [pair.log_ratio(metric, "counted") for pair in some]
        rows.append(
            {
                **labels,
                "against": reference,
                **bucket.where,
                "metric": metric,
                "value": value,
                "low": low,
                "high": high,
                "seeds": len(some),
                "same_flows": all(pair.same for pair in pairs),
                "pairs": sum(pair.count for pair in pairs),
                **counts,
                "with_unfinished": math.exp(np.mean(counted)) if counted else math.nan,
            }
        )
    return rows


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return the values in order, each once; they may be tables, which cannot be hashed."""
    return list({str(value): value for value in values}.values())


Seeds = dict[Any, dict[str, Run]]
"""By seed, the run of each scheme."""


def _grouped(runs: Iterable[Run], by: str) -> list[tuple[dict[str, Any], Seeds]]:
    """Return the runs by what else tells them apart."""
    groups: dict[str, tuple[dict[str, Any], Seeds]] = {}
    for run in runs:
        labels = {name: run.labels[name] for name in run.labels if name not in (by, "seed")}
        _, seeds = groups.setdefault(str(labels), (labels, {}))
        seeds.setdefault(run.labels.get("seed"), {})[str(run.labels[by])] = run
    return list(groups.values())
