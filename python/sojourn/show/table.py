"""Tables of text cells, for the console and for Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of text cells."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    header = ["| " + " | ".join(table.columns) + " |", "| --- " * len(table.columns) + "|"]
    return "\n".join(header + ["| " + " | ".join(row) + " |" for row in table.rows])
