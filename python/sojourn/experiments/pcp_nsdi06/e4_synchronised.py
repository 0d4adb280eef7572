"""Figure E4: flows that start together, each told by history that the whole link is free."""

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
    LOSS,
    PACKET,
    PAYLOAD,
    PCP,
    ROUTER,
    TCP,
    WIRE,
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
"""How many flows those that are followed over time are."""

WHOLE, THIRD = f"{PCP} all at once", f"{PCP} a third first"
"""What PCP does about a history that says all is free: the two readings of the text."""

figure = Figure(
    paper,
    id="e4",
    title="Flows that start together",
    source="Figure 7",
    scales={
        "smoke": {"seeds": 2, "counts": (2, MANY), "half_round_trips": (4, 8, 16)},
        "quick": {"seeds": 5, "counts": FEWER, "half_round_trips": FEWER_HALVES},
        "paper": {"seeds": 40, "counts": COUNTS, "half_round_trips": range(1, 33)},
    },
    deviations=(
        "Told that all of the link is free, PCP may ask for all of it at once or, as its rule "
        "has it, for a third first and for two thirds then. Both are drawn.",
        "The paper's flows start together again and again. Ours do so in runs of their own, with "
        "round trips drawn anew; queues are means while flows are in progress.",
        "Sharing is no bound of the mean here: with it all flows end together, at the last moment.",
        "When packets are lost follows from runs that end sooner: a run is the same as far as it "
        "goes. The first round trip after the jump is over when every sender has heard of it: "
        "handshake and probe take two of the longest round trips (35 ms), the round trip itself "
        "one more and the wait in a full queue (25 ms).",
    ),
    panels=(2, 3),
    size=(15, 8),
)

CUMULATED, OVER_TIME = "packets dropped by then", "queue over time"


def told(share: float) -> dict[str, Any]:
    """Return PCP that believes that the whole link is free, and asks for a share of it."""
    rate = f"{BASE.rate_bps / 1e6:g} Mbps"
    return {"transport": {"kind": "pcp", "rigged": rate, "share": share}}


tried = {name: change for name, change in schemes.items() if name != PCP} | {
    WHOLE: told(1),
    THIRD: told(1 / 3),
}


def together(flows: int, change: dict[str, Any]) -> dict[str, Any]:
    """Return the scenario of so many flows that start at once."""
    size = f"{BASE.packets * PAYLOAD} B"
    workload = {"kind": "synchronised", "flows": flows, "size": size}
    limit = {"name": "Flows that start together", "time_limit": "60 s"}
    return under({**BASE.network(), "workload": workload, **limit}, change)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for scheme, change in tried.items():
        for flows in scale["counts"]:
            yield {"scheme": scheme, "flows": flows}, together(flows, change)
    for scheme in (TCP, WHOLE, THIRD):
        for half in scale["half_round_trips"]:
            limit_s = half * BASE.rtt_s / 2
            end = {
                "time_limit": f"{limit_s:g} s",
                "samples": {"interval": "1 ms", "queues": [WIRE]},
            }
            labels = {"scheme": scheme, "until_s": limit_s}
            yield labels, override(together(MANY, tried[scheme]), end)


def drops(result: Result) -> metrics.Statistic:
    """Measure how many packets the link's queue has dropped."""
    return metrics.Statistic(float(metrics.link_counters(result, WIRE)["drops"]))


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    parts = [run for run in runs if "until_s" in run.labels]
    by_time = metrics.across_seeds(metrics.measure(parts, **{CUMULATED: drops}))
    last = max(run.labels["until_s"] for run in parts)
    longest = [run for run in parts if run.labels["until_s"] == last]
    queue = metrics.series(longest, f"queue_bytes {WIRE}").group_by(
        "scheme", "time_s", maintain_order=True
    )
    waiting = queue.agg(pl.col("value").mean() / PACKET).with_columns(metric=pl.lit(OVER_TIME))
    whole = measured(run for run in runs if "flows" in run.labels)
    return pl.concat([whole, by_time, waiting], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    counted = table.filter(pl.col("flows").is_not_null())
    draw_four(axes[:, :2].flat, counted, "flows", "flows that start together", columns=2)
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
        panel.axvspan(JUMP_S / BASE.rtt_s, HEARD_S / BASE.rtt_s, color=looks.GREY, alpha=0.12, lw=0)
    note: Any = {"transform": by_time.get_xaxis_transform(), "va": "top", "fontsize": 8}
    by_time.text(JUMP_S / BASE.rtt_s, 0.98, " first round trip\n after the jump", **note)
    plot.one_legend(axes)


LONGEST_S = 1.4 * BASE.rtt_s

JUMP_S = 2 * 0.6 * BASE.rtt_s
"""The first to jump have the shortest round trip: a handshake, and a probe."""

HEARD_S = 3 * LONGEST_S + BASE.rtt_s
"""By now all have heard of the first round trip after the jump, and of the queue in it."""


@figure.claim("TCP's losses set in at about six flows: 3 lose next to nothing (0.1 %), 8 lose more")
def sets_in_at_six(table: pl.DataFrame) -> Verdict:
    said = "what {} flows lose"
    return every(
        [
            at_most(loss(table, TCP, 3), ALMOST_NOTHING, said.format(3)),
            at_least(loss(table, TCP, 8), ALMOST_NOTHING, said.format(8)),
        ]
    )


def loss(table: pl.DataFrame, scheme: str, flows: float) -> float:
    """Return which share of its packets a scheme loses."""
    return value(table, LOSS, scheme, flows=flows)


def mostly_at_first(table: pl.DataFrame, scheme: str) -> Verdict:
    """Judge that most losses come until the first round trip after the jump is over."""
    lost = table.filter(scheme=scheme, metric=CUMULATED).sort("until_s")
    early = lost.filter(pl.col("until_s") <= HEARD_S)["value"]
    share = early[-1] / lost["value"][-1] if lost["value"][-1] else float("nan")
    return at_least(share, 0.5, f"their share of those until {lost['until_s'][-1]:g} s")


for scheme in (WHOLE, THIRD):
    figure.claim(f"most losses of {scheme} come in the first round trip after the jump")(
        partial(mostly_at_first, scheme=scheme)
    )


@figure.claim("router-based control loses nothing")
def router_loses_nothing(table: pl.DataFrame) -> Verdict:
    return all_at_most(losses(table, ROUTER, "flows"), 0)
