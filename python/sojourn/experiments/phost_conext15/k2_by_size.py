"""Figure K2: mean slowdown of short and of long flows under pHost and pFabric."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, between, every, metrics, plot

from .paper import (
    DATA_MINING,
    IMC10,
    LARGE,
    PAYLOAD,
    PFABRIC,
    PHOST,
    REFERENCE,
    SCALES,
    SHORT,
    WEB_SEARCH,
    measured,
    over_pfabric,
    over_workloads,
    paper,
)

EIGHT_PACKETS, UP_TO_10_MB, ABOVE_10_MB = "up to 8 packets", "up to 10 MB", "above 10 MB"

GROUPS = {
    EIGHT_PACKETS: metrics.Bucket(EIGHT_PACKETS, 0, 8 * PAYLOAD),
    UP_TO_10_MB: SHORT,
    ABOVE_10_MB: LARGE,
}

figure = Figure(
    paper,
    id="k2",
    title="Mean slowdown of short and long flows under pHost and pFabric at load 0.6",
    source="Figures 4 and 5",
    reference=REFERENCE,
    scales=SCALES,
    deviations=(
        "IMC10 has no flows above 10 MB.",
        "Flows of up to 8 packets start with tokens under pHost; the source does not show them.",
    ),
    panels=(1, 3),
    size=(14, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from over_workloads(scale)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    means = {name: metrics.slowdown("mean", bucket) for name, bucket in GROUPS.items()}
    is_empty = (pl.col("workload") == IMC10) & (pl.col("metric") == ABOVE_10_MB)
    return measured(runs, **means).filter(~is_empty)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, group in zip(axes, GROUPS, strict=True):
        points = None if published is None else published.filter(metric=group)
        plot.levels(
            panel,
            table.filter(metric=group),
            group="workload",
            published=points,
            source=f"{REFERENCE} (hollow)",
            label=f"mean slowdown, {group}",
            values="{:.2f}",
            log=False,
        )
        panel.set_ylim(bottom=1)
    plot.one_legend(axes)


@figure.claim("long flows (above 10 MB): pHost is within 15 % of pFabric", scales=("paper",))
def long_flows_are_equal(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            over_pfabric(table, workload=workload, metric=ABOVE_10_MB),
            0.85,
            1.15,
            f"{PHOST} over {PFABRIC}, {workload},",
        )
        for workload in (WEB_SEARCH, DATA_MINING)
    )
