"""Tables of text cells, for the console and for Markdown."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Table:
    """A table of text cells."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int = 1
    """Number of the first columns that name a row; they are aligned to the left."""
    optional: Sequence[str] = ()
    """Columns that a narrow console omits, from the first."""
    sentences: Sequence[str] = ()
    """Columns of sentences, which a narrow console wraps between words."""

    def without(self, names: Collection[str]) -> "Table":
        """Return the table without some columns."""
        kept = [index for index, name in enumerate(self.columns) if name not in names]
        columns = [self.columns[index] for index in kept]
        rows = [[row[index] for index in kept] for row in self.rows]
        return replace(self, columns=columns, rows=rows)

    def transposed(self, first: int, last: int) -> "Table":
        """Return the columns as rows, for the rows from `first` to before `last`."""
        rows = list(zip(self.columns, *self.rows[first:last], strict=True))
        return Table("", rows[0], rows[1:])


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    header = ["| " + " | ".join(table.columns) + " |", "| --- " * len(table.columns) + "|"]
    return "\n".join(header + ["| " + " | ".join(row) + " |" for row in table.rows])
