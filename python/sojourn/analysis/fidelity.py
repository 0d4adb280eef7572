"""Doubts about answers that do not simulate the whole network."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from sojourn.analysis import metrics
from sojourn.base.units import format_size_range, format_time, parse_time
from sojourn.runs.results import Result
from sojourn.scale.buffers import kinds_in_words
from sojourn.scale.fold import short_queues
from sojourn.scale.law import SPARSE
from sojourn.scenario.fidelity import PACKETS, SAMPLE

LEAST_FLOWS = 1000
"""Flows of a size from which the p99 of a sample was compared with that of whole networks."""

LEAST_FCTS = 20
"""Length of a run in mean FCTs of the largest flows, from which a network has filled."""

LARGEST_TREND = 0.05
"""Difference of means between folded networks of full and half size that causes a warning."""

LARGEST_SELF_CHECK = 0.1
"""Error of the law of one sample on another that causes a warning."""

LARGEST_FLUID_ERROR = 0.1
"""Difference between the mean slowdowns of a fluid in the whole and in samples that causes a
warning, if they are lower in samples; answers had means 6 to 11 % too high at 12 to 18 %."""

MOST = 0.5
"""Share of the flows of a class that samples hardly have, above which it has no intervals."""

FEW_FLOWS, LARGEST_SHARE = 0.01, 0.5
"""Share of the flows that causes a warning if its part in the mean is larger than the second."""

NEAR_FAN_IN = 4
"""Hosts per sender of an incast up to which a fold causes a warning; the smallest fold has two."""

LARGEST_PARTNER = 0.25
"""Share of the bytes that racks of a trace send to their largest partner, above that with random
partners, that causes a warning; answers had means 9 % off at 0.86, and up to 6 % at 0.04."""

CLIFF = 1.5
"""Factor around the minimum RTO in which a percentile changes with the share of timeouts."""


Doubts = dict[str, tuple[float, str]]
"""By kind, the size of a doubt, by which those of a kind compare, and its line."""


def doubts(*results: Result) -> dict[str, str]:
    """Return the reasons for which the numbers of answers may mislead: the worst line by kind."""
    worst: Doubts = {}
    for result in results:
        for kind, doubt in _doubts(result).items():
            if kind not in worst or doubt[0] > worst[kind][0]:
                worst[kind] = doubt
    return {kind: line for kind, (_, line) in worst.items()}


def _doubts(result: Result) -> Doubts:
    fidelity = result.summary.get("fidelity", {"kind": PACKETS})
    if fidelity["kind"] == PACKETS:
        return {}
    rows = metrics.by_size(result, "fct_s", statistics=("mean", "p99"))
    rows = rows.filter(pl.col("size") != metrics.ALL.name, pl.col("flows") > 0)
    if rows.is_empty():
        return {}
    lines = _doubts_of_folds(fidelity) | _doubts_of_checks(fidelity)
    few = rows.filter(pl.col("flows") < LEAST_FLOWS, pl.col("p99").is_finite())["size"].to_list()
    if few:
        lines["few"] = (
            len(few),
            f"fewer than {LEAST_FLOWS} flows: p99 of {', '.join(few)} differs by 20 % between "
            "seeds",
        )
    largest = rows.row(-1, named=True)
    starts = result.flows["start_s"].to_numpy()
    length = float(np.ptp(starts)) if len(starts) else 0.0
    if length < LEAST_FCTS * largest["mean"]:
        lines["short"] = (
            -length / largest["mean"],
            f"the arrivals last {format_time(length)}, less than {LEAST_FCTS} mean FCTs of the "
            f"largest flows ({format_time(largest['mean'])}): the network is still filling",
        )
    slowdowns = result.flows["slowdown"].drop_nulls().to_numpy()
    number = math.ceil(FEW_FLOWS * len(slowdowns))
    largest_slowdowns = np.partition(slowdowns, -number)[-number:] if number else slowdowns
    share = float(largest_slowdowns.sum() / slowdowns.sum()) if number else 0.0
    if share > LARGEST_SHARE:
        lines["rare"] = (
            share,
            f"{100 * FEW_FLOWS:g} % of the flows make up {100 * share:.0f} % of the mean slowdown, "
            "and differ between samples: quote percentiles",
        )
    rto = _least_rto(result)
    cliffs = rows.filter(pl.col("p99").is_between(rto / CLIFF, rto * CLIFF))["size"].to_list()
    # Without a minimum RTO both are NaN, and NaN is between NaN and NaN.
    if cliffs and math.isfinite(rto):
        lines["cliff"] = (
            len(cliffs),
            f"p99 of {', '.join(cliffs)} is near the minimum RTO of {format_time(rto)}, where it "
            "changes with the share of flows that have a timeout: quote p95 or p99.9",
        )
    return lines


def _doubts_of_folds(fidelity: Mapping[str, Any]) -> Doubts:
    """Return the doubts about what folded networks stand for."""
    lines: Doubts = {}
    kept = fidelity["kept"]
    if kept == fidelity["hosts"]:
        return lines
    if fidelity["kind"] == SAMPLE and not fidelity["are_alike"]:
        lines["units"] = (
            1,
            "the racks of a trace may differ in load, and one that stands out is in each sample: "
            "use the fidelity `flows`",
        )
    largest, drawn = fidelity.get("partners", (0.0, 0.0))
    if largest - drawn > LARGEST_PARTNER:
        lines["partners"] = (
            largest - drawn,
            f"a rack of the trace sends {100 * largest:.0f} % of its bytes for others to one of "
            f"them ({100 * drawn:.0f} % with random ones), and folds draw them anew: use the "
            "fidelity `packets`",
        )
    # Answers of earlier versions lack it.
    if full := fidelity.get("full_buffers", 0):
        switches = kinds_in_words(fidelity.get("full_switches", ("spine or core",)))
        lines["buffers"] = (
            full,
            f"shared buffers of {switches} were full ({full:,} pauses or drops), which more ports "
            "share in the whole network: slowdowns are too low (by 45 % with 64 ports instead of "
            "8); keep more hosts, or use the fidelity `packets`",
        )
    if enough := fidelity.get("enough", 0):
        line = short_queues(fidelity["units"], fidelity.get("short", "core"), enough)
        lines["pods"] = enough, line
    if fidelity["fan_in"] and kept < NEAR_FAN_IN * fidelity["fan_in"]:
        incast = "each incast" if fidelity["are_alike"] else "the largest incast"
        lines["fan_in"] = (
            fidelity["fan_in"] / kept,
            f"{fidelity['fan_in']} of {kept} hosts send in {incast}: "
            f"keep {NEAR_FAN_IN * fidelity['fan_in']} hosts or more",
        )
    return lines


def _doubts_of_checks(fidelity: Mapping[str, Any]) -> Doubts:
    """Return the doubts from folded networks of half the size, and about the law of a fluid."""
    lines: Doubts = {}
    halves = fidelity.get("half", {}).get("errors", ())
    means = [abs(row["mean"]) for row in halves if row["flows"] >= LEAST_FLOWS]
    trend = max(means, default=0.0)
    if trend > LARGEST_TREND:
        lines["half"] = (
            trend,
            f"the mean slowdown of folded networks of half the size differs by up to "
            f"{100 * trend:.0f} %: keep more hosts",
        )
    # Answers of earlier versions have the share of all flows only.
    shares = fidelity.get("sparse_classes", {"": fidelity.get("sparse", 0.0)})
    name, sparse = max(shares.items(), key=lambda each: each[1], default=("", 0.0))
    if sparse > SPARSE:
        flows = f"the flows of class {name}" if len(shares) > 1 else "the flows"
        raw = "; the means of this class are nearly those of the fluid" if sparse > MOST else ""
        lines["sparse"] = (
            sparse,
            f"{100 * sparse:.0f} % of {flows} have sizes that hardly occur in samples{raw}: use "
            "more hosts or samples",
        )
    fluid = fidelity.get("fluid", {})
    if fidelity["are_alike"] and None not in fluid.values() and fluid:
        lower = 1 - fluid["samples"] / fluid["whole"]
        if lower > LARGEST_FLUID_ERROR:
            lines["fluid"] = (
                lower,
                f"the fluid has a {100 * lower:.0f} % lower mean slowdown in samples than in the "
                "whole, as flows of few racks share more links: its law gives slowdowns that are "
                "too high by about half of it: keep more hosts",
            )
    checks = fidelity.get("self_check", ())
    errors = [
        (abs(row[name]), f"{name} of {checked_flows(row)}")
        for row in checks
        for name in ("mean", "p99")
    ]
    worst, where = max(errors, default=(0.0, ""), key=lambda error: error[0])
    if worst > LARGEST_SELF_CHECK:
        is_known = math.isfinite(worst)
        lines["law"] = (
            worst,
            f"the law of one sample is wrong on another by up to {100 * worst:.0f} % ({where}): "
            "use more hosts or samples, or the fidelity `sample`"
            if is_known
            else f"the law cannot be checked ({where}): a sample has unfinished flows; give a "
            "longer `time_limit`",
        )
    return lines


def has_samples(result: Result, name: str) -> bool:
    """Return false for a class whose flows hardly occur in the samples of a law."""
    shares = result.summary.get("fidelity", {}).get("sparse_classes", {})
    return bool(shares.get(name, 0.0) <= MOST)


def with_self_check(result: Result, bucket: metrics.Bucket, statistic: str, width: float) -> float:
    """Return a half width, or the error of the self-check of a law if that is larger.

    Both are shares of the value. The error is the largest of the sizes and classes in the bucket;
    of all flows, if these have none; infinite, if flows of one side did not finish. An interval of
    unknown width stays NaN.
    """
    rows = result.summary.get("fidelity", {}).get("self_check", ())
    rows = [row for row in rows if bucket.of_class in {None, row.get("class", bucket.of_class)}]
    inside = [
        row
        for row in rows
        if max(row["above"], bucket.above) < min(row["up_to"], bucket.up_to)
        and (row["above"] > 0 or row["up_to"] < math.inf)
    ]
    is_all = bucket.above == 0 and bucket.up_to == math.inf
    of_all = [row for row in rows if row["above"] == 0 and row["up_to"] == math.inf]
    errors = [abs(row[statistic]) for row in (of_all if is_all or not inside else inside)]
    return width if math.isnan(width) else max([width, *errors])


def checked_flows(row: Mapping[str, Any]) -> str:
    """Return the flows of a row of a check in words: its class, if there are several, and sizes."""
    sizes = format_size_range(row["above"], row["up_to"])
    return f"{row['class']} {sizes}" if row.get("class") else sizes


def _least_rto(result: Result) -> float:
    """Return the minimum RTO in seconds; NaN if the transport has none."""
    transport = result.summary["scenario"]["transport"]
    reliability = transport.get("reliability", {}) if isinstance(transport, dict) else {}
    text = reliability.get("min_rto", "none")
    return math.nan if text == "none" else parse_time(text)
