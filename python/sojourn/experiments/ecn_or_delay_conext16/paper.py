"""ECN or Delay (CoNEXT 2016): what small flows pay for a queue that never settles."""

from collections.abc import Iterator, Mapping
from typing import Any

from sojourn import Paper, metrics, override

paper = Paper(
    key="ecndelay16",
    citation=(
        "Y. Zhu, M. Ghobadi, V. Misra, J. Padhye: ECN or Delay: Lessons Learnt from Analysis of "
        "DCQCN and TIMELY. CoNEXT 2016"
    ),
    setup=(
        "A dumbbell of 10 senders and 10 receivers, every link 10 Gb/s and 1 µs. Random pairs, "
        "Poisson arrivals, sizes of the web-search distribution in packets of 1000 B. A load of 1 "
        "offers 8 Gb/s of payload to the middle link. Runs of one second; small flows have fewer "
        "than 100 packets."
    ),
    deviations=(
        "Our completion times end when the receiver has the last byte; the authors' simulator "
        "waits for the last ACK, about 3 µs more on this network.",
        "The authors' workload file and seeds are not published. Two versions of the figure exist, "
        "with medians and 90th percentiles of TIMELY that differ by a factor of 2.5 from the draw "
        "alone; we average over seeds and compare ratios and orders.",
        "Whether their runs paced packets or bursts, and whether they used pause frames, is not "
        "known. Ours pace packets, and the 9.27 MB buffer that their queue's maximum shows is "
        "shared by the ports of a switch, without pause frames.",
        "TIMELY as published, with beta = 0.8, does not show the published collapse of small "
        "flows here, although it agrees with the paper's own pictures of two long flows (A7). A"
        " flow that meets a rising queue is cut to the least rate within a few segments and "
        "takes tens of milliseconds to recover (a segment of 16 KB adds 10 Mb/s), so the link "
        "has room when the next flow starts at line rate: the queue stays small, at the price "
        "of utilisation. Other segments (1, 4, 64 KB), bursts, other weights of the moving "
        "average, a bound on a cut, no hyper increase and one update a round trip do not change"
        " that. beta = 0.008, the value of the patch, does: TIMELY with it uses the link like "
        "DCQCN up to load 0.8 and collapses as published, at loads 0.4 and 1.0 by more (p90 "
        "0.58 ms at 0.4, median 2.3 ms at 1.0). And our patched TIMELY comes within 20 % of "
        "what the version of June 2016 gives for TIMELY (A4: p75, p80, p90 and p95; A5: a mean "
        "of 0.80 MB against 0.93). We take it that the published runs of TIMELY used the "
        "patch's beta, draw both, and judge the claims on both. TIMELY's least rate is 100 "
        "Mb/s, 1 % of the line rate, as in the authors' simulator.",
    ),
)

LOADS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)

SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"seeds": 1, "length": "50 ms", "loads": (0.2, 0.8)},
    "quick": {"seeds": 6, "length": "500 ms", "loads": LOADS},
    "paper": {"seeds": 10, "length": "1 s", "loads": LOADS},
}

MIDDLE = "left->right"

base: dict[str, Any] = {
    "name": "ECN or Delay: small flows on a dumbbell",
    "topology": {
        "kind": "dumbbell",
        "senders": 10,
        "receivers": 10,
        "rate": "10 Gbps",
        "delay": "1 us",
    },
    "packet": {"payload": "1000 B", "header": "30 B", "ack": "60 B"},
    "switch": {"shared_buffer": "9.27 MB"},
    "workload": {
        "kind": "poisson",
        "load": 0.8,
        "load_reference": "8 Gbps",
        "load_counts": "payload",
        "sizes": {"kind": "empirical", "table": "web_search_packets"},
        "stop": "1 s",
    },
    "time_limit": "1 s",
    "samples": {"interval": "100 us", "queues": [MIDDLE]},
}

AUTHORS_FLOOR = {"segments": {"min_rate": "100 Mbps"}}

schemes: dict[str, dict[str, Any]] = {
    "DCQCN": {"transport": "dcqcn"},
    "TIMELY": {"transport": {"kind": "timely", **AUTHORS_FLOOR}},
    "Patched TIMELY": {"transport": {"kind": "patched_timely", **AUTHORS_FLOOR}},
    "DCTCP": {"transport": "dctcp"},
}

LOW_BETA = "TIMELY, beta 0.008"

why: dict[str, dict[str, Any]] = {
    LOW_BETA: {"transport": {"kind": "timely", "beta": 0.008, **AUTHORS_FLOOR}},
}
"""TIMELY as the published runs seem to have had it: see the deviations."""

TIMELYS = ("TIMELY", LOW_BETA)
"""Claims about TIMELY are judged on both; only the first is what the paper states."""

ideals: dict[str, dict[str, Any]] = {
    "Max-min": {"model": "max_min"},
    "SRPT": {"model": "srpt"},
}

SMALL = metrics.Bucket("fewer than 100 packets", 0, 99_000)


def over_loads(
    scale: Mapping[str, Any], chosen: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every scheme at every load: all of them see the same flows."""
    for scheme, change in chosen.items():
        for load in scale["loads"]:
            yield {"scheme": scheme, "load": load}, at_load(scale, change, load)


def at_load(scale: Mapping[str, Any], change: Mapping[str, Any], load: float) -> dict[str, Any]:
    """Return the scenario of one scheme at one load."""
    length = scale["length"]
    given = {"workload.load": load, "workload.stop": length, "time_limit": length}
    return override(base, change, given)


def sharing(initial_rates: list[str]) -> dict[str, Any]:
    """Return the scenario of long-lived flows, one a sender, that start at the given rates."""
    count = len(initial_rates)
    flows = [
        {"source": number, "target": count + number, "initial_rate": rate}
        for number, rate in enumerate(initial_rates)
    ]
    return override(
        base,
        {
            "topology": {"kind": "dumbbell", "senders": count, "receivers": count},
            "workload": {"kind": "flows", "flows": flows},
            "samples": {"interval": "100 us", "queues": [MIDDLE], "flows": [0, 1]},
        },
    )
