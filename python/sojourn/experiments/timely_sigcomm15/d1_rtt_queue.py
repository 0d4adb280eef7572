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

FLOWS = (0, 1, 2, 3)

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
    deviations=(
        "TIMELY's own packets are not marked: the marks are those of DCTCP's packets, for several "
        "thresholds K and for DCQCN's RED profile, with the same connections. RTTs and marks are "
        "averaged over rounds of 100 µs; r is Pearson's, the mean over the seeds.",
        "On this testbed a packet meets one queue. Where DCTCP's queue swings about a sharp "
        "threshold, whether a packet is marked tells which half of the swing it met, and rounds of "
        "a few packets are marked all or not at all: r is then near that of a step and a ramp, "
        "0.87. With a low threshold, with RED's slope, and over all settings together marks say "
        "little. Several queues on the way, which only RTTs add up, are not part of this figure.",
        "With low thresholds DCTCP's windows are a few packets, and hosts that are all alike fall "
        "into step if of packets that come at the same moment the one of the lowest link always "
        "goes first: at K = 20 KB a run has 3 to 8 different shares of marks, and r is between "
        "-0.63 and 0.34, at K = 40 KB between 0.45 and 0.94. In the order of their scheduling they "
        "were 40 shares and an r of 0.45 and 0.52, in every run.",
    ),
    panels=(1, 3),
    size=(13, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    watched = {"rtt_flows": list(FLOWS), "interval": "2 us", "flows": [], "queues": [SERVER_LINK]}
    yield {"scheme": TIMELY}, override(rack(scale), {"samples": watched})
    rounds = {"rtt_flows": list(FLOWS)}
    for setting, queue in SETTINGS.items():
        marking = {"transport": "dctcp", "queue": queue, "samples": rounds}
        yield {"scheme": setting}, override(rack(scale), marking)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    parts = [
        (against_queue if run.labels["scheme"] == TIMELY else against_marks)(run, flow)
        for run in runs
        for flow in FLOWS
    ]
    return pl.concat(parts)


def probe(run: Run, name: str) -> pl.DataFrame:
    """Return what one probe told after the warm-up, in order of time."""
    warm_up = metrics.warm_up_s(run.result)
    told = run.result.samples.filter(pl.col("probe") == name, pl.col("time_s") >= warm_up)
    return told.select("time_s", "value")


def rtts(run: Run, flow: int, name: str) -> pl.DataFrame:
    """Return the RTTs of a flow, as TIMELY takes them, beside another probe of its ACKs."""
    measured = probe(run, f"measured_rtt_s flow {flow}")
    return measured.select(
        "time_s",
        value=pl.col("value") - PACKET_S,
        x=probe(run, f"{name} flow {flow}")["value"],
    )


def against_queue(run: Run, flow: int) -> pl.DataFrame:
    """Return RTTs against the queue as the switch had it when the packet came."""
    # A packet's way from the switch to the server, and its ACK's to the client, without queues.
    wire_s = 3 * 3e-6 + 40 * 8 / 20e9 + 40 * 8 / 10e9 + 1040 * 8 / 20e9
    waited = rtts(run, flow, "rtt_forward_queueing_s")
    came = waited.with_columns(time_s=pl.col("time_s") - wire_s - pl.col("x")).sort("time_s")
    queue = probe(run, f"queue_bytes {SERVER_LINK}").rename({"value": "queue"})
    met = came.join_asof(queue, on="time_s", strategy="backward")
    return metrics.labelled(run.labels, met.select(x="queue", value="value").drop_nulls())


def against_marks(run: Run, flow: int) -> pl.DataFrame:
    """Return the mean RTT of every round against the share of its packets that were marked."""
    marks = rtts(run, flow, "rtt_marked")
    rounds = marks.group_by((pl.col("time_s") / ROUND_S).floor(), maintain_order=True)
    return metrics.labelled(
        run.labels, rounds.agg(pl.col("x", "value").mean()).select("x", "value")
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
