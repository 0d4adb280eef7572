"""Console output: tables and marks of verdicts."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from sojourn.show.table import Table

console = Console(highlight=False)
if not console.is_terminal and "COLUMNS" not in os.environ:
    console.width = 130


UNLIMITED = 10_000
"""Width at which no table wraps, in characters."""

SENTENCE_WIDTH = 12
"""Smallest width to which a column of sentences is wrapped, in characters."""

MARKS = {
    "held": "[green]✓ held[/]",
    "not held": "[red]✗ not held[/]",
    "not judged": "[dim]· not judged[/]",
}


def show(tables: Iterable[Table]) -> None:
    """Print tables."""
    for table in tables:
        console.print(text_table(table))


def show_lines(lines: Iterable[str]) -> None:
    """Print lines; a terminal gets them wrapped between words."""
    for line in lines:
        console.print(Text(line), soft_wrap=not console.is_terminal)


def text_table(table: Table) -> "FittedTable":
    """Return a table for the console."""
    return FittedTable(table)


@dataclass(frozen=True)
class FittedTable:
    """A table for the console that fits its width and never cuts a word.

    A table that is too wide loses its optional columns, and its sentences wrap; if that does not
    suffice, its columns become rows, in as many tables as necessary. Cells that are verdicts get a
    mark and a colour.
    """

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self.table
        if table.title:
            yield Text(table.title, style="bold")
        for count in range(len(table.optional) + 1):
            omitted = table.optional[:count]
            candidate = table.without(omitted)
            if _fits(candidate, options):
                yield _rich_table(candidate)
                if shown := [name for name in dict.fromkeys(omitted) if name in table.columns]:
                    yield Text(f"omitted at this width: {', '.join(shown)}", style="dim")
                return
        yield from _transposed(table, options)


def _transposed(table: Table, options: ConsoleOptions) -> Iterator[RichTable]:
    """Yield tables of all columns as rows, each of as many of the rows as fit."""
    first = 0
    while first < len(table.rows):
        last = first + 1
        while last < len(table.rows) and _fits(table.transposed(first, last + 1), options):
            last += 1
        yield _rich_table(table.transposed(first, last))
        first = last


def _fits(table: Table, options: ConsoleOptions) -> bool:
    """Return whether the table fits with narrow columns of sentences."""
    output = _rich_table(table)
    for column in _sentences(table, output):
        column.max_width = SENTENCE_WIDTH
    unlimited = options.update(width=UNLIMITED)
    return Measurement.get(console, unlimited, output).maximum <= options.max_width


def _sentences(table: Table, output: RichTable) -> list[Column]:
    """Return the columns of sentences."""
    pairs = zip(table.columns, output.columns, strict=True)
    return [column for name, column in pairs if name in table.sentences]


def _rich_table(table: Table) -> RichTable:
    output = rich_table(*table.columns, labels=table.labels)
    if sentences := _sentences(table, output):
        for column in output.columns:
            column.no_wrap = column not in sentences
        for column in sentences:
            column.justify = "left"
    for row in table.rows:
        output.add_row(*(MARKS.get(cell, Text(cell)) for cell in row))
    return output


def rich_table(*columns: str, title: str | None = None, labels: int = 1) -> RichTable:
    """Return an empty table in the common style; the first columns are aligned to the left."""
    # `Text` prevents that brackets in a user's names are parsed as markup.
    heading = None if title is None else Text(title)
    table = RichTable(box=box.SIMPLE_HEAD, title=heading, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        justify: Literal["left", "right"] = "left" if index < labels else "right"
        table.add_column(Text(column), justify=justify, overflow="fold")
    return table
