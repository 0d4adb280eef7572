"""The cluster of TIMELY: hundreds of hosts on a Clos network that call one another."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sojourn import Labelled, Run, Scale, calls, metrics, override, steady

from .paper import LOSSLESS, STAMPS, TIMELY

PAUSE, GRADIENT = "Pause alone", "TIMELY"

HOST_BPS = 10e9

PACKET_S = 1500 * 8 / HOST_BPS
"""What a packet takes on a host's cable: taken off a measured RTT, as on the testbed."""

FABRICS: dict[str, dict[str, Any]] = {
    "smoke": {"pods": 2, "edges_per_pod": 2, "hosts_per_edge": 8, "cores": 4},
    "quick": {"pods": 4, "edges_per_pod": 4, "hosts_per_edge": 16, "cores": 16},
    "paper": {"pods": 8, "edges_per_pod": 8, "hosts_per_edge": 16, "cores": 32},
}
"""32, 256 and 1024 hosts; every tier carries what all hosts can send."""

REQUEST = {"kind": "fixed", "size": "64 KB"}

ANSWER = {"kind": "fixed", "size": "64 B"}

base: dict[str, Any] = {
    "name": "TIMELY's cluster: calls over a Clos network",
    "packet": {"payload": "1460 B", "header": "40 B", "ack": "40 B"},
    "switch": {**LOSSLESS, "shared_buffer": "4 MB", "pause": {"reaction": "2 us"}},
    "host": STAMPS,
}

schemes: dict[str, dict[str, Any]] = {
    PAUSE: {"transport": "constant_rate"},
    GRADIENT: {"transport": {**TIMELY, "ewma_weight": 0.875, "least_factor": 0.5}},
}

SMOOTH = "TIMELY, weight 0.02"

why: dict[str, dict[str, Any]] = {SMOOTH: {"transport": TIMELY}}
"""TIMELY as on the testbed: see the deviations."""

deviations = (
    "The size of the paper's cluster is given as a few hundred hosts, its fabric not at all. Ours "
    "is a Clos network of three tiers, none slower than the hosts together: 10 Gb/s to hosts, "
    "40 Gb/s between switches, 1 µs a cable, a path chosen by a hash for each flow. Clients and "
    "servers are in different pods, which are the longest paths.",
    "When switches pause is not known, and decides how far pauses spread. Their buffer is 4 MB "
    "here, with a threshold of 1/8 of what is free. Ten paused senders then hold 2.1 MB, 0.9 ms at "
    "20 Gb/s: between the mean and the p99 RTT that are reported for pause frames alone on the "
    "testbed. With 3 MB TIMELY is paused too beyond a load of 0.9, and then delivers no more than "
    "pause frames alone; with 12 MB runs of this length hardly pause at all.",
    "A call is a request of 64 KB and an answer of 64 B. In the paper calls share connections, "
    "which know their rate from the calls before; here every call starts a TIMELY of its own, at "
    "an equal share of what its host sends, and sees four round-trip times. To start at the rate "
    "that the call before it had makes little difference, also where each client calls the same "
    "four servers all the time (D15). The moving average "
    "must be quick to say anything in so few: its weight is 0.875, the value of [ecndelay16], and "
    "a step cuts the rate by half at most, as in the authors' fragment of code. The weight of "
    "0.02 that suits the testbed's long connections is drawn beside it in D12, D13 and D15. With "
    "it calls at a load of 0.75 and blocks at any load are quicker; but of a load of 0.95 the "
    "network delivers 0.72, less than with pause frames alone (D11), and an incast lengthens the "
    "mean RTT of a background of load 0.5 by 6 % (D14).",
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
    "quick": {"warm_up": "7 ms", "stop": "14 ms", "time_limit": "50 ms"},
    "paper": {"warm_up": "10 ms", "stop": "20 ms", "time_limit": "60 ms", "seeds": 2},
}
"""Scales of D12 and D13, which see the same runs: calls come until `stop`, all are answered."""


def at_high_load(scale: Scale) -> Iterator[Labelled]:
    """Yield every scheme at a load between what pauses alone and TIMELY can carry."""
    times = {name: scale[name] for name in ("warm_up", "time_limit")}
    for scheme, change in (schemes | why).items():
        workload = remote_calls(0.75, scale["stop"])
        yield {"scheme": scheme}, override(cluster(scale, workload, **times), change)


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


def reached(table: pl.DataFrame, fraction: float, **labels: Any) -> float:
    """Return the least value that a `fraction` do not exceed, of distributions; NaN if unknown."""
    rows = table.filter(*(pl.col(name) == value for name, value in labels.items()))
    above = rows.filter(pl.col("fraction") >= fraction)["value"].to_list()
    return min(above, default=math.nan)
