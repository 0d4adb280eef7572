"""Figure D3: steering by the gradient, and by whether the RTT is above one target."""

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
    equals,
    every,
    metrics,
    override,
    plot,
    steady,
)

from .paper import paper
from .testbed import MEAN, SCALES, TAIL, THROUGHPUT, measures, rack

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
    yield {"scheme": GRADIENT}, rack(scale)
    for target in TARGETS_US if scale["name"] != "smoke" else TARGETS_US[:2]:
        one = {"transport.t_low": f"{target} us", "transport.t_high": f"{target} us"}
        yield {"scheme": f"{target} µs"}, override(rack(scale), one)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    variation = {VARIATION: steady.variation(5e-3)}
    return metrics.across_seeds(metrics.measure(runs, **measures, **variation))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    trade, rtts, rates = axes
    wide = table.select("scheme", "metric", "value").pivot("metric", index="scheme")
    plot.tradeoff(
        trade,
        wide.select("scheme", x=MEAN, value=THROUGHPUT),
        units=("us", "Gb/s"),
        labels=("mean RTT", "throughput, payload"),
    )
    tall = table.filter(pl.col("metric").is_in([MEAN, TAIL]))
    plot.bars(rtts, tall, group="scheme", by="metric", unit="us", label="RTT", log=True)
    rtts.set_xlabel("steered by the gradient, or by one target")
    plot.bars(rates, table.filter(metric=VARIATION), unit="%", label="deviation of a flow's rate")
    rates.set_xlabel("steered by the gradient, or by one target")


def value(table: pl.DataFrame, scheme: str, metric: str) -> float:
    """Return what a scheme has, on average over the seeds."""
    return metrics.at(table, scheme=scheme, metric=metric)


def targets(table: pl.DataFrame) -> list[str]:
    """Return the schemes with one target."""
    return [name for name in table["scheme"].unique(maintain_order=True) if name != GRADIENT]


def has_both(table: pl.DataFrame, scheme: str) -> Verdict:
    """Judge that a scheme has almost the best throughput at almost the lowest RTT."""
    best = max(value(table, name, THROUGHPUT) for name in [GRADIENT, *targets(table)])
    lowest = min(value(table, name, MEAN) for name in targets(table))
    share = value(table, scheme, THROUGHPUT) / best
    rtt = value(table, scheme, MEAN) / lowest
    return every(
        [
            at_least(share, 0.95, f"{scheme}: throughput over the best"),
            at_most(rtt, 1.5, f"{scheme}: mean RTT over that of the lowest target"),
        ]
    )


@figure.claim(
    "the gradient has both: at least 95 % of the best throughput, and at most 1.5 times the RTT of "
    "the target with the lowest"
)
def gradient_has_both(table: pl.DataFrame) -> Verdict:
    return has_both(table, GRADIENT)


@figure.claim("no single target has both")
def no_target_has_both(table: pl.DataFrame) -> Verdict:
    having = [name for name in targets(table) if has_both(table, name).held]
    return equals(having, [], "targets that have both")


def smoother(table: pl.DataFrame, target: str) -> Verdict:
    """Judge that rates deviate less under the gradient than with a target."""
    ratio = value(table, GRADIENT, VARIATION) / value(table, target, VARIATION)
    return at_most(ratio, 1.0, f"deviation of rates over that at {target}")


@figure.claim("rates are smoother under the gradient than with any target")
def gradient_is_smoother(table: pl.DataFrame) -> Verdict:
    return every(smoother(table, target) for target in targets(table))
