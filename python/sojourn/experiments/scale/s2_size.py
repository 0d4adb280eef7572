"""Figure S2: slowdown and cost against the size of the network, up to 100 352 hosts."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Result,
    Run,
    Scale,
    Verdict,
    at_most,
    between,
    every,
    metrics,
    override,
    plot,
)

from .paper import CLOSE, FLOWS, HOSTS_PER_POD, PACKETS, SAMPLE, cpu_seconds, paper, uniform

figure = Figure(
    paper,
    id="s2",
    title="Slowdown against network size",
    source="ours",
    scales={
        "smoke": {PACKETS: [2, 16], SAMPLE: [8, 64], FLOWS: [8], "flows_per_host": 2},
        "quick": {
            PACKETS: [2, 8, 16],
            SAMPLE: [8, 16, 64, 256, 1568],
            FLOWS: [8, 16, 64, 256],
            "flows_per_host": 10,
        },
        "paper": {
            PACKETS: [2, 8, 16, 64],
            SAMPLE: [8, 16, 64, 256, 1568],
            FLOWS: [8, 16, 64, 256, 1568],
            "flows_per_host": 20,
        },
    },
    deviations=(
        "Networks have 2 to 1568 pods, 128 to 100 352 hosts. At `quick`, packets end at 1024 hosts "
        "and `flows` at 16 384; at `paper` at 4096 and 100 352. `sample` and `flows` have two "
        "folded networks of 256 hosts.",
        "The folded networks of large networks are nearly the same runs: they differ only in the "
        "shares of distances, and have the same seeds.",
        "CPU times are those of the first run of each scenario, on whatever else the machine did.",
    ),
    panels=(1, 3),
    size=(14, 4.4),
)

EXACT_HOSTS = 16 * HOSTS_PER_POD
"""Largest network that is simulated with packets at the scale `quick`."""


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    for fidelity in (PACKETS, SAMPLE, FLOWS):
        for pods in scale[fidelity]:
            labels = {"fidelity": fidelity, "hosts": pods * HOSTS_PER_POD}
            yield labels, override(uniform(pods, scale["flows_per_host"]), {"fidelity": fidelity})


def packet_hops(result: Result) -> metrics.Statistic:
    """Return the number of simulated packet-hops; NaN for a fluid."""
    hops = result.summary["counts"].get("packet_hops", {})
    return metrics.Statistic(float(sum(hops.values()) or "nan"))


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    slowdowns = {statistic: metrics.slowdown(statistic) for statistic in CLOSE}
    costs = {"cpu_s": cpu_seconds, "packet_hops": packet_hops}
    return metrics.across_seeds(metrics.measure(runs, **slowdowns, **costs))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    shown = {"mean": "mean slowdown", "p99": "p99 of slowdowns", "cpu_s": "CPU time in s"}
    for panel, (metric, label) in zip(axes, shown.items(), strict=True):
        options: Any = {"x": "hosts", "by": "fidelity", "log_x": True, "log": metric == "cpu_s"}
        plot.against(panel, table.filter(metric=metric), labels=("hosts", label), **options)
        if metric != "cpu_s":
            panel.set_ylim(bottom=1)
    plot.one_legend(axes)


def value(table: pl.DataFrame, fidelity: str, hosts: int, metric: str) -> float:
    """Return a number of an answer."""
    return metrics.at(table, fidelity=fidelity, hosts=hosts, metric=metric)


def sizes(table: pl.DataFrame, fidelity: str) -> list[int]:
    """Return the numbers of hosts for which there are answers of a fidelity."""
    hosts: list[int] = table.filter(fidelity=fidelity)["hosts"].unique().sort().to_list()
    return hosts


def is_close_to_packets(table: pl.DataFrame, fidelity: str) -> Verdict:
    """Judge whether answers are those of packets, for all networks that have both."""
    return every(
        between(
            value(table, fidelity, hosts, metric) / value(table, PACKETS, hosts, metric),
            1 / most,
            most,
            f"{metric} of {hosts} hosts over that of packets",
        )
        for hosts in sorted({*sizes(table, fidelity)} & {*sizes(table, PACKETS)})
        for metric, most in CLOSE.items()
    )


@figure.claim(
    "where packets can be simulated, samples have their mean within 5 %, p99 within 10 %",
    stated=False,
)
def samples_are_close(table: pl.DataFrame) -> Verdict:
    return is_close_to_packets(table, SAMPLE)


@figure.claim(
    "where packets can be simulated, `flows` has their mean within 5 %, p99 within 10 %",
    stated=False,
)
def corrected_fluid_is_close(table: pl.DataFrame) -> Verdict:
    return is_close_to_packets(table, FLOWS)


@figure.claim(
    "the mean (5 %) and p99 (10 %) of the largest network are those of 1024 hosts by packets",
    stated=False,
)
def size_matters_little(table: pl.DataFrame) -> Verdict:
    return every(
        between(
            value(table, fidelity, sizes(table, fidelity)[-1], metric)
            / value(table, PACKETS, EXACT_HOSTS, metric),
            1 / most,
            most,
            f"{metric} of {sizes(table, fidelity)[-1]} hosts by {fidelity} over that of 1024",
        )
        for fidelity in (SAMPLE, FLOWS)
        for metric, most in CLOSE.items()
    )


@figure.claim(
    "a sample of the largest network has as many packet-hops as one of 512 hosts (10 %)",
    stated=False,
)
def cost_of_samples_is_constant(table: pl.DataFrame) -> Verdict:
    hosts = sizes(table, SAMPLE)
    largest, least = (value(table, SAMPLE, hosts[end], "packet_hops") for end in (-1, 0))
    return between(largest / least, 1 / 1.1, 1.1, "packet-hops over those of the smallest")


@figure.claim(
    "a sample of the largest network takes at most 0.6 of the packet-hops of 1024 hosts",
    stated=False,
)
def samples_are_cheap(table: pl.DataFrame) -> Verdict:
    largest = value(table, SAMPLE, sizes(table, SAMPLE)[-1], "packet_hops")
    return at_most(
        largest / value(table, PACKETS, EXACT_HOSTS, "packet_hops"),
        0.6,
        "packet-hops over those of 1024 hosts by packets",
    )
