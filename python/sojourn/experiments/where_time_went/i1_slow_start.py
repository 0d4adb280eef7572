"""Figure I1: why flows take long under TCP and XCP, and not under RCP."""

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    accounts,
    all_at_least,
    at_least,
    at_most,
    every,
    looks,
    metrics,
    override,
)
from sojourn.experiments.rcp_ccr06.b1_average import SETTING
from sojourn.experiments.rcp_ccr06.paper import (
    PAYLOAD,
    RCP,
    SHARING,
    TCP,
    XCP,
    all_schemes,
    apart,
    shaken,
)

from .paper import (
    COUNTED,
    SLOWDOWN,
    bars,
    excess,
    legend,
    over_seeds,
    over_size,
    paper,
    share,
    slowdown,
    value,
)

figure = Figure(
    paper,
    id="i1",
    title="TCP, XCP and RCP: round trips of slow start, of small windows, or a rate",
    source="ours, in the setting of B1 and B12 (RCP, CCR 2006)",
    scales={
        "smoke": {"rate_bps": 50e6, "length_s": 10},
        "quick": {"rate_bps": 300e6, "length_s": 40},
        "paper": {"rate_bps": 2.4e9, "length_s": 60, "seeds": 10},
    },
    deviations=(
        "TCP has SACK, as in B1, and RCP the gains of B12. At the scale `quick` the link has 300 "
        "Mb/s. Means are of the flows that B1 takes, those before the last fifth of the run, as "
        "far as they have finished: at the scale `quick` all but 10 of XCP's 30 785.",
        "Of the excess of TCP's flows round trips of the window are two thirds, not 80 %: the "
        "handshake, which is one more round trip that every flow waits for, is a quarter. That "
        "queueing is little (8 %) is so. Nearly all of these round trips are as many as slow start "
        "takes.",
        "Small flows under RCP take little beyond the handshake, 5 ms, and of that little waiting "
        "behind others is more than half: pace is 43 % of it. At the scale `quick`, where the link "
        "and so the pace is slower, it is 78 %.",
        "That round trips with the handshake are 80 % was added when the first had failed. That a "
        "reason matters if it is 5 % of the excess is our choice.",
        "Round trips beyond those of slow start are told apart by their number: a flow of so many "
        "packets needs so many while windows double from 2 packets.",
        "Losses: 0.8 % of the excess, and none at the scale `quick`. The buffer holds a "
        "bandwidth-delay product, and few flows are large enough to fill it.",
    ),
    panels=(2, 3),
    size=(13, 7.2),
)

SCHEMES = (TCP, XCP, RCP)

SIZES = metrics.size_buckets(16, 64, 256, 1000, 2000, 10_000, packet_bytes=PAYLOAD)[:-1]

SMALL = metrics.Bucket("up to 2000 packets", up_to=2000 * PAYLOAD)

SMALLER = metrics.Bucket("up to 1000 packets", up_to=1000 * PAYLOAD)

AS_SLOW_START = f"{accounts.ROUND_TRIPS}: as many as slow start takes"

ROUNDS = "round trips waited for the window, in number"

INITIAL_WINDOW = 2


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = SETTING.at(scale)
    every_one = all_schemes(setting.link, "selective_repeat", scale)
    chosen = {name: every_one[name] for name in (*SCHEMES, SHARING)}
    for labels, scenario in setting.runs(scale, chosen):
        yield labels, override(scenario, {} if labels["scheme"] == SHARING else COUNTED)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    runs = [in_time(run) for run in runs]
    ideals, simulated = apart(runs)
    shared = shaken(ideals)
    buckets = (*SIZES, SMALL, SMALLER)
    packets = (pl.col("size_bytes") / PAYLOAD).ceil()
    # The first window goes without waiting; every round trip later there is one twice as large.
    needed = (packets / INITIAL_WINDOW + 1).log(2).ceil() - 1
    as_needed = pl.min_horizontal(1.0, needed / pl.col("rounds")).fill_nan(0.0)
    waited = {AS_SLOW_START: pl.col(accounts.ROUND_TRIPS) * as_needed, ROUNDS: pl.col("rounds")}
    return pl.concat(
        [over_size(simulated, buckets, **waited), over_seeds(sharing(shared, buckets))],
        how="diagonal",
    )


def in_time(run: Run) -> Run:
    """Return a run with the flows that had time to finish: all but those of its last fifth."""
    end_s = metrics.seconds(run.result.summary["scenario"]["time_limit"])
    flows = run.result.flows.filter(pl.col("start_s") < 0.8 * end_s)
    return Run(run.labels, run.result.with_flows(flows))


def sharing(runs: Iterable[Run], buckets: Iterable[metrics.Bucket]) -> Iterator[dict[str, Any]]:
    """Yield what flows take under processor sharing, which has no parts."""
    for run in runs:
        for bucket in buckets:
            flows = metrics.judged(run.result, bucket).drop_nulls("fct_s")
            for metric, column in ((accounts.TOTAL, "fct_s"), (accounts.ALONE, "ideal_fct_s")):
                mean: Any = flows[column].mean()
                value = math.nan if mean is None else mean
                yield {**run.labels, "size": bucket.name, "metric": metric, "value": value}


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    by_size = table.filter(pl.col("size").is_in([bucket.name for bucket in SIZES]))
    by_size = by_size.with_columns(pl.col("size").str.replace_all(" packets", ""))
    shared = by_size.filter(scheme=SHARING)
    for (upper, lower), scheme in zip(axes.T, SCHEMES, strict=True):
        part = by_size.filter(scheme=scheme)
        bars(upper, part, "size")
        ideal = [slowdown(shared, size=size) for size in shared["size"].unique(maintain_order=True)]
        look: Any = {"marker": "_", "markersize": 22, "linestyle": "none", "markeredgewidth": 2}
        upper.plot(np.arange(len(ideal)), ideal, color=looks.BLACK, label=SHARING, **look)
        upper.set_title(scheme, fontsize=11)
        bars(lower, part, "size", shares=True)
        lower.set_xlabel("flow size (packets)")
    axes[0][0].set_ylabel(SLOWDOWN)
    axes[1][0].set_ylabel("share of the excess (%)")
    legend(axes, by_size)


def of_excess(table: pl.DataFrame, scheme: str, *parts: str, size: str) -> float:
    """Return which share of the mean excess of a scheme's flows these parts are."""
    return share(table, parts, scheme=scheme, size=size)


for scheme, what in ((TCP, "slow start"), (XCP, "small windows")):

    def waits(table: pl.DataFrame, scheme: str) -> Verdict:
        part = of_excess(table, scheme, accounts.ROUND_TRIPS, size=SMALL.name)
        return at_least(part, 0.8, f"{accounts.ROUND_TRIPS} of {scheme}'s excess")

    figure.claim(
        f"{scheme}: of the excess of flows up to 2000 packets at least 80 % is round trips of the "
        f"window ({what}), not queueing",
        stated=False,
    )(partial(waits, scheme=scheme))


@figure.claim(
    "TCP: with the handshake round trips are at least 80 % of the excess at each size up to 2000 "
    "packets",
    stated=False,
)
def round_trips_of_any_kind(table: pl.DataFrame) -> Verdict:
    parts = (accounts.HANDSHAKE, accounts.ROUND_TRIPS)
    return all_at_least(
        {
            f"{' and '.join(parts)}, flows of {bucket.name}, of the excess": of_excess(
                table, TCP, *parts, size=bucket.name
            )
            for bucket in SIZES[:-1]
        },
        0.8,
    )


@figure.claim(
    "RCP: flows up to 1000 packets wait for at most one round trip of the window, and of what they "
    "take beyond the handshake at least 80 % is their pace",
    stated=False,
)
def a_rate_from_the_start(table: pl.DataFrame) -> Verdict:
    labels = {"scheme": RCP, "size": SMALLER.name}
    beyond = excess(table, **labels) - value(table, accounts.HANDSHAKE, **labels)
    return every(
        [
            at_most(value(table, ROUNDS, **labels), 1, "round trips of the window"),
            at_least(
                value(table, accounts.PACE, **labels) / beyond, 0.8, "pace of all but the handshake"
            ),
        ]
    )


REASONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "slow start takes many round trips": (TCP, (AS_SLOW_START,)),
    "windows are smaller than slow start's, and grow slowly": (XCP, (accounts.ROUND_TRIPS,)),
    "queues are full": (TCP, (accounts.OTHERS,)),
    "losses are repaired": (TCP, (accounts.REPAIRS, accounts.TIME_OUTS)),
}
"""Why flows last long, by the source: the scheme by which it is told, and what it is found in."""


def matters(table: pl.DataFrame, reason: str) -> Verdict:
    """Judge that a reason costs flows at least a twentieth of what they take too long."""
    scheme, parts = REASONS[reason]
    labels = {"scheme": scheme, "size": SMALL.name}
    found = share(table, parts, **labels)
    if scheme == XCP:
        found -= share(table, [AS_SLOW_START], **labels)
    return at_least(found, 0.05, f"its share of {scheme}'s excess")


for reason in REASONS:
    figure.claim(
        f"the source's reason that {reason} is at least 5 % of the excess of "
        f"{REASONS[reason][0]}'s flows up to 2000 packets",
        stated=False,
    )(partial(matters, reason=reason))
