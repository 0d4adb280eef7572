"""Common parts of the figures of Homa (SIGCOMM 2018)."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from sojourn import Labelled, Paper, Run, Scale, metrics, override, plot

paper = Paper(
    key="homa18",
    citation=(
        "B. Montazeri, Y. Li, M. Alizadeh, J. Ousterhout: Homa: A Receiver-Driven Low-Latency "
        "Transport Protocol Using Network Priorities. SIGCOMM 2018"
    ),
    setup=(
        "144 hosts at 10 Gb/s on 9 leaves, 4 spines at 40 Gb/s, and the delays of the authors' "
        "simulator: 250 ns per switch, 500 ns in the software of each host, 500 ns in the "
        "sender's NIC. A full packet and its grant take 7.7 µs, about 9.7 KB at 10 Gb/s. Poisson "
        "arrivals between random hosts; sizes W1 to W5 are the authors' tables. The load counts "
        "everything that Homa sends on a host's link, grants included, so that all schemes have "
        "the same messages: the payload is 0.657, 0.796, 0.887, 0.898 and 0.898 of it for W1 to "
        "W5. Homa: eight priorities, of which 7, 5, 4, 1 and 1 are for packets without grants, "
        "with the cutoffs of the authors' simulator; as many messages are granted at a time as "
        "there are other priorities; unlimited queues; random spraying. Slowdowns are the FCT, "
        "until the receiver has the last byte, over the ideal FCT of the same message with the "
        "packets of its scheme."
    ),
    deviations=(
        "NDP, which the source has for W5, is left out.",
        "Homa has no RESEND and no timeouts here, as in the authors' simulator. With RESENDs after "
        "5 ms, which our `homa` has by default, a host requests packets again that wait below "
        "those of shorter messages, and the copies fill the queue: with W5 in 200 ms (one seed) "
        "the longest queue has 557 KB instead of 116.",
        "Homa's packets have one size, 1442 + 96 B, that of unscheduled packets; scheduled ones of "
        "the authors' simulator carry 1456 B. So W4 and W5 have 1 % more bytes on the links. "
        "10 000 B without grants are rounded up to 7 packets.",
        "The authors' simulator has no acknowledgements; ours of complete messages have 1 B on the "
        "links. Grants have 84 B, as there. With ACKs of 84 B, W1 would offer a load of 1.03.",
        "The other schemes have the packets of their own authors' simulators: 1460 + 40 B, and "
        "40 B for ACKs, requests and tokens. Their load is therefore lower than Homa's for small "
        "messages.",
        "The source does not give the parameters of the other schemes, which were made for other "
        "RTTs. Ours follow their rules with the RTT of this network, 7.6 µs or 6.3 packets. "
        "pFabric: a window of 7 packets, queues of twice that, an RTO of three RTTs (23 µs). "
        "pHost: the authors' 8 packets, 9 and 25 packet times are multiplied by the ratio of the "
        "RTTs, 1.62. PIAS: thresholds that divide the messages evenly by number, in whole "
        "packets; marking from 65 packets on, as in its authors' script; one path per flow, since "
        "spraying would trigger fast retransmit.",
        "Our runs are shorter than those of the source (1.2 s of arrivals for W1, 3.75 s for W4, "
        "1.9 s for W5). At the scale `paper` ten seeds have together as much of W4 and W5; "
        "of W1 they have 25 million messages. Messages that start in the first fifth of a run do "
        "not count. Runs last until all messages have arrived; all schemes have the same.",
        "Runs at `quick` are short against the largest messages, so that links carry less than the "
        "load: those to hosts are used for 0.80, 0.70, 0.57, 0.51 and 0.40 of the time by Homa "
        "with W1 to W5 at load 0.8, from the end of the warm-up to the last arrival (means of four "
        "seeds); W5 for 0.59 in 80 ms instead of 20 (one seed). Claims on W2 to W5 are judged at "
        "`paper`.",
        "The source has about 100 bins of equal numbers of messages; ours have a tenth of the "
        "messages each, and the largest 1 % one of their own. Percentiles are means over seeds; "
        "the 99th of fewer than 100 messages is the largest value.",
    ),
)

NEVER = "10 s"
"""A time that no message takes."""

HOMA, PFABRIC, PHOST, PIAS = "Homa", "pFabric", "pHost", "PIAS"


class Workload(NamedTuple):
    """Sizes of messages, and Homa's use of priorities for them."""

    payload_share: float
    """Payload over all bytes that Homa sends (authors' simulator)."""
    cutoffs: tuple[int, ...]
    """Bounds between the priorities of packets without grants, in remaining bytes."""
    edges: tuple[int, ...]
    """Sizes in bytes at cumulative shares of the messages of 10, 20, … 90 and 99 %."""
    thresholds: tuple[int, ...]
    """PIAS's thresholds in packets: sizes at shares of 1/8, 2/8, …, ascending."""


WORKLOADS = {
    "W1": Workload(
        0.657,
        (11, 131, 280, 489, 794, 1360),
        (2, 3, 5, 11, 27, 79, 151, 264, 503, 1876),
        (1, 2, 3, 4, 5, 6, 7),
    ),
    "W2": Workload(
        0.796,
        (269, 366, 512, 1463),
        (3, 34, 58, 171, 269, 320, 366, 427, 512, 3151),
        (1, 2, 3, 4, 5, 6, 7),
    ),
    "W3": Workload(
        0.887,
        (433, 2339, 6756),
        (36, 77, 110, 158, 268, 313, 402, 573, 1755, 31_013),
        (1, 2, 3, 4, 5, 6, 7),
    ),
    "W4": Workload(
        0.898,
        (),
        (315, 376, 502, 561, 662, 960, 6387, 49_408, 120_373, 3_430_822),
        (1, 2, 3, 4, 5, 30, 59),
    ),
    "W5": Workload(
        0.898,
        (),
        (5768, 18_746, 27_398, 47_586, 70_658, 191_786, 961_814, 1_922_186, 4_806_186, 26_917_814),
        (5, 16, 30, 49, 264, 988, 2799),
    ),
}

SHORTER_HALF, UNSCHEDULED = "shorter half", "up to 9 KB"

SHARES = (*range(5, 95, 10), 94.5, 99.5)
"""Middles of the bins of sizes, in percent of the messages."""

LENGTHS: dict[str, dict[str, float]] = {
    "smoke": {"W1": 0.05, "W2": 0.05, "W3": 0.1, "W4": 1, "W5": 2},
    "quick": {"W1": 0.2, "W2": 0.4, "W3": 2, "W4": 10, "W5": 20},
    "paper": {"W1": 5, "W2": 10, "W3": 50, "W4": 375, "W5": 200},
}
"""Lengths of arrivals in milliseconds by scale."""

SCALES = {scale: {"lengths_ms": lengths} for scale, lengths in LENGTHS.items()}

HIGH_LOAD, LOW_LOAD = 0.8, 0.5

LOADED_AT_QUICK = "W1"
"""The workload whose links carry the configured load in the runs of `quick`."""

base: dict[str, Any] = {
    "name": "Homa's fabric",
    # A path has two host links and three switches: 2 x 875 ns = 250 ns + 500 ns + 2 x 500 ns.
    "topology": {"kind": "leaf_spine", "host_delay": "875 ns", "fabric_delay": "250 ns"},
    "packet": {"payload": "1460 B", "header": "40 B", "ack": "40 B"},
    "time_limit": "100 s",
}

HOMA_PACKET = {"payload": "1442 B", "header": "96 B", "ack": "1 B", "credit": "84 B"}


def homa(cutoffs: Iterable[int], priorities: int = 8) -> dict[str, Any]:
    """Return Homa with these bounds between the priorities of packets without grants."""
    transport = {
        "kind": "homa",
        "cutoffs": list(cutoffs),
        "priorities": priorities,
        "resend_interval": NEVER,
        "reliability": {"fixed_rto": NEVER},
    }
    return {"transport": transport, "packet": HOMA_PACKET, "routing": "spray_random"}


def schemes(workload: str) -> dict[str, dict[str, Any]]:
    """Return the schemes, with their parameters for these sizes."""
    queue = {"kind": "pfabric", "capacity": "21 KB"}
    pfabric = {
        "kind": "pfabric",
        "initial_window": 7,
        "max_window": 13,
        "reliability": {"fixed_rto": "23 us"},
    }
    phost = {
        "kind": "phost",
        "free_tokens": 13,
        "short_flow": 13,
        "window": 13,
        "resend_timeout": 14.6,
        "window_timeout": 40.5,
    }
    pias = {"kind": "pias", "thresholds": list(WORKLOADS[workload].thresholds)}
    sprayed = {"routing": "spray_round_robin"}
    return {
        HOMA: homa(WORKLOADS[workload].cutoffs),
        PFABRIC: {"transport": pfabric, "queue": queue, "host_queue": queue, **sprayed},
        PHOST: {"transport": phost, **sprayed},
        PIAS: {"transport": pias},
    }


def scenario(workload: str, load: float, scale: Scale) -> dict[str, Any]:
    """Return the common part of all schemes' scenarios: the fabric and the messages."""
    length_ms = scale["lengths_ms"][workload]
    table = {
        "kind": "poisson",
        "load": load * WORKLOADS[workload].payload_share,
        "load_counts": "payload",
        "sizes": {"kind": "empirical", "table": f"homa_{workload.lower()}"},
        "stop": f"{length_ms} ms",
        "class": workload,
    }
    return override(base, {"workload": table, "warm_up": f"{length_ms / 5} ms"})


def over_workloads(scale: Scale, loads: Iterable[float], *names: str) -> Iterator[Labelled]:
    """Yield schemes under every workload and load; all schemes have the same messages."""
    for name in names:
        for workload in WORKLOADS:
            for load in loads:
                labels = {"scheme": name, "workload": workload, "load": load}
                yield labels, override(scenario(workload, load, scale), schemes(workload)[name])


def by_scales(*workloads: str) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Yield W1, then the others: their name, the workloads, and the scales with their load."""
    others = tuple(name for name in workloads if name != LOADED_AT_QUICK)
    yield LOADED_AT_QUICK, (LOADED_AT_QUICK,), ("quick", "paper")
    joint = " to " if len(others) > 2 else " and "
    yield joint.join((others[0], others[-1])), others, ("paper",)


def bins(workload: str) -> list[metrics.Bucket]:
    """Return the bins of sizes of a workload, by `SHARES`."""
    edges = (0, *WORKLOADS[workload].edges, math.inf)
    return [
        metrics.Bucket(f"{share} %", *ends)
        for share, ends in zip(SHARES, itertools.pairwise(edges), strict=True)
    ]


def slowdowns(runs: Iterable[Run], *statistics: str) -> pl.DataFrame:
    """Return percentiles of the slowdown over seeds: of each bin of sizes, and of small messages.

    The column `sizes` names the bin or the group; `share` is the middle of the bin.
    """
    rows = []
    for run in runs:
        workload = run.labels["workload"]
        groups = {
            **dict(zip(SHARES, bins(workload), strict=True)),
            SHORTER_HALF: metrics.Bucket(SHORTER_HALF, 0, WORKLOADS[workload].edges[4]),
            UNSCHEDULED: metrics.Bucket(UNSCHEDULED, 0, 9000),
        }
        for key, bucket in groups.items():
            share = key if not isinstance(key, str) else math.nan
            for statistic in statistics:
                measured = metrics.slowdown(statistic, bucket, few=True)(run.result)
                labels = {**run.labels, "sizes": bucket.name, "share": share, "metric": statistic}
                rows.append({**labels, **measured._asdict()})
    return metrics.across_seeds(pl.DataFrame(rows, infer_schema_length=None))


def along_sizes(axes: Any, table: pl.DataFrame, workload: str, label: str, **options: Any) -> None:
    """Draw slowdowns of bins against size; the axis is linear in the number of messages."""
    part = table.filter(pl.col("workload") == workload, pl.col("share").is_not_nan())
    plot.against(axes, part, x="share", labels=("", label), log=True, **options)
    edges = WORKLOADS[workload].edges
    axes.set_xticks(range(10, 100, 20), [size_name(edge) for edge in edges[:9:2]])
    axes.set_xlim(0, 102)
    axes.set_ylim(bottom=0.95)
    axes.set_xlabel(f"{workload}: message size at 10, 30, … 90 % of messages (B)")


def size_name(size: float) -> str:
    """Return a size in bytes in at most five characters."""
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g}{unit}"
    return f"{size:g}"


def at(table: pl.DataFrame, sizes: str, metric: str, **labels: Any) -> float:
    """Return a percentile of one bin or group."""
    return metrics.at(table, sizes=sizes, metric=metric, **labels)


def shorter_bins(workload: str) -> list[metrics.Bucket]:
    """Return the bins of the shorter half of the messages."""
    return bins(workload)[:5]


def largest(values: Mapping[str, float]) -> tuple[str, float]:
    """Return the name and the value of the largest of these values."""
    name = max(values, key=lambda key: np.nan_to_num(values[key], nan=-math.inf))
    return name, values[name]
