"""Figure B7: a link may be busy with retransmissions, and flows slow all the same."""

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
    OFFERED,
    PACKET,
    SHARING,
    TCP,
    UTILISATION,
    WIRE,
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

RESENT = "sent again"

figure = Figure(
    paper,
    id="b7",
    title="Utilisation by retransmissions",
    source="Figure 7",
    scales={
        "smoke": {"rate_bps": 100e6, "length_s": 200},
        "quick": {"rate_bps": 2.4e9, "length_s": 40, "seeds": 10},
        "paper": {"rate_bps": 2.4e9, "length_s": 3000, "seeds": 8},
    },
    deviations=(
        "The shape of the sizes is not stated; ours is 1.4, as in figure 1, which has the same "
        "link and round trip.",
        "What is missing is in the largest flows: they lose packets in the bursts of others' slow "
        "start, get back one packet a round trip, and are not done when the run ends. The longer "
        "it is the less that weighs: runs of 40, 300, 1000 and 3000 seconds use 0.83, 0.87, 0.92 "
        "and 0.95 of what is offered. How long the paper's were is not known.",
    ),
    panels=(1, 2),
    size=(11, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = SETTING.at(scale)
    yield from setting.runs(scale, {TCP: tcp(setting.link), SHARING: ideals[SHARING]})


def resent(result: Result) -> metrics.Statistic:
    """Measure the share of what the link carried that was sent before."""
    again = result.flows["retransmits"].sum() * PACKET
    return metrics.Statistic(again / metrics.link_counters(result, WIRE)["bytes"])


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    simulated = [run for run in runs if run.labels["scheme"] == TCP]
    used = over_time(simulated).filter(metric=UTILISATION)
    shares = metrics.measure(simulated, **{RESENT: resent, OFFERED: offered})
    return pl.concat([along_size(SETTING, runs), used, shares], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    forms = drawn_formulas(table)
    plot.along_sizes(axes[0], table.filter(metric=BY_SIZE), curves=forms, limits=(5e3, 1e6))
    first = first_seed(table, UTILISATION)
    plot.series(axes[1], first.drop("high"), unit="%", time_unit="s", label=UTILISATION)
    for metric, colour, line in ((OFFERED, looks.BLACK, ":"), (RESENT, looks.RED, "--")):
        share = 100 * metrics.at(table, metric=metric, seed=first["seed"][0])
        axes[1].axhline(share, color=colour, linewidth=1, linestyle=line, label=metric)
    axes[1].set_ylim(0, 105)
    plot.legend(axes[1])


@figure.claim("retransmissions are a few per cent (1 to 10) of what the link carries")
def a_few_per_cent(table: pl.DataFrame) -> Verdict:
    again: Any = table.filter(metric=RESENT)["value"].mean()
    said = "the share in per cent"
    return between(100 * again, 1, 10, said)


@figure.claim("utilisation is high all the same: as much as is offered (within 10 %)")
def busy(table: pl.DataFrame) -> Verdict:
    used = mean_of(table, TCP, UTILISATION)
    load: Any = table.filter(metric=OFFERED)["value"].mean()
    return between(used / load, 0.9, 1.1, f"{used:.3f} used of {load:.3f} offered")


@figure.claim("TCP takes at least 10 times as long as sharing for most sizes up to 30000 packets")
def far_slower(table: pl.DataFrame) -> Verdict:
    slower = ratios(table, TCP, SHARING, up_to=30_000)["ratio"]
    middle: Any = slower.median()
    value = float("nan") if middle is None else middle
    return at_least(value, 10, "the median over bins of TCP over processor sharing")
