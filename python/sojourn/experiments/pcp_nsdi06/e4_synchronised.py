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
        "smoke": {"counts": (2, MANY)},
        "quick": {"counts": FEWER},
        "paper": {"counts": COUNTS},
    },
    deviations=(
        "With a history of an idle link, PCP may probe for the whole link rate at once or, as its "
        "rule states, first for one third and then for two thirds. Both are drawn.",
        "The paper's flows start together repeatedly. Here each start is a separate run with new "
        "random RTTs; queues are means while flows are in progress.",
        "Processor sharing is not a lower bound of the mean here: all flows end together, at the "
        "last moment.",
        "A flow jumps when its first probe passes. The first round trip after the jump ends with "
        "the first ACK of a packet that the flow sent after it. With the RTT of the handshake in "
        "its place the early shares of the losses are 0.35 (all at once) and 0.21 (a third first), "
        "with the delay of a full queue (25 ms) added 0.69 and 0.63. First one time for all flows "
        "was judged, about four mean round trips after the start, in which flows that begin with a "
        "third jump twice.",
    ),
    panels=(2, 3),
    size=(15, 8),
)

CUMULATED, OVER_TIME = "cumulative packets dropped", "queue over time"

LOST, EARLY = "packets lost", "packets lost in the first round trip after the jump"

DRAWN_ROUND_TRIPS = 16


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
        shown = {
            "account": True,
            "record": {"flows": list(range(MANY))},
            "samples": {"interval": "1 ms", "queues": [LINK_NAME]},
        }
        labels = {"scheme": scheme, "shown": MANY}
        yield labels, override(synchronised(MANY, compared[scheme]), shown)


def dropped_until(result: Result, time_s: float) -> metrics.Statistic:
    """Measure the number of packets that the link's queue has dropped until a time."""
    dropped = result.packets.filter(
        pl.col("lost_at") == LINK_NAME, pl.col("lost_ps") <= time_s * 1e12
    )
    return metrics.Statistic(dropped.height)


def lost(result: Result) -> metrics.Statistic:
    """Measure the number of lost packets."""
    return metrics.Statistic(result.packets["lost_ps"].count())


def lost_early(result: Result) -> metrics.Statistic:
    """Measure the lost packets that were sent in the first round trip after a flow's jump."""
    jump_ps, acked_ps = first_round_trips(result)
    sent = result.packets.filter(pl.col("lost_ps").is_not_null(), kind="data")
    after_jump = sent.join(jump_ps, on="flow").join(acked_ps, on="flow")
    early = after_jump.filter(pl.col("sent_ps").is_between("jump_ps", "acked_ps"))
    return metrics.Statistic(early.height)


def first_round_trips(result: Result) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return when each flow jumps, and when it has the first ACK of a packet sent after that.

    A flow jumps when its first probe passes: without one its rate is one packet per RTT.
    """
    gauge = {name: result.gauges.filter(gauge=name) for name in ("smoothed_rtt_s", "rate_bps")}
    first = pl.col("value").first()
    rtts = gauge["smoothed_rtt_s"].group_by("flow", maintain_order=True).agg(rtt_s=first)
    bits = pl.col("value") * pl.col("rtt_s")
    rates = gauge["rate_bps"].join(rtts, on="flow", maintain_order="left")
    jumped = rates.filter(bits >= 2 * 8 * PACKET).group_by("flow", maintain_order=True)
    jumps = jumped.agg(jump_ps=pl.col("time_ps").first())
    data, acks = (result.packets.filter(kind=kind) for kind in ("data", "ack"))
    arrivals = acks.select("flow", arrived_ps="sent_ps", acked_ps="arrived_ps")
    after = data.join(jumps, on="flow").filter(pl.col("sent_ps") >= pl.col("jump_ps"))
    acked = after.join(arrivals, on=["flow", "arrived_ps"])
    return jumps, acked.group_by("flow", maintain_order=True).agg(pl.col("acked_ps").min())


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    shown = [run for run in runs if "shown" in run.labels]
    times_s = [half * BASE.rtt_s / 2 for half in range(1, 2 * DRAWN_ROUND_TRIPS + 1)]
    by_time = pl.concat(
        metrics.measure(shown, **{CUMULATED: partial(dropped_until, time_s=at_s)}).with_columns(
            until_s=pl.lit(at_s)
        )
        for at_s in times_s
    )
    losses = metrics.measure(shown, **{LOST: lost, EARLY: lost_early})
    queue = metrics.series(shown, f"queue_bytes {LINK_NAME}").filter(
        pl.col("time_s") <= times_s[-1]
    )
    waiting = queue.group_by("scheme", "time_s", maintain_order=True).agg(
        pl.col("value").mean() / PACKET, metric=pl.lit(OVER_TIME)
    )
    by_count = measured(run for run in runs if "flows" in run.labels)
    over_seeds = [metrics.across_seeds(part) for part in (by_time, losses)]
    return pl.concat([by_count, *over_seeds, waiting], how="diagonal")


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
    plot.one_legend(axes)


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
    """Judge that most lost packets were sent in the first round trip after a flow's jump."""
    early, all_lost = (value(table, metric, scheme, shown=MANY) for metric in (EARLY, LOST))
    share = early / all_lost if all_lost else float("nan")
    return at_least(share, 0.5, f"early losses over all losses of {MANY} flows")


for scheme in (WHOLE, THIRD):
    figure.claim(f"most losses of {scheme} come in the first round trip after the jump")(
        partial(judge_early_losses, scheme=scheme)
    )


@figure.claim("router-based control loses nothing")
def router_loses_nothing(table: pl.DataFrame) -> Verdict:
    return all_at_most(losses(table, ROUTER, "flows"), 0)
