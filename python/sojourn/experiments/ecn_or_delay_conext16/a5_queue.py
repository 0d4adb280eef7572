"""Figure A5: the middle link's queue over time at load 0.8."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import polars as pl

from sojourn import Figure, Run, Verdict, at_least, at_most, every, metrics, plot

from .paper import MIDDLE, SCALES, TIMELYS, at_load, paper, schemes, why

PROBE = f"queue_bytes {MIDDLE}"
SHOWN = ("DCQCN", *TIMELYS, "Patched TIMELY")

figure = Figure(
    paper,
    id="a5",
    title="The middle link's queue at load 0.8",
    source="Figure: bottleneck queue for load 0.8",
    scales=SCALES,
    deviations=(
        "The published curve has a sample every 10 ms; ours has one every 100 µs, drawn as the "
        "mean of each span with its highest value shaded. The picture shows the first seed, the "
        "claims use all of them.",
    ),
    panels=(2, 3),
    size=(11, 5.6),
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for scheme, change in (schemes | why).items():
        yield {"scheme": scheme}, at_load(scale, change, 0.8)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    over_time = metrics.series(runs, PROBE, points=200).with_columns(metric=pl.lit("over time"))
    mean, high = metrics.sampled(PROBE, "mean"), metrics.sampled(PROBE, "max")
    measured = metrics.measure(runs, mean=mean, maximum=high)
    columns = ["scheme", "seed", "metric", "time_s", "value", "high"]
    statistics = measured.with_columns(
        time_s=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64)
    )
    return pl.concat([over_time.select(columns), statistics.select(columns)])


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    first = table.filter(pl.col("metric") == "over time", pl.col("seed") == table["seed"].min())
    top = float(first["high"].max()) * 1.5e-3  # type: ignore[arg-type]
    for place, scheme in zip(axes[:, :2].flat, SHOWN, strict=True):
        plot.series(place, first.filter(scheme=scheme), unit="KB", label="queue", log=True)
        place.set_ylim(0, top)
    statistics = table.filter(pl.col("metric") != "over time")
    averaged = statistics.group_by("scheme", "metric", maintain_order=True).agg(
        pl.col("value").mean()
    )
    for place, metric in zip(axes[:, 2], ("mean", "maximum"), strict=True):
        given = None if published is None else published.filter(metric=metric)
        ours = averaged.filter(metric=metric)
        plot.bars(place, ours, published=given, unit="KB", label=f"{metric} of the queue", log=True)


def mean_over_seeds(table: pl.DataFrame, scheme: str, metric: str) -> float:
    """Return a statistic of the queue in bytes, averaged over the seeds."""
    rows = table.filter(pl.col("scheme") == scheme, pl.col("metric") == metric)
    return float(rows["value"].mean())  # type: ignore[arg-type]


def high(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that TIMELY's queue is high and variable."""
    below, above = (mean_over_seeds(table, scheme, "mean") for scheme in ("DCQCN", timely))
    highest = mean_over_seeds(table, timely, "maximum")
    return every(
        [
            at_least(above / below, 5, f"the mean of {timely} over DCQCN's"),
            at_least(highest / 1e6, 1, f"the maximum of {timely} in MB"),
        ]
    )


for name in TIMELYS:
    figure.claim(
        f"the queue of {name} is high and variable: mean at least 5 times DCQCN's, maximum 1 MB",
        stated=name == "TIMELY",
    )(partial(high, timely=name))


@figure.claim("DCQCN's mean queue is below 100 KB", stated=False)
def dcqcn_low(table: pl.DataFrame) -> Verdict:
    return at_most(mean_over_seeds(table, "DCQCN", "mean") / 1e3, 100, "DCQCN's mean in KB")
