"""Tables and notes of one run, as `sojourn run` prints them."""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from rich.console import Group, RenderableType
from rich.text import Text

from sojourn.analysis import convergence, jobs, long_lived, metrics, rpc
from sojourn.analysis.durations import DURATION, OVER_BOUND
from sojourn.analysis.fidelity import has_samples, with_self_check
from sojourn.base.statistics import BATCHES
from sojourn.base.units import (
    count,
    format_bit_rate,
    format_count,
    format_rate,
    format_size,
    format_time,
    parse_time,
)
from sojourn.runs.results import Result
from sojourn.scale.errors import LEAST_IN_BATCH
from sojourn.show.console import text_table
from sojourn.show.environment import environment_line, fitted_lines, queue_lines
from sojourn.show.fidelity import doubt_lines, fidelity_lines
from sojourn.show.intervals import format_value, with_half_widths
from sojourn.show.table import Table
from sojourn.show.warnings import (
    convergence_warnings_of_run,
    drop_warnings,
    load_warnings,
    scenario_warnings,
    trend_warnings,
    warm_up_warnings,
)

IDEAL_FCT = "that at line rate: packets back to back over the idle path, no handshake or slow start"
"""Ideal FCT in words."""

LONG_LIVED_NOTE = (
    "throughput: payload that long-lived flows delivered per time, after the warm-up and while all "
    "of them sent"
)
"""Definition of the throughput of long-lived flows."""

JOBS_BOUND = (
    "bound of a job: its duration if every message has its ideal FCT, or the time that a host's "
    "link needs for all of them"
)
"""Definition of the bound of a job."""

JOBS_NOTE = f"{JOBS_BOUND}; half of hosts, last: when they have received all messages"
"""Definitions of the columns of jobs."""

LATENCY_NOTE = "latency of a call: from the start of its request to the last byte of the response"
"""Definition of the latency of a call."""

HalfWidths = Mapping[str, Sequence[float]]
"""By statistic, the half width of the interval of each row, as a share of the value."""

NO_INTERVALS: HalfWidths = {}

INTERVALS_NOTE = "±: 95 % confidence by batches of flows or by samples, without a bias of these"
"""Definition of the intervals of answers by samples."""

SELF_CHECK_NOTE = ", at least the error of the self-check"
"""Addition to the definition for answers by a law."""

NO_INTERVAL_NOTE = (
    f"; ± -: fewer than {BATCHES * LEAST_IN_BATCH} flows, or over 1 % of them unfinished"
)
"""Reasons of a missing interval."""

MOST_ROWS = 5
"""Largest number of links, and of unfinished flows, in a table."""


def result_tables(
    result: Result,
    statistics: Sequence[str] = metrics.STATISTICS,
    *,
    is_automatic: bool = False,
) -> RenderableType:
    """Return the output of `sojourn run`, with these statistics of completion times.

    Its line on the environment has the reason if that `is_automatic`.
    """
    throughputs = _long_lived_tables(result)
    times = metrics.by_size(result, "fct_s", statistics=statistics)
    class_times = metrics.by_class(result, "fct_s", statistics)
    tables: list[RenderableType] = []
    notes: list[str] = []
    of_all = times.row(0, named=True)
    if not throughputs or of_all["flows"] + of_all["terminated"] > 0:
        intervals = _intervals(result)
        fcts, slowdowns = (intervals.get(name, NO_INTERVALS) for name in ("fct_s", "slowdown"))
        tables = [
            _size_table(times, format_time, "flow completion time", statistics, fcts),
            by_size_table(result, "slowdown", "{:.2f}".format, "slowdown", statistics, slowdowns),
            *_class_tables(result, class_times, statistics),
        ]
        notes.append(f"slowdown: FCT over ideal FCT, {IDEAL_FCT}")
        has_check = bool(result.summary.get("fidelity", {}).get("self_check"))
        notes += [INTERVALS_NOTE + SELF_CHECK_NOTE * has_check + NO_INTERVAL_NOTE] if fcts else []
    if throughputs:
        notes += [LONG_LIVED_NOTE, _long_lived_time(result)]
    if result.summary.get("jobs"):
        notes.append(JOBS_NOTE)
    if call_tables := _call_tables(result, statistics):
        notes.append(LATENCY_NOTE)
    elif rpc.has_calls(result):
        notes.append(f"latencies of calls: {rpc.refusal(result)}")
    notes += few_flows_notes(statistics, times, class_times)
    return Group(
        *tables,
        *throughputs,
        *_job_tables(result),
        *call_tables,
        _link_table(result),
        _counts(result),
        *_unfinished(result),
        *_notes(result, notes, is_automatic=is_automatic),
    )


def _long_lived_tables(result: Result) -> list[RenderableType]:
    """Return the throughput, share and Jain index of long-lived flows by class, if any."""
    rows = long_lived.by_class(result).to_dicts()
    names = list(long_lived.METRICS)
    if len(rows) == long_lived.SINGLE_CLASS:
        rows = rows[1:]
        names.remove("share")
    cells = [
        [
            row["class"],
            format_count(row["flows"]),
            *(format_value({"metric": name, "value": row[name]}) for name in names),
        ]
        for row in rows
    ]
    columns = ["class", "flows", *names]
    return [text_table(Table("long-lived flows", columns, cells))] if rows else []


def _long_lived_time(result: Result) -> str:
    """Return the time in which all long-lived flows sent, in words."""
    if (bounds := long_lived.interval(result)) is None:
        return "-: after the warm-up, long-lived flows never sent all at the same time"
    start, end = map(format_time, bounds)
    return f"all long-lived flows sent from {start} to {end}"


def _job_tables(result: Result) -> list[RenderableType]:
    """Return the duration of each job over its bound, and its straggler, if there are jobs."""
    table = jobs.jobs(result)
    if table.is_empty():
        return []
    has_waiting = table["not_started"].sum() > 0
    counts = ["ranks", "steps", "flows", "unfinished", *(["not_started"] * has_waiting)]

    def cells(row: Mapping[str, Any]) -> list[str]:
        is_done = row["last_host"] is not None
        duration, ratio = (
            format_value({"metric": metric, "value": row[name], "at_least": not is_done})
            for metric, name in ((DURATION, "duration_s"), (OVER_BOUND, "ratio"))
        )
        started = {"unfinished": row["unfinished"] - row["not_started"]}
        numbers = [format_count({**row, **started}[name]) for name in counts]
        half = format_time(row["median_host_s"]) if is_done else "-"
        last = f"host {row['last_host']}" if is_done else "-"
        return [row["job"], *numbers, duration, format_time(row["bound_s"]), ratio, half, last]

    rows = [cells(row) for row in jobs.with_lower_bounds(result, table).to_dicts()]
    heads = [name.replace("_", " ") for name in counts]
    columns = ["job", *heads, DURATION, "bound", OVER_BOUND, "half of hosts", "last"]
    optional = ["half of hosts", "flows", "steps", "ranks"]
    return [text_table(Table("jobs", columns, rows, optional=optional))]


def _call_tables(result: Result, statistics: Sequence[str]) -> list[RenderableType]:
    """Return the latency of the calls of each kind, if there are calls."""
    rows = []
    for kind in rpc.kinds(result):
        answered, waiting = rpc.observed(result, rpc.of_kind(kind))
        counts = [format_count(number) for number in (len(answered) + len(waiting), len(waiting))]
        values = [metrics.reported(name, answered, waiting) for name in statistics]
        cells = [
            format_value({"metric": "latency", "value": value, "at_least": at_least})
            for value, at_least in values
        ]
        rows.append([kind, *counts, *cells])
    columns = ["calls of kind", "calls", "unanswered", *statistics]
    optional = statistics[-2:0:-1]
    return [text_table(Table("latency", columns, rows, optional=optional))] if rows else []


def by_size_table(  # noqa: PLR0913, PLR0917 - each parameter is a property of the table
    result: Result,
    column: str,
    show: Callable[[float], str],
    title: str,
    statistics: Sequence[str] = metrics.STATISTICS,
    half_widths: HalfWidths = NO_INTERVALS,
) -> RenderableType:
    """Return statistics of completion times or slowdowns by size; `show` formats a value."""
    rows = metrics.by_size(result, column, statistics=statistics)
    return _size_table(rows, show, title, statistics, half_widths)


def _size_table(
    rows: pl.DataFrame,
    show: Callable[[float], str],
    title: str,
    statistics: Sequence[str],
    half_widths: HalfWidths,
) -> RenderableType:
    """Return the rows of `metrics.by_size` in a table."""
    counts = _count_columns(rows)
    columns = {"size": rows["size"].to_list()}
    columns |= {name: [format_count(number) for number in rows[name]] for name in counts}
    columns |= dict(zip(statistics, _cells(rows, statistics, show, half_widths), strict=True))
    cells = list(zip(*columns.values(), strict=True))
    return text_table(Table(title, list(columns), cells, optional=statistics[-2:0:-1]))


def _intervals(result: Result) -> Mapping[str, HalfWidths]:
    """Return the half widths of mean and p99 of answers by samples, by column; empty of packets."""
    p99s = result.summary.get("fidelity", {}).get("p99")
    if not p99s:
        return {}
    means = _half_widths(convergence.within_run(result, bucket) for bucket in metrics.BUCKETS)
    widths = {
        column: {
            "mean": means[column],
            "p99": [
                math.nan if row["high"] is None else (row["high"] - row["p99"]) / row["p99"]
                for row in rows
            ],
        }
        for column, rows in p99s.items()
    }
    return _with_self_checks(result, metrics.BUCKETS, widths)


def _with_self_checks(
    result: Result, buckets: Sequence[metrics.Bucket], widths: Mapping[str, HalfWidths]
) -> Mapping[str, HalfWidths]:
    """Return the half widths by column, of buckets, at least the errors of the self-check."""
    return {
        column: {
            name: [
                with_self_check(result, bucket, name, width)
                for bucket, width in zip(buckets, of_buckets, strict=True)
            ]
            for name, of_buckets in by_statistic.items()
        }
        for column, by_statistic in widths.items()
    }


def _class_intervals(result: Result) -> Mapping[str, HalfWidths]:
    """Return the half widths of mean and p99 by class, as `_intervals`; empty of one class."""
    buckets = metrics.class_buckets([result])
    p99s = _half_widths(convergence.p99s_within_run(result, bucket) for bucket in buckets)
    if not p99s:
        return {}
    means = _half_widths(convergence.within_run(result, bucket) for bucket in buckets)
    known = [has_samples(result, bucket.name) for bucket in buckets]
    of_classes = {
        column: {
            name: [
                width if is_known else math.nan
                for width, is_known in zip(widths, known, strict=True)
            ]
            for name, widths in (("mean", means[column]), ("p99", p99s[column]))
        }
        for column in p99s
    }
    return _with_self_checks(result, buckets, of_classes)


def _half_widths(tables: Iterable[pl.DataFrame]) -> dict[str, list[float]]:
    """Return the half widths of intervals in several tables, as shares of the values, by column."""
    columns = convergence.MEANS | convergence.P99S
    widths: dict[str, list[float]] = {}
    for row in (row for table in tables for row in table.to_dicts()):
        share = (row["high"] - row["value"]) / row["value"]
        widths.setdefault(columns[row["metric"]], []).append(share)
    return widths


def _class_tables(
    result: Result, times: pl.DataFrame, statistics: Sequence[str]
) -> list[RenderableType]:
    """Return completion times and slowdowns by class, if the run has more than one."""
    if times.is_empty():
        return []
    slowdown_statistics = ("mean", statistics[-1])
    slowdowns = metrics.by_class(result, "slowdown", slowdown_statistics)
    intervals = _class_intervals(result)
    fcts, others = (intervals.get(name, NO_INTERVALS) for name in ("fct_s", "slowdown"))
    fct_heads = [f"FCT {name}" for name in statistics]
    columns = {
        "class": times["class"].to_list(),
        **{name: list(map(format_count, times[name])) for name in _count_columns(times)},
        **dict(zip(fct_heads, _cells(times, statistics, format_time, fcts), strict=True)),
    }
    cells = _cells(slowdowns, slowdown_statistics, "{:.2f}".format, others)
    heads = [f"slowdown {name}" for name in slowdown_statistics]
    columns |= dict(zip(heads, cells, strict=True))
    optional = [heads[-1], *fct_heads[-2:0:-1], heads[0]]
    rows = list(zip(*columns.values(), strict=True))
    return [text_table(Table("by class", list(columns), rows, optional=optional))]


def _cells(
    rows: pl.DataFrame,
    statistics: Sequence[str],
    show: Callable[[float], str],
    half_widths: HalfWidths,
) -> list[list[str]]:
    """Return the cells of a column for each statistic, with its half widths if there are any."""
    columns = []
    for name in statistics:
        cells = [cell(row, name, show) for row in rows.to_dicts()]
        widths = half_widths.get(name)
        columns.append(with_half_widths(cells, widths) if widths else cells)
    return columns


def _count_columns(rows: pl.DataFrame) -> list[str]:
    """Return the columns of counts; `terminated` only if any flow was terminated."""
    return ["flows", "unfinished", *(["terminated"] if rows["terminated"].sum() else [])]


def cell(row: Mapping[str, Any], name: str, show: Callable[[float], str]) -> str:
    """Format a statistic of a row of `metrics.by_size`; a lower bound begins with `≥`."""
    bound = "≥ " if name in row["at_least"].split(",") else ""
    return "-" if math.isnan(row[name]) else bound + show(row[name])


def _link_table(result: Result) -> RenderableType:
    queue_lengths = ("queue_mean_bytes", "queue_max_bytes")
    links = map(metrics.measured, result.summary["links"])
    busiest = heapq.nlargest(MOST_ROWS, links, key=lambda link: float(link["utilisation"]))
    rare = [name for name in ("credit_drops", "trims") if any(link.get(name) for link in busiest)]
    counters = ("drops", *rare, "marks", "pauses")
    columns = (
        *("link", "rate", "utilisation"),
        *(name.replace("_", " ") for name in counters),
        *("queue mean", "queue max"),
    )
    rows = []
    for link in busiest:
        cells = [
            link["name"],
            format_bit_rate(link["rate_bps"]),
            f"{100 * link['utilisation']:.1f} %",
            *(_counter(link, name, format_count) for name in counters),
            *(_counter(link, name, format_size) for name in queue_lengths),
        ]
        rows.append(cells)
    optional = ["queue mean", "rate", "pauses", "marks"]
    return text_table(Table("busiest links", columns, rows, optional=optional))


def _counter(counters: Mapping[str, Any], name: str, show: Callable[[float], str]) -> str:
    """Format a counter, or a dash if it is missing, as in ideals, which have no packets."""
    return show(counters[name]) if name in counters else "-"


def _counts(result: Result) -> Text:
    counts = result.summary["counts"]
    names = ["drops", "marks", "pauses", "retransmits", "timeouts"]
    # Losses are rare, those of random losses and of failed links, few queues trim or drop credits,
    # and few routings reorder packets.
    rare = ("credit_drops", "losses", "trims", "returns", "reordered")
    names += [name for name in rare if counts.get(name)]
    tally = ", ".join(
        f"{format_count(counts[name])} {name.replace('_', ' ')}" for name in names if name in counts
    )
    if tally and metrics.warm_up_s(result):
        tally += " (warm-up included)"
    kind, unit = ("wall", "second") if result.threads > 1 else ("cpu", "CPU-second")
    took = result.summary[f"{kind}_seconds"]
    speed = f"{result.summary['simulated_s']:.6g} s simulated in {took:.2f} s"
    hops = sum(counts.get("packet_hops", {}).values())
    if hops and took:
        speed += f", {hops / took / 1e6:.1f} million packet-hops per {unit}"
    return Text("\n".join([*([tally] if tally else []), speed, *_windows(result)]))


def _windows(result: Result) -> list[str]:
    """Describe groups of nodes, lookahead and threads of the engine, if it used windows."""
    engine = result.summary.get("engine", {})
    if engine.get("kind") != "windows":
        return []
    groups, threads = format_count(engine["groups"]), result.threads
    threads_used = f"{threads} thread{'s' if threads > 1 else ''}"
    lookahead = format_time(engine["window_s"])
    return [f"engine: {groups} groups of nodes, lookahead {lookahead}, {threads_used}"]


def _unfinished(result: Result) -> list[RenderableType]:
    """Return the number of unfinished flows, and a table of those with most remaining bytes."""
    flows = result.flows.filter(pl.col("outcome") == "unfinished")
    waiting = sum(row["not_started"] for row in jobs.jobs(result).to_dicts())
    messages = f"{count(waiting, 'message')} of jobs did not start" if waiting else ""
    if flows.is_empty():
        return [Text(f"unfinished: {messages}")] if messages else []
    flows = flows.with_columns(remaining=pl.col("size_bytes") - pl.col("delivered_bytes"))
    largest = flows.sort("remaining", descending=True, nulls_last=True).head(MOST_ROWS)
    columns = ("flow", "from", "to", "class", "size", "remaining", "start", "timeouts")
    rows = []
    for row in largest.to_dicts():
        ends = (str(row[name]) for name in ("flow", "source", "target"))
        remaining = "-" if row["remaining"] is None else format_size(row["remaining"])
        timeouts = "-" if row["timeouts"] is None else format_count(row["timeouts"])
        cells = format_time(row["start_s"]), timeouts
        rows.append([*ends, row["class"], format_size(row["size_bytes"]), remaining, *cells])
    title = "unfinished flows with most remaining bytes"
    table = text_table(Table(title, columns, rows, optional=["to", "class"]))
    with_end = result.flows.filter(pl.col("outcome") != "long_lived").height
    share = f"{format_count(flows.height)} of {format_count(with_end)} flows"
    end = format_time(result.summary["simulated_s"])
    line = f"unfinished: {share} did not finish before the end of the run at {end}"
    return [Text(f"{line}; {messages}" if messages else line), table]


def _notes(result: Result, of_tables: Sequence[str], *, is_automatic: bool) -> list[Text]:
    """Return notes on the meaning of the numbers, warnings, and stuck flows."""
    notes = [*fidelity_lines([result]), environment_line(result, is_automatic=is_automatic)]
    notes += queue_lines(result.summary.get("queues", ()))
    notes += fitted_lines(result.summary)
    if result.summary.get("load"):
        notes += _load_notes(result)
    warm_up = result.summary["scenario"].get("warm_up", "0 s")
    if parse_time(warm_up) > 0:
        of_jobs = "; jobs are measured from their start" if result.summary.get("jobs") else ""
        notes.append(f"warm-up: flows that start in the first {warm_up} are excluded{of_jobs}")
    notes += of_tables
    notes += _measured_notes(result)
    notes += _caller_notes(result)
    met = metrics.deadlines_met()(result)
    if not math.isnan(met.value):
        bound = "at least " if met.at_least else ""
        notes.append(f"deadlines: {bound}{100 * met.value:.2f} % of flows with a deadline met it")
    notes += scenario_warnings([result])
    notes += load_warnings({"": [result]})
    notes += drop_warnings({"": [result]})
    notes += warm_up_warnings([result])
    notes += doubt_lines([result])
    notes += convergence_warnings_of_run(result)
    notes += trend_warnings([[result]])
    notes += [f"stuck: {line}" for line in result.summary["stuck"]]
    return [Text(note, style="dim") for note in notes]


def _measured_notes(result: Result) -> list[str]:
    """Return a note on the time in which counters of links are measured, if not the whole run."""
    if (interval := result.summary.get("measured")) is None:
        return []
    start, end = interval["from_s"], interval["to_s"]
    is_end = end == result.summary["simulated_s"]
    bounds = [f"from {format_time(start)}"] if start else []
    bounds.append(f"to {format_time(end)}, {'the end' if is_end else 'the last arrival'}")
    # Ideals have no queues.
    has_queues = any("queue_max_bytes" in link for link in result.summary["links"])
    return [f"links: {' '.join(bounds)}{'; queue max: of the whole run' * has_queues}"]


def _caller_notes(result: Result) -> list[str]:
    """Return a note on the calls that began when the first caller had made all of its own."""
    ends = result.summary.get("measured_until_s", {})
    late = [(pl.col("class") == name) & (pl.col("start_s") >= ends[name]) for name in ends]
    if not late or not (number := result.flows.filter(pl.any_horizontal(late)).height):
        return []
    return [
        f"calls: those from {format_time(min(ends.values()))}, when the first caller had made its "
        f"part of them, are not measured ({format_count(number)} flows)"
    ]


def few_flows_notes(statistics: Sequence[str], *tables: pl.DataFrame) -> list[str]:
    """Return a note if percentiles in tables of `metrics.by_size` lack flows, else nothing."""
    rows = [row for table in tables for row in table.to_dicts() if row["flows"]]
    names = [name for name in statistics if any(math.isnan(row[name]) for row in rows)]
    return [too_few_flows(names)] if names else []


def too_few_flows(names: Iterable[str]) -> str:
    """Return the note on percentiles that are missing: `names`, such as `p99`."""
    least = ", ".join(f"{metrics.least_flows(name)} for {name}" for name in names)
    return f"-: too few flows for a percentile (least: {least})"


def _load_notes(result: Result) -> list[str]:
    """Return notes on the configured load of each part of the workload, and the realised load."""
    configured = result.summary["load"].split("; ")
    notes = [f"load: {words.removeprefix('load ')}" for words in configured]
    realised = metrics.realised_load()(result).value
    if not math.isnan(realised):
        reference = result.summary["load_reference"]
        rate = format_rate(reference["rate_bps"])
        # Among all hosts the load is not that of the reference link.
        place = "" if "among all hosts" in result.summary["load"] else f" on {reference['what']}"
        notes.append(f"realised load: {realised:.3g} of {rate} (payload and headers){place}")
    return notes
