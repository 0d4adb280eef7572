"""Figure D3: control by the RTT gradient, and by one RTT target."""

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
    all_at_most,
    at_least,
    at_most,
    every,
    metrics,
    override,
    plot,
    steady,
)

from .paper import paper
from .testbed import MEAN, SCALES, THROUGHPUT, measures, rack

TARGETS_US = (30, 50, 70, 100, 150, 200, 500)

GRADIENT, ONE_TARGET = "gradient", "one target"

SHARE, FACTOR = 0.95, 1.5
"""Least share of the best throughput, and largest factor on the shortest RTT, to have both."""

VARIATION = "variation of rates"

figure = Figure(
    paper,
    id="d3",
    title="The gradient of the RTT, or one target of the RTT",
    source="Figure: gradient approach against queue-size approach",
    scales=SCALES,
    deviations=(
        "The paper's targets, and the difference in smoothness of its rates, are unknown: here "
        "targets are 30 to 500 µs, and the deviation of a rate is over windows of 5 ms. The source "
        "gives no number for high throughput and low latency: the claim is that no target has as "
        "much throughput at no longer RTT. The first bounds, 95 % and 1.5 times, are our own. The "
        "shortest RTT is that of a target of 30 µs, which loses a fifth of the throughput.",
        "The claim on targets within 1 % of the gradient's throughput, and the limit to targets "
        "with 95 % of it, followed when the first claims did not hold. A target of 200 µs or more "
        "has smoother rates at a longer RTT: if the queue never drains, no sender has to react.",
    ),
    panels=(1, 2),
    size=(12, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield {"scheme": GRADIENT}, rack(scale)
    for target in TARGETS_US if scale["name"] != "smoke" else TARGETS_US[:1]:
        target_change = {"transport.t_low": f"{target} us", "transport.t_high": f"{target} us"}
        yield {"scheme": f"{target} µs"}, override(rack(scale), target_change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    variation = {VARIATION: steady.variation(5e-3)}
    return metrics.across_seeds(metrics.measure(runs, **measures, **variation))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    cost = table.filter(metric=MEAN).select("scheme", x="value", x_low="low", x_high="high")
    for panel, metric, unit, label in (
        (axes[0], THROUGHPUT, "Gb/s", "throughput, payload"),
        (axes[1], VARIATION, "%", "deviation of a connection's rate in 5 ms"),
    ):
        points = table.filter(metric=metric).join(cost, on="scheme", maintain_order="left")
        named = points.with_columns(
            name=pl.col("scheme").replace(GRADIENT, ""),
            scheme=pl.when(scheme=GRADIENT).then("scheme").otherwise(pl.lit(ONE_TARGET)),
        )
        plot.tradeoff(panel, named, units=("us", unit), labels=("mean RTT", label))
    axes[1].set_ylim(bottom=0)


def value(table: pl.DataFrame, scheme: str, metric: str) -> float:
    """Return the mean of a metric of a scheme over the seeds."""
    return metrics.at(table, scheme=scheme, metric=metric)


def targets(table: pl.DataFrame) -> list[str]:
    """Return the schemes with one target."""
    return [name for name in table["scheme"].unique(maintain_order=True) if "µs" in name]


def shares(table: pl.DataFrame, scheme: str) -> tuple[float, float]:
    """Return a scheme's throughput over the best, and its mean RTT over the shortest target's."""
    names = targets(table)
    best = max(value(table, name, THROUGHPUT) for name in (GRADIENT, *names))
    shortest = min(value(table, name, MEAN) for name in names)
    return value(table, scheme, THROUGHPUT) / best, value(table, scheme, MEAN) / shortest


def lacks_one(
    target: str, share: float, rtt: float, most_throughput: float, least_rtt: float
) -> Verdict:
    """Judge that a target has less throughput, or a longer RTT, than the bounds."""
    less = at_most(share, most_throughput, f"{target}: share of the throughput")
    longer = at_least(rtt, least_rtt, f"{target}: ratio of mean RTTs")
    if longer.held or less.held:
        return longer if longer.held else less
    return every([less, longer])


def no_target_is_better(table: pl.DataFrame, share: float) -> Verdict:
    """Judge that no target with this share of the gradient's throughput has at most its RTT."""

    def over_gradient(target: str, metric: str) -> float:
        return value(table, target, metric) / value(table, GRADIENT, metric)

    return every(
        lacks_one(name, over_gradient(name, THROUGHPUT), over_gradient(name, MEAN), share, 1.0)
        for name in targets(table)
    )


figure.claim(
    "the gradient has both high throughput and low RTT: no target with as much throughput has no "
    "more than its mean RTT"
)(partial(no_target_is_better, share=1.0))
figure.claim(
    "no target within 1 % of the gradient's throughput has no more than its mean RTT", stated=False
)(partial(no_target_is_better, share=0.99))


@figure.claim(
    "the gradient has both at least 95 % of the best throughput and at most 1.5 times the mean RTT "
    "of the target with the shortest",
    stated=False,
)
def gradient_has_both(table: pl.DataFrame) -> Verdict:
    share, rtt = shares(table, GRADIENT)
    return every(
        [
            at_least(share, SHARE, "throughput over the best"),
            at_most(rtt, FACTOR, "mean RTT over the shortest"),
        ]
    )


@figure.claim("no single target has both", stated=False)
def no_target_has_both(table: pl.DataFrame) -> Verdict:
    return every(lacks_one(name, *shares(table, name), SHARE, FACTOR) for name in targets(table))


def smoother(table: pl.DataFrame, least_share: float) -> Verdict:
    """Judge that the gradient has smoother rates than targets with a share of its throughput."""
    ratios = {
        f"deviation over that at {target}": value(table, GRADIENT, VARIATION)
        / value(table, target, VARIATION)
        for target in targets(table)
        if value(table, target, THROUGHPUT) >= least_share * value(table, GRADIENT, THROUGHPUT)
    }
    return all_at_most(ratios, 1.0)


figure.claim("rates are smoother under the gradient than with any target")(
    partial(smoother, least_share=0.0)
)
figure.claim(
    "rates are smoother under the gradient than with any target that has 95 % of its throughput",
    stated=False,
)(partial(smoother, least_share=0.95))
