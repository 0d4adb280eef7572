"""Figure F29: mean FCTs against load on the whole test bed under ECMP, CONGA-Flow and CONGA."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    all_at_most,
    between,
    every,
    metrics,
    plot,
)

from .paper import CONGA, CONGA_FLOW, ECMP, MEAN, OVER_ECMP, paper, ratio, routings, scenario

WEB_SEARCH, DATA_MINING = "web search", "data mining"

TABLES = {WEB_SEARCH: "web_search", DATA_MINING: "data_mining"}

MODERATE, HIGH = 0.5, 0.8

figure = Figure(
    paper,
    id="f29",
    title="Mean FCTs on the whole test bed",
    source="Figures 9 and 10",
    scales={
        "smoke": {"loads": (HIGH,), "flows": {WEB_SEARCH: 60, DATA_MINING: 20}},
        "quick": {"loads": (MODERATE, HIGH), "flows": {WEB_SEARCH: 1000, DATA_MINING: 400}},
        "paper": {
            "loads": (0.1, 0.3, MODERATE, 0.7, HIGH, 0.9),
            "flows": {WEB_SEARCH: 20_000, DATA_MINING: 10_000},
        },
    },
    deviations=(
        "Runs end with their last flow, after a time without new arrivals. Few flows understate "
        "the effect of a high load. With 400 flows of data mining the mean is that of a few flows "
        "of up to a gigabyte (its interval includes 0), and all schemes are equal: the claims of "
        "the source are judged at `paper`.",
        "Means are drawn over ECMP's with the same flows, since means of few large flows differ "
        "more between seeds than between schemes.",
    ),
    panels=(1, 2),
    size=(12, 4.8),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for workload, table_name in TABLES.items():
        for load in scale["loads"]:
            for scheme, routing in routings.items():
                flows = scale["flows"][workload]
                labels = {"scheme": scheme, "workload": workload, "load": load}
                yield labels, scenario(table_name, load, flows, routing, has_failed=False)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    means = metrics.measure(runs, **{MEAN: metrics.fct("mean")})
    # The same flows under ECMP: their sizes, which vary most, cancel.
    labels = ["workload", "load", "seed"]
    ecmp = means.filter(scheme=ECMP).select(*labels, ecmp="value")
    ratios = means.join(ecmp, on=labels, maintain_order="left").select(
        pl.exclude("value", "ecmp", "metric", "at_least"),
        metric=pl.lit(OVER_ECMP),
        value=pl.col("value") / pl.col("ecmp"),
        at_least="at_least",
    )
    ratios = metrics.across_seeds(ratios.select(means.columns), ratios=True)
    return pl.concat([metrics.across_seeds(means), ratios])


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, workload in zip(axes, TABLES, strict=True):
        part = table.filter(workload=workload, metric=OVER_ECMP)
        plot.against(panel, part, labels=(f"load ({workload})", OVER_ECMP))
        panel.set_ylim(bottom=0.5)
    plot.one_legend(axes)


def alike(table: pl.DataFrame, workload: str) -> Verdict:
    """Judge that all schemes are within 10 % of ECMP at load 0.5."""
    return every(
        between(
            ratio(table, scheme, ECMP, workload=workload, load=MODERATE),
            0.9,
            1.1,
            f"{scheme} over {ECMP}",
        )
        for scheme in (CONGA_FLOW, CONGA)
    )


def better(table: pl.DataFrame, workload: str, bound: float) -> Verdict:
    """Judge CONGA's mean FCT over ECMP's at high loads."""
    loads = [load for load in table["load"].unique().sort() if load >= HIGH]
    return all_at_most(
        {
            f"{CONGA} over {ECMP} at load {load:g}": ratio(
                table, CONGA, ECMP, workload=workload, load=load
            )
            for load in loads
        },
        bound,
    )


@figure.claim(
    "data mining, load 0.5: ECMP, CONGA-Flow and CONGA are within 10 %", scales=("paper",)
)
def data_mining_is_alike(table: pl.DataFrame) -> Verdict:
    return alike(table, DATA_MINING)


@figure.claim(
    "data mining: CONGA's mean FCT is at least 15 % below ECMP's at load 0.8 and above",
    scales=("paper",),
)
def data_mining_is_better(table: pl.DataFrame) -> Verdict:
    return better(table, DATA_MINING, 0.85)


@figure.claim("web search, load 0.5: ECMP, CONGA-Flow and CONGA are within 10 %", stated=False)
def web_search_is_alike(table: pl.DataFrame) -> Verdict:
    return alike(table, WEB_SEARCH)


@figure.claim("web search: CONGA is not slower than ECMP at load 0.8 and above", stated=False)
def web_search_is_not_slower(table: pl.DataFrame) -> Verdict:
    return better(table, WEB_SEARCH, 1)
