"""Figure B12: FCT by size under RCP, TCP, XCP and processor sharing."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_most, between, every, plot, theory

from .paper import (
    BY_SIZE,
    MANY_FLOWS_SCALES,
    RCP,
    SHARING,
    SRPT,
    TCP,
    XCP,
    Setting,
    all_schemes,
    along_size,
    at_sizes,
    drawn_formulas,
    paper,
    ratios,
)

SETTING = Setting(theory.Link(2.4e9, 0.1), 0.9, theory.Pareto(25, 1.2))

figure = Figure(
    paper,
    id="b12",
    title="RCP against TCP, XCP and processor sharing",
    source="Figure 12",
    scales=MANY_FLOWS_SCALES
    | {
        "quick": {**MANY_FLOWS_SCALES["quick"], "length_s": 6},
    },
    deviations=(
        "TCP is Reno, as in the authors' script. RCP is drawn with the gains of that script, on "
        "which the claims are judged, and with those of XCP.",
        "RCP's maximum counts as close to the mean of processor sharing if it is at most twice "
        "that mean. Maxima are means over seeds of the maximum of a run: the maximum of all runs "
        "would grow with the number of runs.",
    ),
    panels=(1, 3),
    size=(15, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = SETTING.at(scale)
    yield from setting.runs(scale, all_schemes(setting.link, "reno", scale))


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return along_size(SETTING, runs)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    by_size = table.filter(pl.col("metric") == BY_SIZE, pl.col("scheme") != SRPT)
    forms = drawn_formulas(table)
    plot.along_sizes(axes[0], by_size, curves=forms, limits=(1, 2000), log_sizes=False)
    plot.along_sizes(axes[1], by_size, curves=forms, limits=(2000, 1e4), log_sizes=False)
    shared = forms.filter(pl.col("scheme").str.starts_with(SHARING))
    longest = by_size.filter(pl.col("scheme") != SHARING)
    mean = shared.with_columns(max="mean", scheme=pl.lit(f"{SHARING}, mean"))
    plot.along_sizes(
        axes[2],
        longest,
        column="max",
        curves=mean,
        limits=(1, 1e4),
        label="maximum completion time",
    )
    axes[1].get_legend().remove()
    axes[1].locator_params(axis="x", nbins=5)


@figure.claim("RCP is at least as fast as TCP and XCP, at any size up to 10 000 packets")
def rcp_is_fastest(table: pl.DataFrame) -> Verdict:
    def judge_ratio(scheme: str) -> Verdict:
        largest = ratios(table, RCP, scheme, up_to=1e4).sort("ratio").tail(1)
        value: Any = largest["ratio"].max()
        description = f"the maximum of RCP over {scheme}, at {sum(largest['size']):.0f} packets,"
        return at_most(float("nan") if value is None else value, 1, description)

    return every(judge_ratio(scheme) for scheme in (TCP, XCP))


def times_as_long(value: Any, published: float, description: str) -> Verdict:
    """Judge that a ratio of FCTs to those under RCP is the published one within 1.5."""
    value = float("nan") if value is None else value
    return between(value, published / 1.5, published * 1.5, description)


@figure.claim("up to 2000 packets TCP takes 4 times as long (within a factor of 1.5)")
def tcp_is_slower(table: pl.DataFrame) -> Verdict:
    median = ratios(table, TCP, RCP, up_to=2000)["ratio"].median()
    return times_as_long(median, 4, "the median over bins of TCP over RCP")


@figure.claim("up to 2000 packets XCP takes up to 30 times as long (within a factor of 1.5)")
def xcp_is_slower(table: pl.DataFrame) -> Verdict:
    maximum = ratios(table, XCP, RCP, up_to=2000)["ratio"].max()
    return times_as_long(maximum, 30, "the maximum of XCP over RCP")


@figure.claim("RCP's maximum is close to the mean of processor sharing, up to 2000 packets")
def maximum_is_near_mean(table: pl.DataFrame) -> Verdict:
    rows = at_sizes(table, RCP, up_to=2000)
    mean = theory.processor_sharing(SETTING.link, SETTING.load, rows["size"].to_numpy())
    maximum: Any = (rows["max"] / pl.Series(mean)).max()
    description = "RCP's maximum over the mean of processor sharing"
    return at_most(float("nan") if maximum is None else maximum, 2, description)
