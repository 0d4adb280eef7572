"""Common parts of the figures of pHost (CoNEXT 2015)."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import Labelled, Paper, Run, Scale, metrics, override
from sojourn.experiments.pfabric_sigcomm13.paper import at_sender

paper = Paper(
    key="phost15",
    citation=(
        "P. X. Gao, A. Narayan, G. Kumar, R. Agarwal, S. Ratnasamy, S. Shenker: pHost: "
        "Distributed Near-Optimal Datacenter Transport Over Commodity Network Fabric. CoNEXT 2015"
    ),
    setup=(
        "144 hosts at 10 Gb/s on 9 leaves, 4 spines at 40 Gb/s, links of 0.2 µs and no delay in "
        "hosts; a packet of 1460 + 40 B and its ACK take 4.7 µs between racks. Queues of 36 KB at "
        "every port. Poisson arrivals between random hosts at load 0.6; sizes in whole packets: "
        "web search, data mining and IMC10. Packets are sprayed in turn. pHost has the parameters "
        "of the authors' simulator, pFabric those of its own authors: an initial window of 12 "
        "packets, an RTO of 45 µs. Slowdowns are FCTs over ideal FCTs, both until the sender has "
        "the last ACK, as in the authors' simulator."
    ),
    deviations=(
        "Fastpass, the third scheme of the source, is not implemented, and its claims are left "
        "out: mean slowdowns up to 3.8 times pHost's, all of it among short flows.",
        "Runs of the source have a million flows. At the scale `paper` ten seeds have as many "
        "together. Short runs understate the effect of load on large flows: at `quick` 200 flows "
        "of data mining use 2 % of the hosts' links. Claims of the source are judged at `paper`.",
        "The published numbers are not available. The figures show those of the authors' "
        "simulator for 10 000 web-search flows at load 0.6, as many as ours at `quick`; the flows "
        "are not the same.",
        "The authors' script sets no limit of short flows, so that all data has one priority; "
        "ours is 8 packets, the flows that start with tokens.",
    ),
)

PHOST, PFABRIC = "pHost", "pFabric"

WEB_SEARCH, DATA_MINING, IMC10 = "web search", "data mining", "IMC10"

WORKLOADS = {WEB_SEARCH: "web_search_packets", DATA_MINING: "data_mining", IMC10: "imc10"}

LOAD = 0.6

REFERENCE = "authors' simulator"
"""Origin of the numbers beside those of K1 and K2."""

SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"flows": {WEB_SEARCH: 300, DATA_MINING: 60, IMC10: 400}},
    "quick": {"flows": {WEB_SEARCH: 10_000, DATA_MINING: 200, IMC10: 4000}},
    "paper": {"flows": {WEB_SEARCH: 100_000, DATA_MINING: 100_000, IMC10: 100_000}},
}

PAYLOAD = 1460
"""Bytes of a full packet without its headers."""

QUEUE = {"kind": "pfabric", "capacity": "36864 B"}

schemes: dict[str, dict[str, Any]] = {
    PHOST: {"transport": "phost"},
    PFABRIC: {"transport": "pfabric", "queue": QUEUE, "host_queue": QUEUE},
}

base: dict[str, Any] = {
    "name": "pHost's fabric",
    "topology": {"kind": "leaf_spine", "host_delay": "200 ns", "fabric_delay": "200 ns"},
    "packet": {"payload": f"{PAYLOAD} B", "header": "40 B", "ack": "40 B"},
    "routing": "spray_round_robin",
    "time_limit": "1000 s",
}

ACK_BETWEEN_RACKS_S, ACK_WITHIN_RACK_S = 0.88e-6, 0.464e-6
"""Delay of an ACK on an idle network."""

*_, MEDIUM, LARGE = metrics.BUCKETS

SHORT = metrics.Bucket("≤ 10 MB", 0, MEDIUM.up_to)


def over_workloads(scale: Scale) -> Iterator[Labelled]:
    """Yield both schemes under every workload; they have the same flows."""
    for scheme, change in schemes.items():
        for workload, table in WORKLOADS.items():
            flows = {
                "kind": "poisson",
                "load": LOAD,
                "sizes": {"kind": "empirical", "table": table},
                "flows": scale["flows"][workload],
                "class": workload,
            }
            labels = {"scheme": scheme, "workload": workload}
            yield labels, override(base, {"workload": flows}, change)


def measured(runs: list[Run], **measures: metrics.Metric) -> pl.DataFrame:
    """Return measures of the runs over seeds, with FCTs at the sender."""
    delays = {"between_racks_s": ACK_BETWEEN_RACKS_S, "within_rack_s": ACK_WITHIN_RACK_S}
    at_senders = (at_sender(run, **delays) for run in runs)
    return metrics.across_seeds(metrics.measure(at_senders, **measures))


def over_pfabric(table: pl.DataFrame, **labels: Any) -> float:
    """Return a number under pHost over the same under pFabric."""
    phost, pfabric = (metrics.at(table, scheme=name, **labels) for name in (PHOST, PFABRIC))
    return phost / pfabric
