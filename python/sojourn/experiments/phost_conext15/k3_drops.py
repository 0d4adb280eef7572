"""Figure K3: tail of slowdowns, and dropped packets, under pHost and pFabric."""

import math
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
    metrics,
    plot,
)

from .paper import (
    PAYLOAD,
    PFABRIC,
    PHOST,
    SCALES,
    WORKLOADS,
    measured,
    over_workloads,
    paper,
)

P99, EDGE, ALL = "p99", "drops at edges", "drops"

figure = Figure(
    paper,
    id="k3",
    title="Tail of slowdowns and drops under pHost and pFabric at load 0.6",
    source="Figures 6 and 7",
    scales=SCALES,
    deviations=(
        "A drop rate is the number of dropped packets over that of the data packets that hosts "
        "sent, retransmissions included. Edges are the ports of hosts, and of leaves to hosts.",
    ),
    panels=(1, 2),
    size=(11, 4.6),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    yield from over_workloads(scale)


def drop_rate(*, only_edges: bool) -> metrics.Metric:
    """Measure the dropped packets over the data packets sent."""

    def measure_one(result: Result) -> metrics.Statistic:
        drops = sum(
            link["drops"]
            for link in result.summary["links"]
            if "host" in link["name"] or not only_edges
        )
        packets = (pl.col("size_bytes") / PAYLOAD).ceil() + pl.col("retransmits")
        sent = result.flows.select(packets.sum()).item()
        return metrics.Statistic(drops / sent if sent else math.nan)

    return measure_one


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return measured(
        runs,
        **{
            P99: metrics.slowdown("p99", few=True),
            ALL: drop_rate(only_edges=False),
            EDGE: drop_rate(only_edges=True),
        },
    )


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    tail, drops = (table.filter(metric=metric) for metric in (P99, EDGE))
    common: dict[str, Any] = {"group": "workload", "log": False}
    plot.levels(axes[0], tail, label="99th percentile of slowdown", values="{:.1f}", **common)
    axes[0].set_ylim(bottom=1)
    plot.levels(
        axes[1],
        drops,
        unit="%",
        label="drops at edges over packets sent",
        values="{:.2f}",
        **common,
    )
    plot.one_legend(axes)


def rates(table: pl.DataFrame, scheme: str, metric: str) -> dict[str, float]:
    """Return drop rates of a scheme by workload."""
    return {
        f"{scheme}, {name}, {metric} over packets": metrics.at(
            table, scheme=scheme, workload=name, metric=metric
        )
        for name in WORKLOADS
    }


@figure.claim("pHost drops less than 0.1 % of the packets", scales=("paper",))
def phost_drops_few(table: pl.DataFrame) -> Verdict:
    return all_at_most(rates(table, PHOST, ALL), 0.001)


@figure.claim("pFabric drops at least 1 % of the packets at the edges", scales=("paper",))
def pfabric_drops_many(table: pl.DataFrame) -> Verdict:
    return all_at_least(rates(table, PFABRIC, EDGE), 0.01)
