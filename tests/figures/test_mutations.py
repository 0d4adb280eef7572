"""Claims can fail: the runs of every figure are spoilt, and that must turn a verdict."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars import selectors

from conftest import by_figure
from sojourn import Result, Run, sweep
from sojourn.base import paths
from sojourn.figures import discovery
from sojourn.figures.figure import Figure

FIGURES = discovery.discover(paths.EXPERIMENTS)

Spoil = Callable[[list[Run]], list[Run]]


def forwards(group: list[Run]) -> list[Run]:
    return group[1:] + group[:1]


def backwards(group: list[Run]) -> list[Run]:
    return group[-1:] + group[:-1]


def mirrored(group: list[Run]) -> list[Run]:
    return group[::-1]


def swapped(runs: list[Run], label: str, order: Spoil) -> list[Run]:
    """Give runs that differ in one label only each other's results."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        others = {name: value for name, value in run.labels.items() if name != label}
        groups.setdefault(str(others), []).append(run)
    return [
        Run(run.labels, other.result)
        for group in groups.values()
        for run, other in zip(group, order(group), strict=True)
    ]


def each(runs: list[Run], spoil: Callable[[Result], Result]) -> list[Run]:
    return [Run(run.labels, spoil(run.result)) for run in runs]


def first_scheme(runs: list[Run], spoil: Callable[[Result], Result]) -> list[Run]:
    scheme = next(iter(runs[0].labels.values()))
    hit = [next(iter(run.labels.values())) == scheme for run in runs]
    return [
        Run(run.labels, spoil(run.result)) if is_hit else run
        for run, is_hit in zip(runs, hit, strict=True)
    ]


def stretched(result: Result) -> Result:
    """Let the larger half of flows take ten times as long, and samples grow with time."""
    large = pl.col("size_bytes") >= pl.col("size_bytes").median()
    names = [name for name in ("fct_s", "slowdown", "acked_s") if name in result.flows.columns]
    times = [pl.when(large).then(10 * pl.col(name)).otherwise(name).alias(name) for name in names]
    samples = result.samples.with_columns(pl.col("value") * (1 + 1e3 * pl.col("time_s")))
    return Result(result.flows.with_columns(times), samples, result.summary)


def frozen(result: Result) -> Result:
    """Let what is sampled always be the same."""
    mean = pl.col("value").mean().over("probe")
    return Result(result.flows, result.samples.with_columns(value=mean), result.summary)


def blamed(result: Result) -> Result:
    """Let only the largest twentieth of flows send anything again."""
    large = pl.col("size_bytes") >= pl.col("size_bytes").quantile(0.95)
    again = pl.when(large).then("retransmits").otherwise(0)
    flows = result.flows.with_columns(retransmits=again)
    return Result(flows, result.samples, result.summary)


def cut(result: Result) -> Result:
    """Forget every other link."""
    summary = result.summary | {"links": result.summary["links"][::2]}
    return Result(result.flows, result.samples, summary)


def spoilt(runs: list[Run]) -> Iterator[Callable[[], list[Run]]]:
    for label in runs[0].labels:
        for order in (forwards, backwards, mirrored):
            if label != "seed":
                yield partial(swapped, runs, label, order)
    for spoil in (stretched, frozen, blamed, cut):
        yield partial(each, runs, spoil)
        yield partial(first_scheme, runs, spoil)


def words(figure: Figure, table: pl.DataFrame) -> list[list[bool | None]]:
    """Return what became of each comparison, by its numbers alone."""
    return [[part.held for part in claim.judge(table).parts] for claim in figure.claims]


def tables(figure: Figure, cache: Path) -> Iterator[pl.DataFrame]:
    """Yield the table of a figure, and those of spoilt runs, or itself spoilt if it has no runs."""
    runs = sweep(figure.plan("smoke"), cache=cache)
    reduce: Any = figure._table
    yield (table := reduce(runs))
    if not runs:
        yield table.with_columns(selectors.numeric() * 1.5)
        return
    for spoil in spoilt(runs):
        try:
            yield reduce(spoil())
        except (KeyError, TypeError, ValueError, ZeroDivisionError, pl.exceptions.PolarsError):
            continue  # So spoilt that there is no table.


@pytest.mark.parametrize("name", by_figure(FIGURES))
def test_some_verdict_turns_when_runs_are_spoilt(name: str, figure_cache: Path) -> None:
    figure = FIGURES[name]
    found = tables(figure, figure_cache)
    before = words(figure, next(found))
    assert any(words(figure, table) != before for table in found)
