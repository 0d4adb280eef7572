"""Tables, sentences and warnings of paired ratios."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from sojourn.analysis import long_lived, metrics
from sojourn.analysis.breakdown import LABELS, TOTAL
from sojourn.analysis.durations import DURATION, LATENCY_MEAN
from sojourn.analysis.metrics import ALL, LEAST_FOR_MEAN
from sojourn.analysis.paired import COLUMNS, METRICS, THROUGHPUT, TIMES
from sojourn.base.units import format_time
from sojourn.runs.results import Run
from sojourn.scale.trace import columns_of_trace
from sojourn.scenario.fidelity import FLOWS, PACKETS
from sojourn.scenario.fields import parts_of
from sojourn.scenario.overrides import scheme_name
from sojourn.show.intervals import MAX_UNFINISHED, flows_of_size
from sojourn.show.table import Table

THINGS = {DURATION: "jobs", LATENCY_MEAN: "calls"}
"""Things that a ratio of times is about, if not flows."""

LARGEST_SHARE = 1.5
"""Part of a difference above which it is stated as a time, not as a share: others offset it."""

LEAST_CHANGE = 0.02
"""Relative change of a mean below which a sentence names no part of it."""

MARK = "*"
"""Mark of ratios that unfinished or terminated flows may change."""

CALLS = "flows that start after others"

DRAWN = f"the fidelity `{FLOWS}` draws single flows"

HEADERS = "packet headers of another environment change the flows that a load offers"

MAX_SENTENCES = 20
"""Largest number of sentences that a comparison prints."""

GROUP_COLUMNS = ("size", "class")
"""Columns that identify the flows of a row."""


def tables(table: pl.DataFrame) -> list[Table]:
    """Return ratios with their intervals, one table for each size and class."""
    if table.is_empty():
        return []
    output: list[Table] = []
    table = table.filter(pl.col("metric").is_in(list(METRICS)))
    optional = ["terminated"] if table["terminated"].sum() else []
    for part in table.partition_by(*GROUP_COLUMNS, maintain_order=True):
        labels = label_columns(table)
        rows = []
        for group in part.partition_by(labels, maintain_order=True):
            first = group.row(0, named=True)
            ratios = {row["metric"]: with_interval(row) for row in group.to_dicts()}
            unfinished = [first[name] for name in COLUMNS[10:13]]
            rows.append(
                (
                    *(str(first[label]) for label in labels),
                    f"{first['pairs']:,}",
                    " + ".join(map(str, unfinished)) if any(unfinished) else "-",
                    *(f"{first[name]:,}" for name in optional),
                    *(ratios[name] for name in METRICS),
                )
            )
        # A size or class that contains all flows repeats the first table.
        if output and rows == output[0].rows:
            continue
        head = "size" if part["class"][0] == ALL.name else "class"
        title = f"ratio to {table['against'][0]}, {head}: {part[head][0]}"
        columns = (*labels, "pairs", "unfinished", *optional, *METRICS)
        output.append(Table(title, columns, rows, labels=len(labels)))
    return output


class Wording(NamedTuple):
    """Words of sentences that depend on what is shown beside them."""

    time: str = "time"
    """Name of the mean FCT."""
    no_interval: str = f" (no interval: it needs {LEAST_FOR_MEAN} seeds)"
    """Remark on a ratio without an interval, of too few seeds."""


def wording_of(runs: Sequence[Run]) -> Wording:
    """Return the words for ratios of these runs; seeds that differ in paths alone may be enough."""
    seeds = len({run.labels.get("seed") for run in runs})
    if seeds >= LEAST_FOR_MEAN:
        few = f"fewer than {LEAST_FOR_MEAN} seeds have such flows"
        return Wording(no_interval=f" (no interval: {few})")
    if seeds > 1 or any(metrics.draws_flows(run.result) for run in runs):
        return Wording()
    return Wording(no_interval=" (no interval: one seed, and all seeds carry the same flows)")


def sentences(
    table: pl.DataFrame,
    by: str,
    differences: pl.DataFrame | None = None,
    wording: Wording = Wording(),  # noqa: B008 - immutable
) -> list[str]:
    """Return a sentence for each scheme and each combination of the other variations.

    Sentences about jobs and calls come first. Those about all flows, by size, precede those about
    each class, and those about completion times precede those about the throughput of long-lived
    flows. With `differences` of FCT breakdowns, a sentence names the largest part of a difference.
    """
    if table.is_empty():
        return []
    labels = label_columns(table)
    parts = Parts(labels, differences)
    means = table.filter(pl.col("metric") == "FCT mean")
    of_class = pl.col("class") != ALL.name
    groups = [
        *means.filter(~of_class).partition_by(labels, maintain_order=True),
        *means.filter(of_class)
        .sort("class", maintain_order=True)
        .partition_by("class", *labels, maintain_order=True),
    ]
    times = table.filter(pl.col("metric").is_in(TIMES), pl.col("value").is_not_nan())
    lines = [_time_sentence(row, by, labels, wording) for row in times.to_dicts()]
    lines += [_sentence(group.to_dicts(), by, labels, parts, wording) for group in groups]
    throughputs = table.filter(pl.col("metric") == THROUGHPUT, pl.col("value").is_not_nan())
    # A single class is all flows.
    if throughputs["class"].n_unique() == long_lived.SINGLE_CLASS:
        throughputs = throughputs.filter(~of_class)
    return lines + [
        _throughput_sentence(row, by, labels, wording) for row in throughputs.to_dicts()
    ]


def shortened(lines: list[str]) -> list[str]:
    """Return the first `MAX_SENTENCES` sentences, and the number of others."""
    others = len(lines) - MAX_SENTENCES
    more = [f"… {others} more; pairs.csv has all ratios"] if others > 0 else []
    return lines[:MAX_SENTENCES] + more


class Parts:
    """Parts of the differences of schemes' mean completion times."""

    def __init__(self, labels: list[str], differences: pl.DataFrame | None) -> None:
        """Index a table of `accounts.differences`, if any."""
        self.labels = [*labels, *GROUP_COLUMNS]
        self.values: dict[tuple[str, ...], dict[str, float]] = {}
        for row in () if differences is None else differences.to_dicts():
            self.values.setdefault(self._key(row), {})[row["metric"]] = row["value"]

    def _key(self, row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row.get(name, ALL.name)) for name in self.labels)

    def largest(self, row: dict[str, Any]) -> str:
        """Name the largest part of a difference; empty if it is small or not significant.

        Without an interval, or if parts offset each other, the two largest are stated as times.
        """
        values = dict(self.values.get(self._key(row), {}))
        total = values.pop(TOTAL, 0.0)
        is_small = abs(row["value"] - 1) < LEAST_CHANGE
        if total == 0 or is_small or row["low"] <= 1 <= row["high"]:
            return ""
        shares = {name: value / total for name, value in values.items()}
        if math.isnan(row["low"]) or max(shares.values()) > LARGEST_SHARE:
            return _changes(values)
        most, least = (choose(shares, key=lambda name: shares[name]) for choose in (max, min))
        change = "reduction" if total < 0 else "increase"
        offset = f"{-100 * shares[least]:.0f} % {LABELS[least]}"
        offset = f" (offset by {offset})" if shares[most] > 1 else ""
        return f", and {100 * shares[most]:.0f} % of the {change} is {LABELS[most]}{offset}"


def _changes(values: dict[str, float]) -> str:
    """Return the two parts of a difference that changed most, as times.

    Signs instead of verbs, since some names of parts are plural.
    """
    largest = sorted(filter(values.get, values), key=lambda name: -abs(values[name]))[:2]
    signs = {name: "+" if values[name] > 0 else "\N{MINUS SIGN}" for name in largest}
    texts = [f"{LABELS[name]} {signs[name]}{format_time(abs(values[name]))}" for name in largest]
    return f": {', '.join(texts)}"


def _sentence(
    rows: list[dict[str, Any]], by: str, labels: list[str], parts: Parts, wording: Wording
) -> str:
    first = rows[0]
    sized = [row for row in rows if row["size"] != ALL.name]
    of_baseline = f" of {scheme_name(by, first['against'])}'s {wording.time}"
    clauses: list[str] = []
    for row in sized or rows[:1]:
        if math.isnan(row["value"]):
            clauses.append(f"{_flows(row)} have no ratio: none finished under both schemes")
            continue
        ratio = f"{_number(row['value'], row)}{of_baseline}{_bounds(row, wording)}"
        clauses.append(f"{_flows(row)} take {ratio}{_left_out(row, by)}{parts.largest(row)}")
        of_baseline = ""
    return f"{_case(first, by, labels)}{scheme_name(by, first[by])}'s {'; '.join(clauses)}"


def _left_out(row: dict[str, Any], by: str) -> str:
    """Return the number of unfinished flows and the ratio with them, if they may change it."""
    if not may_change_ratio(row):
        return ""
    count, total = _unfinished(row)
    things = THINGS.get(row["metric"], "flows")
    terminated = row["terminated"]
    if not count:
        return f", without {terminated:,} of {total:,} {things}, terminated"
    of_scheme, of_baseline = (row[name] for name in ("unfinished", "unfinished_against"))
    both = row["unfinished_both"]
    sides = {by: of_scheme + both, "against": of_baseline + both}
    names = " or ".join(scheme_name(by, row[name]) for name, number in sides.items() if number)
    with_them = f"{_bound(row)}{_number(row['with_unfinished'], row)} with their waiting times"
    others = f", and {terminated:,} terminated" if terminated else ""
    unfinished = f"{count:,} of {total:,} {things}, unfinished under {names} ({with_them})"
    return f", without {unfinished}{others}"


def _bound(row: dict[str, Any]) -> str:
    """Return the words before the ratio with the waiting times of unfinished flows."""
    of_scheme, of_baseline = (row[name] for name in ("unfinished", "unfinished_against"))
    if row["unfinished_both"] or (of_scheme and of_baseline):
        return ""
    return "at least " if of_scheme else "at most "


def _time_sentence(row: dict[str, Any], by: str, labels: list[str], wording: Wording) -> str:
    is_job = row["metric"] == DURATION
    what = f"job {row['class']} takes" if is_job else f"{row['class']} calls take"
    ratio = f"{_number(row['value'], row)} of {scheme_name(by, row['against'])}'s time"
    scheme = scheme_name(by, row[by])
    bounds = _bounds(row, wording)
    return f"{_case(row, by, labels)}{scheme}'s {what} {ratio}{bounds}{_left_out(row, by)}"


def _case(row: dict[str, Any], by: str, labels: list[str]) -> str:
    """Return the values of the other variations as the beginning of a sentence."""
    case = ", ".join(f"{name}={row[name]}" for name in labels if name != by)
    return f"{case}: " if case else ""


def _throughput_sentence(row: dict[str, Any], by: str, labels: list[str], wording: Wording) -> str:
    of_class = "" if row["class"] == ALL.name else f" of class {row['class']}"
    ratio = f"{_number(row['value'], row)} of {scheme_name(by, row['against'])}'s throughput"
    flows = f"{scheme_name(by, row[by])}'s long-lived flows{of_class}"
    return f"{_case(row, by, labels)}{flows} get {ratio}{_bounds(row, wording)}"


def _flows(row: dict[str, Any]) -> str:
    """Return the name of the flows of a row: a size or a class."""
    size = row["size"]
    if row["class"] != ALL.name:
        return f"flows of class {row['class']}"
    return "flows" if size == ALL.name else flows_of_size(size)


def _bounds(row: dict[str, Any], wording: Wording) -> str:
    if math.isnan(row["low"]):
        needs_seeds = row["seeds"] < LEAST_FOR_MEAN and not row["repeated"]
        return wording.no_interval if needs_seeds else " (no interval)"
    low, high = (_number(row[name], row) for name in ("low", "high"))
    note = "; no significant difference" if row["low"] <= 1 <= row["high"] else ""
    return f" ({low} to {high}{note})"


def notes(table: pl.DataFrame, by: str, runs: Sequence[Run] = ()) -> list[str]:
    """Return notes on the ratios; with the runs, they name the reason why flows differ."""
    if table.is_empty():
        return []
    bounds = table.filter(pl.col("metric").is_in(list(METRICS)))["low"]
    by_batches = "95 % confidence by ten batches of the run's flows"
    methods = {
        1: by_batches if bounds.is_finite().any() else "one seed each",
        2: f"two seeds: too few for an interval (least: {LEAST_FOR_MEAN})",
    }
    method = methods.get(max(table["seeds"].to_list()), "95 % confidence over seeds")
    baseline = scheme_name(by, table["against"][0])
    lines = [f"ratios to {baseline}{same_flows_note(table)}, {method}"]
    ratios = table.filter(pl.col("metric") == "FCT mean", pl.col("value").is_not_nan())
    if any(map(may_change_ratio, ratios.to_dicts())):
        counts = {
            "unfinished": sum(_unfinished(row)[0] for row in ratios.to_dicts()),
            "terminated": ratios["terminated"].sum(),
        }
        excluded = " or ".join(name for name, count in counts.items() if count)
        lines.append(f"{MARK}: without {excluded} flows, which may change the ratio")
    if not table["same_flows"].all():
        others = table.filter(~pl.col("same_flows"))[by].unique(maintain_order=True).to_list()
        names: dict[str, list[str]] = {}
        for other in others:
            known = _causes(runs, by, table["against"][0], other)
            causes = f" ({'; '.join(known)})" if known else ""
            names.setdefault(causes, []).append(scheme_name(by, other))
        lines += [
            f"note: some flows of {', '.join(named)} differ from those of {baseline}"
            f"{causes}: these schemes are paired by seed, not flow by flow"
            for causes, named in names.items()
        ]
    if one_sided := max(table["one_sided"].to_list()):
        lines.append(
            f"note: up to {one_sided:,} flows are measured in only one of two runs (other numbers "
            "of flows, time limits or warm-ups) and are not compared"
        )
    return lines


def _causes(runs: Sequence[Run], by: str, against: Any, other: Any) -> tuple[str, ...]:
    """Return the known reasons for which the flows of `other` are not those of `against`."""
    summaries = {str(run.labels[by]): run.result.summary for run in runs}
    if not summaries:
        return ()
    chosen = [summaries[str(value)] for value in (other, against)]
    differs = {
        name: chosen[0]["scenario"][name] != chosen[1]["scenario"][name]
        for name in ("workload", "topology", "packet")
    }
    kinds = [summary.get("fidelity", {}).get("kind", PACKETS) for summary in chosen]
    # Other networks and workloads may have other folds under one fidelity.
    is_same_whole = not (differs["workload"] or differs["topology"])
    has_other_folds = _folds(chosen[0]) != _folds(chosen[1])
    causes = {
        "other workloads": differs["workload"],
        "other networks": differs["topology"],
        "other fidelities": kinds[0] != kinds[1] or (is_same_whole and has_other_folds),
        DRAWN: kinds == [FLOWS, FLOWS],
        HEADERS: differs["packet"] and any(summary["load"] for summary in chosen),
    }
    found = tuple(cause for cause, applies in causes.items() if applies)
    has_calls = any(map(_has_calls, parts_of(chosen[0]["scenario"]["workload"])))
    return found or ((CALLS,) if has_calls else ())


def _folds(summary: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what decides the flows of an answer by folded networks."""
    fidelity = summary.get("fidelity", {})
    return fidelity.get("units"), [*fidelity.get("seeds", ())][:1]


def _has_calls(part: Mapping[str, Any]) -> bool:
    """Return true if flows of a part of the workload start after others."""
    if part["kind"] == "trace":
        return "after" in columns_of_trace(part["file"]["text"])
    return part["kind"] in ("rpc", "storage", "collective")


def warnings(table: pl.DataFrame, by: str) -> list[str]:
    """Return warnings where unfinished or terminated flows may change a ratio."""
    if table.is_empty():
        return []
    lines = []
    means = table.filter(pl.col("metric") == "FCT mean")
    for part in means.partition_by(by, maintain_order=True):
        rows = filter(may_change_ratio, part.to_dicts())
        names = ("unfinished", "unfinished_against", "terminated")
        sensitive = [row for row in rows if any(row[name] for name in names)]
        if sensitive:
            lines.append(_warning(sensitive, by, label_columns(table)))
    return lines


def may_change_ratio(row: dict[str, Any]) -> bool:
    """Return true if the excluded unfinished or terminated flows may change the ratio."""
    inside = row["low"] <= row["with_unfinished"] <= row["high"]
    count, total = _unfinished(row)
    is_one_sided = row["unfinished"] + row["unfinished_against"] > 0
    return (is_one_sided and not inside) or count + row["terminated"] > MAX_UNFINISHED * total


def _unfinished(row: dict[str, Any]) -> tuple[int, int]:
    """Return the number of unfinished flows, and that of all flows."""
    count = sum(row[name] for name in ("unfinished", "unfinished_against", "unfinished_both"))
    return count, row["pairs"] + count + row["terminated"]


def _warning(rows: list[dict[str, Any]], by: str, labels: list[str]) -> str:
    worst = max(
        rows, key=lambda row: row["unfinished"] + row["unfinished_against"] + row["terminated"]
    )
    case = [f"{name}={worst[name]}" for name in labels if name != by]
    case += [worst[name] for name in GROUP_COLUMNS if worst[name] != ALL.name]
    place = f" ({', '.join(case)})" if case else ""
    one_sided = worst["unfinished"] + worst["unfinished_against"]
    _, total = _unfinished(worst)
    count = f"; worst of {len(rows)}" if len(rows) > 1 else ""
    scheme, baseline = (scheme_name(by, worst[name]) for name in (by, "against"))
    if not one_sided:
        return (
            f"warning: {worst['terminated']:,} of {total:,} flows were terminated under "
            f"{scheme} or {baseline} and are excluded{place}{count}"
        )
    effect = "no flow finished under both"
    if not math.isnan(worst["value"]):
        number = _number(worst["with_unfinished"], worst)
        effect = f"with their waiting times the ratio is {_bound(worst)}{number}"
    return (
        f"warning: {one_sided:,} of {total:,} flows finished under only one of "
        f"{scheme} and {baseline} and are excluded{place}: {effect}{count}"
    )


def marked(row: dict[str, Any]) -> str:
    """Format a ratio and its interval, with `MARK` if unfinished flows may change it."""
    text = with_interval(row)
    return f"{text} {MARK}" if text != "-" and may_change_ratio(row) else text


def with_interval(row: dict[str, Any]) -> str:
    """Format a ratio and its interval."""
    if math.isnan(row["value"]):
        return "-"
    value = _number(row["value"], row)
    if math.isnan(row["low"]):
        return value
    return f"{value} [{_number(row['low'], row)}, {_number(row['high'], row)}]"


def _number(value: float, row: dict[str, Any]) -> str:
    """Format a value of a row with digits after the point that follow from its interval.

    The ratio of the row has at least two significant digits.
    """
    width = row["high"] - row["low"]
    if not 0 < width < math.inf:
        return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
    of_ratio = 1 - math.floor(math.log10(row["value"]))
    digits = min(max(-math.floor(math.log10(width)), 1 if width >= 1 else 2, of_ratio), 6)
    return f"{value:.{digits}f}"


def same_flows_note(table: pl.DataFrame) -> str:
    """Return a note if flows are the same in all rows, else an empty string."""
    return " on the same flows" if table["same_flows"].all() else ""


def label_columns(table: pl.DataFrame) -> list[str]:
    """Return the columns of labels: all columns except those of ratios."""
    return [name for name in table.columns if name not in COLUMNS]
