"""Figure L3: utilisation of a chain of bottlenecks with and without feedback of credit losses."""

import itertools
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
    all_at_least,
    all_at_most,
    looks,
    metrics,
    override,
    plot,
)

from .paper import CEILING, DATA, EXPRESSPASS, PACKET, PAYLOAD, paper

WITHOUT = "without feedback"

MAX_MIN_BPS = CEILING * PAYLOAD / DATA * 10e9 / 2
"""Max-min fair share of every flow, in payload: each bottleneck has two flows."""

LEAST, LONG = "least utilisation", "throughput of the long flow"

figure = Figure(
    paper,
    id="l3",
    title="A flow across several bottlenecks",
    source="Several bottlenecks",
    scales={
        "smoke": {"bottlenecks": (1, 3), "length_ms": 15},
        "quick": {"bottlenecks": (1, 2, 3, 4, 5, 6), "length_ms": 40},
        "paper": {"bottlenecks": (1, 2, 3, 4, 5, 6), "length_ms": 400},
    },
    deviations=(
        "Links have 10 Gb/s and 5 µs. One flow crosses all bottlenecks, and one flow each of them; "
        "they do not end. The utilisation is that of the least used bottleneck, from 10 ms on, "
        "relative to the 94.8 % that credits leave to data.",
        "Without feedback every receiver sends credits at the largest rate: the credits that one "
        "port lets pass and the next one drops leave a part of the first link unused.",
        "ExpressPass keeps the links busy but is not fair here: its long flow falls from 4.5 to "
        "0.34 Gb/s across six bottlenecks, since each port can drop its credits. The max-min fair "
        "share is 4.5 Gb/s of payload at any number (dashed line).",
        "The claims are about the least used link. Of the long flow alone, as the source may also "
        "be read, the first would not hold: across six bottlenecks it has 8 % of its fair share.",
        "The source has several cross flows at each bottleneck; ours is one.",
    ),
    panels=(1, 2),
    size=(12, 4.6),
)

variants: dict[str, dict[str, Any]] = {
    EXPRESSPASS: {"transport": "expresspass"},
    WITHOUT: {"transport": {"kind": "expresspass", "feedback": False, "initial_rate": 1.0}},
}


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for number in scale["bottlenecks"]:
        shared = {
            "name": "Parking lot",
            "topology": {"kind": "parking_lot", "bottlenecks": number, "delay": "5 us"},
            "packet": PACKET,
            "workload": {"kind": "long_lived", "jitter": "10 us"},
            "warm_up": "10 ms",
            "time_limit": f"{scale['length_ms']} ms",
        }
        for scheme, change in variants.items():
            yield {"scheme": scheme, "bottlenecks": number}, override(shared, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return metrics.across_seeds(metrics.measure(runs, **{LEAST: least_used, LONG: of_long_flow}))


def least_used(result: Result) -> metrics.Statistic:
    """Measure the utilisation of the least used bottleneck, relative to the ceiling of data."""
    number = result.summary["scenario"]["topology"]["bottlenecks"]
    names = [f"switch{i}->switch{i + 1}" for i in range(number)]
    return metrics.Statistic(
        min(metrics.utilisation(name)(result).value for name in names) / CEILING
    )


def of_long_flow(result: Result) -> metrics.Statistic:
    """Measure the throughput of the flow across all bottlenecks."""
    rates = metrics.throughput_bps(result.with_flows(result.flows.filter(pl.col("source") == 0)))
    return metrics.Statistic(float(rates["throughput_bps"].sum()))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    units = {LEAST: "", LONG: "Gb/s"}
    for panel, (metric, unit) in zip(axes, units.items(), strict=True):
        part = table.filter(metric=metric)
        plot.against(panel, part, x="bottlenecks", unit=unit, labels=("bottlenecks", metric))
        panel.set_ylim(bottom=0)
    axes[1].axhline(MAX_MIN_BPS / 1e9, color=looks.BLACK, linestyle="--", linewidth=1)
    plot.one_legend(axes)


def used(table: pl.DataFrame, scheme: str) -> dict[int, float]:
    """Return the utilisation of the least used bottleneck by their number."""
    numbers = table["bottlenecks"].unique().sort().to_list()
    return {
        number: metrics.at(table, scheme=scheme, bottlenecks=number, metric=LEAST)
        for number in numbers
    }


@figure.claim("with feedback every bottleneck has at least 85 % of the largest utilisation")
def busy(table: pl.DataFrame) -> Verdict:
    items = used(table, EXPRESSPASS).items()
    return all_at_least(
        {f"share with {number} bottlenecks": share for number, share in items}, 0.85
    )


@figure.claim("without feedback it falls with the number of bottlenecks")
def decays(table: pl.DataFrame) -> Verdict:
    shares = list(used(table, WITHOUT).items())
    return all_at_most(
        {
            f"utilisation with {more} over {fewer} bottlenecks": lower / upper
            for (fewer, upper), (more, lower) in itertools.pairwise(shares)
        },
        1,
    )
