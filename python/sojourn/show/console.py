"""The console, and tables on it."""

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from sojourn.show.table import Table

console = Console(highlight=False)
if not console.is_terminal:
    console.width = 130


MARKS = {
    "held": "[green]✓ held[/]",
    "not held": "[red]✗ not held[/]",
    "not judged": "[dim]· not judged[/]",
}


def show(tables: Iterable[Table]) -> None:
    """Print tables of texts."""
    for rows in tables:
        console.print(text_table(rows))


def text_table(rows: Table) -> RichTable:
    """Return a table of texts; verdicts have their mark and colour."""
    table = rich_table(*rows.columns, title=rows.title)
    for row in rows.rows:
        table.add_row(*(MARKS.get(cell, Text(cell)) for cell in row))
    return table


def rich_table(*columns: str, title: str | None = None) -> RichTable:
    """Return an empty table in the style of the house: the first column is left-aligned."""
    # Texts, for what stands in brackets in a user's name is no markup.
    heading = None if title is None else Text(title)
    table = RichTable(box=box.SIMPLE_HEAD, title=heading, title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if place == 0 else "right")
    return table
