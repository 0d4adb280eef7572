"""Figure A10: TIMELY with two values of beta against the published numbers."""

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from sojourn import Figure, Run, Verdict, between, every, finding, fluid, looks, metrics, plot

from .a5_queue import every_10_ms
from .a6_utilisation import OVER_DCQCN, USED, WITHIN, over_dcqcn
from .paper import (
    DCQCN,
    FACTOR,
    LOOKS,
    MIDDLE,
    SCALES,
    SMALL,
    SMALL_BETA,
    TIMELY,
    as_published,
    over_loads,
    paper,
    schemes,
)

BETAS = {TIMELY: 0.8, SMALL_BETA: 0.008}
LOADS = (0.6, 0.8, 1.0)

MEDIAN, P90, MEAN_QUEUE, MAXIMUM_QUEUE = "median", "p90", "mean queue", "maximum queue"
NUMBERS = {
    OVER_DCQCN: LOADS,
    MEDIAN: LOADS,
    P90: LOADS,
    MEAN_QUEUE: (0.8,),
    MAXIMUM_QUEUE: (0.8,),
}
"""The numbers of the source about TIMELY at these loads."""

COUNT = sum(map(len, NUMBERS.values()))
FIGURES = (MEDIAN, P90, MEAN_QUEUE, MAXIMUM_QUEUE)

CAPACITY_BPS = 10e9
TICKS = (0.001, 0.01, 0.1, 1, 10)
FLUID_QUEUE, FLUID_USED = "fluid: queue", "fluid: utilisation"

figure = Figure(
    paper,
    id="a10",
    title="Which beta had the published runs of TIMELY?",
    source="Figures: median and 90th percentile of FCT; queue; the text on utilisation",
    scales={name: {**scale, "loads": LOADS} for name, scale in SCALES.items()},
    deviations=(
        "The source states the default parameters of [timely15], so beta = 0.8, for these runs, "
        "and beta = 0.008 for patched TIMELY. Both are judged by the same 11 numbers: "
        "the utilisation, which the source calls roughly the same as DCQCN's (within 5 %, as "
        "in A6), and the published numbers (within a factor of 1.5). All claims are our own. "
        "A number agrees or disagrees if its confidence interval is on one side of the bounds; "
        "others are undecided. This does not prove which value the authors' runs had.",
        "The fluid models have long flows only, as many as DCQCN has in progress in the mean at "
        "that load, but at least two. The source's fluid models of TIMELY have beta = 0.8, and a "
        "queue of up to 70 KB.",
    ),
    panels=(1, 3),
    size=(14.5, 4.6),
)


@figure.runs
def runs(scale: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    compared = {scheme: schemes[scheme] for scheme in (DCQCN, *BETAS)}
    yield from over_loads(scale, compared)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    small = {
        name: metrics.fct(statistic, SMALL, few=True)
        for name, statistic in ((MEDIAN, "p50"), (P90, "p90"))
    }
    fcts = metrics.measure(runs, **small)
    used = metrics.measure(runs, **{USED: metrics.utilisation(MIDDLE, whole_run=True)})
    queues = metrics.measure(
        runs, **{MEAN_QUEUE: every_10_ms("mean"), MAXIMUM_QUEUE: every_10_ms("max")}
    )
    return pl.concat(
        [
            metrics.across_seeds(fcts, median=True),
            metrics.across_seeds(pl.concat([used, over_dcqcn(used), queues]), ratios=True),
            *(fluid_of_as_many(runs, load) for load in LOADS),
        ],
        how="diagonal_relaxed",
    )


def fluid_of_as_many(runs: list[Run], load: float) -> pl.DataFrame:
    """Return the fluid models of as many flows as DCQCN has in progress at a load, in the mean."""
    dcqcn = [run for run in runs if run.labels["scheme"] == DCQCN and run.labels["load"] == load]
    in_progress = float(metrics.in_progress(dcqcn)["value"].mean())  # type: ignore[arg-type]
    # A single flow never queues: its rate is at most the capacity.
    flows = max(round(in_progress), 2)
    return fluid_models(flows).with_columns(load=pl.lit(load))


@functools.cache
def fluid_models(flows: int) -> pl.DataFrame:
    """Return the queue over time, and the utilisation of the second half, with both betas."""
    parts = []
    for scheme, beta in BETAS.items():
        law = {"kind": "timely", "beta": beta}
        link = {"flows": flows, "capacity": "10 Gbps", "delay": "7 us"}
        samples = fluid({"model": law, **link, "duration": "200 ms"}).samples
        queue = samples.filter(probe="queue_bytes").select("time_s", "value")
        sent = samples.filter(pl.col("probe").str.starts_with("rate_bps"))
        together = sent.group_by("time_s", maintain_order=True).agg(pl.sum("value"))
        # A link with a queue transmits at its capacity.
        rates = np.where(queue["value"] > 0, CAPACITY_BPS, together["value"])
        late = queue["time_s"].to_numpy() > queue["time_s"].max() / 2  # type: ignore[operator]
        used = pl.DataFrame({"value": [rates[late].mean() / CAPACITY_BPS]})
        for metric, part in ((FLUID_QUEUE, queue), (FLUID_USED, used)):
            labels = {"scheme": scheme, "metric": metric, "flows": flows}
            parts.append(metrics.labelled(labels, part))
    return pl.concat(parts, how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    left, middle, right = axes
    used = [(OVER_DCQCN, load) for load in LOADS]
    others = [(metric, at) for metric in FIGURES for at in NUMBERS[metric]]
    if published is not None:
        draw_numbers(left, table, published, used)
        draw_numbers(middle, table, published, others)
    left.set_xlabel(OVER_DCQCN)
    middle.set_xscale("log")
    middle.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    middle.xaxis.set_minor_formatter(NullFormatter())
    middle.set_xlabel("Sojourn over published (grey: agrees)")
    plot.legend(left, columns=1)
    load = max(LOADS)
    queues = table.filter(metric=FLUID_QUEUE, load=load)
    plot.series(right, queues, unit="KB", label="queue", drawn_as=LOOKS)
    for line in right.lines:
        used_share = metrics.at(table, scheme=line.get_label(), metric=FLUID_USED, load=load)
        line.set(linewidth=1.4, label=f"fluid, {line.get_label()}: {used_share:.0%} of the link")
    right.set_xlim(0, 60)
    right.set_ylim(bottom=-5)
    plot.legend(right, columns=1)
    note = f"{queues['flows'][0]} long flows, as many as at load {load} (fluid models)"
    right.set_xlabel(f"{right.get_xlabel()}\n{note}")


def draw_numbers(
    panel: Axes, table: pl.DataFrame, published: pl.DataFrame, pairs: list[tuple[str, float]]
) -> None:
    """Draw numbers over the published ones, with the range of agreement in grey."""
    rows = np.arange(len(pairs), 0, -1)
    for row, (metric, _) in zip(rows, pairs, strict=True):
        bounds = WITHIN if metric == OVER_DCQCN else (1 / FACTOR, FACTOR)
        panel.fill_betweenx([row - 0.5, row + 0.5], *bounds, color="#222222", alpha=0.12, lw=0)
    for shift, scheme in ((0.12, TIMELY), (-0.12, SMALL_BETA)):
        style = looks.look(LOOKS[scheme])
        value, low, high = (
            [
                metrics.at(table, column, scheme=scheme, metric=metric, load=load)
                / published_number(published, scheme, metric, load)
                for metric, load in pairs
            ]
            for column in ("value", "low", "high")
        )
        mark: Any = {"color": style.colour, "marker": style.marker, "linestyle": "none"}
        label = f"{scheme}: {Outcomes.of(table, scheme)}"
        panel.plot(value, rows + shift, label=label, markersize=7, **mark)
        panel.hlines(rows + shift, low, high, color=style.colour, lw=1)
    panel.axvline(1, color="#222222", lw=0.8)
    short = {OVER_DCQCN: ""}
    names = [f"{short.get(metric, f'{metric}, ')}load {load}" for metric, load in pairs]
    panel.set_yticks(rows, names)
    panel.grid(visible=False, axis="y")


def published_number(published: pl.DataFrame, scheme: str, metric: str, load: float) -> float:
    """Return the number of the source; utilisation is stated as equal to DCQCN's."""
    if metric == OVER_DCQCN:
        return 1.0
    return metrics.at(published, scheme=scheme, metric=metric, load=load)


def judge(table: pl.DataFrame, scheme: str, metric: str) -> Verdict:
    """Judge the numbers of a metric at all loads."""
    if metric == OVER_DCQCN:
        return every(
            between(
                metrics.at(table, scheme=scheme, metric=metric, load=load),
                *WITHIN,
                f"{scheme} over DCQCN at load {load}",
            )
            for load in NUMBERS[metric]
        )
    return every(
        as_published(
            figure, table, f"{metric} at load {load}", scheme=scheme, metric=metric, load=load
        )
        for load in NUMBERS[metric]
    )


@dataclass(frozen=True)
class Outcomes:
    """Counts of the numbers of a scheme: those that agree, disagree, or are undecided."""

    agree: int
    disagree: int
    undecided: int

    @classmethod
    def of(cls, table: pl.DataFrame, scheme: str) -> "Outcomes":
        """Count the numbers by their confidence intervals over the seeds."""
        pairs = [(metric, load) for metric, loads in NUMBERS.items() for load in loads]
        held = [agrees(table, scheme, metric, load) for metric, load in pairs]
        return cls(*(held.count(outcome) for outcome in (True, False, None)))

    def __str__(self) -> str:
        """Return the counts in words."""
        return f"{self.agree} agree, {self.disagree} disagree, {self.undecided} undecided"


def agrees(table: pl.DataFrame, scheme: str, metric: str, load: float) -> bool | None:
    """Return whether a number agrees with the source; `None` if its interval contains a bound."""
    published = figure.published()
    if published is None:
        return None
    least, most = WITHIN if metric == OVER_DCQCN else (1 / FACTOR, FACTOR)
    number = published_number(published, scheme, metric, load)
    value, low, high = (
        metrics.at(table, column, scheme=scheme, metric=metric, load=load) / number
        for column in ("value", "low", "high")
    )
    if math.isnan(low):
        low = high = value
    if least <= low and high <= most:
        return True
    return False if high < least or low > most else None


def add_claim(statement: str, scheme: str, *names: str) -> None:
    """Add a claim about the numbers of these metrics."""

    @figure.claim(f"{scheme}: {statement}", stated=False)
    def numbers_agree(table: pl.DataFrame) -> Verdict:
        return every(judge(table, scheme, name) for name in names)


for scheme in BETAS:
    add_claim("the link is used as by DCQCN (within 5 %)", scheme, OVER_DCQCN)
for scheme in BETAS:
    add_claim(f"the medians are the published ones (within a factor of {FACTOR})", scheme, MEDIAN)
for scheme in BETAS:
    add_claim(f"the p90s are the published ones (within a factor of {FACTOR})", scheme, P90)
for scheme in BETAS:
    add_claim(
        f"the queue's mean and maximum at load 0.8 are the published ones (within a factor of "
        f"{FACTOR})",
        scheme,
        MEAN_QUEUE,
        MAXIMUM_QUEUE,
    )


@figure.claim(
    f"{SMALL_BETA}: more of the {COUNT} numbers agree than with {TIMELY.removeprefix('TIMELY, ')}",
    stated=False,
)
def small_beta_agrees_more(table: pl.DataFrame) -> Verdict:
    small, large = (Outcomes.of(table, scheme) for scheme in (SMALL_BETA, TIMELY))
    # The undecided numbers could agree or disagree.
    most_large, most_small = (counts.agree + counts.undecided for counts in (large, small))
    is_decided = small.agree > most_large or most_small <= large.agree
    held = small.agree > large.agree if is_decided else None
    return finding(held, f"beta 0.008: {small}; beta 0.8: {large}")
