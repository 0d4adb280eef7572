"""Figure B6: queue and utilisation under TCP, which fills the buffer."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_least, between, looks, metrics, plot

from .b2_slow_start import figure as b2
from .paper import (
    BACKBONE,
    OFFERED,
    TCP,
    UTILISATION,
    WAITING,
    after_warm_up,
    first_seed,
    mean_of,
    offered,
    over_time,
    paper,
    tcp,
)

figure = Figure(
    paper,
    id="b6",
    title="TCP fills the buffer",
    source="Figure 6",
    scales=b2.scales,
    deviations=(
        "The buffer is not stated in the caption; ours is one bandwidth-delay product.",
        "At the scale `quick` the link has 300 Mb/s, as in B2.",
        "With heavy-tailed sizes the realised load differs from 0.84; utilisation is compared with "
        "the realised load.",
    ),
    panels=(2, 1),
    size=(8, 6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = BACKBONE.at(scale)
    yield from setting.runs(scale, {TCP: tcp(setting.link)})


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    times = over_time(runs, points=3000)
    buffer = runs[0].result.summary["scenario"]["queue"]["capacity"]
    times = times.with_columns(buffer=float(buffer.removesuffix(" packets")))
    return pl.concat([times, metrics.measure(runs, **{OFFERED: offered})], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, metric, unit in ((axes[0], WAITING, ""), (axes[1], UTILISATION, "%")):
        label = "queue (packets)" if metric == WAITING else metric
        rows = first_seed(table, metric).drop("high")
        plot.series(panel, rows, unit=unit, time_unit="s", label=label)
    line: Any = {"color": looks.BLACK, "linewidth": 1, "linestyle": ":"}
    axes[0].axhline(table["buffer"][0], label="buffer", **line)
    load = metrics.at(table, metric=OFFERED, seed=table["seed"].min())
    axes[1].axhline(load * 100, label="offered load, of these flows", **line)
    for panel in axes:
        panel.set_ylim(bottom=0)
        plot.legend(panel)


def longest_full_s(table: pl.DataFrame) -> float:
    """Return the longest time with at least 95 % of the buffer in use in all samples."""
    queue = after_warm_up(table, TCP, WAITING)
    # Rows of seeds follow one another: a stretch ends with its seed.
    full = pl.col("value") >= 0.95 * pl.col("buffer")
    stretches = queue.group_by("seed", full=full, number=full.rle_id()).len()
    longest: Any = stretches.filter("full")["len"].max()
    interval: Any = queue["time_s"].diff().median()
    return float(interval * (longest or 0))


@figure.claim("the queue is full (95 % of the buffer) for stretches of a round trip and more")
def fills(table: pl.DataFrame) -> Verdict:
    return at_least(longest_full_s(table), BACKBONE.link.rtt_s, "the longest stretch, in s,")


@figure.claim("utilisation is close to the offered load (within 10 %)")
def as_offered(table: pl.DataFrame) -> Verdict:
    utilisation = mean_of(table, TCP, UTILISATION)
    load: Any = table.filter(metric=OFFERED)["value"].mean()
    return between(utilisation / load, 0.9, 1.1, f"{utilisation:.3f} used of {load:.3f} offered")
