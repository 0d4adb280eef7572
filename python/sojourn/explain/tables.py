"""What `sojourn explain` shows: where the time of flows went, in tables, pictures, sentences."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sojourn.analysis import breakdown, metrics
from sojourn.analysis.breakdown import ALONE, PARTS, TOTAL
from sojourn.base import files
from sojourn.runs.results import Result, Run
from sojourn.show import plot, style
from sojourn.show.parts import CALLS, GROUP_COLUMNS, breakdown_tables, stack
from sojourn.show.table import Table

BINS_PER_DECADE = 3


WHERE = {
    "host": "in the source host's own port",
    "there": "in switches on the way there",
    "back": "on the way back",
}


def sentences(runs: Sequence[Run], labels: Sequence[str]) -> list[str]:
    """Return for each scheme, size and class what costs most beyond what a flow takes alone."""
    table = breakdown.by_size(runs, excess=True)
    of = [name for name in GROUP_COLUMNS if name in table.columns]
    buckets = metrics.sizes_and_classes(run.result for run in runs)
    told = []
    for group in table.partition_by([*labels, *of], maintain_order=True):
        values = dict(zip(group["metric"], group["value"], strict=True))
        bucket = next(b for b in buckets if all(b.where[name] == group[name][0] for name in of))
        if bucket is metrics.ALL:
            continue
        given = {label: group[label][0] for label in labels}
        mine = [run for run in runs if all(str(run.labels[k]) == str(v) for k, v in given.items())]
        largest = max(PARTS, key=lambda name: values[name])
        scheme = ", ".join(map(str, given.values()))
        of_class = "of class " if bucket.of_class else ""
        said = f"{scheme + ': ' if scheme else ''}flows {of_class}{bucket.name} take "
        said += f"{values[TOTAL] / values[ALONE]:#.3g} times what they would alone"
        if values[largest] > 0:
            share = values[largest] / (values[TOTAL] - values[ALONE])
            said += f"; {share:.0%} of the excess is {largest} ({PARTS[largest]})"
            said += _mostly(mine, largest, bucket)
        told.append(said)
    return told


def _mostly(runs: Sequence[Run], part: str, bucket: metrics.Bucket) -> str:
    """Say where most of a part was, if it is one of queues."""
    found: dict[str, float] = {}
    for column, share in breakdown.places(runs, part, bucket).items():
        leg = column.removesuffix("_ps").rpartition("_")[2]
        found[leg] = found.get(leg, 0.0) + share
    leg = max(found, key=lambda one: found[one], default="")
    return f", {found[leg]:.0%} of it {WHERE[leg]}" if leg in WHERE else ""


def calls_shown(table: pl.DataFrame, labels: Sequence[str], show: Any) -> list[Table]:
    """Return what `accounts.by_call` says, a table a kind of calls, a row a leg of them."""
    if table.is_empty():
        return []
    return breakdown_tables(table.rename({"kind": CALLS}), [*labels, "leg"], show)


def calls_told(table: pl.DataFrame, labels: Sequence[str]) -> list[str]:
    """Return for each scheme and kind of calls how they divide, and what costs most on the way."""
    if table.is_empty():
        return []
    told = []
    for group in table.partition_by([*labels, "kind"], maintain_order=True):
        values = {(row["leg"], row["metric"]): row["value"] for row in group.to_dicts()}
        whole = values[breakdown.CALL, TOTAL]
        legs = {leg: values[leg, TOTAL] / whole for leg in breakdown.LEGS}
        divided = ", ".join(f"{share:.0%} the {leg}" for leg, share in legs.items())
        costs = {key: value for key, value in values.items() if key[1] in PARTS}
        costs = {key: value for key, value in costs.items() if key[0] in legs}
        leg, part = max(costs, key=lambda key: costs[key])
        scheme = ", ".join(str(group[label][0]) for label in labels)
        told.append(
            f"{scheme + ': ' if scheme else ''}{group['kind'][0]} calls: {divided}; "
            f"{costs[leg, part] / whole:.0%} of their time is {part} of the {leg} ({PARTS[part]})"
        )
    return told


def slowest(result: Result, most: int = 5) -> Table:
    """Return the flows that took longest beyond what they would alone, and their largest parts."""
    excess = pl.col("fct_s") - pl.col("ideal_fct_s")
    flows = breakdown.divided(result).sort(excess, descending=True, maintain_order=True).head(most)
    rows = []
    for flow in flows.to_dicts():
        parts = sorted(PARTS, key=lambda name: -flow[name])[:3]
        told = ", ".join(f"{name} {flow[name] / flow['fct_s']:.0%}" for name in parts)
        times = f"{flow['fct_s']:.4g} s", f"{flow['slowdown']:.3g}"
        size = f"{flow['size_bytes']:,} B"
        rows.append([str(flow["flow"]), size, *times, str(flow["rounds"]), told])
    columns = ["flow", "size", "FCT", "slowdown", "rounds", "mostly"]
    return Table("flows with the largest excess", columns, rows)


def of_flow(result: Result, number: int) -> Table:
    """Return the account of one flow, by reason and place."""
    account = result.account.filter(flow=number)
    row = account.row(0, named=True)
    rows = []
    for column in breakdown.columns_of(account):
        if row[column]:
            reason, place = breakdown.split(column)
            spent, share = row[column] / 1e12, row[column] / row["fct_ps"]
            rows.append([reason, place, f"{spent:.9f} s", f"{share:.1%}"])
    told = f"{row['fct_ps'] / 1e12:.12f} s, {row['rounds']} round trips of the window"
    return Table(f"flow {number}: {told}", ["reason", "place", "time", "share"], rows)


def write(runs: Iterable[Run], table: pl.DataFrame, labels: Sequence[str], out: Path) -> list[str]:
    """Write what `accounts.by_size` says, and its picture; return the files' names."""
    files.write_text(out / "account.csv", table.write_csv())
    draw(runs, labels, out / "account")
    return ["account.csv", "account.svg", "account.png"]


def write_differences(table: pl.DataFrame, out: Path) -> list[str]:
    """Write what `accounts.differences` says, if anything; return the files' names."""
    if table.is_empty():
        return []
    files.write_text(out / "differences.csv", table.write_csv())
    return ["differences.csv"]


def draw(runs: Iterable[Run], labels: Sequence[str], stem: Path) -> None:
    """Draw what mean slowdowns are made of, by size: a panel a scheme."""
    panels: dict[str, list[pl.DataFrame]] = {}
    for run in runs:
        name = ", ".join(str(run.labels[label]) for label in labels)
        panels.setdefault(name, []).append(breakdown.divided(run.result))
    size = (1.5 + 5.0 * len(panels), 4.8)
    with plot.canvas(1, len(panels), size, salt="explain") as (picture, axes):
        places = np.atleast_1d(axes)
        for place, (name, flows) in zip(places, panels.items(), strict=True):
            _stack(place, pl.concat(flows))
            place.set_title(name, fontsize=10)
        highest = max(place.get_ylim()[1] for place in places)
        for place in places:
            place.set_ylim(0, highest)
        places[0].set_ylabel("mean slowdown (1 = alone in the network)")
        known = dict(zip(*reversed(places[0].get_legend_handles_labels()), strict=True))
        there = pl.concat(part for flows in panels.values() for part in flows)
        handles = {name: known[name] for name in reversed(PARTS) if there[name].abs().max()}
        picture.legend(
            handles.values(), handles, loc="outside right center", fontsize=9, frameon=False
        )
        plot.save(picture, stem)


def _stack(axes: Any, flows: pl.DataFrame) -> None:
    """Draw stacked bars over size."""
    octave = (pl.col("size_bytes").log10() * BINS_PER_DECADE).floor()
    shares = [(pl.col(name) / pl.col("ideal_fct_s")).mean().alias(name) for name in PARTS]
    bins = flows.group_by(bin=octave).agg(*shares).sort("bin")
    edges = 10 ** (bins["bin"].to_numpy() / BINS_PER_DECADE)
    widths = edges * (10 ** (1 / BINS_PER_DECADE) - 1)
    stack(axes, edges, bins, widths, align="edge")
    axes.axhline(1, color=style.BLACK, linestyle="--", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("flow size (bytes)")
