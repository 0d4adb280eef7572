"""Figure J3: lengths of Homa's queues at load 0.8."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, all_at_most, looks, metrics, plot

from .paper import HIGH_LOAD, HOMA, SCALES, WORKLOADS, by_scales, over_workloads, paper

UPLINK, CORE, DOWNLINK = "ToR to aggregation", "aggregation to ToR", "ToR to host"

MEAN, MAXIMUM = "mean", "maximum"

BOUNDS_KB = {(DOWNLINK, MEAN): 20, (DOWNLINK, MAXIMUM): 200, (UPLINK, MEAN): 3}
"""Bounds of the claims by place and metric."""

figure = Figure(
    paper,
    id="j3",
    title="Lengths of Homa's queues at load 0.8",
    source="Table 1",
    scales=SCALES,
    deviations=(
        "Means are over time and over all ports of a place, from the end of the warm-up to the "
        "last arrival; maxima are the largest of all these ports in the whole run, and their means "
        "over seeds. The packet in transmission does not count.",
        "Dotted lines are the bounds of the claims, which are our own; the dashed line is the "
        "largest published maximum from ToRs to hosts, from memory.",
    ),
    panels=(1, 2),
    size=(12, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from over_workloads(scale, [HIGH_LOAD], HOMA)


def place(link: str) -> str | None:
    """Return the place of a link's port; `None` at hosts."""
    source, _, target = link.partition("->")
    if source.startswith("spine"):
        return CORE
    if source.startswith("host"):
        return None
    return DOWNLINK if target.startswith("host") else UPLINK


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    rows = [
        {
            "workload": run.labels["workload"],
            "seed": run.labels["seed"],
            "place": place(link["name"]),
            MEAN: float(metrics.measured(link)["queue_mean_bytes"]),
            MAXIMUM: float(link["queue_max_bytes"]),
        }
        for run in runs
        for link in run.result.summary["links"]
    ]
    ports = pl.DataFrame(rows, infer_schema_length=None).drop_nulls("place")
    labels = ["workload", "place", "seed"]
    places = ports.group_by(labels, maintain_order=True).agg(
        pl.col(MEAN).mean(), pl.col(MAXIMUM).max()
    )
    long = places.unpivot([MEAN, MAXIMUM], index=labels, variable_name="metric")
    return metrics.across_seeds(long.with_columns(at_least=False))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, metric in zip(axes, (MEAN, MAXIMUM), strict=True):
        part = table.filter(metric=metric)
        label = f"{metric} queue length"
        plot.levels(panel, part, group="workload", by="place", unit="KB", label=label)
        for (port, bounded), bound in BOUNDS_KB.items():
            if bounded == metric:
                colour = looks.look(port).colour
                panel.axhline(bound, color=colour, linestyle=":", linewidth=1)
        if published is not None and metric == MAXIMUM:
            height = metrics.at(published, metric=metric) / 1e3
            panel.axhline(height, color=looks.GREY, linestyle="--", linewidth=1)
    plot.one_legend(axes)


def at_most_kb(
    table: pl.DataFrame, place: str, metric: str, bound: float, workloads: tuple[str, ...]
) -> Verdict:
    """Judge the queue lengths of a place in KB, by workload."""
    return all_at_most(
        {
            f"{metric} {place}, {name}, in KB": metrics.at(
                table, workload=name, place=place, metric=metric
            )
            / 1e3
            for name in workloads
        },
        bound,
    )


for (place_of_port, metric), bound_kb in BOUNDS_KB.items():
    for name, workloads, scales in by_scales(*WORKLOADS):
        figure.claim(
            f"{name}: queues from {place_of_port} have a {metric} of at most {bound_kb} KB",
            stated=False,
            scales=scales,
        )(
            partial(
                at_most_kb,
                place=place_of_port,
                metric=metric,
                bound=bound_kb,
                workloads=workloads,
            )
        )
