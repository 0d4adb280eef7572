"""Tables of texts, for the screen and for pages."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of texts, for the screen and for pages."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def markdown(table: Table) -> str:
    """Return a table as text of a page."""
    header = ["| " + " | ".join(table.columns) + " |", "| --- " * len(table.columns) + "|"]
    return "\n".join(header + ["| " + " | ".join(row) + " |" for row in table.rows])
