"""Figure B5: three new flows beside a long one that holds the link."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_least,
    at_most,
    between,
    metrics,
    plot,
    theory,
)

from .paper import (
    LINK_NAME,
    NOT_RANDOM,
    PAYLOAD,
    RCP,
    RCP_AS_XCP,
    SHAPE,
    SHARING,
    TCP,
    XCP,
    ideals,
    link_topology,
    paper,
    rcp,
    tcp,
    with_handshake,
    xcp,
)

LINK = theory.Link(100e6, 0.1)
BEGIN_S, SIZE, NEW = 10.0, 300, (1, 2, 3)
"""Start of the new flows, their size in packets and their numbers; flow 0 is the long flow."""

RENO = "TCP, Reno"
TIME, SHARE = "completion time", "share of the link"

figure = Figure(
    paper,
    id="b5",
    title="New flows beside a long one",
    source="Figure 5",
    one_seed=NOT_RANDOM,
    scales={name: {} for name in ("smoke", "quick", "paper")},
    deviations=(
        "The window's limit is not given; ours is 4 bandwidth-delay products. Dashed lines are "
        "measurements with another simulator (ns-2.35) in the same setting.",
        "Completion times here include the handshake; a flow takes 1.5 round trips in addition to "
        "its transmission. The round trips that the paper counts are the transmission.",
    ),
    panels=(1, 3),
    size=(14, 4.2),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    new = {"source": 0, "target": 1, "size": f"{SIZE * PAYLOAD} B", "start": f"{BEGIN_S:g} s"}
    base = {
        "name": "Three flows beside a long one",
        "topology": link_topology(LINK),
        "packet": dict(SHAPE),
        "workload": {"kind": "flows", "flows": [{"source": 0, "target": 1}, *[new] * len(NEW)]},
        "time_limit": "13 s",
        "samples": {"interval": "100 ms", "queues": [LINK_NAME], "flows": [0, *NEW]},
    }
    schemes = {
        TCP: tcp(LINK),
        RENO: tcp(LINK, recovery="reno"),
        XCP: xcp(LINK),
        RCP: rcp(),
        RCP_AS_XCP: rcp("as_xcp"),
        SHARING: ideals[SHARING],
    }
    for scheme, change in schemes.items():
        yield {"scheme": scheme}, base | change


def rates(runs: list[Run], flow: int) -> pl.DataFrame:
    """Return a flow's share of the link over time, from the bytes that its receiver has."""
    share = 8 * 1000 / PAYLOAD / LINK.rate_bps
    rate = metrics.series(runs, f"delivered_bytes flow {flow}", per_second=True)
    return rate.with_columns(pl.col("value") * share, flow=pl.lit(flow), metric=pl.lit(SHARE))


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    columns = ["scheme", "flow", "metric", "value"]
    times = [
        run.result.flows.filter(pl.col("flow").is_in(NEW)).select(
            pl.lit(run.labels["scheme"]).alias("scheme"),
            pl.col("flow").cast(pl.Int32),
            pl.lit(TIME).alias("metric"),
            pl.col("fct_s").alias("value"),
        )
        for run in with_handshake(runs)
    ]
    simulated = [run for run in runs if not run.result.samples.is_empty()]
    shares = [rates(simulated, flow).select(*columns, "time_s") for flow in (0, *NEW)]
    return pl.concat([*times, *shares], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    times = table.filter(metric=TIME).with_columns(pl.col("value") / LINK.rtt_s)
    slowest = times.group_by("scheme", maintain_order=True).agg(pl.col("value").max())
    reference = None
    if published is not None:
        reference = published.with_columns(pl.col("value") / LINK.rtt_s)
    label = "slowest new flow (round trips)"
    plot.bars(axes[0], slowest, published=reference, source="ns-2", label=label)
    near = table.filter(
        pl.col("metric") == SHARE,
        pl.col("scheme").is_in([TCP, XCP, RCP]),
        pl.col("time_s").is_between(BEGIN_S - 0.3, BEGIN_S + 1.6),
    )
    near = near.with_columns(time_s=(pl.col("time_s") - BEGIN_S) / LINK.rtt_s + 100)
    together = near.filter(pl.col("flow") != 0).group_by("scheme", "time_s", maintain_order=True)
    for panel, rows, label in (
        (axes[1], near.filter(flow=0), "share of the long flow"),
        (axes[2], together.agg(pl.col("value").sum()), "share of the new flows together"),
    ):
        plot.series(panel, rows, unit="%", time_unit="s", label=label)
        panel.set_xlabel("time (round trips)")
        panel.set_ylim(0, 105)
        panel.set_xlim(97, 116)
        panel.set_xticks(range(98, 117, 2))


def round_trips(table: pl.DataFrame, scheme: str) -> float:
    """Return the round trips of the slowest new flow, less the 1.5 round trips of every flow."""
    slowest: Any = table.filter(scheme=scheme, metric=TIME)["value"].max()
    return (float("nan") if slowest is None else slowest) / LINK.rtt_s - theory.SHAKEN


EVERYWHERE = ("smoke", "quick", "paper")


@figure.check(
    "under processor sharing the new flows take one round trip", scales=EVERYWHERE, exact=True
)
def sharing(table: pl.DataFrame) -> Verdict:
    return at_most(round_trips(table, SHARING), 1, "processor sharing's, in round trips,")


@figure.claim(
    "under TCP and XCP the new flows last up to 8 times longer (within a factor of 1.5)",
    scales=EVERYWHERE,
    exact=True,
)
def longer(table: pl.DataFrame) -> Verdict:
    shared = round_trips(table, SHARING)
    times = [round_trips(table, scheme) / shared for scheme in (TCP, XCP)]
    description = f"the slower of TCP's {times[0]:.2f} and XCP's {times[1]:.2f} times"
    return between(max(times), 8 / 1.5, 8 * 1.5, description)


@figure.claim(
    "under XCP the new flows last at least 3 times longer",
    stated=False,
    scales=EVERYWHERE,
    exact=True,
)
def xcp_longer(table: pl.DataFrame) -> Verdict:
    times = round_trips(table, XCP) / round_trips(table, SHARING)
    return at_least(times, 3, "XCP over processor sharing")


@figure.claim(
    "RCP takes 1.5 round trips and the transmission at a fair share (within 15 %)",
    stated=False,
    scales=EVERYWHERE,
    exact=True,
)
def rcp_is_near(table: pl.DataFrame) -> Verdict:
    fair = float(theory.SHAKEN + (1 + len(NEW)) * SIZE / LINK.bandwidth_delay)
    measured = round_trips(table, RCP) + theory.SHAKEN
    return between(
        measured / fair, 0.85, 1.15, f"RCP's {measured:.2f} round trips over those at a fair share"
    )
