"""Figure D10: how soon a connection takes what others leave, with and without hyper increase."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import polars as pl

from sojourn import Figure, Labelled, Run, Scale, Verdict, at_most, metrics, override, plot, steady

from .paper import paper
from .testbed import CLIENTS, GOODPUT_BPS, rack

SHARE_BPS = GOODPUT_BPS / CLIENTS

WINDOW_S = 1e-3

DEFAULT_US, BELOW_BASE_US = 50, 10

figure = Figure(
    paper,
    id="d10",
    title="From 200 Mb/s to 2 Gb/s, with and without hyper increase",
    source="Figure: hyperactive increase",
    scales={
        "smoke": {"seeds": 1, "warm_up": 5, "measured": 15},
        "quick": {"seeds": 3, "warm_up": 50, "measured": 100},
        "paper": {"seeds": 10, "warm_up": 100, "measured": 200},
    },
    deviations=(
        "Ten connections a client run until the warm-up ends, when nine of them stop. Drawn is the "
        "mean of the ten that stay.",
        "In Algorithm 1 rates below T_low rise by delta, without hyper increase. When nine of ten "
        "connections stop, the queue is soon empty and RTTs are 13.5 µs, well below a T_low of 50 "
        "µs: hyper increase never acts, and N makes no difference. In the paper's testbed RTTs "
        "would have had to stay above T_low; the authors' fragment of code, too, has a T_low of 0 "
        "for packets that are paced. With a T_low of 10 µs, below the RTT over empty queues, hyper "
        "increase does what the paper shows.",
    ),
    panels=(1, 2),
    size=(11, 4.2),
)


def scheme(factor: int) -> str:
    """Name a factor of the hyper increase."""
    return f"N = {factor}"


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for t_low, factor in product((DEFAULT_US, BELOW_BASE_US), (1, 5)):
        change = {
            "transport": {"t_low": f"{t_low} us", "hyper_factor": factor},
            "workload": {"kind": "mixed", "parts": parts(scale)},
        }
        yield {"scheme": scheme(factor), "t_low": t_low}, override(rack(scale, 10), change)


def parts(scale: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the connections that stay, and those that stop."""
    shared = {"kind": "long_lived", "jitter": "2 ms", "initial_rate": "200 Mbps"}
    stays = shared | {"flows": CLIENTS, "class": "stays"}
    stops = shared | {"flows": 9 * CLIENTS, "class": "stops", "stop": f"{scale['warm_up']} ms"}
    return [stays, stops]


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    tables = []
    for run in runs:
        stays = run.result.flows.filter(pl.col("class") == "stays")["flow"].to_list()
        rates = steady.flow_rates([run], WINDOW_S).filter(pl.col("flow").is_in(stays))
        mean = rates.group_by("scheme", "t_low", "seed", "time_s", maintain_order=True)
        freed = metrics.seconds(run.result.summary["scenario"]["warm_up"])
        since = mean.agg(pl.col("value").mean()).with_columns(pl.col("time_s") - freed)
        tables.append(since)
    return pl.concat(tables)


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    mean = table.group_by("scheme", "t_low", "time_s", maintain_order=True)
    averaged = mean.agg(pl.col("value").mean())
    for panel, t_low in zip(axes, (DEFAULT_US, BELOW_BASE_US), strict=True):
        part = averaged.filter(t_low=t_low)
        plot.series(panel, part, unit="Gb/s", label="rate of a connection, payload")
        panel.axhline(SHARE_BPS / 1e9, color="#222222", ls=":", lw=1, label="fair share")
        panel.set_xlabel("time since nine of ten stopped (ms)")
        panel.set_ylim(0, 2.2)
        panel.set_title(f"T_low {t_low} µs", fontsize=10, pad=22)
        plot.legend(panel)


def reach_ms(table: pl.DataFrame, t_low: int, factor: int) -> float:
    """Return the mean time to 90 % of the fair share in milliseconds."""
    part = table.filter(scheme=scheme(factor), t_low=t_low).partition_by("seed")
    times = [steady.time_to_reach(of_seed, 0.9 * SHARE_BPS) for of_seed in part]
    return sum(times) / len(times) * 1e3


def halves(table: pl.DataFrame, t_low: int) -> Verdict:
    """Judge that hyper increase at least halves the time to 90 % of the fair share."""
    plain, hyper = (reach_ms(table, t_low, factor) for factor in (1, 5))
    what = f"{hyper:.0f} ms with N = 5 over {plain:.0f} ms with N = 1"
    return at_most(hyper / plain, 0.5, what)


@figure.claim("hyper increase at least halves the time to 90 % of 2 Gb/s")
def hyper_halves(table: pl.DataFrame) -> Verdict:
    return halves(table, DEFAULT_US)


@figure.claim(
    "it does so with a T_low of 10 µs, below the round trip over empty queues", stated=False
)
def hyper_halves_below(table: pl.DataFrame) -> Verdict:
    return halves(table, BELOW_BASE_US)
