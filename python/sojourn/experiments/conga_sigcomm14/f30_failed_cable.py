"""Figure F30: mean FCTs against load with a failed cable, under ECMP and CONGA."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_least, at_most, metrics, plot

from .paper import CONGA, ECMP, MEAN, paper, ratio, routings, scenario

FAILED, WHOLE = "failed cable", "whole network"

HIGH = 0.7

figure = Figure(
    paper,
    id="f30",
    title="Mean FCTs with a failed cable",
    source="Figure 11",
    scales={
        "smoke": {"loads": (HIGH,), "flows": 60},
        "quick": {"loads": (0.4, HIGH), "flows": 2000},
        "paper": {"loads": (0.2, 0.3, 0.4, 0.5, 0.6, HIGH), "flows": 20_000},
    },
    deviations=(
        "Sizes are those of web search.",
        "At load 0.7 ECMP offers the single cable 56 Gb/s, 1.4 times its rate, so its mean FCT "
        "grows with the length of a run. With 2000 flows, which arrive in 0.12 s, it is 1.5 times "
        "CONGA's; with 8000 flows it is 2.3 times (17.2 and 7.5 ms, one seed). The length of the "
        "source's runs is not in our reading.",
    ),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for network in (FAILED, WHOLE):
        for load in scale["loads"]:
            for scheme in (ECMP, CONGA):
                labels = {"scheme": scheme, "network": network, "load": load}
                has_failed = network == FAILED
                flows = scale["flows"]
                yield (
                    labels,
                    scenario("web_search", load, flows, routings[scheme], has_failed=has_failed),
                )


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return metrics.across_seeds(metrics.measure(runs, **{MEAN: metrics.fct("mean")}))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    named = table.with_columns(scheme=pl.col("scheme") + ", " + pl.col("network"))
    drawn_as = {f"{scheme}, {FAILED}": scheme for scheme in (ECMP, CONGA)}
    plot.against(axes, named, unit="ms", labels=("load", MEAN), log=True, drawn_as=drawn_as)
    axes.legend()


@figure.claim("load 0.7, failed cable: ECMP's mean FCT is at least 3 times CONGA's")
def ecmp_collapses(table: pl.DataFrame) -> Verdict:
    value = ratio(table, ECMP, CONGA, network=FAILED, load=HIGH)
    return at_least(value, 3, f"{ECMP} over {CONGA}")


@figure.claim("load 0.7: a failed cable makes CONGA's mean FCT at most 1.5 times as long")
def conga_keeps_its_fct(table: pl.DataFrame) -> Verdict:
    failed, whole = (
        metrics.at(table, scheme=CONGA, network=network, load=HIGH) for network in (FAILED, WHOLE)
    )
    return at_most(failed / whole, 1.5, f"{FAILED} over {WHOLE}")
