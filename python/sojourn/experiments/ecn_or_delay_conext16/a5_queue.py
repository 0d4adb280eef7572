"""Figure A5: the middle link's queue over time at load 0.8."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sojourn import Figure, Result, Run, Verdict, at_least, at_most, every, metrics, plot

from .paper import DOCUMENTED, LOOKS, MIDDLE, SCALES, TIMELY, at_load, paper, schemes

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
        "DCQCN's published queue has the same mean and varies less: its median is 47 KB, its 90th "
        "percentile 86 and its maximum 137 KB; ours, sampled every 100 µs, has a median of 0 and a "
        "90th percentile of 168 KB, and every 10 ms a maximum of 263 KB. The RED profile in the "
        "authors' simulator (from 41 KB to 1.03 MB, 100 %) gives 75 KB for the 90th percentile (6 "
        "seeds), but a 90th percentile of completion times of 131 µs, where 190 are published and "
        "ours are 183. The source's profile therefore stays, and the rest of the difference is "
        "unexplained.",
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
        plot.series(panel, part, unit="KB", label="queue", drawn_as=LOOKS)
    plot.same_scale(panels)
    for panel, metric in zip(axes[:, 2], ("mean", "maximum"), strict=True):
        points = None if published is None else published.filter(metric=metric)
        part = table.filter(metric=metric)
        label = f"{metric} of the queue"
        plot.levels(panel, part, published=points, unit="KB", label=label, drawn_as=LOOKS)
    plot.same_scale(axes[:, 2:])
    plot.one_legend(axes[:, 2])


def judge_queue(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that TIMELY's queue is high and variable."""
    timely_mean, dcqcn_mean = (
        metrics.at(table, scheme=s, metric="mean") for s in (timely, "DCQCN")
    )
    highest = metrics.at(table, scheme=timely, metric="maximum")
    return every(
        [
            at_least(timely_mean / dcqcn_mean, 5, f"the mean of {timely} over DCQCN's"),
            at_least(highest / 1e6, 1, f"the maximum of {timely} in MB"),
        ]
    )


@figure.claim(
    f"the queue of {TIMELY} is high and variable: mean at least 5 times DCQCN's, maximum 1 MB"
)
def timely_high(table: pl.DataFrame) -> Verdict:
    return judge_queue(table, TIMELY)


@figure.claim(f"with {DOCUMENTED}, as documented, the queue is high and variable too", stated=False)
def documented_high(table: pl.DataFrame) -> Verdict:
    return judge_queue(table, DOCUMENTED)


@figure.claim("DCQCN's mean queue is below 100 KB", stated=False)
def dcqcn_low(table: pl.DataFrame) -> Verdict:
    mean = metrics.at(table, scheme="DCQCN", metric="mean")
    return at_most(mean / 1e3, 100, "DCQCN's mean in KB")
