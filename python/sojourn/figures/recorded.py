"""Verdicts: how many claims held, and those that are kept beside the published figures."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import get_args

from sojourn.analysis.claims import Word
from sojourn.base import paths
from sojourn.figures.figure import Beside, Judged, Made
from sojourn.scenario.typed import read_json

KEPT = paths.EXPERIMENTS / "state.json"
"""The verdicts that were recorded last, by figure."""

WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True)
class Kept:
    """What became of a figure's claims, and its numbers beside the published ones, at a scale."""

    scale: str
    claims: list[Judged]
    beside: list[Beside] = field(default_factory=list)


def keep(found: Iterable[Made]) -> None:
    """Keep what figures say, and what others say as it is."""
    new = {made.id: Kept(made.scale, made.claims, made.beside) for made in found}
    every = {figure: asdict(one) for figure, one in sorted({**kept(), **new}.items())}
    KEPT.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")


def kept() -> dict[str, Kept]:
    """Return the verdicts that are kept, by figure."""
    return read_json(KEPT, dict[str, Kept]) if KEPT.exists() else {}


def tally(claims: Iterable[Judged]) -> dict[str, dict[Word, int]]:
    """Count claims by verdict: those that a source states first, then what we derived ourselves."""
    claims = list(claims)
    return {
        name: _counted(claim.verdict for claim in claims if claim.stated == stated)
        for name, stated in (("stated by the sources", True), ("derived, or our own", False))
    }


def _counted(verdicts: Iterable[Word]) -> dict[Word, int]:
    counts = Counter(verdicts)
    return {word: counts[word] for word in WORDS}


def in_words(claims: Iterable[Judged]) -> str:
    """Say the tally in a sentence."""
    return "; ".join(
        f"{name}: " + ", ".join(f"{number} {word}" for word, number in counts.items())
        for name, counts in tally(claims).items()
        if sum(counts.values())
    )
