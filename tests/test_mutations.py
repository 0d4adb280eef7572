"""Claims can fail: of every figure's runs some are spoilt, and a verdict must turn."""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from sojourn import Result, Run, experiments, places, sweep
from sojourn.figure import Figure

FIGURES = experiments.discover(places.EXPERIMENTS)

CALCULATED = ("b4", "b13")
"""These have no runs: their tables are spoilt."""


def others(run: Run, name: str) -> str:
    return str({label: value for label, value in run.labels.items() if label != name})


def swapped(runs: list[Run], name: str) -> list[Run]:
    """Give each run the result of the next one that differs in one label only."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(others(run, name), []).append(run)
    return [
        Run(run.labels, moved.result)
        for group in groups.values()
        for run, moved in zip(group, group[1:] + group[:1], strict=True)
    ]


def stretched(run: Run) -> Run:
    """Let large flows take ten times as long, and what is sampled grow with time."""
    large = pl.col("size_bytes") > pl.col("size_bytes").median()
    times = [
        pl.when(large).then(10 * pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name in ("fct_s", "slowdown", "acked_s")
        if name in run.result.flows.columns
    ]
    samples = run.result.samples.with_columns(pl.col("value") * (1 + pl.col("time_s") * 1e3))
    return Run(
        run.labels, Result(run.result.flows.with_columns(times), samples, run.result.summary)
    )


def spoilt_tables(figure: Figure, runs: list[Run], table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    reduce: Any = figure._table
    for name in runs[0].labels if runs else ():
        if name != "seed":
            yield reduce(swapped(runs, name))
    first = runs[0].labels if runs else {}
    scheme = next(iter(first.values()), None)
    yield reduce([stretched(run) for run in runs])
    yield reduce([stretched(run) if scheme in run.labels.values() else run for run in runs])


def words(figure: Figure, table: pl.DataFrame) -> list[list[bool | None]]:
    return [[part.held for part in claim.judge(table).parts] for claim in figure.claims]


@pytest.mark.parametrize("name", FIGURES)
def test_some_verdict_turns_when_runs_are_spoilt(name: str) -> None:
    figure = FIGURES[name]
    runs = sweep(figure.plan("smoke"))
    reduce: Any = figure._table
    table = reduce(runs)
    before = words(figure, table)
    assert any(words(figure, spoilt) != before for spoilt in spoilt_tables(figure, runs, table))
