"""Objectives in words: what to measure of a run, such as `p99 slowdown of <= 100 KB`.

A measure is a statistic of flows' completion times, slowdowns or calls' latencies, or a number of
the whole run. A constraint is a measure with a bound, such as `utilisation >= 0.9`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sojourn._core import ScenarioError
from sojourn.analysis import metrics, rpc
from sojourn.analysis.metrics import Bucket, Metric, Statistic
from sojourn.base.messages import did_you_mean
from sojourn.base.units import SIZE, parse_size, parse_time
from sojourn.runs.results import Result

OF_FLOWS: dict[str, tuple[Callable[[str, Bucket], Metric], str]] = {
    "fct": (metrics.fct, "s"),
    "slowdown": (metrics.slowdown, ""),
}
"""What each flow has: how it is measured, and its unit."""

COUNTS = ("drops", "marks", "pauses", "retransmits", "timeouts")
"""What is counted in a whole run. It may be 0, and ratios to 0 say nothing: only for bounds."""

WORDS = (*OF_FLOWS, "latency", "utilisation", "queue", "deadlines met", *COUNTS)

FORMS = "`mean|p50|p99|max fct|slowdown [of <= 100 KB]`, `p99 latency`, `utilisation`, `mean queue`"


LEAST = 1e-12
"""What 0 counts as where logarithms are taken: of a share, or of a queue."""


@dataclass(frozen=True)
class Measure:
    """What is measured of a run."""

    text: str
    metric: Metric
    unit: str
    """`s`, `B`, or nothing for plain numbers and shares."""

    def of(self, result: Result) -> Statistic:
        """Return its value in a run, in seconds, bytes or as a plain number."""
        return self.metric(result)


@dataclass(frozen=True)
class Goal:
    """A measure to be made as small as can be, or as large."""

    measure: Measure
    maximise: bool = False

    def loss(self, value: float) -> float:
        """Return what is less where it is better: the logarithm, for what counts is ratios."""
        return (-1 if self.maximise else 1) * math.log(max(value, LEAST))


@dataclass(frozen=True)
class Constraint:
    """A measure with a bound that it has to keep, in the mean over seeds."""

    text: str
    measure: Measure
    at_least: bool
    bound: float

    def excess(self, value: float) -> float:
        """Return by how much a value breaks the bound; at most 0 if it keeps it."""
        return self.bound - value if self.at_least else value - self.bound


def goal(text: str, *, maximise: bool = False) -> Goal:
    """Read what is to be minimised or maximised, such as `p99 slowdown of <= 100 KB`.

    Raises `ScenarioError` if the text is no measure, or one of which ratios say nothing.
    """
    measure = read(text)
    if measure.text in COUNTS:
        raise ScenarioError(
            f"may be 0, of which there are no ratios; bound it: --subject-to '{measure.text} <= 0'"
        )
    return Goal(measure, maximise)


def constraint(text: str) -> Constraint:
    """Read a bound on a measure, such as `utilisation >= 0.9` or `p99 fct <= 2 ms`."""
    match = re.fullmatch(r"(.+?)\s*(<=|>=|≤|≥)\s*([^<>≤≥]+)", text.strip())
    if match is None or match[1].endswith(" of"):
        raise ScenarioError("expected MEASURE >= VALUE or MEASURE <= VALUE")
    measure = read(match[1])
    return Constraint(text.strip(), measure, match[2] in (">=", "≥"), _bound(match[3], measure))


def _bound(text: str, measure: Measure) -> float:
    """Read a bound in the unit of what it is a bound of."""
    try:
        if measure.unit == "s":
            return parse_time(text)
        if measure.unit == "B":
            return parse_size(text)
        share = text.strip().removesuffix("%")
        return float(share) / (1 if share == text.strip() else 100)
    except ValueError:
        wanted = {"s": "a time, such as `2 ms`", "B": "a size, such as `100 KB`", "": "a number"}
        raise ScenarioError(f"the bound must be {wanted[measure.unit]}, not `{text}`") from None


def read(text: str) -> Measure:
    """Read a measure; raises `ScenarioError` with what is allowed."""
    words = " ".join(text.split())
    head, _, of = words.partition(" of ")
    statistic, _, what = head.rpartition(" ")
    if head in ("deadlines met", "deadlines_met"):
        bucket = _bucket(of)
        return Measure(_named("deadlines met", bucket), metrics.deadlines_met(bucket), "")
    if head in COUNTS and not of:
        return Measure(head, metrics.count(head), "")
    if head == "utilisation":
        return Measure(words, _of_link(of, "utilisation", "utilisation"), "")
    if what == "queue" and statistic in ("mean", "max"):
        return Measure(words, _of_link(of, f"queue_{statistic}_bytes", "utilisation"), "B")
    if what not in (*OF_FLOWS, "latency"):
        hint = did_you_mean(what, WORDS) or did_you_mean(head, WORDS)
        raise ScenarioError(f"is no measure{hint}; measures are {FORMS}")
    _check_statistic(statistic, what)
    if what == "latency":
        return Measure(words, rpc.latency(statistic, of.removeprefix("class ")), "s")
    measured, unit = OF_FLOWS[what]
    bucket = _bucket(of)
    return Measure(_named(head, bucket), measured(statistic, bucket), unit)


def _check_statistic(statistic: str, what: str) -> None:
    try:
        if statistic != "mean":
            metrics.share_of(statistic)
    except ValueError:
        told = f"has no statistic `{statistic}`" if statistic else "lacks a statistic"
        hint = did_you_mean(statistic, ("mean", "max", *metrics.STATISTICS))
        raise ScenarioError(
            f"{told}: expected `mean {what}`, `max {what}` or a percentile such as `p99 {what}`"
            f"{hint}"
        ) from None


def _named(head: str, bucket: Bucket) -> str:
    return head if bucket == metrics.ALL else f"{head} of {bucket.name}"


def _bucket(text: str) -> Bucket:
    """Read which flows are meant: `<= 100 KB`, `> 10 MB`, `100 KB to 10 MB`, `class storage`."""
    if not text:
        return metrics.ALL
    if text.startswith("class "):
        name = text.removeprefix("class ")
        return Bucket(f"class {name}", of_class=name)
    if match := re.fullmatch(rf"(?:<=|≤)\s*{SIZE}", text):
        return Bucket(f"<= {match[1]} {match[2]}", up_to=parse_size(f"{match[1]} {match[2]}"))
    if match := re.fullmatch(rf">\s*{SIZE}", text):
        return Bucket(f"> {match[1]} {match[2]}", above=parse_size(f"{match[1]} {match[2]}"))
    if match := re.fullmatch(rf"{SIZE}\s+to\s+{SIZE}", text):
        low, high = (parse_size(" ".join(match.groups()[i : i + 2])) for i in (0, 2))
        return Bucket(" ".join(text.split()), low, high)
    raise ScenarioError(
        f"`{text}` says not which flows: expected sizes, as `<= 100 KB`, `> 10 MB` or"
        " `100 KB to 10 MB`, or `class NAME`"
    )


def _of_link(link: str, counter: str, busiest_by: str) -> Metric:
    """Measure a counter of a link; without one, of that which was sending most of the time."""

    def measure_one(result: Result) -> Statistic:
        links = {one["name"]: one for one in result.summary["links"]}
        if link and link not in links:
            names = ", ".join(list(links)[:5])
            raise ScenarioError(f"there is no link `{link}`{did_you_mean(link, links)} ({names}…)")
        name = link or max(links, key=lambda one: float(links[one][busiest_by]))
        return Statistic(float(links[name].get(counter, np.nan)))

    return measure_one
