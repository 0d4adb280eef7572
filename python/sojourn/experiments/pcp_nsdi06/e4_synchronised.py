"""Figure E4: flows that start together, each with a history of an idle link."""

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
    all_at_most,
    at_least,
    at_most,
    every,
    looks,
    metrics,
    override,
    plot,
)

from .paper import (
    ALMOST_NOTHING,
    BASE,
    LINK_NAME,
    LOSS,
    PACKET,
    PAYLOAD,
    PCP,
    ROUTER,
    TCP,
    draw_four,
    losses,
    measured,
    paper,
    schemes,
    under,
    value,
)

COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20)
FEWER = (1, 2, 3, 4, 6, 8, 13, 20)
FEWER_HALVES = (2, 4, 6, 8, 10, 12, 16, 24, 32)

MANY = 10
"""Number of flows in the runs whose losses and queue are shown over time."""

WHOLE, THIRD = f"{PCP} all at once", f"{PCP} a third first"
"""Two readings of the text on PCP's response to a history of an idle link."""

figure = Figure(
    paper,
    id="e4",
    title="Flows that start together",
    source="Figure 7",
    scales={
        "smoke": {"counts": (2, MANY), "half_round_trips": (4, 8, 16)},
        "quick": {"counts": FEWER, "half_round_trips": FEWER_HALVES},
        "paper": {"counts": COUNTS, "half_round_trips": range(1, 33)},
    },
    deviations=(
        "With a history of an idle link, PCP may probe for the whole link rate at once or, as its "
        "rule states, first for one third and then for two thirds. Both are drawn.",
        "The paper's flows start together repeatedly. Here each start is a separate run with new "
        "random RTTs; queues are means while flows are in progress.",
        "Processor sharing is not a lower bound of the mean here: all flows end together, at the "
        "last moment.",
        "The times of losses come from runs with earlier ends: a shorter run is a prefix of a "
        "longer run. The first round trip after the jump is over when every sender has received "
        "its ACKs: handshake and probe take two of the longest round trips (35 ms), the round trip "
        "itself takes one more and the delay of a full queue (25 ms).",
    ),
    panels=(2, 3),
    size=(15, 8),
)

CUMULATED, OVER_TIME = "cumulative packets dropped", "queue over time"


def with_idle_history(share: float) -> dict[str, Any]:
    """Return PCP with a history of an idle link, which probes for a share of the link rate."""
    rate = f"{BASE.rate_bps / 1e6:g} Mbps"
    return {"transport": {"kind": "pcp", "rigged": rate, "share": share}}


compared = {name: change for name, change in schemes.items() if name != PCP} | {
    WHOLE: with_idle_history(1),
    THIRD: with_idle_history(1 / 3),
}


def synchronised(flows: int, change: dict[str, Any]) -> dict[str, Any]:
    """Return the scenario of `flows` flows that start together."""
    size = f"{BASE.packets * PAYLOAD} B"
    workload = {"kind": "synchronised", "flows": flows, "size": size}
    limit = {"name": "Flows that start together", "time_limit": "60 s"}
    return under({**BASE.network(), "workload": workload, **limit}, change)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for scheme, change in compared.items():
        for flows in scale["counts"]:
            yield {"scheme": scheme, "flows": flows}, synchronised(flows, change)
    for scheme in (TCP, WHOLE, THIRD):
        for half in scale["half_round_trips"]:
            limit_s = half * BASE.rtt_s / 2
            end = {
                "time_limit": f"{limit_s:g} s",
                "samples": {"interval": "1 ms", "queues": [LINK_NAME]},
            }
            labels = {"scheme": scheme, "until_s": limit_s}
            yield labels, override(synchronised(MANY, compared[scheme]), end)


def drops(result: Result) -> metrics.Statistic:
    """Measure the number of packets that the link's queue has dropped."""
    return metrics.Statistic(float(metrics.link_counters(result, LINK_NAME)["drops"]))


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    parts = [run for run in runs if "until_s" in run.labels]
    by_time = metrics.across_seeds(metrics.measure(parts, **{CUMULATED: drops}))
    last = max(run.labels["until_s"] for run in parts)
    longest = [run for run in parts if run.labels["until_s"] == last]
    queue = metrics.series(longest, f"queue_bytes {LINK_NAME}").group_by(
        "scheme", "time_s", maintain_order=True
    )
    waiting = queue.agg(pl.col("value").mean() / PACKET).with_columns(metric=pl.lit(OVER_TIME))
    by_count = measured(run for run in runs if "flows" in run.labels)
    return pl.concat([by_count, by_time, waiting], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    by_count = table.filter(pl.col("flows").is_not_null())
    draw_four(axes[:, :2].flat, by_count, "flows", "flows that start together", columns=2)
    for panel in axes[:, :2].flat:
        panel.set_xticks([count for count in COUNTS if count in {1, 3} or count % 2 == 0])
    by_time, queue = axes[:, 2]
    part = table.filter(metric=CUMULATED).with_columns(time=pl.col("until_s") / BASE.rtt_s)
    labels = ("time since the start (mean round trips)", f"{CUMULATED}, {MANY} flows")
    plot.against(by_time, part, x="time", labels=labels)
    waiting = table.filter(metric=OVER_TIME).with_columns(pl.col("time_s") / BASE.rtt_s)
    plot.series(queue, waiting, unit="", time_unit="s", label=f"queue (packets), {MANY} flows")
    queue.set_xlabel(labels[0])
    for panel in (by_time, queue):
        panel.axvspan(JUMP_S / BASE.rtt_s, ACKED_S / BASE.rtt_s, color=looks.GREY, alpha=0.12, lw=0)
    note: Any = {"transform": by_time.get_xaxis_transform(), "va": "top", "fontsize": 8}
    by_time.text(JUMP_S / BASE.rtt_s, 0.98, " first round trip\n after the jump", **note)
    plot.one_legend(axes)


LONGEST_S = 1.4 * BASE.rtt_s

JUMP_S = 2 * 0.6 * BASE.rtt_s
"""Earliest jump: handshake and probe of a flow with the shortest RTT."""

ACKED_S = 3 * LONGEST_S + BASE.rtt_s
"""Time by which all senders have the ACKs of the first round trip after the jump."""


@figure.claim("TCP's losses begin at about six flows: 3 lose almost nothing (0.1 %), 8 lose more")
def losses_begin_at_six(table: pl.DataFrame) -> Verdict:
    description = "share lost with {} flows"
    return every(
        [
            at_most(loss(table, TCP, 3), ALMOST_NOTHING, description.format(3)),
            at_least(loss(table, TCP, 8), ALMOST_NOTHING, description.format(8)),
        ]
    )


def loss(table: pl.DataFrame, scheme: str, flows: float) -> float:
    """Return the share of its packets that a scheme loses."""
    return value(table, LOSS, scheme, flows=flows)


def judge_early_losses(table: pl.DataFrame, scheme: str) -> Verdict:
    """Judge that most losses occur before the end of the first round trip after the jump."""
    drop_rows = table.filter(scheme=scheme, metric=CUMULATED).sort("until_s")
    early = drop_rows.filter(pl.col("until_s") <= ACKED_S)["value"]
    share = early[-1] / drop_rows["value"][-1] if drop_rows["value"][-1] else float("nan")
    return at_least(share, 0.5, f"early losses over losses until {drop_rows['until_s'][-1]:g} s")


for scheme in (WHOLE, THIRD):
    figure.claim(f"most losses of {scheme} come in the first round trip after the jump")(
        partial(judge_early_losses, scheme=scheme)
    )


@figure.claim("router-based control loses nothing")
def router_loses_nothing(table: pl.DataFrame) -> Verdict:
    return all_at_most(losses(table, ROUTER, "flows"), 0)
