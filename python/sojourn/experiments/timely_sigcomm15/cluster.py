"""Cluster of TIMELY: RPCs between hundreds of hosts on a Clos network."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sojourn import Labelled, Run, Scale, calls, looks, metrics, override, plot, steady

from .paper import LOSSLESS, STAMPS, TIMELY

PAUSE, GRADIENT = "Pause alone", "TIMELY"

HOST_BPS = 10e9

PACKET_S = 1500 * 8 / HOST_BPS
"""Transmission time of a packet at a host, which is subtracted from measured RTTs."""

FABRICS: dict[str, dict[str, Any]] = {
    "smoke": {"pods": 2, "edges_per_pod": 2, "hosts_per_edge": 8, "cores": 4},
    "quick": {"pods": 2, "edges_per_pod": 2, "hosts_per_edge": 16, "cores": 8},
    "paper": {"pods": 8, "edges_per_pod": 8, "hosts_per_edge": 16, "cores": 32},
}
"""32, 64 and 1024 hosts; every tier has the capacity of all hosts' links."""

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
    "The paper's cluster has a few hundred hosts; its fabric is not described. Ours is a Clos "
    "network of three tiers without oversubscription: 10 Gb/s to hosts, 40 Gb/s between switches, "
    "1 µs per cable, ECMP by flow hash. Clients and servers are in different pods, the longest "
    "paths.",
    "The PFC thresholds of the switches are unknown, and determine how far pauses spread. The "
    "buffer is 4 MB here, with a threshold of 1/8 of its free part. Ten paused senders then occupy "
    "2.1 MB, 0.9 ms at 20 Gb/s: between the mean and the p99 RTT that we recall for pause frames "
    "alone on the testbed. With 3 MB TIMELY is paused too beyond a load of 0.9, and then delivers "
    "no more than pause frames alone; with 12 MB runs of this length have hardly any pauses.",
    "A call is a request of 64 KB and a response of 64 B. In the paper calls share connections, "
    "which keep their rate from earlier calls; here every call starts a new TIMELY controller, at "
    "an equal share of its host's link. With the authors' segments of 64 KB a call is one segment, "
    "complete before its first RTT sample: with these segments, unpaced, 256 hosts deliver 0.58 of "
    "a load of 0.75 and 0.45 of 0.95, where pause frames alone deliver 0.69 and 0.75. The cluster "
    "therefore uses TIMELY of [ecndelay16]: segments of 16 KB, four RTT samples per call, a weight "
    "of 0.875, which suits four samples, and a T_high of 500 µs; one step at most halves the rate, "
    "as in the authors' code.",
    "D11 to D13 also show the testbed's TIMELY. It paces packets at 700 Mb/s, so that a call takes "
    "at least 0.75 ms, and has no other effect on a call: RTTs are the shortest of all schemes up "
    "to a load of 0.8; beyond, where a host has more than 14 concurrent calls, the network "
    "saturates as with pause frames alone.",
    "With pause frames alone hosts send at line rate, without response to ACKs. No packets are "
    "lost.",
)


def cluster(scale: Scale, workload: Mapping[str, Any], **times: str) -> dict[str, Any]:
    """Return the scenario of a workload on the fabric of a scale."""
    fabric = {"kind": "clos", "aggregations_per_pod": 2 if scale["name"] == "smoke" else 4}
    samples = {"interval": "1 ms", "rtts": True}
    change = {"workload": workload, "samples": samples, **times}
    return override(base, {"topology": fabric | FABRICS[scale["name"]]}, change)


def remote_calls(load: float, stop: str, **pattern: Any) -> dict[str, Any]:
    """Return calls of 64 KB that start at random until `stop`, over the longest paths."""
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
"""Scales of D12 and D13, which share their runs: calls start until `stop`; all are answered."""


LOAD, HIGHER = 0.75, 0.8


def at_high_load(scale: Scale) -> Iterator[Labelled]:
    """Yield every scheme at loads above the saturation of pause frames alone (D11)."""
    times = {name: scale[name] for name in ("warm_up", "time_limit")}
    for load in (LOAD, HIGHER) if scale["name"] == "paper" else (LOAD,):
        testbed_scheme = {PACED: paced} if load == LOAD else {}
        for scheme, change in (schemes | testbed_scheme).items():
            workload = remote_calls(load, scale["stop"])
            shared = cluster(scale, workload, **times)
            yield {"scheme": scheme, "load": load}, override(shared, change)


def draw_distributions(axes: Any, table: pl.DataFrame, published: Mapping[float, float]) -> None:
    """Draw distributions (dotted at the higher load), and the published reductions at `LOAD`."""
    parts = table.filter(pl.col("fraction").is_not_null())
    reference = parts.filter(scheme=PAUSE, load=LOAD)
    for number, (fraction, reduction) in enumerate(published.items()):
        value = quantile(reference, fraction) * (1 + reduction) * 1e6
        label = None if number else "published reductions (hollow)"
        style: Any = {"color": looks.look(GRADIENT).colour, "linestyle": "none"}
        axes.plot(value, fraction, marker="^", markerfacecolor="none", label=label, **style)
    higher = pl.format("{}, load {}", "scheme", "load")
    named = pl.when(load=LOAD).then("scheme").otherwise(higher)
    plot.cdf(axes, parts.with_columns(scheme=named), label=f"time at a load of {LOAD}")


def over_pauses(table: pl.DataFrame, scheme: str, metric: str, load: float, unit: str) -> Any:
    """Return a scheme's metric over that of pause frames alone, and a description of both."""
    value, pause_value = (
        metrics.at(table, scheme=name, metric=metric, load=load) for name in (scheme, PAUSE)
    )
    by = plot.UNITS[unit]
    description = (
        f"{value * by:.3g} over {pause_value * by:.3g} {unit.replace('us', 'µs')} with pauses alone"
    )
    return value / pause_value, description


def hosts(run: Run) -> int:
    """Return the number of hosts."""
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
    """Return delivered load, RTTs and pause times, over the seeds.

    Delivered load is payload as a share of the capacity of all hosts' links. Delivered load and
    RTTs are of flows whose class begins with `of`.
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


def share(metric: metrics.Metric, total: float) -> metrics.Metric:
    """Return a metric divided by `whole`."""
    return lambda result: metrics.Statistic(metric(result).value / total)


def quantile(table: pl.DataFrame, fraction: float) -> float:
    """Return the `fraction` quantile of a distribution; NaN if the distribution has none."""
    above = table.filter(pl.col("fraction") >= fraction)["value"].to_list()
    return min(above, default=math.nan)
