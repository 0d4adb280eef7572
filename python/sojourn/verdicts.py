"""Verdicts: how many claims held, and those that are kept beside the published figures."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import get_args

from sojourn import places
from sojourn.claims import Word
from sojourn.figure import Judged
from sojourn.typed import read_json

KEPT = places.EXPERIMENTS / "state.json"
"""The verdicts that were recorded last, by figure."""

WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True)
class Kept:
    """What became of a figure's claims, and at which scale that was found."""

    scale: str
    claims: list[Judged]


def keep(scale: str, found: Mapping[str, Iterable[Judged]]) -> None:
    """Keep the verdicts of figures at a scale, and those of other figures as they are."""
    new = {figure: Kept(scale, list(claims)) for figure, claims in found.items()}
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
