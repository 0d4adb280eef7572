"""Claims: statements that a figure's table must bear out, and their verdicts.

A claim compares numbers with bounds. How sure a number is, is found by sectioning ([asmussen07]
section III.5): the claim is judged on all runs, and again on each section of them, which is the
runs of one seed, or a batch of the flows of a single run. Every scheme is in each section with the
same flows, so what a seed does to all of them falls out of their ratios. The sections scatter about
the number of the whole, and Student's interval of that scatter says where the number lies. A claim
is held, or not, if the whole interval is on one side of the bound; else it is not judged.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from sojourn.analysis.metrics import Floats
from sojourn.analysis.student import t_quantile

Word = Literal["held", "not held", "not judged"]

CONFIDENCE = 0.95

MOST_TOLD = 3
"""Comparisons that are told one by one, of those that decide a verdict."""


MOST_WORTH = 100.0
"""How many times as many seeds or flows are worth a verdict at most."""


@dataclass(frozen=True)
class Comparison:
    """A number, what it must be at least and at most, and where it lies by what is known of it."""

    what: str
    value: float
    least: float = -math.inf
    most: float = math.inf
    low: float = math.nan
    high: float = math.nan
    """Bounds of its 95 % interval; NaN if none is known."""

    @property
    def held(self) -> bool | None:
        """Whether the number respects its bounds; `None` if that cannot be told."""
        low, high = self.interval
        if low >= self.least and high <= self.most:
            return True
        return False if high < self.least or low > self.most else None

    @property
    def interval(self) -> tuple[float, float]:
        """Where the number lies: its interval, or the number itself."""
        return (self.value, self.value) if math.isnan(self.low) else (self.low, self.high)

    @property
    def margin(self) -> float:
        """How far it is from its nearest bound, as a share of that; below zero beyond it."""
        gaps = (self.value - self.least, self.least), (self.most - self.value, self.most)
        return min(gap / (abs(bound) or 1) for gap, bound in gaps if math.isfinite(bound))

    @property
    def wanted(self) -> str:
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
        """The numbers in words."""
        known = "" if math.isnan(self.low) else f" ({self.low:.4g} to {self.high:.4g})"
        would_tell = f"; {self._what_would_tell}" if known and self.held is None else ""
        return f"{self.what} is {self.value:.4g}{known}, {self.wanted} wanted{would_tell}"

    @property
    def more(self) -> float:
        """How many times as many seeds or flows leave it on one side of its bounds, as it stands.

        An interval shrinks with the root of what it is made of.
        """
        bounds = [bound for bound in (self.least, self.most) if math.isfinite(bound)]
        if min(self.low, *bounds) > 0:
            low, high, value, *bounds = map(math.log, (self.low, self.high, self.value, *bounds))
        else:
            low, high, value = self.low, self.high, self.value
        gap = min(abs(value - bound) for bound in bounds)
        return ((high - low) / 2 / gap) ** 2 if gap else math.inf

    @property
    def _what_would_tell(self) -> str:
        if self.more > MOST_WORTH:
            return "no number of seeds or flows that is worth it would tell"
        return f"{max(self.more, 1.1):.2g} times as many seeds or flows would tell"


@dataclass(frozen=True)
class Said:
    """What is so or not without a number that could be off, or (`None`) cannot be told."""

    held: bool | None
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """Whether a claim held: whether all of its parts did."""

    parts: tuple[Comparison | Said, ...]

    @property
    def held(self) -> bool | None:
        """The worst of the parts; `None` is not judged."""
        found = {part.held for part in self.parts}
        return False if False in found else None if None in found or not found else True

    @property
    def word(self) -> Word:
        """The verdict in words."""
        return "not judged" if self.held is None else "held" if self.held else "not held"

    @property
    def sentence(self) -> str:
        """The parts that decided it, in words; of many, those nearest to or farthest off."""
        if not self.parts:
            return "nothing to judge"
        decided = [part for part in self.parts if part.held is self.held]
        if len(decided) <= MOST_TOLD:
            return "; ".join(part.sentence for part in decided)
        decided.sort(key=lambda part: part.margin if isinstance(part, Comparison) else math.inf)
        if self.held:
            return f"the nearest of {len(decided)}: {decided[0].sentence}"
        told = "; ".join(part.sentence for part in decided[:MOST_TOLD])
        return f"{told}; and {len(decided) - MOST_TOLD} more"


def said(held: bool | None, sentence: str) -> Verdict:
    """Return a verdict that is a sentence."""
    return Verdict((Said(held, sentence),))


def not_judged(reason: str) -> Verdict:
    """Return the verdict of a claim that these data cannot decide."""
    return said(None, reason)


def at_least(value: float, bound: float, what: str) -> Verdict:
    """Return whether `value` reaches `bound`; a NaN is not judged."""
    return Verdict((Comparison(what, float(value), least=float(bound)),))


def at_most(value: float, bound: float, what: str) -> Verdict:
    """Return whether `value` stays within `bound`; a NaN is not judged."""
    return Verdict((Comparison(what, float(value), most=float(bound)),))


def between(value: float, least: float, most: float, what: str) -> Verdict:
    """Return whether `value` lies from `least` to `most`; a NaN is not judged."""
    return Verdict((Comparison(what, float(value), float(least), float(most)),))


def all_at_least(values: Mapping[str, float], bound: float) -> Verdict:
    """Return whether every named value reaches `bound`."""
    return every(at_least(value, bound, name) for name, value in values.items())


def all_at_most(values: Mapping[str, float], bound: float) -> Verdict:
    """Return whether every named value stays within `bound`."""
    return every(at_most(value, bound, name) for name, value in values.items())


def equals(value: object, wanted: object, what: str) -> Verdict:
    """Return whether `value` is exactly what is wanted: for counts and names."""
    held = bool(value == wanted)
    return said(held, f"{what}: {value}" + ("" if held else f", {wanted} wanted"))


def every(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of several together: the worst, telling what made it so."""
    return Verdict(tuple(part for verdict in verdicts for part in verdict.parts))


def with_intervals(whole: Verdict, sections: Iterable[Verdict]) -> Verdict:
    """Return the verdict on the whole with the intervals that the same claim on sections gives.

    Where they give none, because there are none or what is compared is not the same in each, a
    comparison becomes a sentence that is not judged.
    """
    like_whole = [one.parts for one in sections if len(one.parts) == len(whole.parts)]
    return Verdict(
        tuple(
            _with_interval(part, [parts[place] for parts in like_whole])
            if isinstance(part, Comparison)
            else part
            for place, part in enumerate(whole.parts)
        )
    )


def _with_interval(whole: Comparison, sections: Sequence[Comparison | Said]) -> Comparison | Said:
    """Return a comparison with its interval by sectioning.

    It is that of the logarithms where all numbers are positive: A over B should be as sure as B
    over A.
    """
    values = [part.value for part in sections if isinstance(part, Comparison)]
    known = np.array([value for value in values if not math.isnan(value)])
    if len(known) < 2:
        return Said(None, f"{whole.sentence}: one run does not tell how sure that is")
    if min(whole.value, *known) > 0:
        low, high = np.exp(_interval(math.log(whole.value), np.log(known)))
    else:
        low, high = _interval(whole.value, known)
    return replace(whole, low=float(low), high=float(high))


def _interval(centre: float, values: Floats) -> tuple[float, float]:
    """Return Student's interval about the number of the whole."""
    degrees = len(values) - 1
    error = math.sqrt(float(((values - centre) ** 2).sum()) / (len(values) * degrees))
    reach = t_quantile((1 + CONFIDENCE) / 2, degrees) * error
    return centre - reach, centre + reach


ClaimFunction = Callable[[pl.DataFrame], Verdict]


@dataclass(frozen=True)
class Claim:
    """A statement that the figure's table must bear out."""

    statement: str
    judge: ClaimFunction
    stated: bool
    """Whether the source says so itself; else it was derived or read off a picture."""
    scales: tuple[str, ...]
    exact: bool = False
    """Whether it is arithmetic, which no seed changes: then its numbers have no intervals."""
