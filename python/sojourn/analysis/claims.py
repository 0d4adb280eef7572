"""Claims: statements about a figure's table, and their verdicts.

A claim compares numbers with bounds. Sectioning ([asmussen07] section III.5) gives the confidence
interval of a number: the claim is judged on all runs, and again on each section of the runs. A
section is the runs of one seed, or a batch of the flows of a single run. Each section contains
every scheme with the same flows, so effects that a seed has on all schemes cancel in ratios. The
interval is Student's, from the deviations of the sections' numbers from the number of all runs. A
claim is held, or not held, if the complete interval is on one side of the bound; otherwise it is
not judged.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from sojourn.analysis.metrics import interval_about

Word = Literal["held", "not held", "not judged"]

Kind = Literal["stated", "own", "check"]
"""Kind of a claim: of the paper, of our own, or a check of what is true by construction."""

MAX_PRINTED = 3
"""Number of deciding comparisons that a verdict's sentence contains."""


MAX_FACTOR = 100.0
"""Largest factor on the number of seeds or flows that a sentence recommends."""


@dataclass(frozen=True)
class Comparison:
    """A number, its bounds, and its confidence interval."""

    what: str
    value: float
    least: float = -math.inf
    most: float = math.inf
    low: float = math.nan
    high: float = math.nan
    """Bounds of the 95 % confidence interval; NaN if unknown."""

    @property
    def held(self) -> bool | None:
        """True if the interval is within the bounds, false if outside, `None` if undecided."""
        low, high = self.interval
        if low >= self.least and high <= self.most:
            return True
        return False if high < self.least or low > self.most else None

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval; if unknown, the number twice."""
        return (self.value, self.value) if math.isnan(self.low) else (self.low, self.high)

    @property
    def margin(self) -> float:
        """Distance to the nearest bound as a share of that bound; negative outside the bounds."""
        gaps = (self.value - self.least, self.least), (self.most - self.value, self.most)
        return min(gap / (abs(bound) or 1) for gap, bound in gaps if math.isfinite(bound))

    @property
    def bounds(self) -> str:
        """The bounds in words."""
        if math.isinf(self.most):
            return f"at least {self.least:g}"
        return (
            f"at most {self.most:g}"
            if math.isinf(self.least)
            else f"{self.least:g} to {self.most:g}"
        )

    @property
    def sentence(self) -> str:
        """The number, its interval and its bounds in words."""
        interval = "" if math.isnan(self.low) else f" ({self.low:.4g} to {self.high:.4g})"
        advice = f"; {self._advice}" if interval and self.held is None else ""
        return f"{self.what} is {self.value:.4g}{interval}, expected {self.bounds}{advice}"

    @property
    def more(self) -> float:
        """Factor on the number of seeds or flows that would decide the comparison.

        The width of an interval is inversely proportional to the square root of that number.
        """
        bounds = [bound for bound in (self.least, self.most) if math.isfinite(bound)]
        if min(self.low, *bounds) > 0:
            low, high, value, *bounds = map(math.log, (self.low, self.high, self.value, *bounds))
        else:
            low, high, value = self.low, self.high, self.value
        gap = min(abs(value - bound) for bound in bounds)
        return ((high - low) / 2 / gap) ** 2 if gap else math.inf

    @property
    def _advice(self) -> str:
        if self.more > MAX_FACTOR:
            return f"undecided even with {MAX_FACTOR:g} times as many seeds or flows"
        return f"{max(self.more, 1.1):.2g} times as many seeds or flows would decide"


@dataclass(frozen=True)
class Finding:
    """A fact without a number that has a confidence interval; `held` is `None` if undecided."""

    held: bool | None
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """Result of a claim: held if all of its parts held."""

    parts: tuple[Comparison | Finding, ...]

    @property
    def held(self) -> bool | None:
        """The worst result among the parts; `None` if not judged."""
        results = {part.held for part in self.parts}
        return False if False in results else None if None in results or not results else True

    @property
    def word(self) -> Word:
        """The verdict in words."""
        return "not judged" if self.held is None else "held" if self.held else "not held"

    @property
    def sentence(self) -> str:
        """The deciding parts in words; if more than `MAX_PRINTED`, those with least margin."""
        if not self.parts:
            return "nothing to judge"
        deciding = [part for part in self.parts if part.held is self.held]
        if len(deciding) <= MAX_PRINTED:
            return "; ".join(part.sentence for part in deciding)
        deciding.sort(key=lambda part: part.margin if isinstance(part, Comparison) else math.inf)
        if self.held:
            return f"the nearest of {len(deciding)}: {deciding[0].sentence}"
        sentences = "; ".join(part.sentence for part in deciding[:MAX_PRINTED])
        return f"{sentences}; and {len(deciding) - MAX_PRINTED} more"


def finding(held: bool | None, sentence: str) -> Verdict:
    """Return a verdict without a number: true or false, or `None` if undecided, and the reason."""
    return Verdict((Finding(held, sentence),))


def not_judged(reason: str) -> Verdict:
    """Return the verdict of a claim that the data cannot decide."""
    return finding(None, reason)


def at_least(value: float, bound: float, what: str) -> Verdict:
    """Judge that `value` is at least `bound`; a NaN is not judged. `what` names the value."""
    return Verdict((Comparison(what, float(value), least=float(bound)),))


def at_most(value: float, bound: float, what: str) -> Verdict:
    """Judge that `value` is at most `bound`; a NaN is not judged. `what` names the value."""
    return Verdict((Comparison(what, float(value), most=float(bound)),))


def between(value: float, least: float, most: float, what: str) -> Verdict:
    """Judge that `value` is from `least` to `most`; a NaN is not judged. `what` names the value."""
    return Verdict((Comparison(what, float(value), float(least), float(most)),))


def all_at_least(values: Mapping[str, float], bound: float) -> Verdict:
    """Judge that every named value is at least `bound`."""
    return every(at_least(value, bound, name) for name, value in values.items())


def all_at_most(values: Mapping[str, float], bound: float) -> Verdict:
    """Judge that every named value is at most `bound`."""
    return every(at_most(value, bound, name) for name, value in values.items())


def equals(value: object, expected: object, what: str) -> Verdict:
    """Judge that `value` equals `expected`: for counts and names. `what` names the value."""
    held = bool(value == expected)
    return finding(held, f"{what}: {value}" + ("" if held else f", expected {expected}"))


def every(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the conjunction of verdicts: the worst of them, with the parts that decided it."""
    return Verdict(tuple(part for verdict in verdicts for part in verdict.parts))


def with_intervals(overall: Verdict, sections: Iterable[Verdict]) -> Verdict:
    """Return the verdict on all runs with intervals from the verdicts on sections of the runs.

    Parts are paired by their order. A comparison becomes a finding that is not judged if there are
    no sections with as many parts.
    """
    alike = [section.parts for section in sections if len(section.parts) == len(overall.parts)]
    return Verdict(
        tuple(
            _with_interval(part, [parts[index] for parts in alike])
            if isinstance(part, Comparison)
            else part
            for index, part in enumerate(overall.parts)
        )
    )


def _with_interval(
    overall: Comparison, sections: Sequence[Comparison | Finding]
) -> Comparison | Finding:
    """Return a comparison with its interval by sectioning."""
    values = [part.value for part in sections if isinstance(part, Comparison)]
    numbers = [value for value in values if not math.isnan(value)]
    if len(numbers) < 2:
        return Finding(None, f"{overall.sentence}: one run gives no confidence interval")
    low, high = interval_about(overall.value, numbers)
    return replace(overall, low=low, high=high)


ClaimFunction = Callable[[pl.DataFrame], Verdict]


@dataclass(frozen=True)
class Claim:
    """A statement about a figure's table."""

    statement: str
    judge: ClaimFunction
    kind: Kind
    scales: tuple[str, ...]
    exact: bool = False
    """True if the numbers are arithmetic that no seed changes; they have no intervals."""
