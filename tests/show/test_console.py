"""Tables that fit the width of the console."""

import io

from rich.console import Console

from sojourn.show.console import text_table
from sojourn.show.table import Table

VERDICTS = Table(
    "verdicts",
    ["case", "run", "criterion", "verdict", "numbers"],
    [
        ["a", "TIMELY with a window", "mean queue", "not held", "+22.2 %: 33 KB, reference 27 KB"],
        ["b", "HPCC", "mean, all", "held", "+0.1 %"],
    ],
    labels=2,
    sentences=["criterion", "numbers"],
)


def printed(table: Table, width: int) -> list[str]:
    """Return the lines of a table at a width, without empty ones."""
    output = io.StringIO()
    Console(file=output, width=width).print(text_table(table))
    return [line.strip() for line in output.getvalue().splitlines() if line.strip()]


def test_sentences_wrap_between_words_before_columns_become_rows() -> None:
    assert len(printed(VERDICTS, 130)) == 5
    narrow = printed(VERDICTS, 80)
    assert narrow[1].split() == VERDICTS.columns
    assert len(narrow) > 5
    cells = [cell for row in VERDICTS.rows for cell in row]
    assert {word for cell in cells for word in cell.split()} <= set(" ".join(narrow).split())
    rows = printed(VERDICTS, 60)
    heads = [line.split()[0] for line in rows]
    assert [head for head in heads if head in VERDICTS.columns] == VERDICTS.columns


def test_numbers_do_not_wrap() -> None:
    table = Table("", ["size", "mean", "p99"], [["small", "1.17 / 1.24", "3.8 ± 0.2"]])
    assert len(printed(table, 40)) == 3
    assert printed(table, 30)[-1].split() == ["p99", "3.8", "±", "0.2"]
