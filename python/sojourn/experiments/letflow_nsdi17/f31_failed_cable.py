"""Figure F31: mean FCTs against load with a failed cable, under five load balancers."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    all_at_least,
    all_at_most,
    metrics,
    plot,
)
from sojourn.experiments.conga_sigcomm14.paper import scenario

from .paper import CONGA, ECMP, LETFLOW, MEAN, SPRAYED, WCMP, loads, paper, ratio, routings

HIGH = 0.6

figure = Figure(
    paper,
    id="f31",
    title="Mean FCTs with a failed cable, by load balancer",
    scales={
        "smoke": {"loads": (HIGH,), "flows": 60},
        "quick": {"loads": (0.4, HIGH, 0.7), "flows": 2000},
        "paper": {"loads": (0.2, 0.3, 0.4, 0.5, HIGH, 0.7), "flows": 20_000},
    },
    deviations=(
        "Sizes are those of web search.",
        "Sprayed packets take each path as often, and so the second spine half as often as the "
        "first, in proportion to its capacity. With next hops chosen evenly (`random_next_hop`) "
        "the mean at load 0.7 is 2.9 times CONGA's (14.9 and 5.2 ms, one seed); if the source "
        "sprays like that, this explains the difference.",
        "For ECMP, see F30: the ratio to CONGA grows with the length of a run.",
    ),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for load in scale["loads"]:
        for scheme, routing in routings.items():
            flows = scale["flows"]
            yield (
                {"scheme": scheme, "load": load},
                scenario("web_search", load, flows, routing, has_failed=True),
            )


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return metrics.across_seeds(metrics.measure(runs, **{MEAN: metrics.fct("mean")}))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    plot.against(axes, table, unit="ms", labels=("load", MEAN), log=True)
    axes.legend()


def ratios(table: pl.DataFrame, *pairs: tuple[str, str], least: float = 0) -> dict[str, float]:
    """Return the ratios of mean FCTs of pairs of schemes, at every load of at least `least`."""
    return {
        f"{upper} over {lower} at load {load:g}": ratio(table, upper, lower, load=load)
        for load in loads(table)
        if load >= least
        for upper, lower in pairs
    }


@figure.claim("LetFlow's mean FCT is at most 1.35 times CONGA's at every load")
def near_conga(table: pl.DataFrame) -> Verdict:
    return all_at_most(ratios(table, (LETFLOW, CONGA)), 1.35)


@figure.claim("load 0.6 and above: the mean FCTs of ECMP and sprayed packets are twice CONGA's")
def others_collapse(table: pl.DataFrame) -> Verdict:
    return all_at_least(ratios(table, (ECMP, CONGA), (SPRAYED, CONGA), least=HIGH), 2)


@figure.claim("load 0.6 and above: WCMP lies between CONGA and ECMP")
def wcmp_lies_between(table: pl.DataFrame) -> Verdict:
    return all_at_least(ratios(table, (WCMP, CONGA), (ECMP, WCMP), least=HIGH), 1)
