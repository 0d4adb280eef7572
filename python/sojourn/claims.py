"""Claims: statements that a figure's table must bear out, and their verdicts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

Word = Literal["held", "not held", "not judged"]


@dataclass(frozen=True)
class Verdict:
    """Whether a claim held, with the numbers in a sentence; `None` is not judged."""

    held: bool | None
    sentence: str

    @property
    def word(self) -> Word:
        """The verdict in words."""
        return "not judged" if self.held is None else "held" if self.held else "not held"


def not_judged(reason: str) -> Verdict:
    """Return the verdict of a claim that these data cannot decide."""
    return Verdict(None, reason)


def at_least(value: float, bound: float, what: str) -> Verdict:
    """Return whether `value` reaches `bound`; a NaN is not judged."""
    return _compared(
        value, bound, f"{what} is {value:.3g}, at least {bound:g} wanted", value >= bound
    )


def at_most(value: float, bound: float, what: str) -> Verdict:
    """Return whether `value` stays within `bound`; a NaN is not judged."""
    return _compared(
        value, bound, f"{what} is {value:.3g}, at most {bound:g} wanted", value <= bound
    )


def all_at_least(values: Mapping[str, float], bound: float) -> Verdict:
    """Return whether every named value reaches `bound`; if so, told of the least."""
    return _all(values, bound, at_least, min)


def all_at_most(values: Mapping[str, float], bound: float) -> Verdict:
    """Return whether every named value stays within `bound`; if so, told of the most."""
    return _all(values, bound, at_most, max)


def _all(
    values: Mapping[str, float],
    bound: float,
    judge: Callable[[float, float, str], Verdict],
    nearest: Callable[..., str],
) -> Verdict:
    verdict = every(judge(value, bound, name) for name, value in values.items())
    if not verdict.held:
        return verdict
    name = nearest(values, key=values.__getitem__)
    return judge(values[name], bound, f"the nearest of {len(values)}: {name}")


def equals(value: object, wanted: object, what: str) -> Verdict:
    """Return whether `value` is exactly what is wanted: for counts and names."""
    held = bool(value == wanted)
    return Verdict(held, f"{what}: {value}" + ("" if held else f", {wanted} wanted"))


def _compared(value: float, bound: float, sentence: str, held: bool) -> Verdict:
    if np.isnan(value) or np.isnan(bound):
        return not_judged(sentence)
    return Verdict(bool(held), sentence)


def every(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of several together: the worst, telling the sentences that made it so."""
    given = list(verdicts)
    for held in (False, None, True):
        sentences = [verdict.sentence for verdict in given if verdict.held is held]
        if sentences:
            return Verdict(held, "; ".join(sentences))
    return not_judged("nothing to judge")


ClaimFunction = Callable[[pl.DataFrame], Verdict]


@dataclass(frozen=True)
class Claim:
    """A statement that the figure's table must bear out."""

    statement: str
    judge: ClaimFunction
    stated: bool
    """Whether the source says so itself; else it was derived or read off a picture."""
    scales: tuple[str, ...]
