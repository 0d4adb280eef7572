"""Functions that draw pictures, one for each kind. Published points are hollow on dashed lines.

A picture is drawn on the axes of a `canvas` from a table of `sojourn.metrics`, with one curve for
each value of a column (`by`), and written by `save`. Tables are in seconds, bytes, bits per second
and shares; `unit` is the unit of the axis, one of `UNITS`. `sojourn plot` draws the same without
Python. Queue and throughput over time, and a distribution::

    from pathlib import Path

    import polars as pl
    import sojourn
    from sojourn import metrics, plot

    SIZES = {"kind": "empirical", "table": "web_search"}
    base = {
        "topology": {"kind": "dumbbell", "rate": "1 Gbps"},
        "transport": "dctcp",
        "workload": {"kind": "poisson", "load": 0.6, "flows": 100, "sizes": SIZES},
        "samples": {"interval": "100 us", "queues": ["left->right"], "links": ["left->right"]},
    }
    runs = sojourn.sweep(sojourn.expand(base, {"transport": ["dctcp", "timely"]}))

    queue = metrics.series(runs, "queue_bytes left->right")
    counter = "transmitted_bytes left->right"
    rate = metrics.series(runs, counter, 200, per_second=True)
    rate = rate.with_columns(pl.col("value") * 8).drop("high")
    with plot.canvas(1, 2) as (picture, (left, right)):
        plot.series(left, queue, by="transport", unit="KB", label="queue")
        plot.series(right, rate, by="transport", unit="Gb/s", label="throughput")
        plot.one_legend([left, right])
        plot.save(picture, Path("series"))

    with plot.canvas() as (picture, axes):
        slowdowns = metrics.cdf(runs, "slowdown")
        plot.cdf(axes, slowdowns, by="transport", unit="", label="slowdown")
        plot.save(picture, Path("cdf"), formats=["pdf"])
"""

from sojourn.base.units import PER_UNIT as UNITS
from sojourn.show.plot.frame import (
    MOST_IN_A_ROW,
    PUBLISHED,
    SHEET,
    canvas,
    fitted,
    legend,
    one_legend,
    panels,
    same_scale,
    save,
    side_legend,
    unit_of_time,
    with_unit,
)
from sojourn.show.plot.lines import against, along_sizes, cdf, curves, series
from sojourn.show.plot.marks import bars, levels, points, tradeoff
from sojourn.show.plot.networks import NAME_PLACES, topology

__all__ = [
    "MOST_IN_A_ROW",
    "NAME_PLACES",
    "PUBLISHED",
    "SHEET",
    "UNITS",
    "against",
    "along_sizes",
    "bars",
    "canvas",
    "cdf",
    "curves",
    "fitted",
    "legend",
    "levels",
    "one_legend",
    "panels",
    "points",
    "same_scale",
    "save",
    "series",
    "side_legend",
    "topology",
    "tradeoff",
    "unit_of_time",
    "with_unit",
]
