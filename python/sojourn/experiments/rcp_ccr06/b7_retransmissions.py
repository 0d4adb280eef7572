"""Figure B7: utilisation with retransmissions, and FCTs that are long nevertheless."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Result,
    Run,
    Scale,
    Verdict,
    at_least,
    between,
    looks,
    metrics,
    plot,
    theory,
)

from .paper import (
    BY_SIZE,
    LINK_NAME,
    OFFERED,
    PACKET,
    SHARING,
    TCP,
    UTILISATION,
    Setting,
    along_size,
    drawn_formulas,
    first_seed,
    ideals,
    mean_of,
    offered,
    over_time,
    paper,
    ratios,
    tcp,
)

SETTING = Setting(theory.Link(2.4e9, 0.1), 0.8, theory.Pareto(30_000, 1.4))
"""The shape is not stated; it is that of figure 1, which has the same link and round trip."""

RETRANSMITTED = "retransmissions"

figure = Figure(
    paper,
    id="b7",
    title="Utilisation by retransmissions",
    source="Figure 7",
    scales={
        "smoke": {"rate_bps": 100e6, "length_s": 200},
        "quick": {"rate_bps": 2.4e9, "length_s": 40},
        "paper": {"rate_bps": 2.4e9, "length_s": 3000},
    },
    deviations=(
        "The shape of the sizes is not stated; ours is 1.4, as in figure 1, which has the same "
        "link and round trip.",
        "The unused part of the load belongs to the largest flows: they lose packets in the "
        "slow-start bursts of other flows, grow by one packet per round trip, and have not "
        "finished when the run ends. Longer runs reduce the effect: runs of 40, 300, 1000 and 3000 "
        "seconds carry 0.83, 0.87, 0.92 and 0.95 of the offered load. The length of the paper's "
        "runs is unknown.",
    ),
    panels=(1, 2),
    size=(11, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = SETTING.at(scale)
    yield from setting.runs(scale, {TCP: tcp(setting.link), SHARING: ideals[SHARING]})


def retransmitted_share(result: Result) -> metrics.Statistic:
    """Measure the share of retransmissions in the bytes that the link carried."""
    retransmitted = result.flows["retransmits"].sum() * PACKET
    return metrics.Statistic(retransmitted / metrics.link_counters(result, LINK_NAME)["bytes"])


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    simulated = [run for run in runs if run.labels["scheme"] == TCP]
    utilisation = over_time(simulated).filter(metric=UTILISATION)
    shares = metrics.measure(simulated, **{RETRANSMITTED: retransmitted_share, OFFERED: offered})
    return pl.concat([along_size(SETTING, runs), utilisation, shares], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    forms = drawn_formulas(table)
    plot.along_sizes(axes[0], table.filter(metric=BY_SIZE), curves=forms, limits=(5e3, 1e6))
    first = first_seed(table, UTILISATION)
    plot.series(axes[1], first.drop("high"), unit="%", time_unit="s", label=UTILISATION)
    for metric, colour, line in ((OFFERED, looks.BLACK, ":"), (RETRANSMITTED, looks.RED, "--")):
        share = 100 * metrics.at(table, metric=metric, seed=first["seed"][0])
        axes[1].axhline(share, color=colour, linewidth=1, linestyle=line, label=metric)
    axes[1].set_ylim(0, 105)
    plot.legend(axes[1])


@figure.claim("retransmissions are 3.6 % of what the link carries (within a factor of 1.5)")
def a_few_per_cent(table: pl.DataFrame) -> Verdict:
    retransmitted: Any = table.filter(metric=RETRANSMITTED)["value"].mean()
    description = "retransmissions in per cent"
    return between(100 * retransmitted, 3.6 / 1.5, 3.6 * 1.5, description)


@figure.claim("utilisation is nevertheless high: equal to the offered load (within 10 %)")
def high_utilisation(table: pl.DataFrame) -> Verdict:
    utilisation = mean_of(table, TCP, UTILISATION)
    load: Any = table.filter(metric=OFFERED)["value"].mean()
    return between(utilisation / load, 0.9, 1.1, f"{utilisation:.3f} used of {load:.3f} offered")


def median_ratio(table: pl.DataFrame) -> float:
    """Return the median over bins of size of TCP's FCT over that of sharing."""
    median: Any = ratios(table, TCP, SHARING, up_to=30_000)["ratio"].median()
    return float("nan") if median is None else float(median)


MEDIAN = "the median over bins of TCP over processor sharing"


@figure.claim(
    "TCP takes two orders of magnitude longer than sharing (100 times, within a factor of 3), up "
    "to 30 000 packets"
)
def two_orders_of_magnitude(table: pl.DataFrame) -> Verdict:
    return between(median_ratio(table), 100 / 3, 300, MEDIAN)


@figure.claim(
    "TCP takes at least 10 times as long as sharing for most sizes up to 30 000 packets",
    stated=False,
)
def far_slower(table: pl.DataFrame) -> Verdict:
    return at_least(median_ratio(table), 10, MEDIAN)
