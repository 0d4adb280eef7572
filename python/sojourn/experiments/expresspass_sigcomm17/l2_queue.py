"""Figure L2: queue and utilisation against the number of flows."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Result,
    Run,
    Scale,
    Verdict,
    all_at_most,
    between,
    every,
    looks,
    metrics,
    override,
    plot,
)

from .paper import BOTTLENECK, CEILING, DCTCP, EXPRESSPASS, dumbbell, paper, schemes

QUEUE, USE, LOSS = "longest queue", "utilisation", "data packets dropped"

figure = Figure(
    paper,
    id="l2",
    title="Queue and utilisation of a link of 10 Gb/s",
    source="Flows on one bottleneck",
    scales={
        "smoke": {"flows": (4, 16), "length_ms": 15},
        "quick": {"flows": (4, 16, 64, 256), "length_ms": 40},
        "paper": {"flows": (4, 8, 16, 32, 64, 128, 256), "length_ms": 200},
    },
    deviations=(
        "Flows between different hosts start within 100 µs, the round trip of the link, and do not "
        "end. The longest queue is that of the whole run, without the packet in transmission; the "
        "utilisation counts from 10 ms on, and all bytes.",
        "The claims are about ExpressPass; DCTCP is shown for comparison. The bound of the queue "
        "and the range of the utilisation are our own: credits leave 94.8 % of the link to data.",
    ),
    panels=(1, 2),
    size=(12, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for number in scale["flows"]:
        shared = override(
            dumbbell(number, 10),
            {
                "workload": {"kind": "long_lived", "jitter": "100 us"},
                "warm_up": "10 ms",
                "time_limit": f"{scale['length_ms']} ms",
            },
        )
        for scheme in (EXPRESSPASS, DCTCP):
            yield {"scheme": scheme, "flows": number}, override(shared, schemes()[scheme])


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    measures = {QUEUE: longest_queue, USE: metrics.utilisation(BOTTLENECK), LOSS: data_drops}
    return metrics.across_seeds(metrics.measure(runs, **measures))


def longest_queue(result: Result) -> metrics.Statistic:
    """Measure the longest queue of the link in the whole run."""
    return metrics.Statistic(float(metrics.link_counters(result, BOTTLENECK)["queue_max_bytes"]))


def data_drops(result: Result) -> metrics.Statistic:
    """Measure the packets dropped on the path of data, which credits do not take."""
    return metrics.Statistic(
        float(
            sum(
                link["drops"]
                for link in result.summary["links"]
                if link["name"].startswith(("sender", BOTTLENECK, "right->receiver"))
            )
        )
    )


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, metric in zip(axes, (QUEUE, USE), strict=True):
        unit = "KB" if metric == QUEUE else ""
        part = table.filter(metric=metric)
        options: Any = {"x": "flows", "unit": unit, "log": metric == QUEUE, "log_x": True}
        plot.against(panel, part, labels=("flows", metric), **options)
    axes[1].axhline(CEILING, color=looks.GREY, linestyle=":", linewidth=1)
    plot.one_legend(axes)


def values(table: pl.DataFrame, metric: str) -> dict[int, float]:
    """Return a number of ExpressPass by the number of flows."""
    numbers = table["flows"].unique().sort().to_list()
    return {
        number: metrics.at(table, scheme=EXPRESSPASS, flows=number, metric=metric)
        for number in numbers
    }


@figure.claim("ExpressPass drops no data")
def lossless(table: pl.DataFrame) -> Verdict:
    drops = values(table, LOSS).items()
    return all_at_most({f"drops with {number} flows": value for number, value in drops}, 0)


@figure.claim("ExpressPass's queue is at most 20 KB at every number of flows", stated=False)
def short(table: pl.DataFrame) -> Verdict:
    queues = values(table, QUEUE).items()
    return all_at_most({f"KB with {number} flows": value / 1e3 for number, value in queues}, 20)


@figure.claim("ExpressPass uses 90 to 95 % of the link", stated=False)
def full(table: pl.DataFrame) -> Verdict:
    return every(
        between(value, 0.9, 0.95, f"utilisation with {number} flows")
        for number, value in values(table, USE).items()
    )
