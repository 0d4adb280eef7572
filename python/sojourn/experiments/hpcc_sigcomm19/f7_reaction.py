"""Figure F7: an incast under HPCC that reacts to every ACK, once per RTT, or both."""

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
    at_least,
    at_most,
    every,
    metrics,
    override,
    plot,
)

from .paper import (
    BANDWIDTH_DELAY,
    BOTTLENECK,
    NOT_RANDOM,
    SENDERS,
    STAR_RTT_NS,
    hpcc,
    paper,
    star,
)

COMBINED, PER_ACK, PER_RTT = "Both (HPCC)", "Per ACK", "Per RTT"

REACTIONS = {COMBINED: "combined", PER_ACK: "per_ack", PER_RTT: "per_rtt"}

RTT_S = STAR_RTT_NS * 1e-9

FIRST_WINDOWS_S = SENDERS * RTT_S
"""Time that the link takes to transmit the first windows of all flows."""

EMPTY = 0.2 * BANDWIDTH_DELAY
"""Bytes below which the queue counts as empty."""

QUEUE, RATE = "queue", "throughput"
DRAINED, AFTER, FROM_FIRST = "time to an empty queue", "share after it", "share after the incast"

figure = Figure(
    paper,
    id="f7",
    title="16-to-1 incast under HPCC, by the ACKs that it reacts to",
    source="Figure 13",
    one_seed=NOT_RANDOM,
    scales={name: {} for name in ("smoke", "quick", "paper")},
    deviations=(
        "All flows start at once and do not end; eta is 0.95. The curve shows 200 µs, where the "
        "paper's shows 100 µs.",
        "The source of the claims is a summary of the figure without its numbers. The queue is "
        "empty below 0.2 bandwidth-delay products. The first windows of 16 flows take 16 RTTs to "
        "leave the link, under any scheme: three RTTs to an empty queue are counted from then. "
        "Throughput after the incast is counted from then, too, for all variants.",
        "The authors' simulator, with flows of 500 KB, has the same queue under HPCC: at most 855 "
        "KB after 6 µs, and less than 0.2 bandwidth-delay products from 106 µs on. The first RTT "
        "ends with the first windows. Until then the reference is the line rate; the rates that "
        "follow from it grow as the queue drains, to 3 to 4 times the link's rate in total, and "
        "the queue grows again.",
    ),
    panels=(1, 2),
    size=(11, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    flows = [{"source": number, "target": SENDERS} for number in range(SENDERS)]
    shared = override(
        star,
        {
            "workload": {"kind": "flows", "flows": flows},
            "samples": {
                "interval": f"{STAR_RTT_NS // 4} ns",
                "queues": [BOTTLENECK],
                "links": [BOTTLENECK],
            },
            "time_limit": "200 us",
        },
    )
    for name, reaction in REACTIONS.items():
        yield {"scheme": name}, override(shared, hpcc(STAR_RTT_NS, reaction=reaction))


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    queue = metrics.series(runs, f"queue_bytes {BOTTLENECK}").drop("high")
    sent = metrics.series(runs, f"transmitted_bytes {BOTTLENECK}", 50, per_second=True)
    rate = sent.drop("high").with_columns(pl.col("value") * 8)
    numbers = metrics.measure(
        runs, **{DRAINED: drained, AFTER: after_drained, FROM_FIRST: after_incast}
    )
    return pl.concat(
        [
            queue.with_columns(metric=pl.lit(QUEUE)),
            rate.with_columns(metric=pl.lit(RATE)),
            metrics.across_seeds(numbers),
        ],
        how="diagonal",
    )


def drained(result: Result) -> metrics.Statistic:
    """Measure the time of the first empty queue after its maximum, or the length of the run."""
    samples = result.samples.filter(pl.col("probe") == f"queue_bytes {BOTTLENECK}")
    peak_s = samples.sort("value")["time_s"][-1]
    empty = samples.filter(pl.col("time_s") > peak_s, pl.col("value") < EMPTY)["time_s"]
    if empty.is_empty():
        return metrics.Statistic(result.summary["simulated_s"], at_least=True)
    return metrics.Statistic(float(empty[0]))


def share_from(result: Result, begin_s: float) -> metrics.Statistic:
    """Measure the share of the link's rate that is transmitted from a time to the end."""
    counter = pl.col("probe") == f"transmitted_bytes {BOTTLENECK}"
    samples = result.samples.filter(counter, pl.col("time_s") >= begin_s)
    if samples.height < 2:
        return metrics.Statistic(float("nan"))
    sent, time_s = (samples[name][-1] - samples[name][0] for name in ("value", "time_s"))
    return metrics.Statistic(8 * sent / time_s / 100e9)


def after_drained(result: Result) -> metrics.Statistic:
    """Measure the share of the link's rate after the first empty queue."""
    return share_from(result, drained(result).value)


def after_incast(result: Result) -> metrics.Statistic:
    """Measure the share of the link's rate after the time of the first windows."""
    return share_from(result, FIRST_WINDOWS_S)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    left, right = axes
    plot.series(left, table.filter(metric=QUEUE), unit="KB", time_unit="us", label="queue")
    left.axhline(EMPTY / 1e3, color="#222222", ls=":", lw=1, label="0.2 BDP")
    options: Any = {"unit": "Gb/s", "time_unit": "us", "label": "throughput of the link"}
    plot.series(right, table.filter(metric=RATE), **options)
    for panel in axes:
        panel.axvline(FIRST_WINDOWS_S * 1e6, color="#222222", ls="--", lw=1, label="16 RTTs")
        panel.set_ylim(bottom=0)
        plot.legend(panel)


@figure.claim("reaction per ACK alone loses the most throughput after the incast", exact=True)
def loses_most(table: pl.DataFrame) -> Verdict:
    per_ack = metrics.at(table, scheme=PER_ACK, metric=FROM_FIRST)
    return all_at_least(
        {
            f"{scheme} over {PER_ACK}": metrics.at(table, scheme=scheme, metric=FROM_FIRST)
            / per_ack
            for scheme in (COMBINED, PER_RTT)
        },
        1,
    )


@figure.claim("reaction per RTT alone keeps the queue longest", exact=True)
def keeps_longest(table: pl.DataFrame) -> Verdict:
    per_rtt = metrics.at(table, scheme=PER_RTT, metric=DRAINED)
    return all_at_least(
        {
            f"{PER_RTT} over {scheme}": per_rtt / metrics.at(table, scheme=scheme, metric=DRAINED)
            for scheme in (COMBINED, PER_ACK)
        },
        1,
    )


@figure.claim(
    "with both, the queue is empty after at most 3 RTTs, and from then on at least 85 % of the "
    "link is used",
    exact=True,
)
def both(table: pl.DataFrame) -> Verdict:
    time_s, share = (
        metrics.at(table, scheme=COMBINED, metric=metric) for metric in (DRAINED, AFTER)
    )
    rtts = (time_s - FIRST_WINDOWS_S) / RTT_S
    return every(
        [
            at_most(rtts, 3, "the time after the first windows, in RTTs,"),
            at_least(share, 0.85, "the share of the link"),
        ]
    )
