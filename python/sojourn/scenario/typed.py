"""Typed reading of settings, JSON, CSV and Parquet files.

A file that does not match its declared form is a `FileError` with the file, the position in it, and
the allowed values.
"""

import functools
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from sojourn.base import files
from sojourn.base.errors import FileError
from sojourn.base.messages import did_you_mean, validation_message
from sojourn.scenario.reading import TOO_DEEP

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


@functools.cache
def _adapter(form: Any) -> "TypeAdapter[Any]":
    """Return pydantic's validator of a form; building it takes longer than reading most files."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - most runs read no file

    return TypeAdapter(form)


def typed(form: type[T], value: object, where: str) -> T:
    """Return a value validated by pydantic; errors begin with `where`."""
    from pydantic import ValidationError  # noqa: PLC0415 - most runs read no file

    try:
        adapter: TypeAdapter[T] = _adapter(form)  # type: ignore[arg-type] # a form is hashable
        return adapter.validate_python(value)
    except ValidationError as error:
        raise FileError(f"{where}: {validation_message(error, form)}") from None


def read_json(file: Path, form: type[T], most: int = files.MAX_DATA_BYTES) -> T:
    """Return the validated content of a JSON file."""
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
    """Allowed values of a column of numbers or texts."""

    minimum: float = 0.0
    maximum: float = 1e15
    is_integer: bool = False
    can_be_empty: bool = False
    """If true, a cell may be empty."""
    is_required: bool = True
    """If true, the column is mandatory."""
    is_text: bool = False

    def __str__(self) -> str:
        """Return the allowed values in words."""
        kind = "a whole number" if self.is_integer else "a number"
        return f"{kind} from {self.minimum:g} to {self.maximum:g}"


TEXT = Column(is_text=True)
"""Column of non-empty texts."""

Columns = Mapping[str, Column]


def read_csv(file: Path, columns: Columns) -> pl.DataFrame:
    """Return a table of these columns from a CSV file; optional columns may be missing."""

    def read(content: bytes) -> pl.DataFrame:
        # All cells as texts: the types that polars infers depend on the errors in the file.
        return pl.read_csv(io.BytesIO(content), infer_schema=False)

    return _conforming(file, columns, _read(file, read))


def read_csv_if_any(file: Path, columns: Columns) -> pl.DataFrame:
    """Return the table of `read_csv`; an empty one if the file is missing."""
    if file.exists():
        return read_csv(file, columns)
    types = {name: pl.String if column.is_text else pl.Float64 for name, column in columns.items()}
    return pl.DataFrame(schema=types)


def read_parquet(file: Path, columns: Columns) -> pl.DataFrame:
    """Return a table of these columns from a Parquet file; optional columns may be missing."""
    return _conforming(file, columns, _read(file, pl.read_parquet))


def _read(file: Path, read: Callable[[bytes], pl.DataFrame]) -> pl.DataFrame:
    try:
        return read(files.read_bytes(file, files.MAX_DATA_BYTES))
    except OSError as error:
        raise FileError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise FileError(f"{file}: is not a valid table: {error}".partition("\n")[0]) from None


def _conforming(file: Path, columns: Columns, table: pl.DataFrame) -> pl.DataFrame:
    for name in table.columns:
        if name not in columns:
            raise FileError(f"{file}: {name}: unknown column{did_you_mean(name, columns)}")
    for name, column in columns.items():
        if column.is_required and name not in table.columns:
            raise FileError(f"{file}: missing column `{name}`")
    return table.select(
        _column(file, table[name], column)
        for name, column in columns.items()
        if name in table.columns
    )


def _column(file: Path, cells: pl.Series, column: Column) -> pl.Series:
    """Return a column of texts, integers or floats; raise `FileError` for the first wrong cell."""
    allowed = "a string" if column.is_text else str(column)
    if not (cells.dtype.is_numeric() or cells.dtype in (pl.String, pl.Null)):
        raise FileError(f"{file}: {cells.name}: must be {allowed}, not {cells.dtype}")
    if column.is_text:
        values, wrong = cells.cast(pl.String), cells.is_null() & (not column.can_be_empty)
    else:
        values = cells.cast(pl.Float64, strict=False)
        is_valid = values.is_between(column.minimum, column.maximum)
        if column.is_integer:
            is_valid &= values.floor() == values
        wrong = ~is_valid.fill_null(False) & ~(cells.is_null() & column.can_be_empty)
    if wrong.any():
        row = int(wrong.arg_true()[0])
        found = "nothing" if cells[row] is None else f"`{cells[row]}`"
        position = f"{cells.name}, row {row + 1}"
        raise FileError(f"{file}: {position}: must be {allowed}, not {found}")
    return values.cast(pl.Int64) if column.is_integer else values
