"""Selection of flows for metrics, by size and class, and lower bounds of unfinished flows."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from sojourn.analysis.metrics.statistics import Floats
from sojourn.base.units import format_exact_size
from sojourn.runs.answers import SAMPLE
from sojourn.runs.results import (
    REQUEST,
    RESPONSE,
    Result,
    bounded,
    is_judged,
    is_timed,
    warm_up_of,
    with_lower_bounds,
)
from sojourn.scale.errors import REPORTED


@dataclass(frozen=True)
class Bucket:
    """Range of flow sizes, above `above` and up to `up_to` bytes, of all classes or one."""

    name: str
    above: float = 0
    up_to: float = math.inf
    of_class: str | None = None

    @property
    def where(self) -> dict[str, str]:
        """The columns `size` and `class` of this bucket's rows in tables."""
        size = self.name if self.of_class is None else ALL.name
        return {"size": size, "class": self.of_class or ALL.name}


ALL = Bucket("all")


def size_buckets(*edges: float, packet_bytes: int | None = None) -> tuple[Bucket, ...]:
    """Return buckets between `edges`, in bytes, or in packets of `packet_bytes` of payload."""
    unit = packet_bytes or 1

    def name(edge: float) -> str:
        return format_exact_size(edge) if packet_bytes is None else f"{edge:g} packets"

    bounds = [0.0, *sorted(edges), math.inf]
    buckets = []
    for low, high in itertools.pairwise(bounds):
        if high == math.inf:
            label = f"> {name(low)}"
        elif low == 0:
            label = f"≤ {name(high)}"
        else:
            label = f"{name(low)} to {name(high)}"
        buckets.append(Bucket(label, low * unit, high * unit))
    return tuple(buckets)


BUCKETS = (ALL, *size_buckets(*REPORTED[1:-1]))
"""All flows, then small (up to 100 KB), medium (up to 10 MB) and large flows."""


def class_buckets(results: Iterable[Result]) -> tuple[Bucket, ...]:
    """Return a bucket for each class of flows, by name, if there is more than one.

    Requests and responses have no buckets: the latency of a call covers both (`calls`).
    """
    names = {name for result in results for name in _classes(result)}
    flows = [name for name in sorted(names) if not name.endswith((REQUEST, RESPONSE))]
    return tuple(Bucket(name, of_class=name) for name in flows if len(names) > 1)


def _classes(result: Result) -> pl.Series:
    judged = result.flows.lazy().filter(*_judged(result, ALL))
    return judged.select(pl.col("class").unique()).collect()["class"]


def sizes_and_classes(results: Iterable[Result]) -> tuple[Bucket, ...]:
    """Return `BUCKETS` and the buckets of `class_buckets`."""
    return (*BUCKETS, *class_buckets(results))


def judged(result: Result, bucket: Bucket = ALL) -> pl.DataFrame:
    """Return the flows of finite size in `bucket` that started in the measured time."""
    return result.flows.filter(*_judged(result, bucket))


def _judged(result: Result, bucket: Bucket) -> list[pl.Expr]:
    return [*is_judged(result.summary), *within(bucket)]


def within(bucket: Bucket) -> list[pl.Expr]:
    """Return the conditions on flow records for membership in a bucket."""
    size = pl.col("size_bytes")
    has_class = [] if bucket.of_class is None else [pl.col("class") == bucket.of_class]
    return [size > bucket.above, size <= bucket.up_to, *has_class]


def timed(result: Result, bucket: Bucket = ALL) -> pl.DataFrame:
    """Return the flows of FCT statistics: those of `judged` that were not terminated."""
    return result.flows.filter(*_timed(result, bucket))


def _timed(result: Result, bucket: Bucket) -> list[pl.Expr]:
    return [*is_timed(result.summary), *within(bucket)]


def counts(result: Result, bucket: Bucket) -> tuple[int, int]:
    """Return the number of flows in FCT statistics, and of flows that were terminated."""
    is_terminated = pl.col("outcome") == "terminated"
    judged = result.flows.lazy().filter(*_judged(result, bucket))
    flows, terminated = judged.select(pl.len(), t=is_terminated.sum()).collect().row(0)
    return flows - terminated, terminated


def censored(result: Result, bucket: Bucket, column: str) -> tuple[Floats, Floats]:
    """Return the values of finished flows, and the lower bounds of unfinished flows."""
    flows = _bounded(result, bucket, column)
    values, is_finished = flows["value"].to_numpy(), flows["is_finished"].to_numpy()
    if is_finished.all():
        return values, values[:0]
    return values[is_finished], values[~is_finished]


def in_order(result: Result, column: str, bucket: Bucket = ALL) -> pl.DataFrame:
    """Return the flows of `timed` in order of start.

    The columns are `start_s`, `value` (see `with_bounds`), `is_finished`, and `sample` if the
    records have it.
    """
    flows = _bounded(result, bucket, column)
    # The numbers of most workloads have this order: to see that is fast.
    return flows if flows["start_s"].is_sorted() else flows.sort("start_s", maintain_order=True)


def _bounded(result: Result, bucket: Bucket, column: str) -> pl.DataFrame:
    """Return the flows of `timed` in the columns of `in_order`."""
    # Only these columns are read: records of ten million flows have gigabytes.
    flows = result.flows.lazy().filter(*_timed(result, bucket))
    sample = [SAMPLE] if SAMPLE in result.flows.columns else []
    return flows.select("start_s", *sample, **bounded(column, result.summary)).collect()


def with_bounds(flows: pl.DataFrame, result: Result, column: str) -> pl.DataFrame:
    """Add the column `value`: `column` of a finished flow, its lower bound of an unfinished one."""
    value = with_lower_bounds(column, result.summary["simulated_s"])
    return flows.with_columns(value=value)


def warm_up_s(result: Result) -> float:
    """Return the end of the warm-up in seconds; flows that started before it are excluded."""
    return warm_up_of(result.summary)
