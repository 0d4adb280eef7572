"""Figure D9: throughput and RTT against the pacing rate of packets within a segment."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_least,
    at_most,
    between,
    metrics,
    override,
)

from .paper import paper
from .testbed import MEAN, SCALES, TAIL, THROUGHPUT, draw_sweep, measured, rack

SPACINGS_MBPS = (400, 500, 600, 700, 1000, 2000, 10_000)

FAIR_SHARE_MBPS, PUBLISHED_MBPS = 500, 700

LINE_RATE_MBPS = SPACINGS_MBPS[-1]

figure = Figure(
    paper,
    id="d9",
    title="Throughput and RTT against the pacing of packets within segments of 64 KB",
    source="Figure: throughput and RTT for different pacing rates",
    scales=SCALES,
    deviations=(
        "The best is the pacing rate with the lowest p99 RTT and 97 % of the maximum throughput. "
        "Below the fair share pacing itself limits the rate.",
        "With a server of one port of 20 Gb/s, where bursts of two clients pass without a queue, "
        "the mean RTT at 700 Mb/s is higher than without pacing (81 over 60 µs, three seeds from "
        "600 to 700 ms): unpaced bursts lose throughput there, 17.1 over 19.2 Gb/s, and therefore "
        "have a shorter queue. With two ports of 10 Gb/s they lose more, and the claim holds.",
    ),
    panels=(1, 2),
    size=(11, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    smoke_spacings = (FAIR_SHARE_MBPS, PUBLISHED_MBPS, LINE_RATE_MBPS)
    for spacing in SPACINGS_MBPS if scale["name"] != "smoke" else smoke_spacings:
        change = {"transport.segments.spacing": f"{spacing} Mbps"}
        yield {"scheme": "TIMELY", "spacing": spacing}, override(rack(scale), change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return measured(runs)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    draw_sweep(axes, table, "spacing", "rate within a segment (Mb/s)")
    for spacing, name in ((FAIR_SHARE_MBPS, "fair share"), (PUBLISHED_MBPS, "published best")):
        for panel in axes:
            panel.axvline(spacing, color="#222222", ls=":", lw=1, zorder=0)
        options: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        axes[0].annotate(
            name, (spacing, 0.02), (-2, 0), **options, ha="right", rotation=90, fontsize=8
        )


def value(table: pl.DataFrame, spacing: int, metric: str) -> float:
    """Return the mean of a metric at a pacing rate over the seeds."""
    return metrics.at(table, spacing=spacing, metric=metric)


def best(table: pl.DataFrame) -> float:
    """Return the pacing rate with the lowest p99 RTT and at least 97 % of the throughput."""
    spacings = table["spacing"].unique().sort().to_list()
    maximum = max(value(table, spacing, THROUGHPUT) for spacing in spacings)
    sufficient = [s for s in spacings if value(table, s, THROUGHPUT) >= 0.97 * maximum]
    return float(min(sufficient, key=lambda spacing: value(table, spacing, TAIL)))


def lowers(table: pl.DataFrame, metric: str) -> Verdict:
    """Judge that a statistic of the RTT is lower at 700 Mb/s than without pacing."""
    ratio = value(table, 700, metric) / value(table, LINE_RATE_MBPS, metric)
    return at_most(ratio, 1, f"{metric} at 700 Mb/s over {metric} without pacing")


@figure.claim(
    "a lower pacing rate lowers the RTT: the p99 RTT at 700 Mb/s is below that without pacing"
)
def lowers_tail(table: pl.DataFrame) -> Verdict:
    return lowers(table, TAIL)


@figure.claim("a lower pacing rate lowers the mean RTT as well")
def lowers_mean(table: pl.DataFrame) -> Verdict:
    return lowers(table, MEAN)


@figure.claim(
    "a lower pacing rate raises the throughput: 700 Mb/s has at least 3 % more than no pacing"
)
def raises_throughput(table: pl.DataFrame) -> Verdict:
    ratio = value(table, 700, THROUGHPUT) / value(table, LINE_RATE_MBPS, THROUGHPUT)
    return at_least(ratio, 1.03, "throughput at 700 Mb/s over throughput without pacing")


@figure.claim(
    "the best is an interior point, of the order of 1.4 times the fair share (within a factor of 2)"
)
def interior(table: pl.DataFrame) -> Verdict:
    ratio = best(table) / FAIR_SHARE_MBPS
    description = f"the best, {best(table):g} Mb/s, over the fair share"
    return between(ratio, 0.7, 2.8, description)
