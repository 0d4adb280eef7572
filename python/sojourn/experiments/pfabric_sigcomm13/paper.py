"""Common parts of the figures of pFabric (SIGCOMM 2013)."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from sojourn import Labelled, Paper, Run, Scale, metrics, override, theory

paper = Paper(
    key="pfabric13",
    citation=(
        "M. Alizadeh, S. Yang, M. Sharif, S. Katti, N. McKeown, B. Prabhakar, S. Shenker: pFabric: "
        "Minimal Near-Optimal Datacenter Transport. SIGCOMM 2013"
    ),
    setup=(
        "144 hosts at 10 Gb/s on 9 leaves, 4 spines at 40 Gb/s; the RTT between racks is 14.7 µs, "
        "of which 10 µs are delays of hosts, and the bandwidth-delay product is 12 packets of 1460 "
        "B. Poisson arrivals between random hosts, web-search or data-mining sizes in whole "
        "packets; the load is relative to the hosts' links and includes headers. Packets are "
        "sprayed, except under PDQ, which has state per link and one path per flow. pFabric: "
        "queues of 36 KB, an RTO of 45 µs, windows from 12 to 23 packets. TCP and DCTCP: queues of "
        "225 KB, windows from 12 to 149 packets, a minimum RTO of 200 µs and no fast retransmit, "
        "which sprayed packets would trigger; DCTCP marks from 15 packets on. Ideal serves one "
        "flow per port at full rate, the smallest remaining size first. A normalised FCT is the "
        "FCT divided by the ideal FCT of the same flow."
    ),
    deviations=(
        "FCTs end when the sender has the last ACK, as in the authors' simulator, and ideal FCTs "
        "include an ACK; deadlines are judged at the receiver.",
        "Parameters that the text does not give are those of the authors' scripts for ns-2. Flows "
        "have no handshake, except under PDQ, as in those scripts. Every packet is acknowledged.",
        "The paper does not state if the figures plot the mean of normalised FCTs or the ratio of "
        "the mean FCT to the mean ideal FCT. Claims here use the first; the second, in which large "
        "flows weigh most, is drawn where the difference is relevant.",
        "The published figures give no numbers, so their curves are not drawn.",
        "A run lasts until all of its flows have finished. The published runs have 100 000 flows, "
        "as ours at the scale `paper`. Shorter runs understate the effect of load on large flows: "
        "with 10 000 web-search flows at load 0.8 the ideal's flows above 10 MB take half as long "
        "as with 100 000. All schemes have the same flows.",
    ),
)

TCP, DCTCP, PDQ, PFABRIC, IDEAL = "TCP", "DCTCP", "PDQ", "pFabric", "Ideal"

WEB_SEARCH, DATA_MINING = "web search", "data mining"


class Workload(NamedTuple):
    """Flow sizes: the table of the simulator, and the same distribution for closed forms."""

    table: str
    sizes: theory.Sizes


WORKLOADS = {
    WEB_SEARCH: Workload(
        "web_search_packets",
        theory.Sizes.linear(
            [
                (6, 0.15),
                (13, 0.2),
                (19, 0.3),
                (33, 0.4),
                (53, 0.53),
                (133, 0.6),
                (667, 0.7),
                (1333, 0.8),
                (3333, 0.9),
                (6667, 0.97),
                (20_000, 1),
            ]
        ),
    ),
    DATA_MINING: Workload(
        "data_mining",
        theory.Sizes.linear(
            [
                (1, 0.5),
                (2, 0.6),
                (3, 0.7),
                (7, 0.8),
                (267, 0.9),
                (2107, 0.95),
                (66_667, 0.99),
                (666_667, 1),
            ]
        ),
    ),
}

EVERYWHERE = ("smoke", "quick", "paper")

SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"flows": {WEB_SEARCH: 200, DATA_MINING: 40}, "loads": (0.6,)},
    "quick": {"flows": {WEB_SEARCH: 500, DATA_MINING: 180}, "loads": (0.6, 0.8)},
    "paper": {
        "flows": {WEB_SEARCH: 100_000, DATA_MINING: 100_000},
        "loads": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
    },
}

ONE_RUN = "one run of 100 000 flows, divided into ten batches"
"""Reason why a figure has one seed."""

PAYLOAD, PACKET = 1460, 1500
"""Bytes of a full packet without and with its headers."""

BANDWIDTH_DELAY, ROUND_TRIP_US = 18_000, 14.6
"""The authors' units of queues (bytes) and timeouts (us)."""

BUCKETS = (10, 100, 1000, 3000, 5000, 10_000, 20_000)
"""Bounds of priority classes, in packets, for counts of losses."""

base: dict[str, Any] = {
    "name": "pFabric's fabric",
    "topology": {"kind": "leaf_spine", "host_delay": "2.7 us", "fabric_delay": "200 ns"},
    "packet": {"payload": f"{PAYLOAD} B", "header": "40 B", "ack": "40 B"},
    "routing": "spray_round_robin",
    "time_limit": "1000 s",
}


def scenario(workload: str, load: float, flows: int) -> dict[str, Any]:
    """Return the common part of all schemes' scenarios: the fabric and the flows."""
    sizes = {"kind": "empirical", "table": WORKLOADS[workload].table}
    workload_table = {
        "kind": "poisson",
        "load": load,
        "sizes": sizes,
        "flows": flows,
        "class": workload,
    }
    return override(base, {"workload": workload_table})


def queues(kind: str, capacity: int, **parameters: Any) -> dict[str, Any]:
    """Return the same queue at switches and hosts; `capacity` is in bytes."""
    queue = {"kind": kind, "capacity": f"{capacity} B", **parameters}
    return {"queue": queue, "host_queue": queue}


DEEP = 150 * PACKET

RELIABILITY = {
    "duplicate_acks": "none",
    "initial_rto": "200 us",
    "min_rto": "200 us",
    "timer_granularity": "1 us",
    "handshake": False,
}

WINDOWS = {"initial": 12, "max": 149}


def pfabric(
    capacity: int = 2 * BANDWIDTH_DELAY, rto_us: float = 45, **parameters: Any
) -> dict[str, Any]:
    """Return pFabric with queues of `capacity` bytes, which count losses by priority."""
    # The authors' scripts allow a window one packet short of a queue.
    max_packets = capacity // PACKET - 1
    bounds = [f"{bound * PAYLOAD} B" for bound in BUCKETS]
    return {
        "transport": {
            "kind": "pfabric",
            "initial_window": min(12, max_packets),
            "max_window": max_packets,
            "reliability": {"fixed_rto": f"{rto_us:g} us"},
            **parameters,
        },
        **queues("pfabric", capacity, census=bounds),
    }


schemes: dict[str, dict[str, Any]] = {
    TCP: {
        "transport": {"kind": "tcp", "window": WINDOWS, "reliability": RELIABILITY},
        **queues("drop_tail", DEEP),
    },
    DCTCP: {
        "transport": {
            "kind": "dctcp",
            "initial_alpha": 0.0,
            "initial_window": WINDOWS["initial"],
            "max_window": WINDOWS["max"],
            "reliability": RELIABILITY,
        },
        # Packets that arrive at a queue of at least 15 packets are marked.
        **queues("ecn_threshold", DEEP, threshold=f"{15 * PACKET - 1} B"),
    },
    PDQ: {"transport": "pdq", "routing": "flow_hash", **queues("drop_tail", DEEP)},
    PFABRIC: pfabric(),
    IDEAL: {"model": "omniscient"},
}

MEAN, RATIO = "mean of normalised FCTs", "ratio of mean FCTs"
SMALL_MEAN, SMALL_P99, LARGE_MEAN = "(0, 100 KB] mean", "(0, 100 KB] p99", "> 10 MB mean"
LARGE_RATIO = "> 10 MB ratio of means"

_, SMALL, _, LARGE = metrics.BUCKETS

MEASURES = {
    MEAN: metrics.slowdown("mean"),
    RATIO: metrics.ratio_of_means(),
    SMALL_MEAN: metrics.slowdown("mean", SMALL),
    SMALL_P99: metrics.slowdown("p99", SMALL, few=True),
    LARGE_MEAN: metrics.slowdown("mean", LARGE),
    LARGE_RATIO: metrics.ratio_of_means(LARGE),
}


def over_loads(scale: Scale, selected: Mapping[str, Mapping[str, Any]]) -> Iterator[Labelled]:
    """Yield every scheme under both workloads at every load; all schemes have the same flows."""
    for scheme, change in selected.items():
        for workload in WORKLOADS:
            for load in scale["loads"]:
                labels = {"scheme": scheme, "workload": workload, "load": load}
                shared = scenario(workload, load, scale["flows"][workload])
                yield labels, override(shared, change)


def measured(runs: list[Run], *names: str) -> pl.DataFrame:
    """Return measures of the runs, over their seeds."""
    selected = {name: MEASURES[name] for name in names}
    return metrics.across_seeds(metrics.measure(map(at_sender, runs), **selected))


HOSTS_PER_RACK = 16

ACK_BETWEEN_RACKS_S, ACK_WITHIN_RACK_S = 5.88e-6, 5.464e-6
"""Delay of an ACK, or of any packet without payload, on an idle network."""


def at_sender(
    run: Run,
    between_racks_s: float = ACK_BETWEEN_RACKS_S,
    within_rack_s: float = ACK_WITHIN_RACK_S,
) -> Run:
    """Return a run with FCTs at the sender, as the authors define them: until the last ACK arrives.

    Ideals have no ACKs; their FCTs include the delay of an ACK on an idle network.
    """
    is_within_rack = pl.col("source") // HOSTS_PER_RACK == pl.col("target") // HOSTS_PER_RACK
    ack_delay = pl.when(is_within_rack).then(within_rack_s).otherwise(between_racks_s)
    acked_s = pl.coalesce("acked_s", pl.col("fct_s") + ack_delay).alias("acked_s")
    flows = run.result.flows.with_columns(acked_s, pl.col("ideal_fct_s") + ack_delay)
    flows = flows.with_columns(fct_s=pl.col("acked_s"))
    flows = flows.with_columns(slowdown=pl.col("fct_s") / pl.col("ideal_fct_s"))
    return Run(run.labels, run.result.with_flows(flows))


def loads(table: pl.DataFrame) -> list[float]:
    """Return the loads of a table."""
    return table["load"].unique().sort().to_list()


def ratio(table: pl.DataFrame, upper: str, lower: str, **labels: Any) -> float:
    """Return a metric under scheme `upper` over the same under scheme `lower`."""
    upper_value, lower_value = (
        metrics.at(table, scheme=scheme, **labels) for scheme in (upper, lower)
    )
    return upper_value / lower_value
