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

FAIRNESS, QUEUE = "Jain's index", "mean queue"

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
        "are not equal from the start, and do not end. Both numbers are means from 1 to 6 ms, the "
        "index of throughputs in intervals of 1 ms.",
        "Once the flows are equal, a link's utilisation is U = eta + n R_AI / B, or eta / (1 - n "
        "R_AI / B) if that is above 1, where R_AI is W_AI over the base RTT: the queue is then "
        "(U - 1) bandwidth-delay products (dotted). A queue of less than 0.2 bandwidth-delay "
        "products counts as empty.",
    ),
    panels=(1, 2),
    size=(11, 4.4),
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
    return metrics.across_seeds(metrics.measure(runs, **{FAIRNESS: fairness, QUEUE: queue}))


def fairness(result: Result) -> metrics.Statistic:
    """Measure the mean of Jain's index over intervals of 1 ms."""
    over_time = steady.jain_over_time([Run({}, result)], 1e-3)
    return metrics.Statistic(float(over_time["value"].to_numpy().mean()))


def fixed_point(w_ai: float) -> float:
    """Return the queue in bytes of equal flows."""
    share = SENDERS * increase_bps(w_ai) / RATE_BPS
    utilisation = ETA + share
    if utilisation > 1:
        utilisation = ETA / (1 - share)
    return max(utilisation - 1, 0.0) * BANDWIDTH_DELAY


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    left, right = axes
    plot.against(left, table.filter(metric=FAIRNESS), x="w_ai", labels=("W_AI (B)", FAIRNESS))
    left.set_ylim(0, 1.05)
    left.get_legend().remove()
    options: Any = {"x": "w_ai", "unit": "KB", "labels": ("W_AI (B)", QUEUE)}
    plot.against(right, table.filter(metric=QUEUE), **options)
    values = list(range(25, 301, 5))
    line: Any = {"color": looks.look("ideal").colour, "ls": ":", "label": "fixed point"}
    right.plot(values, [fixed_point(w_ai) / 1e3 for w_ai in values], **line)
    plot.legend(right)


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
            if fixed_point(w_ai) == 0
        },
        EMPTY / BANDWIDTH_DELAY,
    )


@figure.claim("above that the queue is that of the fixed point (within 20 %)", exact=True)
def at_fixed_point(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            metrics.at(table, metric=QUEUE, w_ai=w_ai) / fixed_point(w_ai),
            0.8,
            1.2,
            f"the queue at {w_ai} B over the fixed point",
        )
        for w_ai in increases(table)
        if fixed_point(w_ai) > 0
    )
