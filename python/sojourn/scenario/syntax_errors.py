"""Messages about TOML files that cannot be parsed."""

import contextlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from sojourn.base.messages import printable

PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
"""Message of `tomllib` with its place."""

GIVEN_TWICE = re.compile(
    r"Cannot (?:overwrite a value|declare .* twice|(?:mutate immutable|redefine) namespace .*)"
)
"""Messages of `tomllib` on a key or table that an earlier line gives."""

GIVEN_TWICE_INLINE = re.compile(r"Duplicate inline table key ['\"](.*)['\"]")

WORD = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
NAME = rf"{WORD}(?:\s*\.\s*{WORD})*"

STATEMENT = re.compile(rf"\s*(?:(?P<key>{NAME})\s*=|\[\[?\s*(?P<table>{NAME})\s*\]\]?\s*(?:#.*)?$)")
"""First line of a statement: its key, or the name of a table."""


def message(path: str, text: str, error: str) -> str:
    """Return a line with the path, the number of the line, and what is wrong in the text."""
    place = PLACE.fullmatch(error)
    if place is None:
        return f"{path}: not TOML: {error}"
    # An error at the end is in the last line.
    line = int(place[2]) if place[2] else text.count("\n") + 1
    if key := GIVEN_TWICE_INLINE.fullmatch(place[1]):
        return f"{path}:{line}: {key[1]}: given twice in one table"
    if GIVEN_TWICE.fullmatch(place[1]) and (found := _key_given_twice(text, line)):
        number, key_name, problem = found
        return f"{path}:{number}: {printable(key_name)}: {problem}"
    if not place[2]:
        return f"{path}: not TOML: {error}"
    return f"{path}:{line}: not TOML: {place[1]} (column {place[3]})"


def _key_given_twice(text: str, end: int) -> tuple[int, str, str] | None:
    """Return the line, the key and the problem of the statement that ends in a line."""
    lines = text.replace("\r\n", "\n").split("\n")[:end]
    last = next(_statements(lines), None)
    if last is None:
        return None
    number, statement, known = last
    name = statement["table"] or statement["key"]
    if statement["key"]:
        headers = (item["table"] for _, item, _ in _statements(lines[: number - 1], headers=True))
        name = ".".join(filter(None, (next(headers, ""), name)))
    keys = _keys(name)
    for depth, key in enumerate(keys):
        # A table in a list of tables is the last one.
        known = known[-1] if isinstance(known, list) and known else known
        if not isinstance(known, Mapping):
            return number, ".".join(keys[:depth]), "given as a value and as a table"
        if key not in known:
            shown = ".".join(keys[:depth])
            return (number, shown, "given twice") if shown else None
        known = known[key]
    return number, ".".join(keys), "given twice"


def _statements(
    lines: list[str], *, headers: bool = False
) -> Iterator[tuple[int, re.Match[str], Any]]:
    """Yield statements from the last one on: line number, first line, and content before it.

    With `headers`, only those of tables. Lines within a text or a list may look like statements,
    but what precedes them is incomplete.
    """
    for number in range(len(lines), 0, -1):
        statement = STATEMENT.match(lines[number - 1])
        if statement and (statement["table"] or not headers):
            with contextlib.suppress(tomllib.TOMLDecodeError):
                yield number, statement, tomllib.loads("\n".join(lines[: number - 1]))


def _keys(name: str) -> list[str]:
    """Return the keys of a dotted name."""
    keys, value = [], tomllib.loads(f"{name} = 0")
    while isinstance(value, dict):
        ((key, value),) = value.items()
        keys.append(key)
    return keys
