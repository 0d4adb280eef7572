"""Columns: what Python packs is what a page unpacks."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser

from sojourn.web import columns, sheet

TEXT = st.text(st.characters(codec="utf-8"), max_size=3)
CELLS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "integer": (pl.Int64, st.integers(-(2**53), 2**53)),
    "null": (pl.UInt64, st.none() | st.integers(0, 2**53)),
    "byte": (pl.UInt8, st.integers(0, 255)),
    "is_set": (pl.Boolean, st.booleans()),
    "float": (pl.Float64, st.none() | st.floats(allow_nan=False, allow_infinity=False)),
    "name": (pl.String, st.none() | TEXT),
}
TABLES = st.lists(st.fixed_dictionaries({key: cell for key, (_, cell) in CELLS.items()}))


@pytest.fixture(scope="module")
def empty_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page whose scripts the test calls by its window."""
    folder = tmp_path_factory.mktemp("pages")
    script = folder / "export.js"
    script.write_text("window.unpack = unpack; window.inflate = inflate;\n")
    file = folder / "page.html"
    values = {"title": "columns"}
    file.write_text(sheet.render("sheet.html", [str(script)], {}, values), encoding="utf-8")
    return file


READ = """async (text) => {
  const table = unpack(await inflate(text));
  const cells = ([name, values]) => [name, Array.from(values, (value) =>
    typeof value === "number" && Number.isNaN(value) ? null : value)];
  return [table.rows, Object.fromEntries(Object.entries(table.columns).map(cells))];
}"""


Read = Callable[[str], tuple[int, dict[str, list[Any]]]]


@pytest.fixture(scope="module")
def read(empty_page: Path, browser: Browser) -> Read:
    page = browser.new_page()
    page.goto(empty_page.as_uri())
    return lambda text: page.evaluate(READ, text)


@given(TABLES)
@settings(max_examples=100)
def test_every_table_goes_there_and_back(read: Read, rows: list[dict[str, Any]]) -> None:
    table = pl.DataFrame(rows, schema={name: kind for name, (kind, _) in CELLS.items()})
    height, found = read(columns.pack(table))
    assert height == len(rows)
    # Playwright returns whole floats as rounded integers.
    found["float"] = [None if value is None else float(value) for value in found["float"]]
    assert found == table.to_dict(as_series=False)


def test_differences_beyond_32_bits_are_exact(
    read: Read,
) -> None:
    times = [0, 2**31, 2**32 + 1, 2**40 + 3, 2**53, 5, -(2**53)]
    _, found = read(columns.pack(pl.DataFrame({"time_ps": times})))
    assert found["time_ps"] == times


@given(st.lists(st.floats(1e-12, 1e12), min_size=1))
@settings(max_examples=50)
def test_approximate_values_are_within_the_stated_error(read: Read, values: list[float]) -> None:
    _, found = read(columns.pack(pl.DataFrame({"x": values}), approximate=["x"]))
    bound = math.log(max(values) / min(values)) / 131_000 + 1e-12
    assert all(
        abs(math.log(got / value)) <= bound for got, value in zip(found["x"], values, strict=True)
    )


def test_equal_values_on_one_scale_arrive_equal(read: Read) -> None:
    tables = [pl.DataFrame({"x": values}) for values in ([1.0, 3.0, 9e5], [2.0, 3.0])]
    found = [read(columns.pack(one, ["x"], tables))[1]["x"] for one in tables]
    assert found[0][1] == found[1][1] == pytest.approx(3, rel=1e-3)
    alone = [read(columns.pack(one, ["x"]))[1]["x"] for one in tables]
    assert alone[0][1] != alone[1][1]


def test_values_that_a_page_cannot_hold_are_errors() -> None:
    with pytest.raises(ValueError, match=r"time: contains integers beyond 2\^53"):
        columns.pack(pl.DataFrame({"time": [2**53 + 1]}))
    with pytest.raises(ValueError, match="size: approximate values are not positive and finite"):
        columns.pack(pl.DataFrame({"size": [1.0, 0.0]}), approximate=["size"])
