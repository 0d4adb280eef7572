"""Console output: tables and marks of verdicts."""

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
    """Print tables."""
    for table in tables:
        console.print(text_table(table))


def text_table(table: Table) -> RichTable:
    """Return a table for the console; cells that are verdicts get a mark and a colour."""
    output = rich_table(*table.columns, title=table.title)
    for row in table.rows:
        output.add_row(*(MARKS.get(cell, Text(cell)) for cell in row))
    return output


def rich_table(*columns: str, title: str | None = None) -> RichTable:
    """Return an empty table in the common style, with a left-aligned first column."""
    # `Text` prevents that brackets in a user's names are parsed as markup.
    heading = None if title is None else Text(title)
    table = RichTable(box=box.SIMPLE_HEAD, title=heading, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if index == 0 else "right")
    return table
