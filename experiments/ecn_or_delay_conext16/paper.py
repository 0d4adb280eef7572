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
        "TIMELY's least rate is 100 Mb/s, 1 % of the line rate, as in the authors' simulator. With it "
        "our TIMELY does not show the published collapse. A flow that meets a rising queue is cut to "
        "the floor within a few segments and takes tens of milliseconds to recover (a segment of "
        "16 KB adds 10 Mb/s), so the link has room when the next flow starts at line rate, and the "
        "queue stays small at the price of utilisation. Segments of 1, 4 and 64 KB, bursts, a weight "
        "of 0.02 or 0.1 for the moving average, a bound of one half on a cut, no hyper increase, and "
        "one update each round trip do not change that. A floor of 1 Gb/s does: then the "
        "utilisation is that of DCQCN, as published, and the queue runs to the buffer's limit. It is "
        "drawn beside the others for that reason. Which floor the published runs had is not known.",
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

HIGH_FLOOR = "TIMELY, floor 1 Gb/s"

why: dict[str, dict[str, Any]] = {
    HIGH_FLOOR: {"transport": {"kind": "timely", "segments": {"min_rate": "1 Gbps"}}},
}
"""What shows where our TIMELY and the published one part: see the deviations."""

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
