"""Figure B2: FCT of flows in slow start; flows in progress and utilisation."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    accounts,
    at_least,
    at_most,
    between,
    every,
    metrics,
    plot,
    theory,
)

from .paper import (
    ACTIVE,
    BACKBONE,
    BY_SIZE,
    COUNTED,
    PAYLOAD,
    SHARING,
    TCP,
    UTILISATION,
    WAITING,
    XCP,
    along_size,
    at_sizes,
    drawn_formulas,
    first_seed,
    ideals,
    mean_of,
    over_time,
    paper,
    rate_bps,
    size_table,
    split_by_breakdown,
    tcp,
    xcp,
)

figure = Figure(
    paper,
    id="b2",
    title="Most flows never leave slow start",
    source="Figure 2",
    scales={
        "smoke": {"rate_bps": 50e6, "length_s": 10, "account_s": 5},
        "quick": {"rate_bps": 300e6, "length_s": 120, "account_s": 40},
        "paper": {"rate_bps": 2.4e9, "length_s": 300, "account_s": 40},
    },
    deviations=(
        "At the scale `quick` the link has 300 Mb/s: at 2.4 Gb/s the large flows, a large part of "
        "the load, need minutes to reach their share under XCP. At that rate XCP's utilisation is "
        "0.90 (0.86 to 0.94) of TCP's in 100 seconds, and 0.95 in the 300 seconds that are judged.",
        "The formula has no queueing delay. Flows without loss are the TCP flows without "
        "retransmissions and timeouts; lost SYNs count as timeouts.",
        "The FCT breakdown comes from a separate run with the flows of the first 40 seconds: a run "
        "with breakdown takes three to four times as long.",
    ),
    panels=(1, 3),
    size=(14, 4.4),
)

WITHOUT_LOSS, EXPECTED = "TCP, without loss", "slow start alone"

LOST_NOTHING = (pl.col("retransmits") == 0) & (pl.col("timeouts") == 0)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = BACKBONE.at(scale)
    transports = {TCP: tcp(setting.link), XCP: xcp(setting.link)}
    yield from setting.runs(scale, transports | {SHARING: ideals[SHARING]})
    yield from setting.counted(scale, {TCP: transports[TCP]})


def lossless(runs: list[Run]) -> pl.DataFrame:
    """Return FCTs of TCP's flows without loss, measured and by the formula of slow start."""
    link = replace(BACKBONE.link, rate_bps=rate_bps(runs))

    def expected(run: Run) -> Run:
        flows = run.result.flows
        by_formula = theory.slow_start(link, (flows["size_bytes"] / PAYLOAD).to_numpy(), 2)
        flows_by_formula = flows.with_columns(pl.Series("fct_s", by_formula))
        return Run(run.labels, run.result.with_flows(flows_by_formula))

    is_lossless = LOST_NOTHING & (pl.col("outcome") == "finished")
    tcp_runs = [run for run in runs if run.labels["scheme"] == TCP]
    measured = size_table(tcp_runs, where=is_lossless).with_columns(scheme=pl.lit(WITHOUT_LOSS))
    by_formula = size_table([expected(run) for run in tcp_runs], where=is_lossless)
    return pl.concat([measured, by_formula.with_columns(scheme=pl.lit(EXPECTED))])


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    runs, counted = split_by_breakdown(runs)
    times = over_time(runs).filter(pl.col("metric") != WAITING)
    tables = [along_size(BACKBONE, runs), lossless(runs), times, divided(counted)]
    return pl.concat(tables, how="diagonal")


def divided(runs: list[Run]) -> pl.DataFrame:
    """Return the parts of the excess (FCT less ideal FCT) of flows without loss."""
    is_lossless = [
        Run(run.labels, run.result.with_flows(run.result.flows.filter(LOST_NOTHING)))
        for run in runs
    ]
    table = accounts.by_size(is_lossless, [metrics.ALL], excess=True)
    return table.select("scheme", "metric", "value", "at_least")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    by_size = table.filter(pl.col("metric") == BY_SIZE, pl.col("scheme") != EXPECTED)
    forms = drawn_formulas(table)
    plot.along_sizes(axes[0], by_size, curves=forms, limits=(1, 2e4))
    for panel, metric, unit in ((axes[1], ACTIVE, ""), (axes[2], UTILISATION, "%")):
        rows = first_seed(table, metric).drop("high")
        plot.series(panel, rows, unit=unit, time_unit="s", label=metric)
        panel.set_ylim(bottom=0)


@figure.claim(
    "flows without loss take as long as slow start on an idle link, within 15 %, up to 2000 packets"
)
def as_slow_start(table: pl.DataFrame) -> Verdict:
    measured, by_formula = (at_sizes(table, name, up_to=2000) for name in (WITHOUT_LOSS, EXPECTED))
    ratio = measured["mean"] / by_formula["mean"]
    minimum: Any = ratio.min()
    maximum: Any = ratio.max()
    description = "measured over calculated"
    return every(
        [
            at_least(
                math.nan if minimum is None else minimum, 0.85, f"the minimum of {description}"
            ),
            at_most(
                math.nan if maximum is None else maximum, 1.15, f"the maximum of {description}"
            ),
        ]
    )


@figure.claim("most flows never lose a packet, and so never leave slow start")
def most_flows(table: pl.DataFrame) -> Verdict:
    is_lossless, total = (
        int(table.filter(scheme=name, metric=BY_SIZE)["flows"].sum())
        for name in (WITHOUT_LOSS, TCP)
    )
    return at_least(is_lossless / total, 0.5, "the share of flows without loss")


@figure.claim("TCP and XCP use the link about equally (within 10 %)")
def utilised_alike(table: pl.DataFrame) -> Verdict:
    tcp_uses, xcp_uses = (mean_of(table, scheme, UTILISATION) for scheme in (TCP, XCP))
    return between(xcp_uses / tcp_uses, 0.9, 1.1, f"XCP over TCP, which uses {tcp_uses:.3f},")


@figure.claim(
    "at least 80 % of the excess of flows without loss, apart from the handshake, is round trips "
    "of the window",
    stated=False,
)
def rounds_of_slow_start(table: pl.DataFrame) -> Verdict:
    def mean(part: str) -> float:
        return metrics.at(table, scheme=f"{TCP}{COUNTED}", metric=part)

    excess = mean(accounts.TOTAL) - mean(accounts.ALONE) - mean(accounts.HANDSHAKE)
    queueing = mean(accounts.OTHERS) / excess
    description = f"round trips over the excess, where queueing is {queueing:.3f},"
    return at_least(mean(accounts.ROUND_TRIPS) / excess, 0.8, description)
