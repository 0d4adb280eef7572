"""Figure F12: throughput and fairness of four flows that start one after the other."""

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
    looks,
    metrics,
    override,
    plot,
    steady,
)

from .paper import POWER, TIMELY, fabric, hosts, paper, schemes

FLOWS = 4

WINDOW_S, SETTLED_S = 1e-3, 10e-3
"""Interval of throughputs, and the time after an arrival from which fairness is judged."""

RATE, INDEX, AFTER = "throughput", "Jain's index", "mean index"

figure = Figure(
    paper,
    id="f12",
    title="Four flows that start one after the other",
    source="Figure 5",
    scales={
        "smoke": {"gap_ms": 12, "length_ms": 48},
        "quick": {"gap_ms": 50, "length_ms": 200},
        "paper": {"gap_ms": 100, "length_ms": 500},
    },
    deviations=(
        "The flows do not end; their senders are in racks of other pods, the receiver's link is "
        "the bottleneck. Jain's index is of the throughputs of the flows that have started, in "
        "intervals of 1 ms. The claims are on its mean from 10 ms after the arrival of a flow to "
        "the next arrival. At `quick` scale arrivals are 50 ms apart.",
        "TIMELY is as fair as PowerTCP here. Over 80 % of its RTTs are below T_low, 50 µs, where "
        "all flows increase alike, and the rest lead to decreases in proportion to the rate, which "
        "together converge to equal rates.",
    ),
    panels=(2, 4),
    size=(20, 8),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    count = hosts(scale["name"])
    senders = [count - 1 - number * (count // 2) // FLOWS for number in range(FLOWS)]
    flows = [
        {"source": sender, "target": 0, "start": f"{scale['gap_ms'] * number} ms"}
        for number, sender in enumerate(senders)
    ]
    shared = override(
        fabric(scale["name"]),
        {
            "workload": {"kind": "flows", "flows": flows},
            "samples": {"interval": "1 ms", "flows": list(range(FLOWS))},
            "time_limit": f"{scale['length_ms']} ms",
        },
    )
    for scheme, change in schemes.items():
        yield {"scheme": scheme}, override(shared, change)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    rates = steady.flow_rates(runs, WINDOW_S)
    starts = runs[0].result.flows.select(pl.col("flow").cast(pl.Int64), "start_s")
    started = rates.join(starts, on="flow", maintain_order="left").filter(
        pl.col("time_s") > pl.col("start_s") + WINDOW_S
    )
    index = started.group_by("scheme", "seed", "time_s", maintain_order=True).agg(
        value=pl.col("value").sum() ** 2 / (pl.len() * (pl.col("value") ** 2).sum()),
        since_s=pl.col("time_s").first() - pl.col("start_s").max(),
        arrivals=pl.len().cast(pl.Int64),
    )
    settled = index.filter(pl.col("since_s") >= SETTLED_S, pl.col("arrivals") > 1)
    after = settled.group_by("scheme", "seed", "arrivals", maintain_order=True).agg(
        pl.col("value").mean(), metric=pl.lit(AFTER), at_least=pl.lit(value=False)
    )
    first = pl.col("seed") == runs[0].labels["seed"]
    return pl.concat(
        [
            rates.filter(first).with_columns(metric=pl.lit(RATE)),
            index.filter(first).with_columns(metric=pl.lit(INDEX)),
            metrics.across_seeds(after),
        ],
        how="diagonal",
    )


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    rates = table.filter(metric=RATE).with_columns(flow="flow " + (pl.col("flow") + 1).cast(str))
    drawn_as = looks.distinct(rates["flow"].unique(maintain_order=True).to_list())
    panels = list(axes.flat)
    names = table["scheme"].unique(maintain_order=True).to_list()
    for panel, scheme in zip(panels, names, strict=False):
        part = rates.filter(scheme=scheme)
        options: Any = {"by": "flow", "unit": "Gb/s", "drawn_as": drawn_as}
        plot.series(panel, part, label="throughput, payload", **options)
        panel.set_title(scheme, loc="right", fontsize=10)
        panel.set_ylim(0, 25)
    plot.one_legend(panels[: len(names)])
    plot.series(panels[len(names)], table.filter(metric=INDEX), unit="", label=INDEX)
    for panel in panels[len(names) + 1 :]:
        panel.set_axis_off()


def means(table: pl.DataFrame, scheme: str) -> dict[int, float]:
    """Return the mean index of a scheme by the number of flows that have started."""
    return {
        arrivals: metrics.at(table, scheme=scheme, metric=AFTER, arrivals=arrivals)
        for arrivals in range(2, FLOWS + 1)
    }


@figure.claim("PowerTCP's index is at least 0.95 from 10 ms after each arrival on")
def fair(table: pl.DataFrame) -> Verdict:
    indices = means(table, POWER).items()
    return all_at_least({f"the index of {count} flows": index for count, index in indices}, 0.95)


@figure.claim("TIMELY's index is lower")
def lower(table: pl.DataFrame) -> Verdict:
    power, timely = means(table, POWER), means(table, TIMELY)
    return all_at_most(
        {
            f"{TIMELY} over {POWER} with {count} flows": timely[count] / power[count]
            for count in power
        },
        1,
    )
