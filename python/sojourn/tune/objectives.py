"""Objectives as text: measures of a run, such as `p99 slowdown of <= 100 KB`.

A measure is a statistic of flow completion times, slowdowns, call latencies or job durations, or a
number of the complete run. A constraint is a measure with a bound, such as `utilisation >= 0.9`.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from sojourn._core import ScenarioError
from sojourn.analysis import jobs, long_lived, metrics, rpc
from sojourn.analysis.metrics import Bucket, Metric, Statistic
from sojourn.base.messages import did_you_mean
from sojourn.base.units import SIZE, parse_rate, parse_size, parse_time
from sojourn.runs.results import Result

FLOW_METRICS: dict[str, tuple[Callable[[str, Bucket], Metric], str]] = {
    "fct": (metrics.fct, "s"),
    "slowdown": (metrics.slowdown, ""),
}
"""Metrics over flows: function of a statistic and a set of flows, and unit."""

LONG_LIVED = {
    name.lower(): (metric, "b/s" if name == "throughput" else "")
    for name, metric in long_lived.METRICS.items()
}
"""Metrics of long-lived flows, of all or of one class, and their units."""

COUNTS = ("drops", "marks", "pauses", "retransmits", "timeouts")
"""Counters of a complete run, for bounds only: they may be 0, and a ratio to 0 is undefined."""

SHARES = ("utilisation", "deadlines met", "share", "jain index")
"""Measures whose values lie between 0 and 1."""

LARGEST_QUEUE = "max queue"
"""The measure of a link that, without a link, is of all switch ports."""

LINK_COUNTERS = {
    "utilisation": ("utilisation", ""),
    "mean queue": ("queue_mean_bytes", "B"),
    LARGEST_QUEUE: ("queue_max_bytes", "B"),
}
"""Measures of a link, by default the busiest: column of its counters, and unit."""

ALIASES = {
    "deadlines_met": "deadlines met",
    "jain": "jain index",
    "retransmissions": "retransmits",
}
"""Other words of measures."""

TIMES: dict[str, Callable[[str, str], Metric]] = {
    "latency": rpc.latency,
    "duration": lambda statistic, job: jobs.durations(statistic, job or None),
}
"""Metrics of calls and jobs in seconds: function of a statistic and a class, or `""` for all."""

WITH_STATISTIC = (*FLOW_METRICS, *TIMES, "queue")
"""First words of measures in tables, such as `FCT mean`, that follow the statistic in options."""

WORDS = (
    *FLOW_METRICS,
    *LONG_LIVED,
    *TIMES,
    *("utilisation", "queue", "deadlines met"),
    *COUNTS,
)

FORMS = (
    "`mean|max|p50|p99 fct|slowdown|latency|duration`, `deadlines met`, `throughput`, `share`, "
    "`jain index`, `utilisation`, `mean|max queue`, "
    f"{', '.join(f'`{name}`' for name in COUNTS)}; "
    "followed by `of <= 100 KB`, `of class NAME` or `of LINK`"
)

MIN_VALUE = 1e-12
"""Lower limit of values in logarithms: a utilisation or a queue length may be 0."""


@dataclass(frozen=True)
class Measure:
    """A measure of a run."""

    text: str
    metric: Metric
    unit: str
    """`s`, `B`, `b/s`, or empty for plain numbers and shares."""
    of_class: str = ""
    """Class of its flows or calls, a prefix of them; empty for all."""
    flows: Metric | None = None
    """Number of its flows, of which it needs `least`; `None` for other measures."""
    least: int = 1

    def why_missing(self, result: Result) -> str:
        """Return the reason why a run has no value of the measure."""
        number = math.inf if self.flows is None else self.flows(result).value
        if number >= self.least:
            return f"{self.text}: the run gives no value of this measure"
        return (
            f"{self.text}: a run has {number:.0f} such flows, and {self.least} are needed; run for "
            "a longer time, or use another statistic"
        )

    def of(self, result: Result) -> Statistic:
        """Return the value in a run, in seconds, bytes or as a plain number."""
        return self.metric(result)

    def check_class(self, results: Iterable[Result]) -> None:
        """Raise `ScenarioError` if no run has flows of the class."""
        classes = sorted({name for result in results for name in result.flows["class"].unique()})
        if not any(name.startswith(self.of_class) for name in classes):
            hint = did_you_mean(self.of_class, classes)
            known = ", ".join(classes)
            raise ScenarioError(f"unknown class `{self.of_class}`{hint} (classes: {known})")


@dataclass(frozen=True)
class Goal:
    """An objective: a measure to minimise or maximise."""

    measure: Measure
    maximise: bool = False

    def loss(self, value: float) -> float:
        """Return the logarithm of the value, negated to maximise; smaller is better.

        Differences of losses are ratios of values.
        """
        return (-1 if self.maximise else 1) * math.log(max(value, MIN_VALUE))


@dataclass(frozen=True)
class Constraint:
    """A measure with a bound on its mean over seeds."""

    text: str
    measure: Measure
    at_least: bool
    bound: float

    def excess(self, value: float) -> float:
        """Return the distance by which a value violates the bound; at most 0 if it satisfies it."""
        return self.bound - value if self.at_least else value - self.bound


def goal(text: str, *, maximise: bool = False) -> Goal:
    """Parse an objective, such as `p99 slowdown of <= 100 KB`.

    Raises `ScenarioError` if the text is not a measure, or if it is a counter.
    """
    measure = read(text)
    if measure.text in COUNTS:
        raise ScenarioError(
            f"a counter cannot be an objective; use a bound: --subject-to '{measure.text} <= 0'"
        )
    return Goal(measure, maximise)


def constraint(text: str) -> Constraint:
    """Parse a bound on a measure, such as `utilisation >= 0.9` or `p99 fct <= 2 ms`."""
    match = re.fullmatch(r"(.+?)\s*(<=|>=|≤|≥)\s*([^<>≤≥]+)", text.strip())
    if match is None or match[1].endswith(" of"):
        raise ScenarioError("expected MEASURE >= VALUE or MEASURE <= VALUE")
    measure = read(match[1])
    return Constraint(text.strip(), measure, match[2] in (">=", "≥"), _bound(match[3], measure))


def _bound(text: str, measure: Measure) -> float:
    """Parse the value of a bound in the unit of its measure."""
    try:
        bound = _amount(text, measure.unit)
        if not math.isfinite(bound):
            raise ValueError
    except ValueError:
        expected = {
            "s": "a time, such as `2 ms`",
            "B": "a size, such as `100 KB`",
            "b/s": "a rate, such as `10 Gb/s`",
            "": "a number",
        }
        raise ScenarioError(f"the bound must be {expected[measure.unit]}, not `{text}`") from None
    if measure.text.partition(" of ")[0] in SHARES and not 0.0 <= bound <= 1.0:
        raise ScenarioError(f"the bound must be from 0 to 1, or from 0 % to 100 %, not `{text}`")
    return bound


def _amount(text: str, unit: str) -> float:
    if unit == "s":
        return parse_time(text)
    if unit == "B":
        return parse_size(text)
    if unit == "b/s":
        return parse_rate(text)
    share = text.strip().removesuffix("%")
    return float(share) / (1 if share == text.strip() else 100)


def read(text: str) -> Measure:
    """Parse a measure, in words of tables or options: `FCT mean` is `mean fct`.

    Raises `ScenarioError` with the allowed forms.
    """
    head, _, selection = " ".join(text.split()).partition(" of ")
    head = _canonical(head)
    if (measure := _measure_of_run(head, selection)) is not None:
        return measure
    statistic, _, metric = head.rpartition(" ")
    if metric not in (*FLOW_METRICS, *TIMES):
        hint = did_you_mean(metric, WORDS) or did_you_mean(head, WORDS)
        raise ScenarioError(f"unknown measure{hint} (allowed: {FORMS})")
    _check_statistic(statistic, metric)
    if metric in TIMES:
        of_class = selection.removeprefix("class ")
        return Measure(_with(head, selection), TIMES[metric](statistic, of_class), "s", of_class)
    function, unit = FLOW_METRICS[metric]
    bucket = _bucket(selection)
    metric_of_flows = function(statistic, bucket)
    return Measure(
        _measure_text(head, bucket),
        metric_of_flows,
        unit,
        bucket.of_class or "",
        metrics.flows(bucket),
        metrics.least_flows(statistic),
    )


def _canonical(head: str) -> str:
    """Return the words of a measure in small letters, with the statistic first."""
    head = ALIASES.get(head.lower(), head.lower())
    metric, space, statistic = head.partition(" ")
    return f"{statistic} {metric}" if space and metric in WITH_STATISTIC else head


def _measure_of_run(head: str, selection: str) -> Measure | None:
    """Return a measure of counters, links, deadlines or long-lived flows, or `None`."""
    text = _with(head, selection)
    if head == "deadlines met":
        bucket = _bucket(selection)
        met = metrics.deadlines_met(bucket)
        return Measure(_measure_text(head, bucket), met, "", bucket.of_class or "")
    if head in LONG_LIVED:
        if head == "share" and not selection:
            raise ScenarioError("the share of all long-lived flows is 1: add `of class NAME`")
        metric_of, unit = LONG_LIVED[head]
        of_class = selection.removeprefix("class ")
        return Measure(text, metric_of(of_class or metrics.ALL.name), unit, of_class)
    if head in COUNTS:
        if selection:
            raise ScenarioError(f"{head} are counted in the whole run; remove `of {selection}`")
        return Measure(head, metrics.count(head), "")
    if head in LINK_COUNTERS:
        counter, unit = LINK_COUNTERS[head]
        if head == LARGEST_QUEUE and not selection:
            return Measure(text, metrics.largest_queue(), unit)
        return Measure(text, _link_metric(selection, counter, "utilisation"), unit)
    return None


def _with(head: str, selection: str) -> str:
    return f"{head} of {selection}" if selection else head


def _check_statistic(statistic: str, metric: str) -> None:
    try:
        if statistic != "mean":
            metrics.share_of(statistic)
    except ValueError:
        problem = f"unknown statistic `{statistic}`" if statistic else "missing statistic"
        hint = did_you_mean(statistic, ("mean", "max", *metrics.STATISTICS))
        raise ScenarioError(
            f"{problem}: expected `mean {metric}`, `max {metric}` or a percentile such as"
            f" `p99 {metric}`"
            f"{hint}"
        ) from None


def _measure_text(head: str, bucket: Bucket) -> str:
    return head if bucket == metrics.ALL else f"{head} of {bucket.name}"


def _bucket(text: str) -> Bucket:
    """Parse a set of flows: `<= 100 KB`, `> 10 MB`, `100 KB to 10 MB`, `class storage`."""
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
        f"cannot parse `{text}` as a set of flows: expected sizes, such as `<= 100 KB`,"
        " `> 10 MB` or `100 KB to 10 MB`, or `class NAME`"
    )


def _link_metric(link: str, counter: str, busiest_by: str) -> Metric:
    """Return the metric of a counter of a link; if `link` is empty, of the busiest link.

    Counters are those of `metrics.measured`.
    """

    def measure_link(result: Result) -> Statistic:
        links = {item["name"]: metrics.measured(item) for item in result.summary["links"]}
        if link and link not in links:
            names = ", ".join(list(links)[:5])
            raise ScenarioError(
                f"unknown link `{link}`{did_you_mean(link, links)} (links: {names}…)"
            )
        name = link or max(links, key=lambda item: float(links[item][busiest_by]))
        return Statistic(float(links[name].get(counter, np.nan)))

    return measure_link
