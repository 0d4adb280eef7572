"""What the command line prints: results, comparisons, claims, parts and measurements as tables."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sojourn import compare, convergence, metrics
from sojourn.figure import Made
from sojourn.plan import Plan
from sojourn.progress import spoken
from sojourn.results import Result, Run
from sojourn.validation_page import Rows

console = Console(highlight=False)
if not console.is_terminal:
    console.width = 130


COUNTS = ("flows", "terminated")
"""Metrics that count flows."""

MEANS = {"FCT mean": "mean completion time", "slowdown mean": "mean slowdown"}
"""The means that are judged, in words."""

MARKS = {
    "held": "[green]✓ held[/]",
    "not held": "[red]✗ not held[/]",
    "not judged": "[dim]· not judged[/]",
}


def result_tables(result: Result) -> RenderableType:
    """Return what `sojourn run` prints."""
    return Group(
        by_size_table(result, "fct_s", duration, "flow completion time"),
        by_size_table(result, "slowdown", "{:.2f}".format, "slowdown"),
        *class_tables(result),
        _link_table(result),
        _counts(result),
        *_unfinished(result),
        *_notes(result),
    )


def by_size_table(result: Result, column: str, show: Callable[[float], str], title: str) -> Table:
    """Return statistics of completion times or slowdowns by size."""
    rows = metrics.by_size(result, column)
    counts = _counted(rows)
    table = _table("size", *counts, *metrics.STATISTICS, title=title)
    for row in rows.to_dicts():
        cells = [cell(row, name, show) for name in metrics.STATISTICS]
        table.add_row(row["size"], *(number(row[name]) for name in counts), *cells)
    return table


def class_tables(result: Result) -> list[Table]:
    """Return completion times and slowdowns by class, if the run has more than one."""
    times = metrics.by_class(result, "fct_s")
    slowdowns = metrics.by_class(result, "slowdown")
    if times.is_empty():
        return []
    counts, of_slowdown = _counted(times), ("mean", "p99")
    heads = [f"FCT {name}" for name in metrics.STATISTICS]
    heads += [f"slowdown {name}" for name in of_slowdown]
    table = _table("class", *counts, *heads, title="by class")
    for row, slow in zip(times.to_dicts(), slowdowns.to_dicts(), strict=True):
        cells = [cell(row, name, duration) for name in metrics.STATISTICS]
        cells += [cell(slow, name, "{:.2f}".format) for name in of_slowdown]
        table.add_row(Text(row["class"]), *(number(row[name]) for name in counts), *cells)
    return [table]


def _counted(rows: pl.DataFrame) -> list[str]:
    """Return what is counted: few schemes give flows up, only then there is something to tell."""
    return ["flows", "unfinished", *(["terminated"] if rows["terminated"].sum() else [])]


def cell(row: Mapping[str, Any], name: str, show: Callable[[float], str]) -> str:
    """Write a statistic of a row of `metrics.by_size`, which may be a lower bound."""
    bound = "≥ " if name in row["at_least"].split(",") else ""
    return "-" if math.isnan(row[name]) else bound + show(row[name])


def _link_table(result: Result, most: int = 5) -> Table:
    columns = ("link", "rate", "used", "drops", "marks", "pauses", "queue mean", "max")
    table = _table(*columns, title="busiest links")
    links = sorted(result.summary["links"], key=lambda link: link["utilisation"], reverse=True)
    for link in links[:most]:
        table.add_row(
            link["name"],
            f"{link['rate_bps'] / 1e9:g} Gb/s",
            f"{100 * link['utilisation']:.1f} %",
            *(_told(link, name, number) for name in ("drops", "marks", "pauses")),
            *(_told(link, name, size) for name in ("queue_mean_bytes", "queue_max_bytes")),
        )
    return table


def _told(counters: Mapping[str, Any], name: str, show: Callable[[float], str]) -> str:
    """Write a counter, or a dash: ideals have no packets to count."""
    return show(counters[name]) if name in counters else "-"


def _counts(result: Result) -> Text:
    counts = result.summary["counts"]
    names = ("drops", "marks", "pauses", "retransmits", "timeouts")
    told = ", ".join(f"{number(counts[name])} {name}" for name in names if name in counts)
    kind, unit = ("wall", "second") if result.threads > 1 else ("cpu", "CPU-second")
    took = result.summary[f"{kind}_seconds"]
    speed = f"{result.summary['simulated_s']:.6g} s simulated in {took:.2f} s"
    hops = sum(counts.get("packet_hops", {}).values())
    if hops and took:
        speed += f", {hops / took / 1e6:.1f} million packet-hops per {unit}"
    return Text("\n".join([told, speed, *_windows(result)]))


def _windows(result: Result) -> list[str]:
    """Say how the run went through time, if not event by event."""
    engine = result.summary.get("engine", {})
    if engine.get("kind") != "windows":
        return []
    groups, threads = number(engine["groups"]), result.threads
    threads_used = f"{threads} thread{'s' if threads > 1 else ''}"
    return [f"windows of {duration(engine['window_s'])}, {groups} groups, {threads_used}"]


def _unfinished(result: Result, most: int = 5) -> list[RenderableType]:
    """Count the flows that the end of the run has cut off, and show those with most left."""
    flows = result.flows.filter(pl.col("outcome") == "unfinished")
    if flows.is_empty():
        return []
    left = flows.with_columns(left=pl.col("size_bytes") - pl.col("delivered_bytes"))
    largest = left.sort("left", descending=True).head(most)
    columns = ("flow", "from", "to", "class", "size", "left", "start", "time-outs")
    table = _table(*columns, title="unfinished, most left")
    for row in largest.to_dicts():
        ends = (str(row[name]) for name in ("flow", "source", "target"))
        sizes = (size(row[name]) for name in ("size_bytes", "left"))
        told = duration(row["start_s"]), number(row["timeouts"])
        table.add_row(*ends, Text(row["class"]), *sizes, *told)
    of = f"{number(flows.height)} of {number(result.flows.height)} flows"
    when = duration(result.summary["simulated_s"])
    return [Text(f"unfinished: {of} had not ended when the run did, at {when}"), table]


def _notes(result: Result) -> list[Text]:
    """Say what the numbers refer to, and which flows are stuck."""
    notes = []
    if result.summary.get("load"):
        notes += _load_notes(result)
    warm_up = result.summary["scenario"].get("warm_up", "0 s")
    if metrics.seconds(warm_up) > 0:
        notes.append(f"warm-up: flows that start in the first {warm_up} are left out")
    notes.append("slowdown: over the same flow alone in the same network")
    met = metrics.deadlines_met()(result)
    if not math.isnan(met.value):
        bound = "at least " if met.at_least else ""
        notes.append(f"deadlines: {bound}{100 * met.value:.2f} % of the flows that have one met it")
    notes += warnings([result])
    notes += unsure_within(result)
    notes += [f"stuck: {line}" for line in result.summary["stuck"]]
    return [Text(note, style="dim") for note in notes]


def _load_notes(result: Result) -> list[str]:
    """Say which load was asked for, part by part, and what became of it."""
    asked = result.summary["load"].split("; ")
    notes = [f"load: {words.removeprefix('load ')}" for words in asked]
    realised = metrics.realised_load()(result).value
    if not math.isnan(realised):
        reference = result.summary["load_reference"]
        rate = _rate(reference["rate_bps"])
        notes.append(
            f"realised load: {realised:.3g} of {rate} (payload and headers) on {reference['what']}"
        )
    return notes


def unsure_within(result: Result) -> list[str]:
    """Return a line for each mean of a run that is not converged for some size or class."""
    rows = [
        metrics.labelled({"flows": bucket.name}, convergence.within_run(result, bucket))
        for bucket in metrics.sizes_and_classes([result])
    ]
    return unsure(pl.concat(rows), ["flows"], "more time or seeds, or the median")


def unsure(table: pl.DataFrame, labels: Sequence[str], remedy: str) -> list[str]:
    """Return a line for each mean that is not converged somewhere: the worst case, and of how many.

    `labels` are the columns that tell where.
    """
    # What is known of a size or class that all flows have would only be said twice.
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
        value = f"{bound}{_in_unit(worst['value'], name)} ± {100 * worst['reach']:.0f} %"
        by = f"{seeds} seeds" if seeds > 1 else "ten batches"
        where = [str(worst[label]) for label in labels if worst[label] != metrics.ALL.name]
        of = [f"worst of {part.height}"] if part.height > 1 else []
        case = "".join(f"; {words}" for words in [", ".join(where), *of] if words)
        lines.append(f"warning: {words} not converged: {value} ({by}{case}); {remedy}")
    return lines


def warnings(results: Iterable[Result]) -> list[str]:
    """Return what is allowed but unwise in what these runs were asked, each once."""
    lines = (line for result in results for line in result.summary.get("warnings", []))
    return [f"warning: {line}" for line in dict.fromkeys(lines)]


def comparison_tables(table: pl.DataFrame) -> list[Table]:
    """Return what `sojourn compare` prints: values with their intervals, by size and by class."""
    labels = compare.labels(table)
    table, _ = compare.divided(table)
    tables: list[Table] = []
    parts = table.partition_by("size", "class", maintain_order=True)
    for part in parts:
        metrics_here = part["metric"].unique(maintain_order=True).to_list()
        measured = part.filter(~pl.col("metric").is_in(COUNTS))["value"]
        if not measured.is_finite().any() or (tables and _repeats(part, parts[0])):
            continue
        head = "size" if part["class"][0] == metrics.ALL.name else "class"
        shown = _table(*labels, *metrics_here, title=f"{head}: {part[head][0]}")
        for row in part.partition_by(labels, maintain_order=True):
            heads = [Text(str(row[label][0])) for label in labels]
            shown.add_row(*heads, *(_interval(cell) for cell in row.to_dicts()))
        tables.append(shown)
    return tables


def _repeats(part: pl.DataFrame, of_all: pl.DataFrame) -> bool:
    """Tell whether a size or class has all flows, so that its numbers are those of all."""
    same = of_all.filter(pl.col("metric").is_in(part["metric"].unique().to_list()))
    return part.drop("size", "class").equals(same.drop("size", "class"))


def comparison_notes(table: pl.DataFrame, runs: Iterable[Run], *, median: bool) -> list[str]:
    """Say what a comparison's numbers are, what is unwise, and which means are not converged."""
    labels = [*compare.labels(table), "size", "class"]
    remedy = "more time or seeds"
    seeds = table["seeds"].to_list()
    if max(seeds) == 1:
        statistic = "one run each, means ± 95 % confidence by ten batches"
        remedy += ", or the median"
    elif median:
        statistic = "medians over seeds ± 95 % confidence, bootstrapped"
        # Of five values even the least and the greatest hold the median between them less often.
        statistic += " (less with fewer than six seeds)" if min(seeds) < 6 else ""
    else:
        statistic = "means over seeds ± 95 % confidence"
        remedy += ", or --median"
    return [
        f"{statistic}; slowdown over the same flow alone in the network",
        *warnings(run.result for run in runs),
        *unsure(table, labels, remedy),
    ]


def _interval(row: Mapping[str, Any]) -> str:
    """Write a value, and how far its interval reaches in per cent of it."""
    value = row["value"]
    if value is None or math.isnan(value):
        return "-"
    if row.get("metric") in COUNTS:
        return f"{value:,.3g}" if value < 100 else number(round(value))
    bound = "≥ " if row.get("at_least") else ""
    low, high = row.get("low"), row.get("high")
    known = value and low is not None and high is not None
    reach = max(high - value, value - low) / value if known else 0.0
    digits = 0 if reach >= 0.1 else 1
    spread = f" ±{100 * reach:.{digits}f}%" if reach > 0 else ""
    return bound + _in_unit(value, str(row.get("metric", ""))) + spread


def spent(row: Mapping[str, Any]) -> str:
    """Write an amount of time, and how far its interval reaches, if it is known."""
    if not row["value"] or math.isnan(row["value"]):
        return "-"
    reach = row["high"] - row["value"]
    return duration(row["value"]) + ("" if math.isnan(reach) else f" ± {duration(reach)}")


def _in_unit(value: float, metric: str) -> str:
    if metric.startswith("FCT") or metric.endswith("_s"):
        return duration(value)
    if metric.endswith("_bytes"):
        return size(value)
    if metric.startswith(("utilisation", "deadlines")):
        return f"{100 * value:.1f} %"
    return f"{value:.3g}"


def figure_table(table: pl.DataFrame, title: str, most: int = 60) -> Table | None:
    """Return a figure's table with its first label as columns, if it is one of single values.

    Metrics are shown by the ends of their names: `_s` are seconds, `_bytes` bytes.
    """
    if "value" not in table.columns or table.height > most:
        return None
    first, *others = table.columns[: table.columns.index("value")] or [""]
    if not others:
        return None
    schemes = table[first].unique(maintain_order=True).to_list()
    shown = _table(*others, *map(str, schemes), title=title)
    for rows in table.partition_by(others, maintain_order=True):
        cells = {row[first]: _interval(row) for row in rows.to_dicts()}
        heads = [Text(str(rows[name][0])) for name in others]
        shown.add_row(*heads, *(cells.get(scheme, "-") for scheme in schemes))
    return shown


def plan_table(plans: Sequence[Plan], hops_per_cpu_second: float) -> Table:
    """Return what figures will take, and all of them together."""
    table = _table("figure", "runs", "in the cache", "packet-hops", "CPU time, about")
    together = Plan(
        "all",
        sum(one.runs for one in plans),
        sum(one.known for one in plans),
        sum(one.packet_hops for one in plans),
    )
    for one in [*plans, together] if len(plans) > 1 else plans:
        takes = spoken(one.packet_hops / hops_per_cpu_second)
        hops = f"{one.packet_hops / 1e6:,.0f} million"
        table.add_row(one.figure, f"{one.runs:,}", f"{one.known:,}", hops, takes)
    return table


def claim_table(figures: Iterable[Made]) -> Table:
    """Return every claim of the figures, with its verdict and numbers."""
    table = _table("figure", "claim", "verdict", "numbers")
    for column in table.columns[1:]:
        column.justify = "left"
    for made in figures:
        for claim in made.claims:
            row = (made.id, Text(claim.statement), MARKS[claim.verdict])
            table.add_row(*row, Text(claim.numbers))
    return table


def parts_text(catalogue: Mapping[str, Any], kind: str | None) -> list[RenderableType]:
    """Return the catalogue of a family or a part, or the names of all."""
    if kind is None:
        table = _table("family", "parts")
        table.columns[1].justify = "left"
        for family, members in catalogue.items():
            table.add_row(family, ", ".join(part["name"] for part in members))
        return [table, Text("sojourn parts NAME shows the parameters of a family or part")]
    shown: list[RenderableType] = []
    for family, members in catalogue.items():
        for part in members:
            if kind in (family, part["name"]):
                shown += [Text(f"{family}: {part['name']}", style="bold"), Text(part["about"])]
                shown.append(_parameter_table(part["parameters"]))
    return shown


def _parameter_table(parameters: Iterable[Mapping[str, Any]]) -> Table:
    table = _table("parameter", "default", "allowed", "meaning and source")
    for column in table.columns[1:]:
        column.justify = "left"
    for parameter in parameters:
        default = parameter["default"]
        text = default if isinstance(default, str) else json.dumps(default)
        given = "must be given" if default is None else text
        about, allowed = " ".join(parameter["about"].split()), parameter["allowed"]
        table.add_row(parameter["name"], Text(given), Text(allowed), Text(about))
    return table


def bench_table(measured: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return the benchmark's measurements, and what each of them ran."""
    columns = (
        "engine",
        "CPU s",
        "Mhops / CPU s",
        "ns / hop",
        "events / hop",
        "peak",
        "before",
        "live flow",
        "idle flow",
    )
    table = _table("scenario", *columns)
    for row in measured:
        has_packets = "packet_hops" in row
        per_flow = [row.get("bytes_per_live_flow"), row.get("bytes_per_idle_flow")]
        table.add_row(
            row["name"],
            row["engine"] or "-",
            f"{row['cpu_seconds']:.2f}",
            f"{row['packet_hops_per_cpu_second'] / 1e6:.2f}" if has_packets else "-",
            f"{row['ns_per_packet_hop']:.1f}" if has_packets else "-",
            f"{row['events_per_packet_hop']:.3f}" if has_packets else "-",
            size(row["peak_memory_bytes"]),
            size(row["memory_before_bytes"]),
            *("-" if amount is None else size(amount) for amount in per_flow),
        )
    return Group(table, *(Text(row["about"], style="dim") for row in measured))


def threads_table(measured: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return what several threads make of the benchmark, and what each scenario ran."""
    columns = (
        "engine",
        "threads",
        "wall s",
        "on one thread",
        "speed-up",
        "CPU s",
        "Mhops / s",
        "peak",
        "before",
    )
    table = _table("scenario", *columns)
    for row in measured:
        speed = row.get("packet_hops_per_second")
        table.add_row(
            row["name"],
            row["engine"] or "-",
            f"{row['threads']}",
            f"{row['wall_seconds']:.2f}",
            f"{row['wall_seconds_on_one_thread']:.2f}",
            f"{row['speed_up']:.2f}",
            f"{row['cpu_seconds']:.2f}",
            "-" if speed is None else f"{speed / 1e6:.2f}",
            size(row["peak_memory_bytes"]),
            size(row["memory_before_bytes"]),
        )
    return Group(table, *(Text(row["about"], style="dim") for row in measured))


def show(tables: Iterable[Rows]) -> None:
    """Print tables of texts."""
    for rows in tables:
        console.print(text_table(rows))


def text_table(rows: Rows) -> Table:
    """Return a table of texts; verdicts have their mark and colour."""
    table = _table(*rows.columns, title=rows.title)
    for row in rows.rows:
        table.add_row(*(MARKS.get(cell, Text(cell)) for cell in row))
    return table


def _table(*columns: str, title: str | None = None) -> Table:
    # Texts, for what stands in brackets in a user's name is no markup.
    heading = None if title is None else Text(title)
    table = Table(box=box.SIMPLE_HEAD, title=heading, title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if place == 0 else "right")
    return table


def duration(value: float) -> str:
    """Write seconds with three digits and a fitting unit."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= scale:
            return (
                f"{value / scale:.3g} {unit}" if value / scale < 1000 else f"{value / scale:.0f} s"
            )
    return f"{value / 1e-9:.3g} ns"


def size(value: float) -> str:
    """Write bytes with three digits and a fitting unit."""
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} B"


def _rate(bps: float) -> str:
    """Write bits a second with a fitting unit, as scenarios do."""
    for scale, unit in ((1e9, "Gbps"), (1e6, "Mbps"), (1e3, "Kbps")):
        if bps >= scale:
            return f"{bps / scale:g} {unit}"
    return f"{bps:g} bps"


def number(value: float) -> str:
    """Write a whole number in groups of three digits."""
    return f"{value:,}"
