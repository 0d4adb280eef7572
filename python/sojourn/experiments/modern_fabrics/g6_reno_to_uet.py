"""Figure G6: all transports, from Reno to UET, on one fabric with one list of flows."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    accounts,
    all_at_least,
    all_at_most,
    at_least,
    at_most,
    looks,
    metrics,
    override,
)

from .paper import BOTH, EQDS, NDP, NSCC, RCCC, fabric, paper
from .paper import schemes as modern

OMNISCIENT, SRPT, SHARING = "Omniscient", "SRPT", "Processor sharing"

IDEAL, PRIORITIES, CREDITS, SWITCHES, MARKS, HOSTS = (
    "ideals",
    "priorities: sizes or bytes sent",
    "credits of the receiver",
    "rates or telemetry of switches",
    "ECN marks",
    "loss or delay at hosts",
)
"""Families of transports, by the information that decides when they send."""

UNCONTROLLED = "Line rate, PFC"

TCP, DCTCP, HPCC, POWERTCP = "TCP Reno", "DCTCP", "HPCC", "PowerTCP"
PFABRIC, HOMA, PDQ = "pFabric", "Homa", "PDQ"

Schemes = Mapping[str, Mapping[str, Any]]

ONE_BY_ONE: dict[str, Any] = {"routing": "spray_round_robin"}
AT_RANDOM: dict[str, Any] = {"routing": "spray_random"}

BASE_RTT = "9.4 us"
"""Base RTT of a full packet between leaves."""

PHOST = {
    "kind": "phost",
    "free_tokens": 58,
    "short_flow": 58,
    "window": 58,
    "resend_timeout": 65,
    "window_timeout": 180,
}
"""The constants of pHost's authors, times the ratio of the RTTs in packet times, 28 over 3.9."""

PIAS = {"kind": "pias", "thresholds": [324, 474, 587, 699, 764, 833, 885]}
"""The thresholds of PIAS's authors (packets of 1460 B) in packets of 4096 B."""

families: dict[str, Schemes] = {
    IDEAL: {
        OMNISCIENT: {"model": "omniscient"},
        SRPT: {"model": "srpt"},
        SHARING: {"model": "processor_sharing"},
    },
    PRIORITIES: {
        PFABRIC: {"transport": "pfabric", **ONE_BY_ONE},
        HOMA: {"transport": "homa", **AT_RANDOM},
        "pHost": {
            "transport": PHOST,
            "queue": {"kind": "strict_priority", "classes": 3, "capacity": "2 BDP"},
            **ONE_BY_ONE,
        },
        PDQ: {"transport": "pdq"},
        "PIAS": {"transport": PIAS},
    },
    CREDITS: {
        **{name: modern[name] for name in (RCCC, BOTH, EQDS, NDP)},
        "ExpressPass": {"transport": "expresspass"},
    },
    SWITCHES: {
        HPCC: {"transport": "hpcc"},
        POWERTCP: {"transport": "powertcp"},
        "XCP": {"transport": "xcp", "router": {"kind": "xcp", "initial_interval": BASE_RTT}},
        "RCP": {"transport": "rcp", "router": {"kind": "rcp", "initial_rtt": BASE_RTT}},
        "Quick-Start": {"transport": "quick_start"},
        "Fair share": {"transport": "fair_share"},
    },
    MARKS: {
        NSCC: modern[NSCC],
        DCTCP: {"transport": "dctcp"},
        "DCQCN": {"transport": "dcqcn"},
    },
    HOSTS: {
        TCP: {"transport": "tcp"},
        "CUBIC": {"transport": "cubic"},
        "HighSpeed TCP": {"transport": "high_speed_tcp"},
        "Scalable TCP": {"transport": "scalable_tcp"},
        "Jump Start": {"transport": "jump_start"},
        "Vegas": {"transport": "vegas"},
        "FAST": {"transport": "fast"},
        "Copa": {"transport": "copa"},
        "BBR": {"transport": "bbr"},
        "BBRv3": {"transport": "bbr3"},
        "PCP": {"transport": "pcp"},
        "Swift": {"transport": "swift"},
        "TIMELY": {"transport": "timely"},
        "Patched TIMELY": {"transport": "patched_timely"},
        "Theta-PowerTCP": {"transport": "theta_powertcp"},
        UNCONTROLLED: {"transport": "constant_rate", "environment": "lossless_datacentre"},
    },
}

family_of = {name: family for family, members in families.items() for name in members}

TRANSPORTS = [name for name, family in family_of.items() if family != IDEAL]

figure = Figure(
    paper,
    id="g6",
    title="From Reno to UET: all transports on one fabric, with the same flows",
    source="ours",
    scales={
        "smoke": {"flows": 40},
        "quick": {"flows": 400},
        "paper": {"flows": 4000},
    },
    deviations=(
        "4 leaves with 4 hosts each, and 4 spines. Poisson arrivals between random hosts at half "
        "of the hosts' link rate, web-search sizes; small flows have at most 100 KB. A run lasts "
        "until all its flows have finished, at most 1 s. 400 flows for each of 4 seeds, 7 ms of "
        "traffic, understate the effect of load on large flows.",
        "All transports of the catalogue, with the parameters of the environment, except D3 and "
        "D2TCP, which are made for flows with deadlines, QUIC, which needs a build with its "
        "library, and Python controllers, which are the user's. `Line rate` sends at line rate "
        "whatever happens, with PFC.",
        "Lengths in packets were converted: the thresholds of PIAS by packet size, the tokens "
        "and timeouts of pHost by RTT, its queues by bandwidth-delay product. XCP, RCP, PDQ, "
        "Quick-Start and fair share have their routers at all links. A handshake precedes data "
        "under XCP, RCP, PDQ, Quick-Start, PCP and Jump Start.",
        "XCP and RCP start with the base RTT, as the catalogue advises for short RTTs. First runs "
        "had their wide-area defaults, and mean slowdowns of 8.7 and 13.0. PCP, FAST, Quick-Start "
        "and Jump Start were designed for RTTs of milliseconds, too, and were not adapted.",
        "TCP Reno, CUBIC, HighSpeed TCP and Scalable TCP lose no packets in the 32 MB of a switch: "
        "flows end in slow start, which only CUBIC leaves (HyStart). Queues reach 9 MB.",
        "Small flows under EQDS and UET with credits (RCCC, both) wait if their host sends several "
        "flows: each requests its share of the missing credit, as in htsim, and its last packets "
        "may take an RTT each. In the first runs they waited for timeouts instead, since a packet "
        "requested less than the next one needs: p99 of 106 (EQDS), 73 (RCCC) and 35 (both).",
        "Bars are means over flows of FCT over ideal FCT, divided by the cause of each wait; small "
        "flows weigh most. Packets of pFabric and pHost take paths in turn, those of Homa random "
        "paths. Ideals have no causes: `sharing` is the time in which other flows are served.",
    ),
    panels=(1, 2),
    size=(10.5, 9.6),
)

SMALL = metrics.size_buckets(100e3)[0]

MEAN, TAIL = "mean slowdown", "p99 slowdown, small flows"


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for members in families.values():
        for scheme, changes in members.items():
            yield {"scheme": scheme}, override(network(scale["flows"]), changes)


def network(flows: int) -> dict[str, Any]:
    """Return the scenario that all transports share."""
    return {
        "name": "Web search on a leaf-spine fabric",
        **fabric(leaves=4, hosts=4, spines=4),
        "transport": "tcp",
        "workload": {
            "kind": "poisson",
            "load": 0.5,
            "flows": flows,
            "sizes": {"kind": "empirical", "table": "web_search"},
        },
        "time_limit": "1 s",
        "account": True,
    }


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    slowdowns = {
        MEAN: metrics.slowdown("mean"),
        TAIL: metrics.slowdown("p99", SMALL, few=True),
    }
    parts = accounts.by_size(runs, [metrics.ALL], excess=True, slowdowns=True).drop("size")
    summary = metrics.across_seeds(metrics.measure(runs, **slowdowns), ratios=True)
    return pl.concat([summary, parts], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    left, right = axes
    names = table.filter(metric=MEAN).sort("value", descending=True)["scheme"].to_list()
    draw_means(left, table, names)
    draw_tails(right, table, names)
    left.set_yticks(range(len(names)), names, fontsize=9)
    for name, label in zip(names, left.get_yticklabels(), strict=True):
        label.set_fontweight("bold" if family_of[name] == IDEAL else "normal")
    right.set_yticks(range(len(names)), [])
    for axis in axes:
        axis.set_ylim(-0.6, len(names) - 0.4)
        axis.tick_params(axis="y", length=0)
    left.grid(visible=False, axis="y")


LONGEST = 14
"""Mean slowdown at which bars are cut."""


def draw_means(axes: Any, table: pl.DataFrame, names: list[str]) -> None:
    """Draw the mean slowdown of each scheme, divided by cause."""
    parts = table.filter(pl.col("metric").is_in(list(accounts.PARTS)))
    rows = parts.pivot("metric", index="scheme", values="value")
    rows = pl.DataFrame({"scheme": names}).join(rows, on="scheme", how="left")
    heights = rows.select(pl.col(*accounts.PARTS).fill_null(0))
    accounts.stack(
        axes,
        range(len(names)),
        heights.with_columns(pl.col(accounts.FLIGHT) + 1),
        horizontal=True,
    )
    for place, name in enumerate(names):
        value = slowdown(table, MEAN, name)
        text = f" {value:#.3g}" if value <= LONGEST else f" → {value:#.3g}"
        axes.annotate(text, (min(value, LONGEST), place), va="center", fontsize=8)
    axes.axvline(1, color=looks.BLACK, linestyle="--", linewidth=1)
    axes.set_xlim(0, LONGEST)
    axes.set_title("All flows: mean slowdown, by cause", fontsize=11)
    axes.set_xlabel("mean of FCT over ideal FCT")
    visible = [part for part in accounts.PARTS if (heights[part] >= VISIBLE).any()]
    labels = {accounts.LABELS[part] for part in visible} | {accounts.LABELS[accounts.FLIGHT]}
    handles, texts = axes.get_legend_handles_labels()
    entries = [
        (handle, text) for handle, text in zip(handles, texts, strict=True) if text in labels
    ]
    texts = ["ideal FCT", *(text for _, text in entries[1:])]
    axes.legend([handle for handle, _ in entries], texts, fontsize=9, loc=(0.52, 0.42))


VISIBLE = 0.05
"""Smallest part of a mean slowdown that the legend names."""

MARKERS: dict[str, dict[str, Any]] = {
    IDEAL: {"marker": "*", "markersize": 9},
    PRIORITIES: {"marker": "o"},
    CREDITS: {"marker": "o", "markerfacecolor": "white"},
    SWITCHES: {"marker": "^", "markersize": 7},
    MARKS: {"marker": "^", "markersize": 7, "markerfacecolor": "white"},
    HOSTS: {"marker": "x"},
}


def draw_tails(axes: Any, table: pl.DataFrame, names: list[str]) -> None:
    """Draw the 99th percentile of small flows, with a marker for each family of transports."""
    for family, marker in MARKERS.items():
        members = [(place, name) for place, name in enumerate(names) if family_of[name] == family]
        values = [slowdown(table, TAIL, name) for _, name in members]
        places = [place for place, _ in members]
        axes.plot(values, places, ls="none", color=looks.BLACK, label=family, **marker)
    axes.set_xscale("log")
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_title("Flows up to 100 KB: 99th percentile of slowdown", fontsize=11)
    axes.set_xlabel("FCT over ideal FCT")
    axes.legend(title="decides by …", alignment="left", fontsize=9, loc=(0.45, 0.72))


def slowdown(table: pl.DataFrame, metric: str, scheme: str) -> float:
    """Return the mean slowdown or the tail of a scheme."""
    return metrics.at(table, metric=metric, scheme=scheme)


def ratio(table: pl.DataFrame, metric: str, upper: str, lower: str) -> float:
    """Return the metric of one scheme over that of another."""
    return slowdown(table, metric, upper) / slowdown(table, metric, lower)


@figure.claim("no transport has a smaller mean slowdown than the omniscient ideal", stated=False)
def none_beats_the_ideal(table: pl.DataFrame) -> Verdict:
    ratios = {f"{name} over the ideal": ratio(table, MEAN, name, OMNISCIENT) for name in TRANSPORTS}
    return all_at_least(ratios, 1)


@figure.claim("pFabric and Homa: a mean slowdown of at most 1.5 times the ideal's", stated=False)
def near_the_ideal(table: pl.DataFrame) -> Verdict:
    names = (PFABRIC, HOMA)
    ratios = {f"{name} over the ideal": ratio(table, MEAN, name, OMNISCIENT) for name in names}
    return all_at_most(ratios, 1.5)


@figure.claim(
    "pFabric and Homa, which know flow sizes, have smaller mean slowdowns than all transports "
    "that do not",
    stated=False,
)
def sizes_help_most(table: pl.DataFrame) -> Verdict:
    others = [name for name in TRANSPORTS if family_of[name] != PRIORITIES] + ["PIAS"]
    ratios = {
        f"{other} over {name}": ratio(table, MEAN, other, name)
        for other in others
        for name in (PFABRIC, HOMA)
    }
    return all_at_least(ratios, 1)


@figure.claim(
    "small flows: the p99 slowdown of TCP Reno is at least twice DCTCP's, and DCTCP's at least "
    "twice that of HPCC, NDP and UET (NSCC)",
    stated=False,
)
def each_generation_halves_the_tail(table: pl.DataFrame) -> Verdict:
    steps = [(TCP, DCTCP), *((DCTCP, later) for later in (HPCC, NDP, NSCC))]
    ratios = {f"{upper} over {lower}": ratio(table, TAIL, upper, lower) for upper, lower in steps}
    return all_at_least(ratios, 2)


@figure.claim("small flows: PowerTCP's p99 slowdown is at most HPCC's", stated=False)
def powertcp_is_below_hpcc(table: pl.DataFrame) -> Verdict:
    return at_most(ratio(table, TAIL, POWERTCP, HPCC), 1, "PowerTCP over HPCC")


@figure.claim(
    "TCP Reno: queueing behind other flows is at least half of the excess of the mean slowdown",
    stated=False,
)
def reno_queues(table: pl.DataFrame) -> Verdict:
    queueing = metrics.at(table, metric=accounts.OTHERS, scheme=TCP)
    excess = metrics.at(table, metric=accounts.TOTAL, scheme=TCP) - 1
    return at_least(queueing / excess, 0.5, "cross-traffic queueing over the excess")


@figure.claim(
    "HPCC and UET (NSCC): no more than half of the excess is queueing behind other flows",
    stated=False,
)
def modern_queues_are_short(table: pl.DataFrame) -> Verdict:
    return all_at_most(
        {
            f"cross-traffic queueing over the excess, {name},": metrics.at(
                table, metric=accounts.OTHERS, scheme=name
            )
            / (metrics.at(table, metric=accounts.TOTAL, scheme=name) - 1)
            for name in (HPCC, NSCC)
        },
        0.5,
    )
