"""Mutation tests of claims: damaged runs must change a verdict of every figure."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from polars import selectors

from conftest import by_figure
from sojourn import Result, Run, sweep
from sojourn.base import paths
from sojourn.figures import discovery
from sojourn.figures.figure import Figure

FIGURES = discovery.discover(paths.EXPERIMENTS)

Mutation = Callable[[list[Run]], list[Run]]


def rotated_left(group: list[Run]) -> list[Run]:
    return group[1:] + group[:1]


def rotated_right(group: list[Run]) -> list[Run]:
    return group[-1:] + group[:-1]


def mirrored(group: list[Run]) -> list[Run]:
    return group[::-1]


def swapped(runs: list[Run], label: str, order: Mutation) -> list[Run]:
    """Permute the results of runs that differ only in this label."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        others = {name: value for name, value in run.labels.items() if name != label}
        groups.setdefault(str(others), []).append(run)
    return [
        Run(run.labels, other.result)
        for group in groups.values()
        for run, other in zip(group, order(group), strict=True)
    ]


def all_runs(runs: list[Run], mutation: Callable[[Result], Result]) -> list[Run]:
    return [Run(run.labels, mutation(run.result)) for run in runs]


def first_scheme(runs: list[Run], mutation: Callable[[Result], Result]) -> list[Run]:
    scheme = next(iter(runs[0].labels.values()))
    is_first = [next(iter(run.labels.values())) == scheme for run in runs]
    return [
        Run(run.labels, mutation(run.result)) if is_mutated else run
        for run, is_mutated in zip(runs, is_first, strict=True)
    ]


def stretched(result: Result) -> Result:
    """Multiply the FCTs of the larger half of flows by ten, and let samples grow with time."""
    large = pl.col("size_bytes") >= pl.col("size_bytes").median()
    names = [name for name in ("fct_s", "slowdown", "acked_s") if name in result.flows.columns]
    times = [pl.when(large).then(10 * pl.col(name)).otherwise(name).alias(name) for name in names]
    samples = result.samples.with_columns(pl.col("value") * (1 + 1e3 * pl.col("time_s")))
    return Result(result.flows.with_columns(times), samples, result.summary)


def frozen(result: Result) -> Result:
    """Replace all samples of a probe by their mean."""
    mean = pl.col("value").mean().over("probe")
    return Result(result.flows, result.samples.with_columns(value=mean), result.summary)


def only_large_lose(result: Result) -> Result:
    """Set the lost packets of all but the largest twentieth of flows to 0."""
    large = pl.col("size_bytes") >= pl.col("size_bytes").quantile(0.95)
    lost = pl.when(large).then("lost_packets").otherwise(0).alias("lost_packets")
    return Result(result.flows.with_columns(lost), result.samples, result.summary)


def half_of_links(result: Result) -> Result:
    """Remove every second link."""
    summary = result.summary | {"links": result.summary["links"][::2]}
    return Result(result.flows, result.samples, summary)


def mutations(runs: list[Run]) -> Iterator[Callable[[], list[Run]]]:
    for label in runs[0].labels:
        for order in (rotated_left, rotated_right, mirrored):
            if label != "seed":
                yield partial(swapped, runs, label, order)
    for mutation in (stretched, frozen, only_large_lose, half_of_links):
        yield partial(all_runs, runs, mutation)
        yield partial(first_scheme, runs, mutation)


def outcomes(figure: Figure, table: pl.DataFrame) -> list[list[bool | None]]:
    """Return the result of each comparison, without confidence intervals."""
    return [[part.held for part in claim.judge(table).parts] for claim in figure.claims]


def tables(figure: Figure, cache: Path) -> Iterator[pl.DataFrame]:
    """Yield the table of a figure, then the tables of its mutated runs.

    Without runs, the second table is the first with all numbers changed.
    """
    runs = sweep(figure.plan("smoke"), cache=cache)
    yield (table := figure.reduce(runs))
    if not runs:
        yield table.with_columns(selectors.numeric() * 1.5)
        return
    for mutated in mutations(runs):
        try:
            yield figure.reduce(mutated())
        except (KeyError, TypeError, ValueError, ZeroDivisionError, pl.exceptions.PolarsError):
            continue  # The table of these runs cannot be computed.


@pytest.mark.parametrize("name", by_figure(FIGURES))
def test_mutated_runs_change_some_verdict(name: str, figure_cache: Path) -> None:
    figure = FIGURES[name]
    results = tables(figure, figure_cache)
    original = outcomes(figure, next(results))
    assert any(outcomes(figure, table) != original for table in results)
