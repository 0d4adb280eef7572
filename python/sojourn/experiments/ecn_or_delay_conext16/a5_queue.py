"""Figure A5: the middle link's queue over time at load 0.8."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sojourn import Figure, Result, Run, Verdict, every, metrics, plot

from .paper import (
    DCQCN,
    FACTOR,
    LOOKS,
    MIDDLE,
    PATCHED,
    SCALES,
    SMALL_BETA,
    TIMELY,
    as_published,
    at_load,
    paper,
    schemes,
)

PROBE = f"queue_bytes {MIDDLE}"
OVER_TIME = "over time"

figure = Figure(
    paper,
    id="a5",
    title="The middle link's queue at load 0.8",
    source="Figure: bottleneck queue for load 0.8",
    scales=SCALES,
    deviations=(
        "The published curve has a sample every 10 ms. Means, maxima and claims here use such "
        "samples too. The curves show the first seed, sampled every 100 µs: the mean of each "
        "interval, with its maximum shaded.",
        "The claims about TIMELY were first a mean of at least 5 times DCQCN's and a maximum of "
        "at least 1 MB, with beta 0.8, and then with beta 0.008. The published mean is 48 times "
        "DCQCN's, the maximum 9.27 MB.",
        "DCQCN's published queue has a median of 47 KB and a 90th percentile of 86 KB; ours, "
        "sampled every 100 µs, 0 and 168 KB. No option of the authors' simulator explains this "
        "median: notification by a clock, an initial alpha of 0.5, alpha before the cut, a "
        "minimum rate of 100 Mb/s, no clamp of the target rate, the RED profile of its "
        "configuration. With each of them the queue is empty for 52 to 59 % of the time (5 "
        "seeds). A link that is used to 64 % cannot have such a median unless that run's load "
        "was higher.",
    ),
    panels=(2, 3),
    size=(11, 5.8),
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for scheme, change in schemes.items():
        yield {"scheme": scheme}, at_load(scale, change, 0.8)


def every_10_ms(statistic: str) -> metrics.Metric:
    """Measure the queue in bytes at the sampling interval of the source: every hundredth sample."""

    def measure_one(result: Result) -> metrics.Statistic:
        samples = result.samples.filter(pl.col("probe") == PROBE)["value"].gather_every(100, 99)
        return metrics.Statistic(float(getattr(samples, statistic)()))

    return measure_one


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    first = min(run.labels["seed"] for run in runs)
    first_runs = [run for run in runs if run.labels["seed"] == first]
    over_time = metrics.series(first_runs, PROBE, points=200).rename({"high": "peak"})
    measured = metrics.measure(runs, mean=every_10_ms("mean"), maximum=every_10_ms("max"))
    return pl.concat(
        [metrics.across_seeds(measured), over_time.with_columns(metric=pl.lit(OVER_TIME))],
        how="diagonal",
    )


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    curves = table.filter(metric=OVER_TIME).select("scheme", "time_s", "value", high="peak")
    panels = axes[:, :2]
    for panel, scheme in zip(panels.flat, schemes, strict=True):
        part = curves.filter(scheme=scheme)
        plot.series(panel, part, unit="KB", label="queue", log=True, drawn_as=LOOKS)
    plot.same_scale(panels)
    for panel, metric in zip(axes[:, 2], ("mean", "maximum"), strict=True):
        points = None if published is None else published.filter(metric=metric)
        part = table.filter(metric=metric)
        label = f"{metric} of the queue"
        plot.levels(panel, part, published=points, unit="KB", label=label, drawn_as=LOOKS)
    plot.same_scale(axes[:, 2:])
    plot.one_legend(axes[:, 2])


def add_claim(scheme: str) -> None:
    """Add the claim that the mean and maximum of a scheme's queue are the published ones."""

    @figure.claim(
        f"{scheme}: the queue's mean and maximum are the published ones (within a factor of "
        f"{FACTOR})",
        stated=scheme == TIMELY,
    )
    def published_queue(table: pl.DataFrame) -> Verdict:
        return every(
            as_published(figure, table, f"{metric} of {scheme}", scheme=scheme, metric=metric)
            for metric in ("mean", "maximum")
        )


for scheme in (TIMELY, SMALL_BETA, DCQCN, PATCHED):
    add_claim(scheme)
