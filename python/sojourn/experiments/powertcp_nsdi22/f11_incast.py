"""Figure F11: queue and throughput when 10 or 255 flows join a long one."""

import itertools
from collections.abc import Iterator
from functools import partial
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
    every,
    metrics,
    override,
    plot,
)

from .paper import BASE_RTT_NS, DCQCN, HOST_BPS, HPCC, POWER, TIMELY, fabric, hosts, paper, schemes

BOTTLENECK = "edge0_0->host0"

RTT_S = BASE_RTT_NS * 1e-9

PER_RTT = 8
"""Samples per RTT."""

BEGIN_S = 1e-3
"""Start of the incast; the long flow starts at 0."""

AFTER_S = 4e-3
"""Time from the end of the first windows to the end of the run."""

PAPER_FORM = "PowerTCP, paper's form"

all_schemes = schemes | {
    PAPER_FORM: override(schemes[POWER], {"transport.form": "paper"}),
}
"""The schemes of the source, and PowerTCP as the paper defines it."""

QUEUE, RATE = "queue", "throughput"
DRAINED, LEAST, LATER = "time to a tenth of the peak", "least throughput", "mean queue"

figure = Figure(
    paper,
    id="f11",
    title="An incast beside a long flow",
    source="Figure 4",
    scales={
        "smoke": {"fan_ins": (10,)},
        "quick": {"fan_ins": (10, 255)},
        "paper": {"fan_ins": (10, 255)},
    },
    deviations=(
        "The flows do not end, as in the authors' scripts. The long flow starts 1 ms before the "
        "incast instead of 20 ms. Senders are spread over the network; the long flow has a host of "
        "its own, except beside 255 flows, whose senders are all hosts.",
        "The first windows of 255 flows take 7.4 ms to leave the link, under any scheme, longer "
        "than the published 4 ms: runs end 4 ms after the time of the first windows, and the mean "
        "queue is that of the last 3 ms. RTTs are base RTTs of 29 µs. A queue that never falls to "
        "a tenth counts as the time to the end of the run.",
        "In the authors' simulator a new rate is 0.9 of the law's and 0.1 of the reference, which "
        "is the line rate until the first RTT ends: ten flows then keep the link full, and the "
        "queue falls later than HPCC's (10-to-1: 0.46 and 0.41 ms, means of ten seeds). With the "
        "form of the paper it oscillates as it falls, and reaches a tenth after 0.40 to 0.66 ms. "
        "The claims on the paper's form are our own.",
        "With 255 flows, additive increases of 150 Mb/s add up to 38 Gb/s, more than the link's "
        "rate, those of HPCC to 13 Gb/s: the queue falls later than HPCC's in both forms.",
    ),
    panels=(2, 2),
    size=(12, 8),
)


def first_windows_s(fan_in: int) -> float:
    """Return the time that the link takes to transmit the first windows of an incast."""
    return fan_in * RTT_S


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    count = hosts(scale["name"])
    for fan_in in scale["fan_ins"]:
        begin = f"{BEGIN_S * 1e6:g} us"
        senders = [count - 1 - number * (count - 1) // fan_in for number in range(fan_in)]
        flows = [{"source": sender, "target": 0, "start": begin} for sender in senders]
        # All hosts send in the largest incast; otherwise the long flow has a host of its own.
        free = (host for host in range(count // 2, count) if host not in senders)
        long_flow = {"source": next(free, count // 2), "target": 0}
        shared = override(
            fabric(scale["name"]),
            {
                "workload": {"kind": "flows", "flows": [long_flow, *flows]},
                "samples": {
                    "interval": f"{BASE_RTT_NS // PER_RTT} ns",
                    "queues": [BOTTLENECK],
                    "links": [BOTTLENECK],
                },
                "time_limit": f"{(BEGIN_S + first_windows_s(fan_in) + AFTER_S) * 1e6:.0f} us",
            },
        )
        for scheme, change in all_schemes.items():
            yield {"scheme": scheme, "fan_in": fan_in}, override(shared, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    first = [run for run in runs if run.labels["seed"] == runs[0].labels["seed"]]
    queue = metrics.series(first, f"queue_bytes {BOTTLENECK}", 400)
    sent = metrics.series(first, f"transmitted_bytes {BOTTLENECK}", 100, per_second=True)
    rate = sent.with_columns(pl.col("value") * 8, high=None)
    numbers = pl.concat(metrics.measure([run], **measures(run)) for run in runs)
    return pl.concat(
        [
            queue.with_columns(metric=pl.lit(QUEUE)),
            rate.with_columns(metric=pl.lit(RATE)),
            metrics.across_seeds(numbers),
        ],
        how="diagonal_relaxed",
    )


def measures(run: Run) -> dict[str, metrics.Metric]:
    """Return the numbers of a run."""
    return {DRAINED: drained, LEAST: least_rate, LATER: partial(later, run.labels["fan_in"])}


def samples(result: Result, probe: str) -> pl.DataFrame:
    """Return the samples of the bottleneck since the start of the incast."""
    return result.samples.filter(
        pl.col("probe") == f"{probe} {BOTTLENECK}", pl.col("time_s") >= BEGIN_S - 1e-12
    )


def drained(result: Result) -> metrics.Statistic:
    """Measure the time from the incast to a queue of a tenth of its peak, or to the end."""
    queue = samples(result, "queue_bytes")
    peak = queue.sort("value", maintain_order=True)[-1]
    is_low = pl.col("value") < peak["value"][0] / 10
    low = queue.filter(pl.col("time_s") > peak["time_s"][0], is_low)["time_s"]
    end_s = result.summary["simulated_s"] if low.is_empty() else low[0]
    return metrics.Statistic(float(end_s) - BEGIN_S, at_least=low.is_empty())


def least_rate(result: Result) -> metrics.Statistic:
    """Measure the least share of the link that an RTT uses, in 50 RTTs after the queue is low."""
    begin_s = BEGIN_S + drained(result).value
    within = pl.col("time_s").is_between(begin_s, begin_s + 51 * RTT_S)
    counter = samples(result, "transmitted_bytes").filter(within)[::PER_RTT]
    rate = 8 * pl.col("value").diff() / pl.col("time_s").diff()
    rates = counter.select(value=rate).drop_nulls()
    if rates.is_empty():
        return metrics.Statistic(float("nan"))
    return metrics.Statistic(float(rates["value"].to_numpy().min()) / HOST_BPS)


def later(fan_in: int, result: Result) -> metrics.Statistic:
    """Measure the mean queue from 1 ms after the time of the first windows."""
    queue = samples(result, "queue_bytes")
    begin_s = BEGIN_S + first_windows_s(fan_in) + 1e-3
    return metrics.Statistic(
        float(queue.filter(pl.col("time_s") >= begin_s)["value"].to_numpy().mean())
    )


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    fan_ins = table["fan_in"].unique().sort().to_list()
    for column, fan_in in zip(axes.T, fan_ins, strict=False):
        queue, rate = (
            table.filter(metric=metric, fan_in=fan_in).with_columns(pl.col("time_s") - BEGIN_S)
            for metric in (QUEUE, RATE)
        )
        drawn_as = {PAPER_FORM: PAPER_FORM}
        plot.series(column[0], queue, unit="MB", label="queue", drawn_as=drawn_as)
        options: Any = {"unit": "Gb/s", "label": "throughput of the link", "drawn_as": drawn_as}
        plot.series(column[1], rate.drop("high"), **options)
        column[0].set_title(f"{fan_in}-to-1", loc="right", fontsize=10)
        for panel in column:
            panel.set_xlabel("time since the incast (ms)")
            panel.set_ylim(bottom=0)
    for panel in axes.T[len(fan_ins) :].flat:
        panel.set_axis_off()
    plot.one_legend(axes)


def ordered(table: pl.DataFrame, fan_in: int, power: str = POWER) -> Verdict:
    """Judge the order of the times to a tenth of the peak."""
    times = {
        scheme: metrics.at(table, scheme=scheme, fan_in=fan_in, metric=DRAINED)
        for scheme in (power, HPCC, DCQCN)
    }
    return all_at_least(
        {
            f"{upper} over {lower}": times[upper] / times[lower]
            for lower, upper in itertools.pairwise(times)
        },
        1,
    )


def keeps_throughput(table: pl.DataFrame, fan_in: int, power: str = POWER) -> Verdict:
    """Judge the least throughput of PowerTCP, alone and over HPCC's."""
    share, hpcc = (
        metrics.at(table, scheme=scheme, fan_in=fan_in, metric=LEAST) for scheme in (power, HPCC)
    )
    return every(
        [
            at_least(share / hpcc, 1, f"{power} over {HPCC}"),
            at_least(share, 0.85, f"the share of the link under {power}"),
        ]
    )


def shorter_queue(table: pl.DataFrame, fan_in: int) -> Verdict:
    """Judge the mean queue of TIMELY over PowerTCP's."""
    timely, power = (
        metrics.at(table, scheme=scheme, fan_in=fan_in, metric=LATER) for scheme in (TIMELY, POWER)
    )
    return at_least(timely / power, 3, f"{TIMELY} over {POWER}")


for fan_in in (10, 255):
    figure.claim(
        f"{fan_in}-to-1: the queue falls to a tenth of its peak first under PowerTCP, then HPCC, "
        "then DCQCN"
    )(partial(ordered, fan_in=fan_in))
    # 255 flows keep the link full under any scheme: a ratio of 1 by construction.
    is_full = fan_in == 255
    (figure.check if is_full else figure.claim)(
        f"{fan_in}-to-1: in the 50 RTTs after that, PowerTCP's least throughput in an RTT is at "
        "least HPCC's, and 85 % of the link"
    )(partial(keeps_throughput, fan_in=fan_in))
    figure.claim(f"{fan_in}-to-1: 1 ms later TIMELY's mean queue is at least 3 times PowerTCP's")(
        partial(shorter_queue, fan_in=fan_in)
    )
    figure.claim(
        f"{fan_in}-to-1: in the paper's form PowerTCP's queue falls to a tenth first, then HPCC's, "
        "then DCQCN's",
        stated=False,
    )(partial(ordered, fan_in=fan_in, power=PAPER_FORM))
    (figure.check if is_full else partial(figure.claim, stated=False))(
        f"{fan_in}-to-1: in the paper's form the least throughput is at least HPCC's, and 85 % of "
        "the link"
    )(partial(keeps_throughput, fan_in=fan_in, power=PAPER_FORM))
