"""Figure D3: steering by the gradient, and by whether the RTT is above one target."""

from collections.abc import Iterator
from functools import partial
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
    every,
    metrics,
    override,
    plot,
    steady,
)

from .paper import paper
from .testbed import MEAN, SCALES, TAIL, THROUGHPUT, measures, testbed

TARGETS_US = (30, 50, 70, 100, 200, 500)

GRADIENT = "gradient"

VARIATION = "variation of rates"

figure = Figure(
    paper,
    id="d3",
    title="The gradient of the RTT, or one target for it",
    source="Figure: gradient approach against queue-size approach",
    scales=SCALES,
    panels=(1, 3),
    size=(13, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield {"scheme": GRADIENT}, testbed(scale)
    for target in TARGETS_US if scale["name"] != "smoke" else TARGETS_US[:2]:
        one = {"transport.t_low": f"{target} us", "transport.t_high": f"{target} us"}
        yield {"scheme": f"{target} µs"}, override(testbed(scale), one)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    variation = {VARIATION: steady.variation(5e-3)}
    return metrics.across_seeds(metrics.measure(runs, **measures, **variation))
