"""What others wrote, as typed values: tables of settings, JSON, CSV and Parquet of a declared form.

What has another form is a `FileError` that names the file, the place in it, and what is allowed.
"""

import functools
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from pydantic import TypeAdapter, ValidationError

from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean, said
from sojourn.scenario.reading import TOO_DEEP

T = TypeVar("T")


_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)
"""Return pydantic's validator of a form; building it takes longer than reading most files."""


def typed(form: type[T], value: object, where: str) -> T:
    """Return a value as the form that pydantic knows; `where` is said of one that is wrong."""
    try:
        adapter: TypeAdapter[T] = _adapter(form)
        return adapter.validate_python(value)
    except ValidationError as error:
        raise FileError(f"{where}: {said(error, form)}") from None


def read_json(file: Path, form: type[T], most: int = files.MOST_DATA) -> T:
    """Return what is in a file of JSON."""
    try:
        value = json.loads(files.read_text(file, most))
    except OSError as error:
        raise FileError(f"{file}: cannot be read: {error.strerror}") from None
    except RecursionError:
        raise FileError(f"{file}: {TOO_DEEP}") from None
    except ValueError as error:
        raise FileError(f"{file}: not JSON: {error}") from None
    return typed(form, value, str(file))


@dataclass(frozen=True)
class Column:
    """What may stand in a column of numbers; beyond the bounds nothing is sensible."""

    least: float = 0.0
    most: float = 1e15
    whole: bool = False
    may_be_empty: bool = False
    """Whether a number may be lacking."""
    needed: bool = True
    """Whether the column must be there."""

    def __str__(self) -> str:
        """Say what is allowed."""
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.least:g} to {self.most:g}"


TEXT = Column()
"""A column of texts, none of them empty."""

Columns = Mapping[str, Column]


def read_csv(file: Path, columns: Columns) -> pl.DataFrame:
    """Return a table of these columns from a file of CSV; those that need not be there may lack."""

    def read(content: bytes) -> pl.DataFrame:
        # All as texts, for what polars would take for a type depends on what is wrong.
        return pl.read_csv(io.BytesIO(content), infer_schema=False)

    return _conforming(file, columns, _read(file, read))


def read_parquet(file: Path, columns: Columns) -> pl.DataFrame:
    """Return a table of these columns from a Parquet file; those not needed may lack."""
    return _conforming(file, columns, _read(file, pl.read_parquet))


def _read(file: Path, read: Callable[[bytes], pl.DataFrame]) -> pl.DataFrame:
    try:
        return read(files.read_bytes(file, files.MOST_DATA))
    except OSError as error:
        raise FileError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise FileError(f"{file}: is no such table: {error}".partition("\n")[0]) from None


def _conforming(file: Path, columns: Columns, table: pl.DataFrame) -> pl.DataFrame:
    for name in table.columns:
        if name not in columns:
            raise FileError(f"{file}: {name}: unknown column{did_you_mean(name, columns)}")
    for name, column in columns.items():
        if column.needed and name not in table.columns:
            raise FileError(f"{file}: there is no column `{name}`")
    return table.select(
        _column(file, table[name], column)
        for name, column in columns.items()
        if name in table.columns
    )


def _column(file: Path, given: pl.Series, column: Column) -> pl.Series:
    """Return a column as texts, whole numbers or numbers, or tell the first that is not."""
    allowed = "a text" if column is TEXT else str(column)
    if not (given.dtype.is_numeric() or given.dtype in (pl.String, pl.Null)):
        raise FileError(f"{file}: {given.name}: must be {allowed}, not {given.dtype}")
    if column is TEXT:
        values, wrong = given.cast(pl.String), given.is_null()
    else:
        values = given.cast(pl.Float64, strict=False)
        fits = values.is_between(column.least, column.most)
        if column.whole:
            fits &= values.floor() == values
        wrong = ~fits.fill_null(False) & ~(given.is_null() & column.may_be_empty)
    if wrong.any():
        row = int(wrong.arg_true()[0])
        shown = "nothing" if given[row] is None else f"`{given[row]}`"
        place = f"{given.name}, row {row + 1}"
        raise FileError(f"{file}: {place}: must be {allowed}, not {shown}")
    return values.cast(pl.Int64) if column.whole else values
