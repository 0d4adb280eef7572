"""Figure G2: an incast, by transport and number of senders."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    all_at_least,
    all_at_most,
    looks,
    metrics,
    override,
    plot,
)

from .paper import (
    BOTH,
    DCQCN,
    EQDS,
    HPCC,
    NDP,
    NSCC,
    RCCC,
    SWIFT,
    fabric,
    none_is_faster,
    over_bound,
    paper,
    ratio_axis,
    schemes,
)

TRIMMING = (NSCC, RCCC, BOTH, EQDS, NDP)

QUEUEING = (SWIFT, HPCC, DCQCN)

figure = Figure(
    paper,
    id="g2",
    title="An incast of 8 to 100 senders: completion time, and the largest queue",
    source="ours",
    scales={
        "smoke": {"senders": (8, 16)},
        "quick": {"senders": (8, 16, 32, 64, 100)},
        "paper": {"senders": (8, 12, 16, 24, 32, 48, 64, 80, 100)},
    },
    deviations=(
        "Each sender has one message of 256 KB, and all start together. 8 leaves with 16 hosts "
        "each, and 4 spines at 400 Gb/s; senders are random hosts. The bound is the time that the "
        "receiver's link needs for all messages, and the latency of the nearest sender. The "
        "queue is that of the receiver's port, headers included, which the claim on trimming "
        "overlooks: data alone stays within 8 packets (NDP) or a bandwidth-delay product (UET).",
        "In the first runs NDP, whose headers overflow from 64 senders on, did not return them to "
        "their senders, and the RTO of UET was 1 ms too long. NDP then took 15 times the bound "
        "with 100 senders, and UET with window and credits 3.7 times with 16.",
        "DCQCN takes the bound itself, since its queue of up to 21 MB keeps the link busy. This "
        "incast is too short for low rates to matter.",
    ),
    panels=(1, 2),
    size=(11.5, 4.6),
)

OVER_BOUND, QUEUE = "over bound", "largest queue"


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for scheme, transport in schemes.items():
        for senders in scale["senders"]:
            yield {"scheme": scheme, "senders": senders}, override(network(senders), transport)


def network(senders: int) -> dict[str, Any]:
    """Return the scenario of an incast of this number of senders."""
    return {
        "name": "An incast in a fabric",
        **fabric(leaves=8, hosts=16, spines=4, fabric_rate="400 Gbps"),
        "workload": {
            "kind": "incast",
            "fan_in": senders,
            "size": "256 KB",
            "target": 0,
            "interval": "1 s",
            "events": 1,
        },
        "time_limit": "1 s",
    }


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    measures = {OVER_BOUND: over_bound, QUEUE: largest_queue}
    return metrics.across_seeds(metrics.measure(runs, **measures), ratios=True)


def largest_queue(result: Any) -> metrics.Statistic:
    """Measure the largest queue of the receiver's port in bytes."""
    counters = metrics.link_counters(result, "leaf0->host0")
    return metrics.Statistic(float(counters["queue_max_bytes"]))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    left, right = axes
    drawn_as = looks.distinct(list(schemes))
    for axis, metric, unit, label in (
        (left, OVER_BOUND, "", "completion time over its bound"),
        (right, QUEUE, "KB", "largest queue"),
    ):
        plot.against(
            axis,
            table.filter(metric=metric),
            x="senders",
            unit=unit,
            labels=("senders", label),
            log=True,
            log_x=True,
            drawn_as=drawn_as,
        )
    ratio_axis(left, 0.98, 1.5)
    plot.one_legend(axes)


def value(table: pl.DataFrame, metric: str, scheme: str, senders: int) -> float:
    """Return the completion time over its bound, or the largest queue in bytes."""
    return metrics.at(table, metric=metric, scheme=scheme, senders=senders)


def growth(table: pl.DataFrame, scheme: str) -> float:
    """Return the largest queue with most senders over that with the fewest."""
    numbers = table["senders"].to_list()
    most, fewest = (value(table, QUEUE, scheme, number) for number in (max(numbers), min(numbers)))
    return most / fewest


@figure.check("no incast is faster than its bound")
def none_is_faster_than_its_bound(table: pl.DataFrame) -> Verdict:
    return none_is_faster(table.filter(metric=OVER_BOUND))


@figure.claim(
    "all but DCQCN take at most 1.2 of the bound with any number of senders", stated=False
)
def near_the_bound(table: pl.DataFrame) -> Verdict:
    rows = table.filter(pl.col("scheme") != DCQCN, metric=OVER_BOUND).to_dicts()
    return all_at_most({f"{row['scheme']}, {row['senders']}:": row["value"] for row in rows}, 1.2)


@figure.claim("DCQCN takes longer than UET (NSCC) with any number of senders", stated=False)
def dcqcn_is_slower(table: pl.DataFrame) -> Verdict:
    return all_at_least(
        {
            f"DCQCN over {NSCC}, {senders} senders": value(table, OVER_BOUND, DCQCN, senders)
            / value(table, OVER_BOUND, NSCC, senders)
            for senders in sorted(set(table["senders"]))
        },
        1,
    )


@figure.claim(
    "from the fewest to most senders the largest queue grows by a factor of 4 or more under Swift, "
    "HPCC and DCQCN",
    stated=False,
)
def queues_grow(table: pl.DataFrame) -> Verdict:
    return all_at_least({f"{name}, growth": growth(table, name) for name in QUEUEING}, 4)


@figure.claim("with trimming the largest queue grows by 20 % at most", stated=False)
def trimming_bounds_the_queue(table: pl.DataFrame) -> Verdict:
    return all_at_most({f"{name}, growth": growth(table, name) for name in TRIMMING}, 1.2)
