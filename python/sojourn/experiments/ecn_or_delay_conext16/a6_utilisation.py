"""Figure A6: utilisation of the middle link against load."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sojourn import Figure, Run, Verdict, at_most, between, every, metrics, plot

from .paper import (
    DCQCN,
    LOADS,
    LOOKS,
    MIDDLE,
    PATCHED,
    SCALES,
    claim_for_both_betas,
    dctcp,
    over_loads,
    paper,
    schemes,
)

USED, OVER_DCQCN = "utilisation of the middle link", "utilisation over DCQCN's"
WITHIN = (0.95, 1.05)
"""Range of "roughly the same" utilisation as DCQCN's."""

figure = Figure(
    paper,
    id="a6",
    title="Utilisation of the middle link",
    source="In the text: the utilisation is roughly the same with both schemes",
    scales=SCALES,
    deviations=(
        "The load that the flows of a run offer is random, so that utilisation differs much more "
        "between seeds than between schemes. All schemes have the same flows: each is shown "
        "relative to DCQCN with the same seed. Nothing is dropped, so goodput is proportional to "
        "utilisation.",
        "The source compares DCQCN and TIMELY only. The spread over all schemes, with patched "
        "TIMELY and DCTCP, of at most 3 % is a claim of our own, and was the first.",
    ),
    panels=(1, 2),
    size=(10.5, 4.2),
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield from over_loads(scale, schemes | dctcp)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    measured = metrics.measure(runs, **{USED: metrics.utilisation(MIDDLE, whole_run=True)})
    return metrics.across_seeds(pl.concat([measured, over_dcqcn(measured)]))


def over_dcqcn(utilisation: pl.DataFrame) -> pl.DataFrame:
    """Return each scheme's utilisation over DCQCN's at the same load with the same seed."""
    dcqcn = utilisation.filter(scheme=DCQCN).select("load", "seed", dcqcn="value")
    paired = utilisation.join(dcqcn, on=["load", "seed"], maintain_order="left")
    ratios = paired.filter(pl.col("scheme") != DCQCN).with_columns(
        metric=pl.lit(OVER_DCQCN), value=pl.col("value") / pl.col("dcqcn")
    )
    return ratios.drop("dcqcn")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    left, right = axes
    load = "load (1 = 8 Gb/s of payload)"
    level = table.filter(metric=USED).drop("low", "high")
    plot.against(left, level, unit="%", labels=(load, USED), drawn_as=LOOKS)
    ratios = table.filter(metric=OVER_DCQCN)
    plot.against(right, ratios, labels=(load, OVER_DCQCN), drawn_as=LOOKS)
    right.axhspan(*WITHIN, color="#222222", alpha=0.08, lw=0)
    lowest = pl.min_horizontal("value", pl.col("low").fill_nan(None)).min()
    right.set_ylim(bottom=0.95 * ratios.select(lowest).item())
    plot.legend(left, columns=3)
    plot.one_legend(axes)


def judge_timely(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that TIMELY's utilisation is about that of DCQCN at every load."""
    return every(
        between(
            metrics.at(table, scheme=timely, load=load, metric=OVER_DCQCN),
            *WITHIN,
            f"{timely} over DCQCN at load {load}",
        )
        for load in LOADS
    )


claim_for_both_betas(
    figure, "{timely}, uses the link about as much as DCQCN (within 5 %)", judge_timely
)


def judge_spread(table: pl.DataFrame, timely: str) -> Verdict:
    """Judge that the utilisation of all schemes is about the same at every load."""

    def spread(load: float) -> Verdict:
        used = [
            metrics.at(table, scheme=scheme, load=load, metric=USED)
            for scheme in (DCQCN, timely, PATCHED, "DCTCP")
        ]
        return at_most(max(used) / min(used), 1.03, f"the highest over the lowest at load {load}")

    return every(spread(load) for load in LOADS)


claim_for_both_betas(
    figure,
    "all schemes, with {timely}, use the link about equally (within 3 %)",
    judge_spread,
    stated=False,
)
