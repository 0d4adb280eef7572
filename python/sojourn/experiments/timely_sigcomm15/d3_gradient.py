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
    all_at_most,
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
from .testbed import MEAN, SCALES, THROUGHPUT, measures, rack

TARGETS_US = (30, 40, 50, 70, 100, 200, 500)

GRADIENT = "gradient"

WEIGHTS = (0.05, 0.1)

ONE_TARGET = "one target"

VARIATION = "variation of rates"

figure = Figure(
    paper,
    id="d3",
    title="The gradient of the RTT, or one target for it",
    source="Figure: gradient approach against queue-size approach",
    scales=SCALES,
    deviations=(
        "Which targets the paper had is not known, nor how much smoother its rates were: ours are "
        "30 to 500 µs, and a rate's deviation is that over windows of 5 ms.",
        "The gradient does not win on both counts here. How long its queue gets depends on the "
        "weight of the moving average, which the paper does not give: with 0.02 the queue swings "
        "slowly far above T_low, with 0.1 it stays near it. Then the gradient has as much "
        "throughput as targets with the same or more RTT, but no less RTT than targets of 50 µs "
        "that give up 2 % of throughput. Here RTTs are exact and the way has one queue, so that "
        "one target alone steers well; noise of 20 µs and segments of 64 KB change both alike. "
        "What the gradient has is smoother rates.",
    ),
    panels=(1, 2),
    size=(12, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield {"scheme": GRADIENT}, rack(scale)
    for weight in WEIGHTS if scale["name"] != "smoke" else ():
        change = {"transport.ewma_weight": weight}
        yield {"scheme": f"{GRADIENT}, {weight}"}, override(rack(scale), change)
    for target in TARGETS_US if scale["name"] != "smoke" else TARGETS_US[:2]:
        one = {"transport.t_low": f"{target} us", "transport.t_high": f"{target} us"}
        yield {"scheme": f"{target} µs"}, override(rack(scale), one)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    variation = {VARIATION: steady.variation(5e-3)}
    return metrics.across_seeds(metrics.measure(runs, **measures, **variation))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    wide = table.pivot("metric", index="scheme", values="value")
    by_gradient = pl.col("scheme").str.starts_with(GRADIENT)
    name = pl.col("scheme").str.replace(f"{GRADIENT}(, )?", "")
    named = wide.with_columns(
        scheme=pl.when(by_gradient)
        .then(pl.lit(f"{GRADIENT} by weight"))
        .otherwise(pl.lit(ONE_TARGET)),
        name=pl.when(name == "").then(pl.lit("0.02")).otherwise(name),
        x=MEAN,
    )
    for panel, metric, unit, label in (
        (axes[0], THROUGHPUT, "Gb/s", "throughput, payload"),
        (axes[1], VARIATION, "%", "deviation of a connection's rate in 5 ms"),
    ):
        points = named.with_columns(value=metric)
        plot.tradeoff(panel, points, units=("us", unit), labels=("mean RTT", label))
    axes[1].set_ylim(bottom=0)


def value(table: pl.DataFrame, scheme: str, metric: str) -> float:
    """Return what a scheme has, on average over the seeds."""
    return metrics.at(table, scheme=scheme, metric=metric)


def targets(table: pl.DataFrame) -> list[str]:
    """Return the schemes with one target."""
    return [name for name in table["scheme"].unique(maintain_order=True) if "µs" in name]


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


def smoother(table: pl.DataFrame, scheme: str) -> Verdict:
    """Judge that rates deviate less than with targets that use the link."""
    best = max(value(table, name, THROUGHPUT) for name in targets(table))
    using = [name for name in targets(table) if value(table, name, THROUGHPUT) >= 0.95 * best]
    own = value(table, scheme, VARIATION)
    ratios = {f"deviation over that at {t}": own / value(table, t, VARIATION) for t in using}
    return all_at_most(ratios, 1.0)


@figure.claim(
    "rates are smoother under the gradient than with any target that has 95 % of the throughput"
)
def gradient_is_smoother(table: pl.DataFrame) -> Verdict:
    return smoother(table, GRADIENT)


@figure.claim(
    "with a weight of 0.1 too, and at no more RTT than any target that has as much throughput",
    stated=False,
)
def more_weight_is_better(table: pl.DataFrame) -> Verdict:
    scheme = f"{GRADIENT}, {WEIGHTS[1]}"
    enough = 0.999 * value(table, scheme, THROUGHPUT)
    equal = [name for name in targets(table) if value(table, name, THROUGHPUT) >= enough]
    rtt = value(table, scheme, MEAN)
    rtts = {f"mean RTT over that at {t}": rtt / value(table, t, MEAN) for t in equal}
    return every([smoother(table, scheme), all_at_most(rtts, 1.0)])
