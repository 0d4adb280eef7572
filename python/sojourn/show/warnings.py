"""Warnings about results: load, drops, convergence, trends, warm-up and scenarios."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from sojourn.analysis import convergence, metrics
from sojourn.base.units import format_time, parse_rate
from sojourn.runs.results import Result
from sojourn.scenario.reading import kind_of
from sojourn.show.intervals import format_in_unit

FAR_LOAD = 0.2
"""Relative difference of realised and configured load that is worth a warning."""

MANY_DROPS = 0.5
"""Share of the packets sent, data and ACKs, whose drops are worth a warning."""

LIGHT_TAILS = ("fixed", "uniform", "exponential")
"""Distributions of sizes whose mean over few flows is near that of all."""

MEANS = {"FCT mean": "mean completion time", "slowdown mean": "mean slowdown"}
"""The means whose convergence is checked, in words."""


def load_warnings(schemes: Mapping[str, Sequence[Result]]) -> list[str]:
    """Return a line for each realised load, the mean over seeds, far from the configured one."""
    named: dict[str, list[str]] = {}
    for name, results in schemes.items():
        measured = [metrics.realised_load()(result).value for result in results]
        realised, configured = sum(measured) / len(measured), _configured_load(results[0])
        if configured is None or math.isnan(realised):
            continue
        is_far = abs(realised / configured - 1) > FAR_LOAD
        if is_far or configured < 1 < realised:
            sizes = results[0].summary["scenario"]["workload"].get("sizes")
            tail = "" if kind_of(sizes) in LIGHT_TAILS else " of a heavy-tailed size distribution"
            line = (
                f"realised load {realised:.3g} instead of {configured:.3g}: few flows{tail}; more "
                "flows or seeds come closer"
            )
            named.setdefault(line, []).append(name)
    return [
        f"warning: {f'{of}: ' if (of := names_of(names, schemes)) else ''}{line}"
        for line, names in named.items()
    ]


def drop_warnings(schemes: Mapping[str, Sequence[Result]]) -> list[str]:
    """Return a line if queues drop most packets of a scheme, with the share of the worst."""
    shares = {}
    for name, results in schemes.items():
        counts = [result.summary["counts"] for result in results]
        # The fidelity `flows` has no packets.
        sent, drops = (sum(each.get(key, 0) for each in counts) for key in ("packets", "drops"))
        if drops > MANY_DROPS * sent:
            shares[name] = drops / sent
    if not shares:
        return []
    of = names_of(list(shares), schemes)
    up_to = "up to " if len(shares) > 1 else ""
    return [
        f"warning: {f'{of}: ' if of else ''}queues dropped {up_to}"
        f"{100 * max(shares.values()):.0f} % of all packets sent, data and ACKs"
    ]


def names_of(names: Sequence[str], all_names: Collection[str]) -> str:
    """Return the names of schemes that a warning concerns; nothing for all of them."""
    return "" if len(names) == len(all_names) else ", ".join(names)


def _configured_load(result: Result) -> float | None:
    """Return the configured load on the scale of the realised one, or `None` if they differ."""
    workload = result.summary["scenario"]["workload"]
    load = workload.get("load")
    if not isinstance(load, int | float) or workload.get("load_counts") != "wire":
        return None
    reference, of_load = result.summary["load_reference"]["rate_bps"], workload["load_reference"]
    return load * (1 if of_load == "none" else parse_rate(of_load) / reference)


def convergence_warnings_of_run(result: Result) -> list[str]:
    """Return a line for each mean of a run that is not converged for some size or class."""
    rows = [
        metrics.labelled({"flows": bucket.name}, convergence.within_run(result, bucket))
        for bucket in metrics.sizes_and_classes([result])
    ]
    or_seeds = " or more seeds" if metrics.draws_flows(result) else ""
    remedy = f"run for a longer time{or_seeds}, or use the median"
    return convergence_warnings(pl.concat(rows), ["flows"], remedy)


def trend_warnings(groups: Iterable[Sequence[Result]]) -> list[str]:
    """Return a line if completion times change during runs; a group has the seeds of a scheme."""
    trends = [convergence.trend(results) for results in groups]
    trends = [trend for trend in trends if convergence.is_trend(trend)]
    if not trends:
        return []
    value, low, high = max(trends, key=lambda trend: abs(math.log(trend[0])))
    worst = f"; worst of {len(trends)}" if len(trends) > 1 else ""
    return [
        "warning: no steady state: slowdowns of flows that start in the second half are "
        f"{value:.2f} ({low:.2f} to {high:.2f}) times those of the first{worst}; "
        "give `warm_up`, or run for a longer time"
    ]


def convergence_warnings(table: pl.DataFrame, labels: Sequence[str], remedy: str) -> list[str]:
    """Return a line for each mean that is not converged: its widest interval and their number.

    The columns `labels` identify a row.
    """
    # A size or class that all flows have repeats the values of all flows.
    means = table.filter(pl.col("metric").is_in(list(MEANS)))
    rows = convergence.unsure(means).unique(["value", "low", "high"], maintain_order=True)
    lines = []
    for name, words in MEANS.items():
        part = rows.filter(pl.col("metric") == name)
        if part.is_empty():
            continue
        worst = part.row(0, named=True)
        seeds = worst["seeds"]
        bound = "≥ " if worst["at_least"] else ""
        value = f"{bound}{format_in_unit(worst['value'], name)} ± {100 * worst['reach']:.0f} %"
        method = f"{seeds} seeds" if seeds > 1 else "ten batches"
        where = [str(worst[label]) for label in labels if worst[label] != metrics.ALL.name]
        count = [f"widest of {part.height}"] if part.height > 1 else []
        case = "".join(f"; {text}" for text in [", ".join(where), *count] if text)
        lines.append(f"warning: {words} not converged: {value} ({method}{case}); {remedy}")
    return lines


def warm_up_warnings(results: Iterable[Result]) -> list[str]:
    """Return a warning if all flows of finite size of some run start during the warm-up."""
    for result in results:
        flows = result.flows.lazy().filter(pl.col("outcome") != "long_lived")
        last_s = flows.select(pl.max("start_s")).collect().item()
        if last_s is not None and last_s < metrics.warm_up_s(result):
            warm_up = result.summary["scenario"]["warm_up"]
            return [
                f"warning: warm_up: no flow counts, since all start in the first {warm_up}; the "
                f"last starts at {format_time(last_s)}"
            ]
    return []


def scenario_warnings(results: Iterable[Result]) -> list[str]:
    """Return the warnings about the scenarios of runs, each once."""
    lines = [line for result in results for line in result.summary.get("warnings", [])]
    return [f"warning: {line}" for line in dict.fromkeys(lines)]
