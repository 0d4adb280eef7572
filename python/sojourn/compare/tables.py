"""Tables and notes of `sojourn compare`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sojourn.analysis import durations, long_lived, metrics, paired
from sojourn.analysis.convergence import P99S
from sojourn.compare import comparison
from sojourn.compare.paired_tables import marked
from sojourn.runs.results import Run
from sojourn.scenario.overrides import scheme_name
from sojourn.show.environment import difference_lines, environment_lines
from sojourn.show.fidelity import doubt_lines, fidelity_lines
from sojourn.show.intervals import COUNTS, format_value
from sojourn.show.result import (
    JOBS_BOUND,
    LATENCY_NOTE,
    LONG_LIVED_NOTE,
    SELF_CHECK_NOTE,
    too_few_flows,
)
from sojourn.show.table import Table
from sojourn.show.warnings import (
    convergence_warnings,
    drop_warnings,
    load_warnings,
    names_of,
    scenario_warnings,
    trend_warnings,
    warm_up_warnings,
)

RATIO = "FCT mean"
"""Metric of the ratios in the summary."""

SUMMARY_TITLE = "completion times and slowdowns"


COUNTERS_TITLE = "counts, utilisation of the busiest link, largest queue of a switch port"

QUANTITIES = re.compile(r"\d[\d.,]*(?: [a-zA-Z\u00b5%/]+)?")
"""Pattern of numbers with units."""

MOST_ROWS = 60
"""Largest number of rows of the summary with all sizes and classes."""


def main_tables(table: pl.DataFrame, pairs: pl.DataFrame) -> list[Table]:
    """Return the tables of flows, jobs, calls, long-lived flows and counters."""
    return [
        *summary_tables(table, pairs),
        *time_tables(table, pairs),
        *long_lived_tables(table),
        *counter_tables(table),
    ]


def summary_tables(table: pl.DataFrame, pairs: pl.DataFrame) -> list[Table]:
    """Return the values of all schemes, sizes and classes with the ratios to the baseline.

    The table has the rows of all flows only, if it would exceed `MOST_ROWS`.
    """
    labels = comparison.labels(table)
    parts = _parts(table)
    if sum(part.select(labels).n_unique() for part in parts) > MOST_ROWS:
        parts = parts[:1]
    if not parts:
        return []
    hidden = comparison.LOAD if _common_load(table) else ()
    names = [name for name in _metrics(parts[0]) if name not in hidden]
    ratios = {_key(row, labels): row for row in pairs.to_dicts() if row["metric"] == RATIO}
    rows = []
    for part in parts:
        group = part["class"][0] if part["class"][0] != metrics.ALL.name else part["size"][0]
        for scheme in part.partition_by(labels, maintain_order=True):
            values = {row["metric"]: format_value(row) for row in scheme.to_dicts()}
            first = scheme.row(0, named=True)
            cells = [values.get(name, "-") for name in names]
            heads = (str(first[label]) for label in labels)
            rows.append(
                (group, *heads, *cells, *([_ratio_cell(first, labels, ratios)] if ratios else []))
            )
    has_classes = any(part["class"][0] != metrics.ALL.name for part in parts)
    head = "size or class" if has_classes else "size"
    columns = [head, *labels, *names, *(["ratio"] if ratios else [])]
    empty = [
        name
        for name, *cells in zip(columns, *rows, strict=True)
        if all(cell == "-" for cell in cells)
    ]
    slowdowns = [name for name in reversed(names) if name.startswith("slowdown")]
    percentiles = [name for name in names if name.startswith("FCT p")]
    optional = [*empty, *slowdowns, *comparison.LOAD, "flows", *percentiles, "ratio"]
    return [Table(SUMMARY_TITLE, columns, rows, labels=1 + len(labels), optional=optional)]


def _common_load(table: pl.DataFrame) -> str:
    """Return the realised load that all schemes have; nothing if it differs, or without a load."""
    values = table.filter(
        pl.col("metric").is_in(list(comparison.LOAD)), pl.col("value").is_finite()
    )
    texts = {format_value({**row, "low": None}) for row in values.to_dicts()}
    return texts.pop() if len(texts) == 1 else ""


def long_lived_tables(table: pl.DataFrame) -> list[Table]:
    """Return the throughput, share and Jain index of long-lived flows by class, if any."""
    labels, names = comparison.labels(table), list(long_lived.METRICS)
    part = table.filter(pl.col("metric").is_in(names))
    classes = part["class"].unique(maintain_order=True).to_list()
    if part.is_empty():
        return []
    if len(classes) == long_lived.SINGLE_CLASS:
        names.remove("share")
        part = part.filter(pl.col("class") != metrics.ALL.name, pl.col("metric").is_in(names))
    rows = [
        [
            group["class"][0],
            *(str(group[label][0]) for label in labels),
            *map(format_value, group.to_dicts()),
        ]
        for group in part.partition_by("class", *labels, maintain_order=True)
    ]
    columns = ["class", *labels, *names]
    return [Table("long-lived flows", columns, rows, labels=1 + len(labels))]


def time_tables(table: pl.DataFrame, pairs: pl.DataFrame) -> list[Table]:
    """Return the durations of jobs and the latencies of calls with the ratios, if any."""
    times = table.filter(durations.is_metric())
    is_job = pl.col("metric").is_in([durations.DURATION, durations.OVER_BOUND])
    kinds = {"job": times.filter(is_job), "calls of kind": times.filter(~is_job)}
    ratios = pairs if pairs.is_empty() else pairs.filter(pl.col("metric").is_in(paired.TIMES))
    return [_time_table(head, part, ratios) for head, part in kinds.items() if not part.is_empty()]


def _time_table(head: str, times: pl.DataFrame, pairs: pl.DataFrame) -> Table:
    labels = comparison.labels(times)
    ratios = {_key(row, labels): row for row in pairs.to_dicts()}
    rows = []
    for group in times.partition_by("class", *labels, maintain_order=True):
        first = group.row(0, named=True)
        heads = (first["class"], *(str(first[label]) for label in labels))
        cells = [*heads, *map(format_value, group.to_dicts())]
        rows.append([*cells, *([_ratio_cell(first, labels, ratios)] if ratios else [])])
    columns = [head, *labels, *_metrics(times), *(["ratio"] if ratios else [])]
    title = "durations of jobs" if head == "job" else "latencies of calls"
    return Table(title, columns, rows, labels=1 + len(labels))


def _ratio_cell(
    row: Mapping[str, Any], labels: Sequence[str], ratios: Mapping[tuple[str, ...], dict[str, Any]]
) -> str:
    """Return the ratio of the group of a row to the baseline."""
    if ratio := ratios.get(_key(row, labels)):
        return marked(ratio)
    against = str(next(iter(ratios.values()))["against"])
    return "baseline" if against in {str(row[label]) for label in labels} else "-"


def counter_tables(table: pl.DataFrame) -> list[Table]:
    """Return the counts of each scheme, the utilisation of the busiest link, the largest queue.

    Counters that all models lack are omitted, and rare ones if they are zero in all runs.
    """
    labels = comparison.labels(table)
    part = table.filter(pl.col("metric").is_in(list(comparison.COUNTERS)))
    shown = part.filter(
        pl.col("value").is_finite(),
        ~pl.col("metric").is_in(metrics.RARE_COUNTS) | (pl.col("value") > 0),
    )
    names = [name for name in comparison.COUNTERS if name in shown["metric"]]
    rows = []
    for scheme in part.partition_by(labels, maintain_order=True):
        # Means over seeds; the intervals are in the file.
        values = {
            row["metric"]: format_value({"metric": row["metric"], "value": row["value"]})
            for row in scheme.to_dicts()
        }
        rows.append(
            [
                *(str(scheme[label][0]) for label in labels),
                *(values.get(name, "-") for name in names),
            ]
        )
    columns = [*labels, *names]
    return [Table(COUNTERS_TITLE, columns, rows, labels=len(labels))] if names else []


def _key(row: Mapping[str, Any], labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in (*labels, "size", "class"))


def comparison_tables(table: pl.DataFrame) -> list[Table]:
    """Return values with their intervals, one table for each size and class."""
    labels = comparison.labels(table)
    tables = []
    for part in _parts(table):
        names = _metrics(part)
        rows = [
            [*(str(row[label][0]) for label in labels), *map(format_value, row.to_dicts())]
            for row in part.partition_by(labels, maintain_order=True)
        ]
        head = "size" if part["class"][0] == metrics.ALL.name else "class"
        title = f"{head}: {part[head][0]}"
        tables.append(Table(title, [*labels, *names], rows, labels=len(labels)))
    return tables


def _parts(table: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the metrics of flows of each size and class that has values of its own."""
    table = comparison.without_parts(table)
    others = pl.col("metric").is_in([*long_lived.METRICS, *comparison.COUNTERS])
    table = table.filter(~others, ~durations.is_metric())
    parts: list[pl.DataFrame] = []
    for part in table.partition_by("size", "class", maintain_order=True):
        measured = part.filter(~pl.col("metric").is_in(COUNTS))["value"]
        if measured.is_finite().any() and not (parts and _repeats(part, parts[0])):
            parts.append(part)
    return parts


def _metrics(part: pl.DataFrame) -> list[str]:
    return part["metric"].unique(maintain_order=True).to_list()


def _repeats(part: pl.DataFrame, all_flows: pl.DataFrame) -> bool:
    """Return true if a size or class contains all flows, so that its values are those of all."""
    same = all_flows.filter(pl.col("metric").is_in(part["metric"].unique().to_list()))
    return part.drop("size", "class").equals(same.drop("size", "class"))


def comparison_notes(table: pl.DataFrame, runs: Sequence[Run], *, median: bool) -> list[str]:
    """Return notes on a comparison's statistics and environment."""
    slowdown = "; slowdown: FCT over ideal FCT, at line rate over the idle path"
    has_fcts, has_long_lived = bool(_parts(table)), bool(long_lived_tables(table))
    by = comparison.scheme_label(runs)
    return [
        *_seed_notes(runs, by),
        _statistic(table, median) + _self_check_note(table, runs) + (slowdown if has_fcts else ""),
        *([f"realised load: {load}"] if (load := _common_load(table)) else []),
        *_warm_up_note(table, runs),
        *([LONG_LIVED_NOTE] if has_long_lived else []),
        *([JOBS_BOUND] if durations.DURATION in table["metric"] else []),
        *([LATENCY_NOTE] if durations.CALLS in table["metric"] else []),
        *fidelity_lines(run.result for run in runs),
        *environment_lines(runs, by),
        *difference_lines(runs, by),
        *_few_flows_note(table),
        *_no_interval_note(table, median),
    ]


def _warm_up_note(table: pl.DataFrame, runs: Sequence[Run]) -> list[str]:
    """Return a note on counters and durations that include the warm-up, if there are any."""
    columns = {name for counters in counter_tables(table) for name in counters.columns}
    names = [name for name in (*metrics.COUNTS, comparison.QUEUE_MAX) if name in columns]
    names += ["durations of jobs"] if durations.DURATION in table["metric"] else []
    has_warm_up = any(metrics.warm_up_s(run.result) for run in runs)
    return [f"warm-up included: {', '.join(names)}"] if names and has_warm_up else []


def _seed_notes(runs: Sequence[Run], by: str) -> list[str]:
    """Return notes on the schemes whose runs, or flows, are the same with all seeds."""
    same, same_flows, others = [], [], 0
    for group in metrics.by_scheme(runs):
        results = [run.result for run in group]
        name = scheme_name(by, group[0].labels[by])
        if metrics.are_same(results):
            same.append(name)
        elif metrics.have_same_flows(results):
            same_flows.append(name)
        else:
            others += 1

    def of(names: list[str]) -> str:
        is_all = len(names) == len(same) + len(same_flows) + others
        return "" if is_all else f" of {', '.join(dict.fromkeys(names))}"

    seeds = sorted({run.labels["seed"] for run in runs if "seed" in run.labels})
    numbers = f"{seeds[0]} to {seeds[-1]}" if seeds else ""
    return [
        *(
            [
                f"seeds {numbers} give the same runs{of(same)}: the workload and the network draw "
                "nothing from the seed; they count as one run"
            ]
            if same
            else []
        ),
        *(
            [
                f"all seeds carry the same flows{of(same_flows)}: intervals cover the choice of "
                "paths (and other random parts of the network), not that of traffic"
            ]
            if same_flows
            else []
        ),
    ]


def _self_check_note(table: pl.DataFrame, runs: Sequence[Run]) -> str:
    """Return a note if intervals of one run include the error of the self-check of a law."""
    checks = (run.result.summary.get("fidelity", {}).get("self_check") for run in runs)
    return SELF_CHECK_NOTE if table["seeds"].max() == 1 and any(checks) else ""


def _statistic(table: pl.DataFrame, median: bool) -> str:
    """Describe the values and their intervals."""
    # Some rows have fewer: schemes whose runs are the same with all seeds, and sizes or breakdowns
    # without a finished flow in some.
    seeds = max(table["seeds"].to_list())
    if seeds == 1:
        p99s = table.filter(pl.col("metric").is_in(list(P99S)), pl.col("low").is_finite())
        values = "means" if p99s.is_empty() else "means and p99s"
        batches = "ten batches" if p99s.is_empty() else "ten batches or more"
        intervals = f", {values} ± 95 % confidence by {batches}" if _parts(table) else ""
        return f"one run each{intervals}"
    least = metrics.LEAST_FOR_MEDIAN if median else metrics.LEAST_FOR_MEAN
    values = "medians over seeds" if median else "means over seeds"
    if seeds < least:
        return f"{values}; too few seeds for an interval (least: {least})"
    return f"{values} ± 95 % confidence" + (", by order statistics" if median else "")


def by_name(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs of each scheme by the labels that differ."""
    groups = metrics.by_scheme(runs)
    varied = [
        label
        for label in runs[0].labels
        if label != "seed" and len({str(group[0].labels[label]) for group in groups}) > 1
    ]
    return {
        ", ".join(scheme_name(label, group[0].labels[label]) for label in varied): group
        for group in groups
    }


def breakdown_lines(runs: Sequence[Run]) -> list[str]:
    """Return how many flows of each scheme a breakdown covers, if some have not finished."""
    counts: dict[str, tuple[int, int]] = {}
    for name, group in by_name(runs).items():
        outcomes = pl.concat([metrics.timed(run.result)["outcome"] for run in group])
        counts[name] = int((outcomes == "finished").sum()), len(outcomes)
    if all(finished == flows for finished, flows in counts.values()):
        return []
    covered = [
        f"{name}: {finished:,} of {flows:,}".removeprefix(": ")
        for name, (finished, flows) in counts.items()
    ]
    return [f"FCT breakdown of finished flows only ({'; '.join(covered)})"]


def named_warnings(schemes: Mapping[str, Sequence[Run]]) -> list[str]:
    """Return the warnings of scenarios: those of all runs once, others once for each scheme.

    Warnings that differ only in numbers have the numbers of the scheme's first seed with it.
    """
    kinds: dict[str, dict[str, dict[str, list[int]]]] = {}
    for name, runs in schemes.items():
        for run in runs:
            for line in scenario_warnings([run.result]):
                text = line.removeprefix("warning: ")
                texts = kinds.setdefault(QUANTITIES.sub("#", text), {}).setdefault(name, {})
                texts.setdefault(text, []).append(run.labels.get("seed", 1))
    lines: dict[tuple[str, str], list[str]] = {}
    for by_scheme in kinds.values():
        for name, texts in by_scheme.items():
            seeds = sorted({seed for each in texts.values() for seed in each})
            where = f"seed {', '.join(map(str, seeds))}" if len(seeds) < len(schemes[name]) else ""
            numbers = f" (numbers of seed {seeds[0]})" if len(texts) > 1 else ""
            lines.setdefault((where, f"{next(iter(texts))}{numbers}"), []).append(name)
    return [
        "".join(f"{word}: " for word in ("warning", names_of(names, schemes), where) if word) + text
        for (where, text), names in lines.items()
    ]


def comparison_warnings(table: pl.DataFrame, runs: Sequence[Run], *, median: bool) -> list[str]:
    """Return the warnings of scenarios, of means not converged, and of trends."""
    remedy = "run for a longer time or more seeds"
    schemes = by_name(runs)
    repeats = any(len(group) > 1 for group in schemes.values())
    if table["seeds"].max() == 1 and (repeats or not metrics.draws_flows(runs[0].result)):
        remedy = "run for a longer time, or use the median"
    elif table["seeds"].max() == 1:
        remedy += ", or use the median"
    elif not median:
        remedy += ", or use --median"
    results = {name: [run.result for run in group] for name, group in schemes.items()}
    return [
        *named_warnings(schemes),
        *load_warnings(results),
        *drop_warnings(results),
        *warm_up_warnings(run.result for run in runs),
        *doubt_lines(run.result for run in runs),
        *convergence_warnings(table, [*comparison.labels(table), "size", "class"], remedy),
        *trend_warnings(
            [run.result for run in group] for group in metrics.by_scheme(metrics.distinct(runs))
        ),
    ]


def _few_flows_note(table: pl.DataFrame) -> list[str]:
    """Return a note if some percentile lacks flows under some scheme, else nothing."""
    identity = [*comparison.labels(table), "size", "class"]
    counts = pl.col("metric").is_in(["flows", durations.CALLS])
    flows = table.filter(counts, pl.col("value") > 0).select(identity)
    missing = table.filter(pl.col("value").is_nan()).join(flows, on=identity, how="semi")
    words = (str(name).rpartition(" ")[2] for name in missing["metric"])
    names = sorted(set(filter(metrics.is_percentile, words)), key=metrics.share_of)
    return [too_few_flows(names)] if names else []


def _no_interval_note(table: pl.DataFrame, median: bool) -> list[str]:
    """Return a note if percentiles lack intervals over seeds for want of flows, else nothing."""
    least = metrics.LEAST_FOR_MEDIAN if median else metrics.LEAST_FOR_MEAN
    rows = table.filter(
        pl.col("value").is_finite(), pl.col("low").is_nan(), pl.col("seeds") >= least
    )
    words = (str(name).rpartition(" ")[2] for name in rows["metric"])
    names = sorted(set(filter(metrics.is_percentile, words)), key=metrics.share_of)
    flows = ", ".join(f"{metrics.least_for_interval(name):,} for {name}" for name in names)
    return [f"without ±: too few flows per seed for an interval (least: {flows})"] if names else []
