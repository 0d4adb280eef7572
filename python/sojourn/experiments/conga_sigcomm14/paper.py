"""Common parts of the figures of CONGA (SIGCOMM 2014): its test bed, also with a failed cable."""

from typing import Any

import polars as pl

from sojourn import Paper, metrics, override

paper = Paper(
    key="conga14",
    citation=(
        "M. Alizadeh, T. Edsall, S. Dharmapurikar, R. Vaidyanathan, K. Chu, A. Fingerhut, V. T. "
        "Lam, F. Matus, R. Pan, N. Yadav, G. Varghese: CONGA: Distributed Congestion-Aware Load "
        "Balancing for Datacenters. SIGCOMM 2014"
    ),
    setup=(
        "64 hosts at 10 Gb/s on two leaves, two spines, and two cables of 40 Gb/s between each "
        "leaf and each spine, so that the leaves are oversubscribed 2:1. Poisson arrivals between "
        "hosts of different leaves; a load of 1 fills all cables of the whole network, 320 Gb/s in "
        "both directions. TCP. With a failed cable, one of the two between the second leaf and the "
        "second spine is absent. CONGA has flowlets after gaps of 500 µs, a time constant of 160 "
        "µs and three bits of congestion; CONGA-Flow has gaps of 13 ms."
    ),
    deviations=(
        "The delay of a cable, TCP's parameters and the buffers of the switches are not in our "
        "reading of the source. Cables have 10 µs, as in a public simulator of the scheme; hosts "
        "and buffers are those of the environment `lossy_datacentre`.",
        "Flows are single transfers. The test bed has requests and responses.",
        "Sizes of the enterprise workload are not published; web search stands in its place, in "
        "claims of our own.",
    ),
)

ECMP, CONGA, CONGA_FLOW = "ECMP", "CONGA", "CONGA-Flow"

BISECTION = "320 Gbps"
"""Rate of a load of 1: four cables of 40 Gb/s, in both directions."""

MEAN = "mean FCT"

OVER_ECMP = "mean FCT over ECMP's"

routings: dict[str, Any] = {
    ECMP: "ecmp",
    CONGA_FLOW: {"kind": "conga", "gap": "13 ms"},
    CONGA: "conga",
}


def topology(*, has_failed: bool) -> dict[str, Any]:
    """Return the test bed, whole or without one of the cables between the second switches."""
    rows = ["from,to,rate,delay"]
    for leaf in range(2):
        for spine in range(2):
            cables = 1 if has_failed and leaf == spine == 1 else 2
            rows += [f"leaf{leaf},spine{spine},40 Gbps,10 us"] * cables
        hosts = range(32 * leaf, 32 * leaf + 32)
        rows += [f"host{host},leaf{leaf},10 Gbps,10 us" for host in hosts]
    return {"kind": "graph", "file": {"name": "testbed.csv", "text": "\n".join(rows) + "\n"}}


def scenario(
    table: str, load: float, flows: int, routing: Any, *, has_failed: bool
) -> dict[str, Any]:
    """Return flows with sizes of a table on the test bed."""
    workload = {
        "kind": "poisson",
        "load": load,
        "load_reference": BISECTION,
        "pairs": "longest",
        "sizes": {"kind": "empirical", "table": table},
        "flows": flows,
    }
    base = {
        "name": "CONGA's test bed",
        "environment": "lossy_datacentre",
        "transport": "tcp",
        "time_limit": "1000 s",
    }
    parts = {"topology": topology(has_failed=has_failed), "workload": workload, "routing": routing}
    return override(base, parts)


def ratio(table: pl.DataFrame, upper: str, lower: str, **labels: Any) -> float:
    """Return the mean FCT, or the metric in `labels`, under scheme `upper` over that of `lower`."""
    labels = {"metric": MEAN, **labels}
    upper_mean, lower_mean = (
        metrics.at(table, scheme=scheme, **labels) for scheme in (upper, lower)
    )
    return upper_mean / lower_mean
