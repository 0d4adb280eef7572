"""Figure D10: time to use freed capacity, with and without hyper increase."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_most,
    looks,
    metrics,
    override,
    plot,
    steady,
)

from .paper import paper
from .testbed import CLIENTS, GOODPUT_BPS, rack

SHARE_BPS = GOODPUT_BPS / CLIENTS

WINDOW_S = 1e-3

BURSTS, PACED = "T_low 50 µs, bursts", "T_low 0, packets paced"

VARIANTS: dict[str, dict[str, Any]] = {
    BURSTS: {"segments": {"size": "16 KB"}},
    PACED: {"t_low": "0 us", "segments": {"size": "16 KB", "pacing": "per_packet"}},
}
"""TIMELY with the paper's T_low, and with that of the authors' code for paced packets."""

RATE, REACHED = "rate", "time to 90 %"

figure = Figure(
    paper,
    id="d10",
    title="From 200 Mb/s to 2 Gb/s, with and without hyper increase",
    source="Figure: hyperactive increase",
    scales={
        "smoke": {"warm_up": 5, "measured": 15},
        "quick": {"warm_up": 50, "measured": 100},
        "paper": {"warm_up": 100, "measured": 200},
    },
    deviations=(
        "Ten connections per client run until the end of the warm-up, when nine of them stop. The "
        "curve is the mean of the ten that remain, the band the range of the seeds. The length "
        "follows from a closed form: with segments of 16 KB and steps of 10 Mb/s, 90 % of the "
        "share takes 28 ms.",
        "Segments have 16 KB and are not paced, the first choice, because the authors' set cannot "
        "reach 2 Gb/s: it paces packets at 700 Mb/s, and if its messages of 64 KB are not paced, "
        "their collisions hold the mean rate below 1.1 Gb/s with N = 1, and 1.6 Gb/s with N = 5.",
        "In Algorithm 1 rates below T_low rise by delta, without hyper increase. When nine of ten "
        "connections stop, the queue is soon empty and RTTs are 13.9 µs: with the paper's T_low of "
        "50 µs hyper increase is never active, and N makes no difference. The authors' fragment "
        "has a T_low of 0 where packets are paced, with which hyper increase is active; that set "
        "was tried after the first.",
    ),
    panels=(1, 2),
    size=(11, 4.2),
)


def scheme(factor: int) -> str:
    """Return the name of a factor of the hyper increase."""
    return f"N = {factor}"


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for (variant, transport), factor in product(VARIANTS.items(), (1, 5)):
        change = {
            "transport": {"hyper_factor": factor} | transport,
            "transport.segments.spacing": "none",
            "workload": {"kind": "mixed", "parts": parts(scale)},
        }
        yield {"scheme": scheme(factor), "way": variant}, override(rack(scale, 10), change)


def parts(scale: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the workloads of the connections that remain, and of those that stop."""
    shared = {"kind": "long_lived", "jitter": "2 ms", "initial_rate": "200 Mbps"}
    stays = shared | {"flows": CLIENTS, "class": "stays"}
    stops = shared | {"flows": 9 * CLIENTS, "class": "stops", "stop": f"{scale['warm_up']} ms"}
    return [stays, stops]


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    means = [rates(run) for run in runs]
    times_to_reach = [
        {**run.labels, "metric": REACHED, "value": steady.time_to_reach(mean, 0.9 * SHARE_BPS)}
        for run, mean in zip(runs, means, strict=True)
    ]
    times = pl.DataFrame(times_to_reach).with_columns(at_least=pl.lit(value=False))
    over_time = pl.concat(means).with_columns(metric=pl.lit(RATE))
    return pl.concat([over_time, metrics.across_seeds(times)], how="diagonal")


def rates(run: Run) -> pl.DataFrame:
    """Return the mean rate of the remaining connections by time since the others stopped."""
    stays = run.result.flows.filter(pl.col("class") == "stays")["flow"].to_list()
    of_each = steady.flow_rates([run], WINDOW_S).filter(pl.col("flow").is_in(stays))
    mean = of_each.group_by(*run.labels, "time_s", maintain_order=True).agg(pl.col("value").mean())
    return mean.with_columns(pl.col("time_s") - metrics.warm_up_s(run.result))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    value = pl.col("value")
    seeds = (
        table.filter(metric=RATE)
        .group_by("scheme", "way", "time_s", maintain_order=True)
        .agg(value.mean(), least=value.min(), most=value.max())
    )
    for panel, variant in zip(axes, VARIANTS, strict=True):
        part = seeds.filter(way=variant)
        plot.series(panel, part, unit="Gb/s", label="rate of a connection, payload")
        for of_scheme in part.partition_by("scheme"):
            times, minimum, maximum = (of_scheme[name] for name in ("time_s", "least", "most"))
            colour = looks.look(of_scheme["scheme"][0]).colour
            panel.fill_between(
                times * 1e3, minimum / 1e9, maximum / 1e9, color=colour, alpha=0.2, lw=0
            )
        panel.axhline(SHARE_BPS / 1e9, color="#222222", ls=":", lw=1, label="fair share")
        panel.set_xlabel("time since nine of ten stopped (ms)")
        panel.set_ylim(0, 2.2)
        panel.set_title(variant, fontsize=10, pad=22)
        plot.legend(panel)


def judge_halved_time(table: pl.DataFrame, variant: str) -> Verdict:
    """Judge that hyper increase at least halves the time to 90 % of the fair share."""
    plain, hyper = (
        metrics.at(table, scheme=scheme(factor), way=variant, metric=REACHED) for factor in (1, 5)
    )
    description = f"{hyper * 1e3:.0f} ms with N = 5 over {plain * 1e3:.0f} ms with N = 1"
    return at_most(hyper / plain, 0.5, description)


figure.claim("hyper increase at least halves the time to 90 % of 2 Gb/s")(
    partial(judge_halved_time, variant=BURSTS)
)
figure.claim("hyper increase does so with a T_low of 0 and paced packets", stated=False)(
    partial(judge_halved_time, variant=PACED)
)
