"""Figure S3: slowdowns in the hottest and the coldest racks of a skewed network."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_least,
    between,
    every,
    metrics,
    override,
    plot,
)

from .paper import FLOWS, HOSTS_PER_POD, HOSTS_PER_RACK, PACKETS, SAMPLE, clos, paper, schemes

FIDELITIES = (PACKETS, SAMPLE, FLOWS)

figure = Figure(
    paper,
    id="s3",
    title="Hottest and coldest racks under skewed traffic",
    source="ours",
    scales={
        "smoke": {"pods": 6, "flows": 4000},
        "quick": {"pods": 16, "flows": 60_000},
        "paper": {"pods": 16, "flows": 300_000},
    },
    deviations=(
        "1024 hosts. Racks have lognormal weights (sigma 1) as senders and, independently, as "
        "receivers; sizes are lognormal with a median of 1 KB and a mean of 23 KB, at most 5 MB. "
        "The most loaded link has a load of 0.7. The trace is the same for all seeds, which change "
        "paths, folded networks and what the law draws. `sample` and `flows` have two folded "
        "networks of 320 hosts, since some of 256 hosts carry over 10 % more than the whole and "
        "are refused.",
        "Fifths of the racks are by bytes received; of the racks of a folded network for `sample`.",
        "The claim of a factor of two between hottest and coldest racks fails: 44 % of the flows "
        "into the coldest racks come from the fifth of the racks that sends most, and wait there "
        "(p99 of 14 to 15 under DCTCP; from the fifth that sends least below 2; two seeds). The "
        "claim about `flows` and the coldest racks fails for this reason, too: uplinks of the "
        "racks that send most have a load of 0.46, those of folded networks, which always contain "
        "the rack with most traffic but not these, at most 0.24.",
    ),
    panels=(1, 4),
    size=(15, 4.2),
)

BOUNDS = {"mean": 1.05, "p99": 1.15}
"""Largest ratios of answers for a fifth of the racks that count as equal, and of their inverses."""

HOSTS = 320
"""Hosts of the folded networks."""

COLDEST, HOTTEST = 1, 5
"""Fifths of the racks."""

ALL = 0
"""All racks, in place of a fifth."""


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    pods = scale["pods"]
    skewed = {
        "name": "Racks with different weights on a Clos network",
        "topology": clos(pods),
        "workload": {
            "kind": "trace",
            "file": {"name": "skewed.csv", "text": trace(pods, scale["flows"])},
        },
    }
    for scheme, transport in schemes.items():
        for fidelity in FIDELITIES:
            labels = {"fidelity": fidelity, "scheme": scheme}
            folds = {} if fidelity == PACKETS else {"hosts": HOSTS}
            yield labels, override(skewed, transport, {"fidelity": {"kind": fidelity, **folds}})


def trace(pods: int, flows: int) -> str:
    """Return flows between racks of different weights, with a most loaded link at 0.7."""
    random = np.random.default_rng(1)
    hosts = pods * HOSTS_PER_POD
    sources, targets = (
        HOSTS_PER_RACK * random.choice(hosts // HOSTS_PER_RACK, flows, p=weights / weights.sum())
        + random.integers(HOSTS_PER_RACK, size=flows)
        for weights in random.lognormal(0, 1, (2, hosts // HOSTS_PER_RACK))
    )
    targets = np.where(targets == sources, (targets + 1) % hosts, targets)
    sizes = np.minimum(random.lognormal(np.log(1e3), 2.5, flows), 5e6).astype(int) + 1
    seconds = max(
        8 * np.bincount(ends[crossing] // of, sizes[crossing]).max() / rate
        for ends in (sources, targets)
        for of, rate in ((1, 10e9), (HOSTS_PER_RACK, 80e9), (HOSTS_PER_POD, 160e9))
        for crossing in [sources // of != targets // of]
    )
    starts = np.sort(random.uniform(0, seconds / 0.7, flows))
    table = {"start_s": starts, "source": sources, "target": targets, "size_bytes": sizes}
    return pl.DataFrame(table).write_csv(float_precision=12)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    return metrics.across_seeds(pl.concat(by_fifth(run) for run in runs))


def by_fifth(run: Run) -> pl.DataFrame:
    """Return the slowdowns of a run in each fifth of the racks, and in all."""
    flows = metrics.timed(run.result).drop_nulls("slowdown")
    # Racks of different samples are different racks.
    sample = flows["sample"] if "sample" in flows.columns else pl.Series([0])
    racks = (
        flows["target"] // HOSTS_PER_RACK + sample.cast(pl.Int64) * flows["target"].max()
    ).to_numpy()
    names, racks = np.unique(racks, return_inverse=True)
    received = np.bincount(racks, flows["size_bytes"].to_numpy())
    ranks = np.argsort(np.argsort(received, kind="stable"))
    fifths = 1 + ranks[racks] * 5 // len(names)
    slowdowns = flows["slowdown"].to_numpy()
    rows = []
    for fifth in (ALL, *range(COLDEST, HOTTEST + 1)):
        chosen = slowdowns[(fifths == fifth) | (fifth == ALL)]
        for metric in BOUNDS:
            value, _ = metrics.statistic_of(metric, chosen, np.empty(0))
            rows.append({"fifth": fifth, "metric": metric, "value": value, "at_least": False})
    return metrics.labelled(run.labels, pl.DataFrame(rows))


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    panels = [(scheme, metric) for scheme in schemes for metric in BOUNDS]
    for panel, (scheme, metric) in zip(axes, panels, strict=True):
        part = table.filter(pl.col("fifth") != ALL, scheme=scheme, metric=metric)
        label = "mean slowdown" if metric == "mean" else "p99 of slowdowns"
        labels = ("fifth of the racks, by bytes received", f"{label}, {scheme}")
        plot.against(panel, part, x="fifth", by="fidelity", labels=labels)
        panel.set_xticks(range(COLDEST, HOTTEST + 1), ["coldest", "2", "3", "4", "hottest"])
        panel.set_ylim(bottom=1)
    plot.one_legend(axes)


def value(table: pl.DataFrame, fidelity: str, scheme: str, fifth: int, metric: str) -> float:
    """Return a number of an answer for a fifth of the racks."""
    return metrics.at(table, fidelity=fidelity, scheme=scheme, fifth=fifth, metric=metric)


def flows_are_close(table: pl.DataFrame, fifth: int) -> Verdict:
    """Judge whether `flows` has the slowdowns of packets in a fifth of the racks."""
    return every(
        between(
            value(table, FLOWS, scheme, fifth, metric)
            / value(table, PACKETS, scheme, fifth, metric),
            1 / most,
            most,
            f"{metric} under {scheme} over that of packets",
        )
        for scheme in schemes
        for metric, most in BOUNDS.items()
    )


@figure.claim(
    "`flows` has the mean of the hottest racks within 5 % and the p99 within 15 %", stated=False
)
def hottest_racks_are_close(table: pl.DataFrame) -> Verdict:
    return flows_are_close(table, HOTTEST)


@figure.claim(
    "`flows` has the mean of the coldest racks within 5 % and the p99 within 15 %", stated=False
)
def coldest_racks_are_close(table: pl.DataFrame) -> Verdict:
    return flows_are_close(table, COLDEST)


@figure.claim(
    "samples, which always contain the most loaded rack, have means 5 % or more too high",
    stated=False,
)
def samples_are_too_high(table: pl.DataFrame) -> Verdict:
    return every(
        at_least(
            value(table, SAMPLE, scheme, ALL, "mean") / value(table, PACKETS, scheme, ALL, "mean"),
            1.05,
            f"mean under {scheme} over that of packets",
        )
        for scheme in schemes
    )


@figure.claim(
    "under DCTCP the p99 of the hottest racks is at least twice that of the coldest", stated=False
)
def heat_matters(table: pl.DataFrame) -> Verdict:
    hottest, coldest = (
        value(table, PACKETS, "DCTCP", fifth, "p99") for fifth in (HOTTEST, COLDEST)
    )
    return at_least(hottest / coldest, 2, "p99 of the hottest over that of the coldest,")
