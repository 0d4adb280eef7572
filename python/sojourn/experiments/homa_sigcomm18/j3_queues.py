"""Figure J3: lengths of Homa's queues at load 0.8."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, all_at_most, looks, metrics, plot

from .paper import HIGH_LOAD, HOMA, SCALES, WORKLOADS, over_workloads, paper

UPLINK, CORE, DOWNLINK = "ToR to aggregation", "aggregation to ToR", "ToR to host"

MEAN, MAXIMUM = "mean", "maximum"

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
        "Dotted lines are the bounds of the claims; the dashed line is the largest published "
        "maximum from ToRs to hosts, from memory.",
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
    bounds_kb = {MEAN: {DOWNLINK: 20, UPLINK: 3}, MAXIMUM: {DOWNLINK: 200}}
    for panel, (metric, bounds) in zip(axes, bounds_kb.items(), strict=True):
        part = table.filter(metric=metric)
        label = f"{metric} queue length"
        plot.levels(panel, part, group="workload", by="place", unit="KB", label=label)
        for port, bound in bounds.items():
            colour = looks.look(port).colour
            panel.axhline(bound, color=colour, linestyle=":", linewidth=1)
        if published is not None and metric == MAXIMUM:
            height = metrics.at(published, metric=metric) / 1e3
            panel.axhline(height, color=looks.GREY, linestyle="--", linewidth=1)
    plot.one_legend(axes)


def lengths_kb(table: pl.DataFrame, place: str, metric: str) -> dict[str, float]:
    """Return the queue lengths of a place in KB, by workload."""
    return {
        f"{metric} {place}, {name}, in KB": metrics.at(
            table, workload=name, place=place, metric=metric
        )
        / 1e3
        for name in WORKLOADS
    }


@figure.claim("from ToRs to hosts queues have a mean of at most 20 KB")
def short_on_average(table: pl.DataFrame) -> Verdict:
    return all_at_most(lengths_kb(table, DOWNLINK, MEAN), 20)


@figure.claim("from ToRs to hosts queues have a maximum of at most 200 KB")
def bounded(table: pl.DataFrame) -> Verdict:
    return all_at_most(lengths_kb(table, DOWNLINK, MAXIMUM), 200)


@figure.claim("from ToRs to aggregation switches queues have a mean of at most 3 KB")
def short_uplink_queues(table: pl.DataFrame) -> Verdict:
    return all_at_most(lengths_kb(table, UPLINK, MEAN), 3)
