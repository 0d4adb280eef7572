"""Text files of words and numbers, with errors that name file and line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from pathlib import Path

from sojourn.base import files
from sojourn.base.errors import FileError

NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,2})?", re.ASCII)
"""Decimal number of bounded length."""

MAX_WHOLE = 2**63
"""Limit of whole numbers."""


@dataclass(frozen=True)
class Line:
    """Words of a line, separated by blanks, tabs or commas."""

    path: Path
    number: int
    words: tuple[str, ...]

    def error(self, message: str) -> FileError:
        """Return an error at this line."""
        return FileError(f"{self.path}:{self.number}: {message}")

    def expected(self, shape: str) -> FileError:
        """Return the error of a line of another shape."""
        return self.error(f"expected {shape}, not `{' '.join(self.words)[:80]}`")


@dataclass(frozen=True)
class Document:
    """Lines of a file, without empty lines and comments (from a word with `#` on)."""

    path: Path
    text: str
    lines: tuple[Line, ...]

    @classmethod
    def read(cls, path: Path) -> "Document":
        """Read a file; raise `FileError` if it cannot be read or is empty."""
        try:
            text = files.read_text(path, files.MAX_DATA_BYTES)
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror}") from None
        rows = enumerate(text.split("\n"), 1)
        words = ((number, _words(row)) for number, row in rows)
        lines = tuple(Line(path, number, row) for number, row in words if row)
        if not lines:
            raise FileError(f"{path}: no content")
        return cls(path, text, lines)

    def error(self, message: str) -> FileError:
        """Return an error of the whole file."""
        return FileError(f"{self.path}: {message}")


def _words(row: str) -> tuple[str, ...]:
    words = row.replace(",", " ").split()
    return tuple(takewhile(lambda word: not word.startswith("#"), words))


class Words:
    """Words of several lines in a row, for formats that take line breaks for blanks."""

    def __init__(self, document: Document, lines: tuple[Line, ...]) -> None:
        """Start before the first word of the lines."""
        self._document = document
        self._words = ((line, word) for line in lines for word in line.words)
        self.line = lines[0] if lines else document.lines[-1]

    def take(self, meaning: str) -> str:
        """Return the next word; the error of a missing one names its meaning."""
        try:
            self.line, word = next(self._words)
        except StopIteration:
            raise self._document.error(f"ends before {meaning}") from None
        return word

    def rest(self) -> Iterator[Line]:
        """Yield the lines after that of the last word."""
        return (line for line in self._document.lines if line.number > self.line.number)


def number(word: str) -> Fraction | None:
    """Return the exact value of a decimal number, or `None`."""
    return Fraction(word) if NUMBER.fullmatch(word) else None


def whole(word: str) -> int | None:
    """Return the value of a whole number from 0 on, or `None`."""
    value = number(word)
    is_whole = value is not None and value.denominator == 1 and 0 <= value < MAX_WHOLE
    return int(value) if value is not None and is_whole else None
