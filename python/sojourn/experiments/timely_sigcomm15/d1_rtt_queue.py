"""Figure D1: correlation of RTTs and of ECN marks with queue length."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    all_at_least,
    all_at_most,
    metrics,
    override,
    plot,
)

from .paper import paper
from .testbed import CAPACITY_BPS, SCALES, rack

ONE, TWO = "one queue", "two queues"

BOTTLENECKS = {ONE: 1, TWO: 2}
"""Number of bottlenecks of 20 Gb/s in series."""

CONNECTIONS = 20
"""Number of connections over all bottlenecks, and number of connections over each bottleneck."""

SAMPLED_CONNECTIONS = 4

THRESHOLDS_KB = (20, 40, 80, 160, 240)

RED = "RED 5 to 200 KB"

ROUND_S = 100e-6

PACKET_S = 1040 * 8 / 40e9
"""Transmission time of a packet at a sender."""

TIMELY, R = "TIMELY", "r"

SETTINGS: dict[str, dict[str, Any]] = {
    **{
        f"K = {threshold} KB": {"kind": "ecn_threshold", "threshold": f"{threshold} KB"}
        for threshold in THRESHOLDS_KB
    },
    RED: {"kind": "dcqcn_red"},
}

figure = Figure(
    paper,
    id="d1",
    title="Correlation of RTTs with the queue, and of ECN marks with RTTs",
    source="Figure: RTT and queue occupancy; fraction of marks and RTT",
    scales=SCALES
    | {
        "quick": {"seeds": 2, "warm_up": 60, "measured": 40},
        "paper": {"seeds": 10, "warm_up": 100, "measured": 200},
    },
    deviations=(
        "TIMELY's own packets are not marked: the marks are those of DCTCP's packets, for several "
        "thresholds K and for DCQCN's RED profile, with the same connections. RTTs and marks are "
        "averaged over rounds of 100 µs; r is Pearson's, the mean over the seeds.",
        "The correlation of an RTT with the wait of its own packet is 1 in a simulator. The claim "
        "concerns the correlation with the queues at the time when the sender measures the RTT, on "
        "the testbed and with two queues in series (20 connections cross both, 20 more each of "
        "them).",
        "Marks are weakly correlated with RTTs only where the threshold is below the minimum of "
        "the queue (K = 20 and 40 KB), or with RED's slope. Where the queue oscillates about a "
        "sharp threshold, a mark indicates the upper half of the oscillation: r is near that of a "
        "step and a ramp, 0.87, with two queues as with one (0.88 at K = 80 to 240 KB), and also "
        "if 40 connections of ten clients with 10 Gb/s cross both queues and 20 more each of them "
        "(0.85 to 0.91, four seeds). The paper's network and settings are unknown.",
    ),
    panels=(1, 3),
    size=(13, 4.4),
)


def scenario(scale: Scale, way: str) -> dict[str, Any]:
    """Return the scenario of connections over the bottlenecks; some connections are sampled."""
    bottlenecks = BOTTLENECKS[way]
    topology = {
        "kind": "parking_lot",
        "bottlenecks": bottlenecks,
        "rate": "20 Gbps",
        "delay": "3 us",
        "access_rate": "40 Gbps",
        "access_delay": "3 us",
    }
    workload = {
        "kind": "long_lived",
        "flows": CONNECTIONS * (1 + bottlenecks),
        "stagger": "50 us",
        "jitter": "50 us",
        "initial_rate": "500 Mbps",
    }
    samples = {"rtt_flows": sampled_connections(way), "flows": []}
    changes = {"topology": topology, "workload": workload}
    return override(rack(scale) | changes, {"samples": samples})


def sampled_connections(way: str) -> list[int]:
    """Return the sampled connections over all bottlenecks; their numbers alternate with others."""
    return [number * (1 + BOTTLENECKS[way]) for number in range(SAMPLED_CONNECTIONS)]


def queues(way: str) -> list[str]:
    """Return the bottleneck links."""
    return [f"switch{number}->switch{number + 1}" for number in range(BOTTLENECKS[way])]


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for way in BOTTLENECKS:
        samples = {"interval": "2 us", "queues": queues(way)}
        yield {"scheme": TIMELY, "way": way}, override(scenario(scale, way), {"samples": samples})
    for setting, queue in SETTINGS.items():
        marking = {"transport": "dctcp", "queue": queue}
        yield {"scheme": setting, "way": TWO}, override(scenario(scale, TWO), marking)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    clouds = pl.concat(
        (against_queues if run.labels["scheme"] == TIMELY else against_marks)(run, flow)
        for run in runs
        for flow in sampled_connections(run.labels["way"])
    )
    # Constant marks have no correlation.
    r = pl.corr("x", "value").fill_nan(0.0)
    of_seeds = clouds.group_by("scheme", "way", "seed", maintain_order=True).agg(value=r)
    correlations = of_seeds.with_columns(metric=pl.lit(R), at_least=pl.lit(value=False))
    return pl.concat([clouds, metrics.across_seeds(correlations)], how="diagonal")


def probe(run: Run, name: str) -> pl.DataFrame:
    """Return the samples of one probe after the warm-up, in order of time."""
    warm_up = metrics.warm_up_s(run.result)
    samples = run.result.samples.filter(pl.col("probe") == name, pl.col("time_s") >= warm_up)
    return samples.select("time_s", "value")


def rtts(run: Run, flow: int) -> pl.DataFrame:
    """Return the RTTs of a connection, as TIMELY uses them, at the times of their measurement."""
    return probe(run, f"measured_rtt_s flow {flow}").with_columns(pl.col("value") - PACKET_S)


def against_queues(run: Run, flow: int) -> pl.DataFrame:
    """Return RTTs against the backlog of the bottlenecks at the time of measurement."""
    rtts_and_queues = rtts(run, flow)
    links = queues(run.labels["way"])
    for link in links:
        queue = probe(run, f"queue_bytes {link}").rename({"value": link})
        rtts_and_queues = rtts_and_queues.join_asof(queue, on="time_s", strategy="backward")
    backlog = pl.sum_horizontal(links)
    return metrics.labelled(run.labels, rtts_and_queues.drop_nulls().select("value", x=backlog))


def against_marks(run: Run, flow: int) -> pl.DataFrame:
    """Return the mean RTT of every round against the share of its packets that were marked."""
    marks = rtts(run, flow).with_columns(x=probe(run, f"rtt_marked flow {flow}")["value"])
    rounds = marks.group_by((pl.col("time_s") / ROUND_S).floor(), maintain_order=True)
    return metrics.labelled(
        run.labels, rounds.agg(pl.col("x", "value").mean()).select("value", "x")
    )


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    left, middle, right = axes
    first = table.filter(pl.col("seed") == table["seed"].min())
    timely = first.filter(scheme=TIMELY)
    labels = ("queues of the path when the RTT is measured", "RTT")
    plot.points(left, timely, by="way", units=("KB", "us"), labels=labels)
    longest = np.array([0.0, float(timely["x"].max())])  # type: ignore[arg-type]
    for way, bottlenecks in BOTTLENECKS.items():
        drained = (longest * 8 / CAPACITY_BPS + (4 + 2 * bottlenecks) * 3e-6) * 1e6
        label = "queues at 20 Gb/s, cables" if way == ONE else None
        left.plot(longest / 1e3, drained, color="#222222", ls=":", lw=1, label=label)
    plot.legend(left, columns=2)
    marks = first.filter(pl.col("scheme") != TIMELY)
    labels = ("share of marks in a round of 100 µs", "mean RTT of the round")
    plot.points(middle, marks, units=("%", "us"), labels=labels)
    plot.legend(middle, columns=3)
    correlations = table.filter(metric=R)
    rtt = pl.format("RTT, {}", "way")
    named = correlations.with_columns(
        scheme=pl.when(scheme=TIMELY).then(rtt).otherwise(pl.format("marks, {}", "scheme"))
    )
    plot.bars(right, named, label="correlation, r", values="{:.2f}")
    names = named["scheme"].to_list()
    right.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=8)


def correlation(table: pl.DataFrame, scheme: str, way: str = TWO) -> float:
    """Return the mean over the seeds of Pearson's correlation."""
    return metrics.at(table, metric=R, scheme=scheme, way=way)


@figure.claim("the RTT is strongly correlated with the queues of the path: r above 0.95")
def follows_queues(table: pl.DataFrame) -> Verdict:
    return all_at_least({way: correlation(table, TIMELY, way) for way in BOTTLENECKS}, 0.95)


@figure.claim("ECN marks are only weakly correlated with the RTT: r below 0.7, in all settings")
def marks_do_not(table: pl.DataFrame) -> Verdict:
    return all_at_most({name: correlation(table, name) for name in SETTINGS}, 0.7)
