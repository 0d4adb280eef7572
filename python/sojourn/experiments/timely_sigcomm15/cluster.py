"""The cluster of TIMELY: hundreds of hosts on a Clos network that call one another."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sojourn import Labelled, Run, Scale, calls, looks, metrics, override, plot, steady

from .paper import LOSSLESS, STAMPS, TIMELY

PAUSE, GRADIENT = "Pause alone", "TIMELY"

HOST_BPS = 10e9

PACKET_S = 1500 * 8 / HOST_BPS
"""What a packet takes on a host's cable: taken off a measured RTT, as on the testbed."""

FABRICS: dict[str, dict[str, Any]] = {
    "smoke": {"pods": 2, "edges_per_pod": 2, "hosts_per_edge": 8, "cores": 4},
    "quick": {"pods": 2, "edges_per_pod": 2, "hosts_per_edge": 16, "cores": 8},
    "paper": {"pods": 8, "edges_per_pod": 8, "hosts_per_edge": 16, "cores": 32},
}
"""32, 64 and 1024 hosts; every tier carries what all hosts can send."""

REQUEST = {"kind": "fixed", "size": "64 KB"}

ANSWER = {"kind": "fixed", "size": "64 B"}

base: dict[str, Any] = {
    "name": "TIMELY's cluster: calls over a Clos network",
    "packet": {"payload": "1460 B", "header": "40 B", "ack": "40 B"},
    "switch": {**LOSSLESS, "shared_buffer": "4 MB", "pause": {"reaction": "2 us"}},
    "host": STAMPS,
}

QUICK: dict[str, Any] = {
    "transport": {
        "kind": "timely",
        "ewma_weight": 0.875,
        "least_factor": 0.5,
        "segments": {"size": "16 KB", "pacing": "per_burst"},
    }
}
"""TIMELY for flows of a few segments: see the deviations."""

schemes: dict[str, dict[str, Any]] = {PAUSE: {"transport": "constant_rate"}, GRADIENT: QUICK}

PACED = "TIMELY paced"

paced: dict[str, Any] = {"transport": override(TIMELY, {"segments.spacing": "700 Mbps"})}
"""TIMELY as on the testbed, of which a call is one segment."""

deviations = (
    "The size of the paper's cluster is given as a few hundred hosts, its fabric not at all. Ours "
    "is a Clos network of three tiers, none slower than the hosts together: 10 Gb/s to hosts, "
    "40 Gb/s between switches, 1 µs a cable, a path chosen by a hash for each flow. Clients and "
    "servers are in different pods, which are the longest paths.",
    "When switches pause is not known, and decides how far pauses spread. Their buffer is 4 MB "
    "here, with a threshold of 1/8 of what is free. Ten paused senders then hold 2.1 MB, 0.9 ms at "
    "20 Gb/s: between the mean and the p99 RTT that are recalled for pause frames alone on the "
    "testbed. With 3 MB TIMELY is paused too beyond a load of 0.9, and then delivers no more than "
    "pause frames alone; with 12 MB runs of this length hardly pause at all.",
    "A call is a request of 64 KB and an answer of 64 B. In the paper calls share connections, "
    "which know their rate from the calls before; here every call starts a TIMELY of its own, at "
    "an equal share of what its host sends. Of the authors' segments of 64 KB it would be one, "
    "over before its round-trip time is known: with these, sent at once, 256 hosts deliver 0.58 "
    "of a load of 0.75 and 0.45 of 0.95, where pause frames alone deliver 0.69 and 0.75. So "
    "TIMELY is here that of [ecndelay16]: segments of 16 KB, four round-trip times a call, a "
    "weight of 0.875, which says something in so few, and a T_high of 500 µs; and a step cuts the "
    "rate by half at most, as in the authors' fragment.",
    "Drawn beside it in D11 to D13 is the testbed's TIMELY. Its packets follow one another at 700 "
    "Mb/s, so that a call takes 0.75 ms at least, and that is all it does to a call: round-trip "
    "times are the shortest of all up to a load of 0.8, and beyond, where a host has more than "
    "14 calls at a time, the network saturates as with pause frames alone.",
    "With pause frames alone hosts send at line rate, whatever comes back. Nothing is lost.",
)


def cluster(scale: Scale, workload: Mapping[str, Any], **times: str) -> dict[str, Any]:
    """Return the scenario of a workload on the fabric of a scale."""
    fabric = {"kind": "clos", "aggregations_per_pod": 2 if scale["name"] == "smoke" else 4}
    samples = {"interval": "1 ms", "rtts": True}
    given = {"workload": workload, "samples": samples, **times}
    return override(base, {"topology": fabric | FABRICS[scale["name"]]}, given)


def remote_calls(load: float, stop: str, **pattern: Any) -> dict[str, Any]:
    """Return calls of 64 KB that come at random over the longest paths until `stop`."""
    return {
        "kind": "rpc",
        "request": REQUEST,
        "response": ANSWER,
        "pattern": {
            "load": load,
            "load_counts": "payload",
            "allow_overload": True,
            "pairs": "longest",
            "stop": stop,
            **pattern,
        },
    }


HIGH_LOAD: dict[str, dict[str, Any]] = {
    "smoke": {"warm_up": "1 ms", "stop": "2 ms", "time_limit": "20 ms"},
    "quick": {"warm_up": "7 ms", "stop": "14 ms", "time_limit": "50 ms", "seeds": 4},
    "paper": {"warm_up": "10 ms", "stop": "20 ms", "time_limit": "60 ms", "seeds": 10},
}
"""Scales of D12 and D13, which see the same runs: calls come until `stop`, all are answered."""


LOAD, HIGHER = 0.75, 0.8


def at_high_load(scale: Scale) -> Iterator[Labelled]:
    """Yield every scheme at loads that pause frames alone do not carry (D11)."""
    times = {name: scale[name] for name in ("warm_up", "time_limit")}
    for load in (LOAD, HIGHER) if scale["name"] == "paper" else (LOAD,):
        beside = {PACED: paced} if load == LOAD else {}
        for scheme, change in (schemes | beside).items():
            workload = remote_calls(load, scale["stop"])
            shared = cluster(scale, workload, **times)
            yield {"scheme": scheme, "load": load}, override(shared, change)


def draw_distributions(axes: Any, table: pl.DataFrame, published: Mapping[float, float]) -> None:
    """Draw distributions, dotted at the higher load, and the published reductions at the other."""
    parts = table.filter(pl.col("fraction").is_not_null())
    reference = parts.filter(scheme=PAUSE, load=LOAD)
    for number, (fraction, reduction) in enumerate(published.items()):
        value = reached(reference, fraction) * (1 + reduction) * 1e6
        said = None if number else "published reductions (hollow)"
        style: Any = {"color": looks.look(GRADIENT).colour, "linestyle": "none"}
        axes.plot(value, fraction, marker="^", markerfacecolor="none", label=said, **style)
    higher = pl.format("{}, load {}", "scheme", "load")
    named = pl.when(load=LOAD).then("scheme").otherwise(higher)
    plot.cdf(axes, parts.with_columns(scheme=named), label=f"time at a load of {LOAD}")


def over_pauses(table: pl.DataFrame, scheme: str, metric: str, load: float, unit: str) -> Any:
    """Return a scheme's metric over that of pause frames alone, and a sentence of both."""
    ours, theirs = (
        metrics.at(table, scheme=name, metric=metric, load=load) for name in (scheme, PAUSE)
    )
    by = plot.UNITS[unit]
    said = f"{ours * by:.3g} over {theirs * by:.3g} {unit.replace('us', 'µs')} with pauses alone"
    return ours / theirs, said


def hosts(run: Run) -> int:
    """Return how many hosts there are."""
    names = {link["name"].partition("->")[0] for link in run.result.summary["links"]}
    return sum(name.startswith("host") for name in names)


DELIVERED, MEDIAN, MEAN, TAIL, PAUSED = (
    "delivered load",
    "median RTT",
    "mean RTT",
    "p99 RTT",
    "time paused",
)


def measured(runs: list[Run], of: str = "") -> pl.DataFrame:
    """Return what is delivered, round-trip times and pauses, over the seeds.

    Delivered is payload, as a share of what all hosts can send; of flows whose class begins with
    `of`, as are round-trip times.
    """
    tables = [
        metrics.measure(
            [run],
            **{
                DELIVERED: share(calls.delivered(of), hosts(run) * HOST_BPS),
                MEDIAN: steady.rtt("p50", of=of, less_s=PACKET_S),
                MEAN: steady.rtt("mean", of=of, less_s=PACKET_S),
                TAIL: steady.rtt("p99", of=of, less_s=PACKET_S),
                PAUSED: calls.paused("host"),
            },
        )
        for run in runs
    ]
    return metrics.across_seeds(pl.concat(tables))


def share(metric: metrics.Metric, whole: float) -> metrics.Metric:
    """Measure a metric as a share of `whole`."""
    return lambda result: metrics.Statistic(metric(result).value / whole)


def reached(table: pl.DataFrame, fraction: float) -> float:
    """Return the least value of a distribution that a `fraction` do not exceed; NaN if unknown."""
    above = table.filter(pl.col("fraction") >= fraction)["value"].to_list()
    return min(above, default=math.nan)
