"""Tables, sentences and pictures of FCT breakdowns, as `sojourn explain` prints them."""

import itertools
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.analysis import breakdown, jobs, metrics
from sojourn.analysis.breakdown import LABELS, NEAR_IDEAL, PARTS, TOTAL
from sojourn.analysis.metrics.tables import log_bin
from sojourn.base import files, units
from sojourn.base.units import format_size, format_time
from sojourn.explain.waterfall import REASONS, TITLE_CHARACTERS
from sojourn.runs.results import Result, Run
from sojourn.show import plot, style
from sojourn.show.intervals import MAX_UNFINISHED, flows_of_size, format_ratio
from sojourn.show.parts import CALLS, GROUP_COLUMNS, breakdown_tables, stack
from sojourn.show.table import Table

BINS_PER_DECADE = 3


LOCATIONS = {
    "host": "in the port of the source host",
    "there": "in switches of the forward path",
    "back": "on the reverse path",
}
"""Locations of waits in printed text, by the last word of breakdown columns."""


SHORT_LOCATIONS = {"host": "source host", "there": "forward path", "back": "reverse path"}
"""Locations of waits in printed tables, by the last word of breakdown columns."""


PLACES = {
    "queue_others": "queueing behind other flows",
    "queue_own": "queueing behind own packets",
    "queue_control": "queueing behind control packets",
    "queue_idle": "idle port",
    "paused": "PFC pause",
}
"""Places of waits in ports in printed tables, by the first words of breakdown columns."""


SLOWEST = 5
"""Number of flows of each scheme in the table of the slowest."""


NEAR = "near the ideal FCT"
"""Words on flows with a slowdown below `NEAR_IDEAL`, in place of a cause."""


def sentences(runs: Sequence[Run], labels: Sequence[str]) -> list[str]:
    """Return for each scheme, size and class the mean slowdown and its largest part above 1.

    A mean slowdown below `NEAR_IDEAL` has no largest part. Unfinished flows, which have no
    slowdown, are stated above a share of `MAX_UNFINISHED`.
    """
    table = breakdown.by_size(runs, excess=True, slowdowns=True)
    if table.is_empty():
        return []
    columns = [*labels, *(name for name in GROUP_COLUMNS if name in table.columns)]
    groups = {
        tuple(map(str, key)): dict(zip(group["metric"], group["value"], strict=True))
        for key, group in table.partition_by(columns, as_dict=True).items()
    }
    buckets = metrics.sizes_and_classes(run.result for run in runs)
    schemes: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        schemes.setdefault(tuple(str(run.labels[label]) for label in labels), []).append(run)
    lines = []
    for (scheme, same), bucket in itertools.product(schemes.items(), buckets):
        if bucket == metrics.ALL:
            continue
        name = f"{', '.join(scheme)}: " * bool(scheme) + flows_of(bucket)
        finished, total = _numbers(same, bucket)
        key = (*scheme, *(bucket.where[column] for column in columns[len(labels) :]))
        if key in groups:
            slowdown = mean_slowdown(groups[key][TOTAL], same, bucket)
            lines.append(f"{name} have {slowdown}{_main_cause(groups[key], same, bucket)}")
        elif total > finished == 0:
            lines.append(f"{name}: 0 of {total:,} finished")
    return lines


def mean_slowdown(value: float, runs: Iterable[Run], bucket: metrics.Bucket) -> str:
    """Return a mean slowdown in words, which state unfinished flows above `MAX_UNFINISHED`."""
    finished, total = _numbers(runs, bucket)
    only = f" (finished flows only: {finished:,} of {total:,})"
    only *= total - finished > MAX_UNFINISHED * total
    return f"a mean slowdown of {format_ratio(value)}{only}"


def _numbers(runs: Iterable[Run], bucket: metrics.Bucket) -> tuple[int, int]:
    """Return the numbers of finished flows and of all flows in a bucket."""
    flows = pl.concat(metrics.judged(run.result, bucket).select("outcome") for run in runs)
    return flows.filter(outcome="finished").height, flows.height


def slowdown_of(run: Run, bucket: metrics.Bucket) -> str:
    """Return the mean slowdown of a size or class of a run, and its largest part above 1."""
    table = breakdown.by_size([run], [bucket], excess=True, slowdowns=True)
    values = dict(zip(table["metric"], table["value"], strict=True))
    slowdown = mean_slowdown(values[TOTAL], [run], bucket)
    return f"{slowdown}{_main_cause(values, [run], bucket)}"


def flows_of(bucket: metrics.Bucket) -> str:
    """Return the flows of a size or a class in words."""
    return f"flows of class {bucket.name}" if bucket.of_class else flows_of_size(bucket.name)


def unfinished_lines(runs: Sequence[Run], labels: Sequence[str]) -> list[str]:
    """Return a line with the number of flows without a completion time; none if all finished."""
    numbers: dict[str, tuple[int, int]] = {}
    for run in runs:
        scheme = ", ".join(str(run.labels[label]) for label in labels)
        finished, all_flows = _numbers([run], metrics.ALL)
        count, total = numbers.get(scheme, (0, 0))
        numbers[scheme] = (count + all_flows - finished, total + all_flows)
    each = [
        f"{scheme + ' ' if scheme else ''}{count:,} of {total:,}"
        for scheme, (count, total) in numbers.items()
        if count
    ]
    return [f"without flows that did not finish: {', '.join(each)}"] if each else []


def _main_cause(values: Mapping[str, float], runs: Sequence[Run], bucket: metrics.Bucket) -> str:
    """Return the largest part of a mean slowdown above 1 as the end of a sentence."""
    slowdown = values[TOTAL]
    if slowdown < NEAR_IDEAL:
        return f", {NEAR}"
    largest = max(PARTS, key=lambda name: values[name])
    share = values[largest] / (slowdown - 1)
    cause = f"; {100 * share:.0f} % of the excess is {LABELS[largest]} ({PARTS[largest]})"
    return cause + _main_location(runs, largest, bucket)


def _main_location(runs: Sequence[Run], part: str, bucket: metrics.Bucket) -> str:
    """Return the location of most of a part, if the part is queueing, else an empty string."""
    shares: dict[str, float] = {}
    for column, share in breakdown.places(runs, part, bucket).items():
        location = _location(column)
        shares[location] = shares.get(location, 0.0) + share
    location = max(shares, key=lambda name: shares[name], default="")
    return (
        f", {100 * shares[location]:.0f} % of it {LOCATIONS[location]}"
        if location in LOCATIONS
        else ""
    )


def job_sentences(runs: Sequence[Run], labels: Sequence[str]) -> list[str]:
    """Return for each job of the first seed its duration, and what its critical path waited for."""
    lines = []
    for run in runs:
        scheme = ", ".join(str(run.labels[label]) for label in labels)
        if run.labels.get("seed") != runs[0].labels.get("seed"):
            continue
        flows = breakdown.divided(run.result, excess=True).select("flow", *PARTS)
        for job in jobs.jobs(run.result).to_dicts():
            if job["duration_s"] is None:
                continue
            path = jobs.critical_path(run.result, job["job"]).join(flows, on="flow")
            excess = path.select(*PARTS).sum().row(0, named=True)
            part = max(PARTS, key=excess.__getitem__)
            worst = path.sort(part, descending=True).row(0, named=True)
            name = f"{scheme}: {job['job']}" if scheme else job["job"]
            line = f"{name} takes {format_time(job['duration_s'])}, {job['ratio']:.2f} of its bound"
            if excess[part] > 0:
                length = units.count(path.height, "flow")
                line += (
                    f"; its critical path of {length} waited most for {LABELS[part]} "
                    f"({format_time(excess[part])}, {PARTS[part]}), flow {worst['flow']} of step "
                    f"{worst['step']:.0f} from host {worst['source']} to {worst['target']} for "
                    f"{format_time(worst[part])}{_place_of_wait(run.result, worst['flow'], part)}"
                )
            lines.append(line)
    return lines


def _place_of_wait(result: Result, flow: int, part: str) -> str:
    """Return the location of most of a part of a flow's FCT, if the part is queueing."""
    if breakdown.is_ideal(result):
        return ""
    row = result.account.filter(flow=flow).row(0, named=True)
    columns = [name for name in breakdown.columns_of(result.account) if row[name]]
    columns = [name for name in columns if breakdown.part_of(name) == part]
    largest = max(columns, key=lambda name: row[name], default="")
    location = _location(largest)
    return f", {LOCATIONS[location]}" if location in LOCATIONS else ""


def call_tables(table: pl.DataFrame, labels: Sequence[str], show: Any) -> list[Table]:
    """Return a table of `accounts.by_call` as one table for each kind of calls, by leg.

    `show` formats a row's value in seconds.
    """
    if table.is_empty():
        return []
    return breakdown_tables(table.rename({"kind": CALLS}), [*labels, "leg"], show)


def call_sentences(runs: Sequence[Run], labels: Sequence[str]) -> list[str]:
    """Return for each scheme and kind of calls the shares of the legs, and the main cause.

    That is the largest part of the time by which request and response exceed their ideal FCTs.
    """
    table = breakdown.by_call(runs, excess=True)
    if table.is_empty():
        return []
    lines = []
    for group in table.partition_by([*labels, "kind"], maintain_order=True):
        values = {(row["leg"], row["metric"]): row["value"] for row in group.to_dicts()}
        latency = values[breakdown.CALL, TOTAL]
        legs = {leg: values[leg, TOTAL] / latency for leg in breakdown.LEGS}
        leg_shares = ", ".join(f"{100 * share:.0f} % the {leg}" for leg, share in legs.items())
        scheme = ", ".join(str(group[label][0]) for label in labels)
        lines.append(
            f"{scheme + ': ' if scheme else ''}{group['kind'][0]} calls: {leg_shares}; "
            f"{_cause_of_calls(values)}"
        )
    return lines


def _cause_of_calls(values: Mapping[tuple[str, str], float]) -> str:
    """Return the largest part of the excess of requests and responses, by leg and metric."""
    legs = (breakdown.REQUEST, breakdown.RESPONSE)
    fcts, ideals = (sum(values[leg, name] for leg in legs) for name in (TOTAL, breakdown.ALONE))
    if fcts < NEAR_IDEAL * ideals:
        return f"request and response are {NEAR}"
    leg, part = max(((leg, part) for leg in legs for part in PARTS), key=values.__getitem__)
    share = values[leg, part] / (fcts - ideals)
    cause = f"{LABELS[part]} of the {leg} ({PARTS[part]})"
    return f"{100 * share:.0f} % of the excess over the ideal FCTs is {cause}"


def slowest(runs: Sequence[Run], labels: Sequence[str]) -> list[Table]:
    """Return the flows with the largest FCT less ideal FCT, and the largest part of the excess.

    The flows are those of the first seed, `SLOWEST` of them under each scheme. `--flow` shows
    the causal chain of one.
    """
    seed = runs[0].labels.get("seed")
    excess = pl.col("fct_s") - pl.col("ideal_fct_s")
    rows: list[list[str]] = []
    for run in runs:
        if run.labels.get("seed") != seed:
            continue
        flows = breakdown.divided(run.result, excess=True)
        flows = flows.sort(excess, descending=True, maintain_order=True)
        for flow in flows.head(SLOWEST).to_dicts():
            part = max(PARTS, key=flow.__getitem__)
            total = flow["fct_s"] - flow["ideal_fct_s"]
            is_near = flow["slowdown"] < NEAR_IDEAL
            cause = NEAR if is_near else f"{LABELS[part]} {100 * flow[part] / total:.0f} %"
            rows.append(
                [
                    *(str(run.labels[label]) for label in labels),
                    str(flow["flow"]),
                    flow["class"],
                    format_size(flow["size_bytes"]),
                    format_time(flow["fct_s"]),
                    format_ratio(flow["slowdown"]),
                    cause,
                ]
            )
    columns = [*labels, "flow", "class", "size", "FCT", "slowdown", "main cause"]
    title = "flows with the largest excess over the ideal FCT"
    title += "" if len({run.labels.get("seed") for run in runs}) == 1 else f" (seed {seed})"
    return [Table(title, columns, rows, labels=1 + len(labels), optional=["class"])]


def flow_table(result: Result, number: int) -> Table:
    """Return the FCT breakdown of one flow, by reason and place."""
    table = result.account.filter(flow=number)
    row = table.row(0, named=True)
    rows = []
    for column in breakdown.columns_of(table):
        if row[column]:
            reason, place = breakdown.split(column)
            time_s, share = row[column] / 1e12, row[column] / row["fct_ps"]
            rows.append([REASONS[reason], _place(place), f"{time_s:.9f} s", f"{100 * share:.1f} %"])
    title = f"flow {number}: FCT {row['fct_ps'] / 1e12:.12f} s, {row['rounds']} window-limited RTTs"
    return Table(title, ["reason", "place", "time", "share"], rows)


def _location(column: str) -> str:
    """Return the last word of a breakdown column, such as `there`."""
    return column.removesuffix("_ps").rpartition("_")[2]


def _place(name: str) -> str:
    """Return the printed name of a place such as `queue_others_there`."""
    kind, _, location = name.rpartition("_")
    return f"{PLACES[kind]}, {SHORT_LOCATIONS[location]}" if kind in PLACES else name


def intervals_note(table: pl.DataFrame, differences: pl.DataFrame) -> str:
    """Return the definition of the intervals of means and of their differences."""
    if table["seeds"].max() == 1:
        has_batches = not differences.is_empty() and differences["low"].is_finite().any()
        batches = "; differences ± 95 % confidence by ten batches of flows" if has_batches else ""
        return f"times: means of one run each, without an interval{batches}"
    if table["low"].is_finite().any():
        return "times: means over seeds ± 95 % confidence"
    least = metrics.LEAST_FOR_MEAN
    return f"times: means over seeds; too few seeds for an interval (least: {least})"


def write(
    runs: Iterable[Run],
    table: pl.DataFrame,
    labels: Sequence[str],
    out: Path,
    formats: Sequence[str] = style.DEFAULT_FORMATS,
) -> list[str]:
    """Write a table of `accounts.by_size` and its picture; return the files' names."""
    files.write_text(out / "account.csv", table.write_csv())
    pictures = draw(runs, labels, out / "account", formats)
    return ["account.csv", *(file.name for file in pictures)]


def write_differences(table: pl.DataFrame, out: Path) -> list[str]:
    """Write a table of `accounts.differences` unless it is empty; return the files' names."""
    if table.is_empty():
        return []
    files.write_text(out / "differences.csv", table.write_csv())
    return ["differences.csv"]


def draw(
    runs: Iterable[Run],
    labels: Sequence[str],
    stem: Path,
    formats: Sequence[str] = style.DEFAULT_FORMATS,
) -> list[Path]:
    """Draw the parts of mean slowdowns by size, one panel for each scheme with finished flows.

    Returns the files.
    """
    schemes: dict[str, list[pl.DataFrame]] = {}
    for run in runs:
        name = ", ".join(str(run.labels[label]) for label in labels)
        flows = breakdown.divided(run.result)
        if not flows.is_empty():
            schemes.setdefault(name, []).append(flows)
    with plot.panels(len(schemes), (5.0, 4.8), 1.5, "explain") as (picture, panels):
        for panel, (name, same) in zip(panels, schemes.items(), strict=True):
            _stack(panel, pl.concat(same))
            panel.set_title(textwrap.fill(name, TITLE_CHARACTERS), fontsize=10)
        highest = max(panel.get_ylim()[1] for panel in panels)
        for panel in panels:
            # Above the highest bar is space, so that it does not look cut off.
            panel.set_ylim(0, 1.04 * highest)
        for panel in panels[:: plot.MOST_IN_A_ROW]:
            panel.set_ylabel("mean slowdown (1: ideal FCT)")
        entries = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
        all_flows = pl.concat(flows for same in schemes.values() for flows in same)
        drawn = [LABELS[part] for part in reversed(PARTS) if all_flows[part].abs().max()]
        handles = {label: entries[label] for label in drawn}
        picture.legend(
            handles.values(), handles, loc="outside right center", fontsize=9, frameon=False
        )
        return plot.save(picture, stem, formats)


def _stack(axes: Any, flows: pl.DataFrame) -> None:
    """Draw stacked bars by size."""
    shares = [(pl.col(name) / pl.col("ideal_fct_s")).mean().alias(name) for name in PARTS]
    bins = flows.group_by(bin=log_bin("size_bytes", 10, BINS_PER_DECADE)).agg(*shares).sort("bin")
    edges = 10 ** (bins["bin"].to_numpy() / BINS_PER_DECADE)
    widths = edges * (10 ** (1 / BINS_PER_DECADE) - 1)
    stack(axes, edges, bins, widths, align="edge")
    axes.axhline(1, color=style.BLACK, linestyle="--", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("flow size (bytes)")
