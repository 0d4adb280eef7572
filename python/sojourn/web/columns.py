"""Tables as compressed text for pages; `unpack` in `base.js` is the reader.

A packed table is base64 of a zlib stream: the length of a head (four bytes, little-endian), the
head as JSON, and the columns one after another. A column of n-byte values is n *byte planes*: the
least significant bytes of all rows, then the next, which compress better than whole values.
"""

import base64
import json
import zlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

LARGEST_INTEGER = 2**53
"""Bound of integers, which a page reads as 64-bit floats."""

STEPS = 2**16 - 1
"""Steps between the least and the greatest value of an approximate column."""


def pack(
    table: pl.DataFrame,
    approximate: Collection[str] = (),
    scales: Sequence[pl.DataFrame] = (),
) -> str:
    """Return a table as compressed text.

    Columns are integers, Booleans, floats or strings. Nulls of integers and floats arrive as NaN,
    nulls of strings as `null`. Floats of the columns `approximate` are positive, and stored on a
    logarithmic scale in 16 bits: their relative error is at most log(greatest / least) / 131 000,
    0.01 % for a range of 500 000. `scales` are the tables whose values the scale contains, by
    default the table alone; with the same scales, equal values of two tables are equal in the page.
    Raises `ValueError` for integers beyond 2^53, and for an approximate column with values that are
    not positive and finite.
    """
    heads, bodies = [], []
    for series in table.iter_columns():
        if series.name in approximate:
            scale = pl.concat([other[series.name] for other in scales or [table]])
            kind, body = _approximate(series, scale)
        else:
            kind, body = _packed(series)
        heads.append({"name": series.name, **kind})
        bodies.append(body)
    head = json.dumps({"rows": table.height, "columns": heads}).encode()
    return deflate(len(head).to_bytes(4, "little") + head + b"".join(bodies))


def deflate(content: bytes) -> str:
    """Return bytes as compressed text."""
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


def _packed(series: pl.Series) -> tuple[dict[str, Any], bytes]:
    """Return the head of a column, and its bytes."""
    if series.dtype == pl.String:
        names = series.drop_nulls().unique(maintain_order=True).to_list()
        codes = series.replace_strict(names, range(len(names)), return_dtype=pl.Int64)
        head, body = _integers(codes)
        return head | {"names": names}, body
    if series.dtype.is_float():
        values = series.fill_null(float("nan")).to_numpy().astype("<f8")
        return {"kind": "float"}, _planes(values.view("<u8"), 8)
    return _integers(series)


def _integers(series: pl.Series) -> tuple[dict[str, Any], bytes]:
    """Return integers as differences from the row before, or from zero, whichever is smaller."""
    ends: list[Any] = [series.min() or 0, series.max() or 0]
    if max(map(abs, ends)) > LARGEST_INTEGER:
        raise ValueError(f"{series.name}: contains integers beyond 2^53")
    values = series.cast(pl.Int64).fill_null(0).to_numpy()
    steps = np.diff(values, prepend=0)
    bodies = {False: _zigzag(values)}
    if (abs(steps) <= LARGEST_INTEGER).all():
        bodies[True] = _zigzag(steps)
    is_delta = min(bodies, key=lambda key: len(zlib.compress(bodies[key], 1)))
    body = bodies[is_delta]
    width = len(body) // len(values) if len(values) else 1
    head: dict[str, Any] = {"kind": "integer", "is_delta": is_delta, "width": width}
    if series.null_count():
        head["nulls"] = True
        body += np.packbits(series.is_null().to_numpy(), bitorder="little").tobytes()
    return head, body


def _zigzag(values: npt.NDArray[np.int64]) -> bytes:
    """Return signed integers as byte planes: 0, -1, 1, -2, 2 are stored as 0, 1, 2, 3, 4."""
    codes = ((values << 1) ^ (values >> 63)).astype("<u8")
    width = max(1, (int(codes.max()).bit_length() + 7) // 8) if len(codes) else 1
    return _planes(codes, width)


def _approximate(series: pl.Series, scale: pl.Series) -> tuple[dict[str, Any], bytes]:
    """Return positive values on the logarithmic scale of the values of `scale`."""
    values = scale.to_numpy().astype(float)
    if not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"{series.name}: approximate values are not positive and finite")
    low, high = np.log([values.min(), values.max()]) if len(values) else (0.0, 0.0)
    logs = np.log(series.to_numpy().astype(float))
    codes = np.rint((logs - low) * (STEPS / (high - low or 1.0)))
    head = {"kind": "log", "low": low, "step": (high - low) / STEPS}
    return head, _planes(codes.astype("<u8"), 2)


def _planes(codes: npt.NDArray[np.uint64], width: int) -> bytes:
    """Return the `width` least significant bytes of 64-bit values as byte planes."""
    table = np.ascontiguousarray(codes, "<u8").view(np.uint8).reshape(-1, 8)
    return table[:, :width].T.tobytes()
