"""Figure F8: fairness and queue of 16 long-lived flows against HPCC's additive increase."""

import itertools
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
    all_at_least,
    all_at_most,
    between,
    every,
    looks,
    metrics,
    override,
    plot,
    steady,
)

from .paper import (
    BANDWIDTH_DELAY,
    BOTTLENECK,
    HPCC,
    NOT_RANDOM,
    SENDERS,
    STAR_RTT_NS,
    hpcc,
    paper,
    star,
)

RATE_BPS, ETA = 100e9, 0.95

FAIRNESS, QUEUE, LOAD = "Jain's index", "mean queue", "U of the senders"

EMPTY = 0.2 * BANDWIDTH_DELAY
"""Bytes below which the queue counts as empty, as in F7."""

ALL = (25, 50, 100, 150, 200, 250, 300)

figure = Figure(
    paper,
    id="f8",
    title="16 flows to one host against the additive increase W_AI",
    source="Figure 14",
    one_seed=NOT_RANDOM,
    scales={
        "smoke": {"w_ai": (25, 300)},
        "quick": {"w_ai": ALL},
        "paper": {"w_ai": ALL},
    },
    deviations=(
        "The network is the star of F7, with eta 0.95. The flows start 20 µs apart, so that they "
        "are not equal from the start, and do not end. All numbers are means from 1 to 6 ms, the "
        "index of throughputs in intervals of 1 ms.",
        "Once the flows are equal, a link's utilisation is U = eta + n R_AI / B, or eta / (1 - n "
        "R_AI / B) if that is above 1, where R_AI is W_AI over the base RTT: the queue is then "
        "(U - 1) bandwidth-delay products (dotted). A queue of less than 0.2 bandwidth-delay "
        "products counts as empty.",
        "The queue is above the fixed point though U is near it (right, a claim of our own): at "
        "300 B the senders' U is 1.058, the fixed point 1.047. The formula assumes that the link "
        "is never idle, but arrivals are uneven: 95 to 98 % of the link are used, and the rest "
        "of U is queue.",
    ),
    panels=(1, 3),
    size=(15, 4.4),
)


def increase_bps(w_ai: float) -> float:
    """Return R_AI, the additive increase as a rate."""
    return 8 * w_ai / (STAR_RTT_NS * 1e-9)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    flows = [
        {"source": number, "target": SENDERS, "start": f"{20 * number} us"}
        for number in range(SENDERS)
    ]
    shared = override(
        star,
        {
            "workload": {"kind": "flows", "flows": flows},
            "samples": {
                "interval": "5 us",
                "queues": [BOTTLENECK],
                "flows": list(range(SENDERS)),
            },
            "warm_up": "1 ms",
            "time_limit": "6 ms",
        },
    )
    for w_ai in scale["w_ai"]:
        increase = f"{increase_bps(w_ai):.0f} bps"
        change = hpcc(STAR_RTT_NS, eta=ETA, additive_increase=increase)
        yield {"scheme": HPCC, "w_ai": w_ai}, override(shared, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    queue = metrics.sampled(f"queue_bytes {BOTTLENECK}", "mean")
    measures = {FAIRNESS: fairness, QUEUE: queue, LOAD: load}
    return metrics.across_seeds(metrics.measure(runs, **measures))


def fairness(result: Result) -> metrics.Statistic:
    """Measure the mean of Jain's index over intervals of 1 ms."""
    over_time = steady.jain_over_time([Run({}, result)], 1e-3)
    return metrics.Statistic(float(over_time["value"].to_numpy().mean()))


def load(result: Result) -> metrics.Statistic:
    """Measure U, the mean over the senders of the utilisation that they compute."""
    probes = [f"utilisation flow {number}" for number in range(SENDERS)]
    values = [metrics.sampled(probe, "mean")(result).value for probe in probes]
    return metrics.Statistic(sum(values) / SENDERS)


def fixed_load(w_ai: float) -> float:
    """Return U of equal flows."""
    share = SENDERS * increase_bps(w_ai) / RATE_BPS
    below_one = ETA + share
    return below_one if below_one <= 1 else ETA / (1 - share)


def fixed_queue(w_ai: float) -> float:
    """Return the queue in bytes of equal flows."""
    return max(fixed_load(w_ai) - 1, 0.0) * BANDWIDTH_DELAY


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    increases_drawn = list(range(min(increases(table)), max(increases(table)) + 1, 5))
    fixed = {
        QUEUE: [fixed_queue(w_ai) / 1e3 for w_ai in increases_drawn],
        LOAD: [fixed_load(w_ai) for w_ai in increases_drawn],
    }
    for panel, metric in zip(axes, (FAIRNESS, QUEUE, LOAD), strict=True):
        unit = "KB" if metric == QUEUE else ""
        part = table.filter(metric=metric)
        plot.against(panel, part, x="w_ai", unit=unit, labels=("W_AI (B)", metric))
        if metric in fixed:
            line: Any = {"color": looks.look("ideal").colour, "ls": ":", "label": "fixed point"}
            panel.plot(increases_drawn, fixed[metric], **line)
        if metric != QUEUE:
            values = part["value"].to_numpy()
            panel.set_ylim(values.min() - 0.02, values.max() + 0.02)
        plot.legend(panel)


def increases(table: pl.DataFrame) -> list[int]:
    """Return the values of W_AI in a table."""
    return table["w_ai"].unique().sort().to_list()


@figure.claim("Jain's index rises with W_AI", exact=True)
def fairer(table: pl.DataFrame) -> Verdict:
    return all_at_least(
        {
            f"the index at {upper} B over that at {lower} B": metrics.at(
                table, metric=FAIRNESS, w_ai=upper
            )
            / metrics.at(table, metric=FAIRNESS, w_ai=lower)
            for lower, upper in itertools.pairwise(increases(table))
        },
        1,
    )


@figure.claim(
    "the queue is empty while n R_AI is below (1 - eta) B: less than 0.2 bandwidth-delay products",
    exact=True,
)
def empty(table: pl.DataFrame) -> Verdict:
    return all_at_most(
        {
            f"the queue at {w_ai} B in bandwidth-delay products": metrics.at(
                table, metric=QUEUE, w_ai=w_ai
            )
            / BANDWIDTH_DELAY
            for w_ai in increases(table)
            if fixed_queue(w_ai) == 0
        },
        EMPTY / BANDWIDTH_DELAY,
    )


@figure.claim("above that the queue is that of the fixed point (within 20 %)", exact=True)
def at_fixed_point(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            metrics.at(table, metric=QUEUE, w_ai=w_ai) / fixed_queue(w_ai),
            0.8,
            1.2,
            f"the queue at {w_ai} B over the fixed point",
        )
        for w_ai in increases(table)
        if fixed_queue(w_ai) > 0
    )


@figure.claim("the senders' U is that of the fixed point (within 2 %)", stated=False, exact=True)
def load_at_fixed_point(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            metrics.at(table, metric=LOAD, w_ai=w_ai) / fixed_load(w_ai),
            0.98,
            1.02,
            f"U at {w_ai} B over the fixed point",
        )
        for w_ai in increases(table)
    )
