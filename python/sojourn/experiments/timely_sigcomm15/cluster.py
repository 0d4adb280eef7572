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
    "paper": {"pods": 4, "edges_per_pod": 4, "hosts_per_edge": 16, "cores": 16},
}
"""32, 64 and 256 hosts; every tier has the capacity of all hosts' links."""

REQUEST = {"kind": "fixed", "size": "64 KB"}

ANSWER = {"kind": "fixed", "size": "64 B"}

base: dict[str, Any] = {
    "name": "TIMELY's cluster: calls over a Clos network",
    "packet": {"payload": "1460 B", "header": "40 B", "ack": "40 B"},
    "switch": {**LOSSLESS, "shared_buffer": "4 MB", "pause": {"reaction": "2 us"}},
    "host": STAMPS,
}

NEW = "new connections"

PAUSE_NEW, SHORT_NEW = f"{PAUSE}, {NEW}", f"{GRADIENT}, 16 KB, {NEW}"

transports: dict[str, dict[str, Any]] = {
    PAUSE: {"kind": "constant_rate"},
    GRADIENT: override(TIMELY, {"segments.spacing": "700 Mbps"}),
    PAUSE_NEW: {"kind": "constant_rate"},
    SHORT_NEW: {
        "kind": "timely",
        "ewma_weight": 0.875,
        "least_factor": 0.5,
        "segments": {"size": "16 KB", "pacing": "per_burst"},
    },
}
"""Transports of the schemes: pause frames alone and TIMELY as on the testbed; then, with a new
connection for each call, pause frames alone and TIMELY for flows of a few segments."""

SOURCE = (PAUSE, GRADIENT)
"""Schemes of the source."""

deviations = (
    "The paper's cluster has a few hundred hosts; its fabric is not described. Ours is a Clos "
    "network of three tiers without oversubscription: 256 hosts (64 at the scale `quick`), 10 "
    "Gb/s to hosts, 40 Gb/s between switches, 1 µs per cable, ECMP by connection. Clients and "
    "servers are in different pods, the longest paths.",
    "The PFC thresholds of the switches are unknown, and determine how far pauses spread. The "
    "buffer is 4 MB here, with a threshold of 1/8 of its free part. Ten paused senders then "
    "occupy 2.1 MB, 0.9 ms at 20 Gb/s: between the mean and the p99 RTT that we recall for pause "
    "frames alone on the testbed.",
    "As in the paper, calls share connections, which keep their rate and path. Their number is "
    "unknown; here a client has a connection to each of 32 random servers (16 at the scale "
    "`smoke`). TIMELY is that of the testbed: it paces packets of a connection at 700 Mb/s, so "
    "that a call takes at least 0.75 ms, and 32 connections have 2.2 times the rate of the host's "
    "link. At loads of 0.6 and 0.75, median RTTs and delivered load from 7 to 14 ms are those "
    "from 90 to 100 ms. With two connections to each server, the p99 RTT is 0.31 ms instead of "
    "0.19 ms at 0.75, and 0.73 instead of 0.78 is delivered of 0.95 (64 hosts, one seed).",
    "Sojourn had no persistent connections at first. Every call then had a new controller and a "
    "path of its own, and its TIMELY was chosen after results: segments of 16 KB, a weight of "
    "0.875 and a T_high of 500 µs, as in [ecndelay16]; one step at most halves the rate. Dotted "
    "lines and our own claims on new connections are of that set-up.",
    "The result depends on the size of the network: at a load of 0.8 TIMELY's median RTT is 0.07 "
    "of that with pause frames alone with 64 hosts (4 seeds), and 0.87 with 256 (10 seeds); the "
    "median latency 0.61 and 0.92. The main cause is the choice of servers. With 64 hosts the 32 "
    "servers of a client are all hosts of the other pod, so that all servers have the same load; "
    "with 256 they are 32 of 192, and 12 % of servers are offered more than their links carry (of "
    "clients, whose loads are the same, 1 %). If each client of 256 hosts has all 192 servers, "
    "TIMELY's median latency is 0.42 of that with pause frames alone (1.05 over 2.46 ms) instead "
    "of 0.82 (3.06 over 3.74 ms), its p99 latency 0.30 instead of 2.85, and its median RTT 0.38 "
    "(78 over 207 µs) instead of 0.87 (112 over 129 µs; one seed). With 64 hosts and 16 of 32 "
    "servers, of which 8 % are offered too much, the median latency is 0.68 instead of 0.57 and "
    "the p99 latency 1.08 instead of 0.51, but the median RTT stays at 0.06 to 0.08: why equal "
    "servers leave it at 0.38 with 256 hosts is not known.",
    "With pause frames alone hosts send at line rate, without response to ACKs. No packets are "
    "lost. Warm-up and length of the runs are our own choices, the same for all schemes.",
)


def cluster(
    scale: Scale, transport: Mapping[str, Any], workload: Mapping[str, Any], **times: str
) -> dict[str, Any]:
    """Return the scenario of a transport and a workload on the fabric of a scale."""
    fabric = {"kind": "clos", "aggregations_per_pod": 2 if scale["name"] == "smoke" else 4}
    samples = {"interval": "1 ms", "rtts": True}
    change = {"workload": workload, "samples": samples, "transport": transport, **times}
    return override(base, {"topology": fabric | FABRICS[scale["name"]]}, change)


def pattern(scheme: str, load: float, stop: str, **change: Any) -> dict[str, Any]:
    """Return the pattern of calls that start at random until `stop`, over the longest paths."""
    calls = {
        "load": load,
        "load_counts": "payload",
        "allow_overload": True,
        "pairs": "longest",
        "peers": 32,
        "stop": stop,
    }
    return calls | ({} if scheme.endswith(NEW) else {"connections": 1}) | change


def remote_calls(scheme: str, load: float, stop: str, **change: Any) -> dict[str, Any]:
    """Return calls of 64 KB with a scheme's connections."""
    calls = {"kind": "rpc", "request": REQUEST, "response": ANSWER}
    return calls | {"pattern": pattern(scheme, load, stop, **change)}


TIMES: dict[str, dict[str, Any]] = {
    "smoke": {"warm_up": "3 ms", "stop": "6 ms", "time_limit": "20 ms"},
    "quick": {"warm_up": "7 ms", "stop": "14 ms", "time_limit": "50 ms"},
    "paper": {"warm_up": "10 ms", "stop": "20 ms", "time_limit": "60 ms"},
}
"""Warm-up and last start of a call of D11 to D13. In D12 and D13, which share their runs, the time
limit lets all calls be answered."""

FIRST, LOWER, STABLE = 0.8, 0.75, 0.6
"""High loads: the first choice, the later one, and one that pause frames alone deliver, too."""


def at_high_load(scale: Scale) -> Iterator[Labelled]:
    """Yield every scheme at the high loads."""
    times = {name: scale[name] for name in ("warm_up", "time_limit")}
    for scheme, transport in transports.items():
        for load in (FIRST, LOWER, STABLE):
            workload = remote_calls(scheme, load, scale["stop"])
            yield {"scheme": scheme, "load": load}, cluster(scale, transport, workload, **times)


def draw_distributions(
    panels: Any, table: pl.DataFrame, published: Mapping[float, float], names: tuple[str, str]
) -> None:
    """Draw distributions at each load, and published ratios to pause frames alone at the first.

    The names are those of a value and of the values.
    """
    parts = table.filter(pl.col("fraction").is_not_null())
    reference = parts.filter(scheme=PAUSE, load=FIRST)
    values = parts["value"].to_numpy() * 1e6
    for number, (fraction, ratio) in enumerate(published.items()):
        value = quantile(reference, fraction) * ratio * 1e6
        label = None if number else "published ratios (hollow)"
        style: Any = {"color": looks.look(GRADIENT).colour, "linestyle": "none"}
        panels[0].plot(value, fraction, marker="^", markerfacecolor="none", label=label, **style)
    for axes, load in zip(panels, (FIRST, LOWER, STABLE), strict=True):
        plot.cdf(axes, parts.filter(load=load), label=names[0])
        axes.set_ylabel(f"fraction of {names[1]}")
        axes.set_title(f"load {load}")
        axes.set_xlim(values.min(), values.max())
    common_legend(panels)


def common_legend(panels: Any) -> None:
    """Draw the legend of the first panel above all panels."""
    handles, names = panels[0].get_legend_handles_labels()
    for axes in panels:
        axes.get_legend().remove()
    place: Any = {"loc": "outside upper left", "ncols": 5}
    panels[0].figure.legend(handles, names, **place)


def banded(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table without the intervals of new connections, for pictures."""
    is_new = pl.col("scheme").str.ends_with(NEW)
    bounds = pl.col("low", "high")
    return table.with_columns(pl.when(is_new).then(math.nan).otherwise(bounds).name.keep())


def reduced_to(
    table: pl.DataFrame, metric: str, load: float, unit: str, *, new: bool = False
) -> Any:
    """Return TIMELY's metric over that of pause frames alone, and a description of both.

    With `new`, both have new connections.
    """
    schemes = (SHORT_NEW, PAUSE_NEW) if new else (GRADIENT, PAUSE)
    value, pause_value = (
        metrics.at(table, scheme=name, metric=metric, load=load) for name in schemes
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
    """Return a metric divided by `total`."""
    return lambda result: metrics.Statistic(metric(result).value / total)


def quantile(table: pl.DataFrame, fraction: float) -> float:
    """Return the `fraction` quantile of a distribution; NaN if the distribution has none."""
    above = table.filter(pl.col("fraction") >= fraction)["value"].to_list()
    return min(above, default=math.nan)
