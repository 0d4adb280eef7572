"""Figure C8: FCT with a few priority queues, by their thresholds."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Result,
    Run,
    Scale,
    Verdict,
    all_at_most,
    between,
    every,
    looks,
    metrics,
    plot,
    theory,
)

from .paper import DATA_MINING, EVERYWHERE, WEB_SEARCH, WORKLOADS, paper

LOADS = (0.6, 0.8)

QUEUES = range(1, 9)

PACKET = 8
"""Number of packets of the size tables in one packet of the simulated link."""

SIMULATED = (50, 167, 416)
"""Thresholds that are simulated, in packets of that link, besides the best one."""

# Independent calculation from the same distributions: the mean with the best threshold between two
# queues at loads 0.1 to 0.9, and with the best thresholds between more queues.
TWO = {
    WEB_SEARCH: (1.105, 1.230, 1.383, 1.574, 1.822, 2.165, 2.680, 3.574, 5.663),
    DATA_MINING: (1.414, 1.883, 2.423, 3.051, 3.790, 4.663, 5.655, 6.815, 9.091),
}
MORE = {
    (WEB_SEARCH, 0.6): {3: 1.235, 4: 1.137, 8: 1.090},
    (WEB_SEARCH, 0.8): {3: 1.468, 4: 1.242, 8: 1.154},
    (DATA_MINING, 0.6): {3: 1.236, 4: 1.024, 8: 1.011},
    (DATA_MINING, 0.8): {3: 1.417, 4: 1.045, 8: 1.019},
}

BOUND = 0.02
"""Maximum relative difference between the simulated link and the closed form."""

CURVE, BEST = "closed form", "best thresholds"
MEASURED, RATIO = "simulated", "simulated over closed form"

figure = Figure(
    paper,
    id="c8",
    title="Priority queues: closed form and a simulated link",
    source="Appendix",
    scales={
        "smoke": {"flows": 500},
        "quick": {"flows": 5_000},
        "paper": {"flows": 500_000},
    },
    deviations=(
        "The appendix is known to us from fragments: the formulas follow from its model, and the "
        "reference numbers come from an independent calculation, not from the paper. The appendix "
        "has two queues; more queues follow from the same model.",
        "The link carries flows of the web-search distribution, not rounded to packets, in packets "
        f"{PACKET} times as large as those of the tables and without headers. Packets in "
        "transmission are not preempted: a flow of the first queue waits for half a packet on "
        "average while the link transmits a packet of the second queue; the closed form includes "
        "this wait.",
        "Means of heavy-tailed flows have a high variance: the simulated mean over seeds is shown "
        "with its 95 % interval, and is compared with the closed form for the sizes and the load "
        "that each run had. The comparison removes the variance from the sizes of the flows, not "
        "from their order; a mean beyond 2 % with an interval that extends to less than 2 % is not "
        "judged.",
    ),
    panels=(2, 2),
    size=(12, 8.4),
)


def best(workload: str, load: float, queues: int = 2) -> theory.Floats:
    return theory.best_thresholds(load, WORKLOADS[workload].sizes, queues)


def mean_of(workload: str, load: float, thresholds: Any) -> float:
    return theory.priority_queues(load, WORKLOADS[workload].sizes, thresholds)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for load in LOADS:
        for packets in (*SIMULATED, round(float(best(WEB_SEARCH, load)[0]) / PACKET)):
            labels = {"load": load, "threshold": float(packets * PACKET)}
            yield labels, link(load, packets, scale["flows"])


def link(load: float, threshold: int, flows: int) -> dict[str, Any]:
    """Return the scenario of a link with two strict priorities; flows are sent without a window."""
    return {
        "name": "Two priority queues",
        "topology": {"kind": "link", "rate": "10 Gbps", "delay": "0 ns"},
        "packet": {"payload": f"{1460 * PACKET} B", "header": "0 B", "ack": "1 B"},
        "queue": {"kind": "strict_priority", "classes": 2},
        "transport": {
            "kind": "pfabric",
            "priority": "size",
            "thresholds": [threshold],
            "initial_window": 100_000,
            "max_window": "none",
            "probe_after": "none",
            "reliability": {"fixed_rto": "10 s"},
        },
        "workload": {
            "kind": "poisson",
            "load": load,
            "flows": flows,
            "sizes": {
                "kind": "empirical",
                "table": "web_search_packets",
                "packet": "1460 B",
                "whole_packets": False,
            },
        },
        "time_limit": "1000 s",
    }


def own_closed_form(result: Result, threshold: float) -> metrics.Statistic:
    """Calculate the closed form for the sizes and the load of a run."""
    packets = result.flows["size_bytes"].to_numpy() / 1460
    last: Any = result.flows["start_s"].max()
    load = float(packets.sum()) * 1460 * 8 / 10e9 / last
    sizes = theory.Sizes.sampled(packets)
    return metrics.Statistic(theory.priority_queues(load, sizes, [threshold], PACKET))


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return pl.concat([simulated(runs), curves(), queue_table()], how="diagonal")


def simulated(runs: list[Run]) -> pl.DataFrame:
    """Return the simulated mean, and the ratio to the closed form for the same flows."""
    rows = []
    for run in runs:
        labels = {"workload": WEB_SEARCH, **run.labels, "at_least": False}
        value = metrics.slowdown("mean")(run.result).value
        closed_form = own_closed_form(run.result, run.labels["threshold"]).value
        rows += [
            {**labels, "metric": MEASURED, "value": value},
            {**labels, "metric": RATIO, "value": value / closed_form},
        ]
    return metrics.across_seeds(pl.DataFrame(rows))


@cache
def curves() -> pl.DataFrame:
    """Return the closed form over the threshold between two queues."""
    rows = [
        {"workload": name, "load": load, "threshold": at, "value": mean_of(name, load, [at])}
        for name, (_, sizes) in WORKLOADS.items()
        for load in LOADS
        for at in np.geomspace(sizes.low[0], sizes.high[-1], 300).tolist()
    ]
    return pl.DataFrame(rows).with_columns(metric=pl.lit(CURVE))


@cache
def queue_table() -> pl.DataFrame:
    """Return the mean with the best thresholds: two queues at every load, and up to eight."""
    rows = []
    for name in WORKLOADS:
        for load in np.arange(1, 10) / 10:
            for queues in QUEUES if load in LOADS else (2,):
                thresholds = best(name, load, queues)
                threshold_list = ", ".join(f"{at:.0f}" for at in thresholds)
                value = mean_of(name, load, thresholds)
                labels = {"workload": name, "load": float(load), "queues": queues}
                rows.append({**labels, "thresholds": threshold_list, "value": value})
    return pl.DataFrame(rows).with_columns(metric=pl.lit(BEST))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    name = pl.format("load {}", "load")
    curves = table.filter(metric=CURVE).with_columns(scheme=name)
    points = table.with_columns(scheme=pl.format("{}, simulated", name))
    slowdown = "mean normalised FCT"
    for panel, workload in zip(axes[0], WORKLOADS, strict=True):
        plot.curves(panel, curves.filter(workload=workload), x="threshold")
        part = points.filter(metric=MEASURED, workload=workload)
        labels = (f"threshold between two queues ({workload}, packets)", slowdown)
        plot.against(panel, part, x="threshold", labels=labels, log=True, log_x=True)
    axes[0][1].get_legend().remove()
    agreement, queues = axes[1]
    labels = (f"threshold between two queues ({WEB_SEARCH}, packets)", RATIO)
    ratio_points = points.filter(metric=RATIO)
    plot.against(agreement, ratio_points, x="threshold", labels=labels, log_x=True)
    agreement.axhspan(0.98, 1.02, color=looks.GREY, alpha=0.15, lw=0)
    agreement.set_ylim(0.9, 1.1)
    best = table.filter(metric=BEST, load=0.8)
    labels = ("priority queues with the best thresholds (load 0.8)", slowdown)
    plot.against(queues, best, x="queues", by="workload", labels=labels, log=True)


@figure.check(
    "the closed form gives the independently calculated values, with two queues and with more (0.5 "
    "%)",
    scales=EVERYWHERE,
    exact=True,
)
def reference_values(table: pl.DataFrame) -> Verdict:
    two_queues = (
        (workload, (number + 1) / 10, 2, reference)
        for workload, values in TWO.items()
        for number, reference in enumerate(values)
    )
    more_queues = (
        (workload, load, queues, reference)
        for (workload, load), values in MORE.items()
        for queues, reference in values.items()
    )
    distances = {}
    for workload, load, queues, reference in (*two_queues, *more_queues):
        value = metrics.at(table, metric=BEST, workload=workload, load=load, queues=queues)
        description = (
            f"distance of {value:.4g} from {reference} ({workload}, {load}, {queues} queues)"
        )
        distances[description] = abs(value / reference - 1)
    return all_at_most(distances, 0.005)


@figure.claim("the simulated link is within 2 % of the closed form", stated=False)
def simulation_agrees(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            row["value"],
            1 - BOUND,
            1 + BOUND,
            f"simulated over calculated at load {row['load']}, threshold {row['threshold']:.0f}",
        )
        for row in table.filter(metric=RATIO).to_dicts()
    )
