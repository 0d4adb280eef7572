"""Figure D1: how closely RTTs, and ECN marks, follow the queue."""

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
    all_at_most,
    at_least,
    at_most,
    metrics,
    override,
    plot,
)

from .paper import paper
from .testbed import CAPACITY_BPS, PACKET_S, SCALES, SERVER_LINK, rack

CONNECTIONS = (0, 3, 6, 9)
"""Some of those that cross both queues, where there are two."""

ONE, TWO = "one queue", "two queues"

QUEUES = {ONE: (SERVER_LINK,), TWO: ("switch0->switch1", "switch1->switch2")}

THRESHOLDS_KB = (20, 40, 80, 160, 240)

RED = "RED 5 to 200 KB"

ROUND_S = 100e-6

TIMELY = "TIMELY"

SETTINGS: dict[str, dict[str, Any]] = {
    **{
        f"K = {threshold} KB": {"kind": "ecn_threshold", "threshold": f"{threshold} KB"}
        for threshold in THRESHOLDS_KB
    },
    RED: {"kind": "dcqcn_red"},
}

SHOWN = ("K = 20 KB", "K = 80 KB", "K = 240 KB", RED)

figure = Figure(
    paper,
    id="d1",
    title="RTTs follow the queue; do ECN marks follow RTTs?",
    source="Figure: RTT and queue occupancy; fraction of marks and RTT",
    scales=SCALES
    | {
        "quick": {"seeds": 3, "warm_up": 60, "measured": 40},
        "paper": {"seeds": 10, "warm_up": 100, "measured": 200},
    },
    deviations=("DEVIATIONS",),
    panels=(1, 3),
    size=(13, 4.4),
)


def two_queues(scale: Scale) -> dict[str, Any]:
    """Return a scenario of 60 connections: 20 cross two bottlenecks, and 20 more each of them."""
    row = {"kind": "parking_lot", "bottlenecks": 2, "rate": "20 Gbps", "access_rate": "40 Gbps"}
    delays = {"delay": "3 us", "access_delay": "3 us"}
    flows = {"flows": 60, "stagger": "50 us", "jitter": "50 us", "initial_rate": "500 Mbps"}
    return rack(scale) | {
        "topology": row | delays,
        "workload": {"kind": "long_lived", **flows},
    }


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    rtts = {"rtt_flows": list(CONNECTIONS)}
    for way, scenario in ((ONE, rack(scale)), (TWO, two_queues(scale))):
        watched = {"interval": "2 us", "flows": [], "queues": list(QUEUES[way])}
        yield {"scheme": TIMELY, "way": way}, override(scenario, {"samples": rtts | watched})
    for setting, queue in SETTINGS.items():
        marking = {"transport": "dctcp", "queue": queue, "samples": rtts}
        yield {"scheme": setting, "way": TWO}, override(two_queues(scale), marking)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    parts = [
        (against_queues if run.labels["scheme"] == TIMELY else against_marks)(run, flow)
        for run in runs
        for flow in CONNECTIONS
    ]
    return pl.concat(parts)


def probe(run: Run, name: str) -> pl.DataFrame:
    """Return what one probe told after the warm-up, in order of time."""
    warm_up = metrics.warm_up_s(run.result)
    told = run.result.samples.filter(pl.col("probe") == name, pl.col("time_s") >= warm_up)
    return told.select("time_s", "value")


def rtts(run: Run, flow: int) -> pl.DataFrame:
    """Return the RTTs of a connection, as TIMELY takes them, when it learns of them."""
    return probe(run, f"measured_rtt_s flow {flow}").with_columns(pl.col("value") - PACKET_S)


def against_queues(run: Run, flow: int) -> pl.DataFrame:
    """Return RTTs against what then waits at the switches on the way."""
    known = rtts(run, flow)
    for link in QUEUES[run.labels["way"]]:
        queue = probe(run, f"queue_bytes {link}").rename({"value": link})
        known = known.join_asof(queue, on="time_s", strategy="backward")
    waits = pl.sum_horizontal(QUEUES[run.labels["way"]])
    return metrics.labelled(run.labels, known.drop_nulls().select("value", x=waits))


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
    plot.points(
        left, timely, units=("KB", "us"), labels=("queue at the switch as the packet came", "RTT")
    )
    full = np.array([0.0, float(timely["x"].max())])  # type: ignore[arg-type]
    drained = (full * 8 / CAPACITY_BPS + 4 * 3e-6) * 1e6
    left.plot(full / 1e3, drained, color="#222222", ls=":", lw=1, label="queue at 20 Gb/s, cables")
    plot.legend(left)
    marks = first.filter(pl.col("scheme").is_in(SHOWN))
    labels = ("share of marks in a round of 100 µs", "mean RTT of the round")
    plot.points(middle, marks, units=("%", "us"), labels=labels)
    found = pl.DataFrame(
        [{"scheme": scheme, "value": correlation(table, scheme)} for scheme in [TIMELY, *SETTINGS]]
    )
    plot.bars(right, found, label="correlation with the RTT", values="{:.2f}")
    right.set_xticks(
        range(found.height),
        [f"queue, {TIMELY}", *(f"marks, {name}" for name in SETTINGS)],
        rotation=35,
        ha="right",
        fontsize=8,
    )


def correlation(table: pl.DataFrame, scheme: str) -> float:
    """Return the mean over the seeds of Pearson's correlation."""
    rows = table.filter(scheme=scheme).group_by("seed").agg(r=pl.corr("x", "value"))
    return float(rows["r"].fill_nan(None).mean() or 0.0)  # type: ignore[arg-type]


@figure.claim("the RTT is strongly correlated with the queue: r above 0.95")
def follows_queue(table: pl.DataFrame) -> Verdict:
    return at_least(correlation(table, TIMELY), 0.95, "r of RTT and queue")


@figure.claim("ECN marks are only weakly correlated with the RTT: r below 0.7, in all settings")
def marks_do_not(table: pl.DataFrame) -> Verdict:
    return all_at_most({name: correlation(table, name) for name in SETTINGS}, 0.7)


@figure.claim(
    "over all settings together marks are only weakly correlated with the RTT: r below 0.7",
    stated=False,
)
def marks_do_not_together(table: pl.DataFrame) -> Verdict:
    marks = table.filter(pl.col("scheme") != TIMELY)
    return at_most(float(marks.select(pl.corr("x", "value")).item()), 0.7, "r of all rounds")
