"""Recorded verdicts of the published figures, and counts of verdicts."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import get_args

from sojourn.analysis.claims import Kind, Word
from sojourn.base import paths
from sojourn.figures.figure import ClaimResult, FigureResult, PublishedPair
from sojourn.scenario.typed import read_json

STATE_FILE = paths.EXPERIMENTS / "state.json"
"""File of the last recorded verdicts, by figure."""

WORDS: tuple[Word, ...] = get_args(Word)

KINDS: dict[Kind, str] = {
    "stated": "claims of the sources",
    "own": "claims of our own",
    "check": "checks",
}
"""Names of the kinds of claims."""


@dataclass(frozen=True)
class FigureRecord:
    """Recorded results of a figure's claims at a scale, and its published numbers."""

    scale: str
    claims: list[ClaimResult]
    beside: list[PublishedPair] = field(default_factory=list)


def write_records(results: Iterable[FigureResult]) -> None:
    """Record the results of figures; the records of other figures do not change."""
    new = {
        result.id: FigureRecord(result.scale, result.claims, result.beside) for result in results
    }
    records = sorted({**read_records(), **new}.items())
    content = {figure: asdict(record) for figure, record in records}
    STATE_FILE.write_text(
        json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def read_records() -> dict[str, FigureRecord]:
    """Return the recorded results by figure."""
    return read_json(STATE_FILE, dict[str, FigureRecord]) if STATE_FILE.exists() else {}


def tally(claims: Iterable[ClaimResult]) -> dict[str, dict[Word, int]]:
    """Count claims by kind and verdict."""
    claims = list(claims)
    return {
        name: _count(claim.verdict for claim in claims if claim.kind == kind)
        for kind, name in KINDS.items()
    }


def _count(verdicts: Iterable[Word]) -> dict[Word, int]:
    counts = Counter(verdicts)
    return {word: counts[word] for word in WORDS}


def tally_lines(claims: Iterable[ClaimResult]) -> list[str]:
    """Return a line for each kind of claims that occurs."""
    return [
        f"{name}: " + ", ".join(f"{number} {word}" for word, number in counts.items())
        for name, counts in tally(claims).items()
        if sum(counts.values())
    ]


def tally_sentence(claims: Iterable[ClaimResult]) -> str:
    """Return the tally as a sentence."""
    return "; ".join(tally_lines(claims))
