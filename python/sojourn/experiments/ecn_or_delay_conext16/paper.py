"""ECN or Delay (CoNEXT 2016): FCT of small flows under DCQCN, TIMELY and patched TIMELY."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from sojourn import Figure, Paper, Verdict, between, metrics, not_judged, override, plot

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
        "Completion times here end when the receiver has the last byte. The authors' simulator "
        "waits for the last ACK, about 3 µs longer on this network.",
        "Runs last one second, as the published queue over time, and half a second at `quick` "
        "scale. All flows count, from the start of the run.",
        "The authors' workload file and seeds are not published. Two versions of the figures "
        "exist, of June 2016 and in the final paper. At load 0.8 TIMELY's median is 51 µs in June "
        "and 126 µs in the final paper, its 90th percentile 2.9 and 7.4 ms; the text names no "
        "difference. We first compared with June's, and now with the final version, the only one "
        "with all three schemes. Its median of 16 µs at load 0.1 is the FCT of 10 packets; our "
        "median is 20 µs, which fits the distribution's median of 18 packets, and June's is 22 µs.",
        "Switches send pause frames, as by default in the authors' simulator, with its threshold "
        "of 16 times the free part of the buffer. Our first runs had none, and 90th percentiles "
        "at load 1.0 of 32 ms (TIMELY with beta 0.008) and 21 ms (patched TIMELY). With them they "
        "are 6.9 and 7.0 ms; the final paper's end at 7.38 ms, the time that a full buffer of "
        "9.27 MB takes at 10 Gb/s. June's 13.2 ms are above that. DCQCN never fills the buffer.",
        "The source states that TIMELY has the default parameters of [timely15], so that beta is "
        "0.8, and its claims are judged with this value. Its FCTs did not collapse, so we tried "
        "0.008, which the source gives to patched TIMELY: claims about it are our own. A10 "
        "compares both with the published numbers.",
        "Segments of TIMELY are 16 KB, as in the authors' simulator; the authors' fluid scripts "
        "with beta 0.8 have 64 KB. With beta 0.8 the link's utilisation at load 1.0 is the same "
        "with both. With beta 0.008, 64 KB are nearer to the published values at loads 0.6 and "
        "0.8 (90th percentiles of 3.0 and 6.4 ms) and farther at 0.4 and 1.0 (0.9 ms; median "
        "3.2 ms).",
        "TIMELY's weight of the moving average, 0.875, and its minimum rate, 100 Mb/s, are those "
        "of the authors' simulator. Packets are paced; that simulator sends bursts of 16 KB and "
        "has no hyper increase. With beta 0.008 both matter little (medians at loads 0.8 and 1.0: "
        "bursts 94 and 1605 µs, no hyper increase 83 and 1203, ours 86 and 1249). With beta 0.8 "
        "bursts use less of the link (62 % at load 1.0, against 71 %).",
    ),
)

LOADS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)

SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"length": "50 ms", "loads": (0.2, 0.8)},
    "quick": {"length": "500 ms", "loads": LOADS},
    "paper": {"length": "1 s", "loads": LOADS},
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
    "switch": {"shared_buffer": "9.27 MB", "pause": {"alpha": 16}},
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

WEIGHT = {"ewma_weight": 0.875}
"""Weight of TIMELY's moving average in the authors' code."""

DCQCN = "DCQCN"
TIMELY = "TIMELY, beta 0.8"
SMALL_BETA = "TIMELY, beta 0.008"
PATCHED = "Patched TIMELY"

schemes: dict[str, dict[str, Any]] = {
    DCQCN: {"transport": "dcqcn"},
    TIMELY: {"transport": {"kind": "timely", **WEIGHT, **AUTHORS_FLOOR}},
    SMALL_BETA: {"transport": {"kind": "timely", "beta": 0.008, **WEIGHT, **AUTHORS_FLOOR}},
    PATCHED: {"transport": {"kind": "patched_timely", **AUTHORS_FLOOR}},
}
"""The three schemes of the source, and TIMELY with the patch's beta (see the deviations)."""

dctcp: dict[str, dict[str, Any]] = {"DCTCP": {"transport": "dctcp"}}

ideal: dict[str, dict[str, Any]] = {"Max-min": {"model": "max_min"}}

PUBLISHED = (DCQCN, TIMELY, PATCHED)
"""The schemes of the published figures."""

LOOKS = {TIMELY: "TIMELY", SMALL_BETA: "beta 0.008"}
"""Schemes that are drawn in the style of another name."""

FACTOR = 1.5
"""Factor within which a number is the published one."""

SMALL = metrics.Bucket("fewer than 100 packets", 0, 99_000)


def over_loads(
    scale: Mapping[str, Any], schemes_to_run: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every scheme at every load; all schemes have the same flows."""
    for scheme, change in schemes_to_run.items():
        for load in scale["loads"]:
            yield {"scheme": scheme, "load": load}, at_load(scale, change, load)


def at_load(scale: Mapping[str, Any], change: Mapping[str, Any], load: float) -> dict[str, Any]:
    """Return the scenario of one scheme at one load."""
    length = scale["length"]
    settings = {"workload.load": load, "workload.stop": length, "time_limit": length}
    return override(base, change, settings)


def along_load(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None, label: str) -> None:
    """Draw FCTs against load: a panel for each published scheme, all on one scale.

    TIMELY's panel has both values of beta. Each panel also shows DCQCN and the ideal, without
    their intervals.
    """
    scheme_panels: list[Axes] = list(np.ravel(axes))
    others_by_scheme = {DCQCN: ["DCTCP", *ideal]}
    labels = ("load (1 = 8 Gb/s of payload)", label)
    common: dict[str, Any] = {"unit": "us", "labels": labels, "log": True, "drawn_as": LOOKS}
    for panel, scheme in zip(scheme_panels, PUBLISHED, strict=True):
        shown = [TIMELY, SMALL_BETA] if scheme == TIMELY else [scheme]
        points = None if published is None else published.filter(scheme=scheme)
        with_intervals = table.filter(pl.col("scheme").is_in(shown))
        plot.against(panel, with_intervals, published=points, **common)
        context_schemes = others_by_scheme.get(scheme, [DCQCN, *ideal])
        context = table.filter(pl.col("scheme").is_in(context_schemes)).drop("low", "high")
        plot.against(panel, context, **common)
        plot.legend(panel, columns=2)
    plot.same_scale(scheme_panels)


def as_published(figure: Figure, table: pl.DataFrame, what: str, **labels: Any) -> Verdict:
    """Judge that the number with these labels is the published one, within `FACTOR`."""
    published = figure.published()
    if published is None:
        return not_judged("there are no published points")
    ratio = metrics.at(table, **labels) / metrics.at(published, **labels)
    return between(ratio, 1 / FACTOR, FACTOR, f"{what} over the published")


def claim_for_both_betas(
    figure: Figure, statement: str, judge: Callable[..., Verdict], *, stated: bool = True
) -> None:
    """Add a claim about TIMELY as documented, and below it our own with the small beta.

    `statement` names the scheme as `{timely}`; `judge` gets the table, and the scheme as `timely`.
    """
    for timely in (TIMELY, SMALL_BETA):
        add = figure.claim(statement.format(timely=timely), stated=stated and timely == TIMELY)
        add(partial(judge, timely=timely))


def sharing(initial_rates: list[str]) -> dict[str, Any]:
    """Return the scenario of long-lived flows, one per sender, with these initial rates."""
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
