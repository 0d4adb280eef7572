"""Flows as blocks of a page: a row for each flow, and statistics by size and class."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from sojourn.analysis import breakdown, metrics
from sojourn.analysis.breakdown import LABELS, NEAR_IDEAL, PARTS
from sojourn.analysis.metrics.tables import log_bin
from sojourn.runs.results import Result
from sojourn.show.parts import COLOURS
from sojourn.web import columns

SCHEME = "scheme"
"""Label of the runs of a page."""

SHARE_STEPS = 1000
"""Steps in which the parts of a completion time are stored."""

SLOWEST_SHARE = 0.1
"""Share of the rows of a sample for the slowest flows of each size bin; the others are random."""

BINS_PER_DECADE = 2
"""Size bins of a sample per factor of ten."""

GRID = {"across": 512, "down": 384}
"""Cells of the density of all flows, over the logarithms of size and slowdown."""

RIM, LEAST_SLOWDOWN = 1.25, 1.5
"""Slowdown at which unfinished flows stand, over the largest one, which counts as this at least."""

MEDIAN_BINS_PER_DECADE, LEAST_FOR_MEDIAN = 6, 10
"""Size bins of the line of medians, and the fewest flows in one."""

STATISTICS = ("p50", "mean", "p99")


def rows(result: Result) -> pl.DataFrame:
    """Return the flows of finite size after the warm-up, in order of start.

    The columns are `flow`, `source`, `target`, `size_bytes`, `start_ns`, `fct_s` (of other than
    finished flows, the time of `lasting`), `ideal_fct_s`, `slowdown` (or a lower bound), `outcome`,
    `cause` and the `PARTS`. A part is the number of `SHARE_STEPS` of the FCT. `cause` is the index
    in `PARTS` of the largest part of the excess, or one of the three indices after them: near the
    ideal FCT, without a breakdown, or terminated.
    """
    flows = metrics.with_bounds(lasting(metrics.judged(result), result), result, "fct_s")
    unknown = pl.lit(len(PARTS) + 1)
    if breakdown.are_kept(result):
        excess = breakdown.divided(result, excess=True)
        cause = pl.concat_list(*PARTS).list.arg_max().cast(pl.Int64)
        near = pl.col("slowdown") < NEAR_IDEAL
        cause = pl.when(near).then(len(PARTS)).otherwise(cause).alias("cause")
        shares = [(pl.col(part) / pl.col("fct_s") * SHARE_STEPS).round() for part in PARTS]
        parts = breakdown.divided(result).select("flow", *shares)
        parts = parts.join(excess.select("flow", cause), on="flow")
        flows = flows.join(parts, on="flow", how="left", maintain_order="left")
    else:
        flows = flows.with_columns(unknown.alias("cause"), *(pl.lit(0.0).alias(p) for p in PARTS))
    return flows.sort("start_s", "flow").select(
        *("flow", "source", "target", "size_bytes"),
        (pl.col("start_s") * 1e9).round().cast(pl.Int64).alias("start_ns"),
        pl.col("lasts_s").alias("fct_s"),
        "ideal_fct_s",
        (pl.col("value") / pl.col("ideal_fct_s")).alias("slowdown"),
        "outcome",
        pl.when(outcome="terminated")
        .then(len(PARTS) + 2)
        .otherwise(pl.col("cause").fill_null(unknown))
        .alias("cause"),
        pl.col(*PARTS).fill_null(0).cast(pl.Int64),
    )


def lasting(flows: pl.DataFrame, result: Result) -> pl.DataFrame:
    """Add the column `lasts_s`: the FCT of a finished flow, or the time until the end of the run.

    A terminated flow has the time until its deadline, since records lack that of its termination.
    """
    until_end = pl.lit(result.summary["simulated_s"]) - pl.col("start_s")
    is_terminated = pl.col("outcome") == "terminated"
    open_s = pl.when(is_terminated).then(pl.min_horizontal("deadline_s", until_end))
    lasts = pl.coalesce("fct_s", open_s.otherwise(until_end))
    # A flow that starts at the end of the run lasts, too; times have a logarithmic scale.
    return flows.with_columns(lasts_s=lasts.clip(1e-12))


def sample(flows: pl.DataFrame, most: int | None) -> tuple[pl.DataFrame, float]:
    """Return at most `most` rows with the column `is_slow`, and a weight of the other rows.

    A tenth of the rows are the slowest of each size bin, which count once; the others are random,
    and each counts as many flows as its weight.
    """
    if most is None or flows.height <= most:
        return flows.with_columns(is_slow=pl.lit(value=False)), 1.0
    size_bin = log_bin("size_bytes", 10, BINS_PER_DECADE)
    rank = pl.col("slowdown").rank("ordinal", descending=True).over(size_bin)
    # The slowest of each bin come before the second slowest; ties in the order of flows.
    slow = (rank.rank("ordinal") <= int(SLOWEST_SHARE * most)).fill_null(value=False)
    flows = flows.with_columns(is_slow=slow)
    others = np.flatnonzero(~flows["is_slow"].to_numpy())
    count = most - int(flows["is_slow"].sum())
    chosen = np.zeros(flows.height, dtype=bool)
    # The sample of a run is always the same.
    chosen[np.random.default_rng(0).choice(others, count, replace=False)] = True
    return flows.filter(pl.col("is_slow") | pl.Series(chosen)), len(others) / count


def rim(flows: pl.DataFrame) -> float:
    """Return the slowdown at which unfinished flows stand."""
    return RIM * max(_value(flows["slowdown"].max()) or 0, LEAST_SLOWDOWN)


def density(flows: pl.DataFrame) -> tuple[dict[str, Any], pl.DataFrame]:
    """Return the axes of a grid of all flows, and its cells that have flows.

    `cell` is the number of a cell, row by row from the largest slowdown; `count` the number of its
    flows; and `cause` that of most of them. The axes are decimal logarithms.
    """
    slowdown = pl.when(outcome="finished").then("slowdown").otherwise(rim(flows))
    logs = flows.select("cause", x=pl.col("size_bytes").log10(), y=slowdown.log10())
    axes = {}
    for axis in ("x", "y"):
        least, most = logs.select(least=pl.min(axis), most=pl.max(axis)).row(0)
        # Equal flows are in the first cell.
        axes[axis] = [least, most if most > least else least + 1]

    def place(axis: str, cells: int) -> pl.Expr:
        least, most = axes[axis]
        share: pl.Expr = (pl.col(axis) - least) / (most - least)
        return (share * cells).floor().clip(0, cells - 1)

    across, down = GRID.values()
    cell = ((down - 1 - place("y", down)) * across + place("x", across)).cast(pl.Int64)
    counts = logs.group_by(cell=cell, cause="cause").len("count").sort("cell", "count", "cause")
    cells = counts.group_by("cell", maintain_order=True).agg(
        pl.col("count").sum().cast(pl.Int64), pl.col("cause").last().cast(pl.Int64)
    )
    return {**GRID, **axes}, cells


def block(flows: pl.DataFrame, tables: Sequence[pl.DataFrame]) -> str:
    """Return the flows as a block of the page; FCTs have one scale for all `tables` of the page."""
    present = [part for part in PARTS if flows[part].sum()]
    table = flows.drop("slowdown", *(part for part in PARTS if part not in present))
    return columns.pack(table, ["fct_s", "ideal_fct_s"], tables)


def parts() -> list[dict[str, str]]:
    """Return name, label, meaning and colour of each of `PARTS`, in their order."""
    return [
        {"name": part, "label": LABELS[part], "meaning": meaning, "colour": COLOURS[part]}
        for part, meaning in PARTS.items()
    ]


def groups(result: Result) -> list[dict[str, Any]]:
    """Return counts, statistics of slowdowns and the parts of their means by size and class.

    `parts` are those of finished flows, in the order of `PARTS`, and add up to `finished`.
    """
    buckets = metrics.sizes_and_classes([result])
    table = metrics.by_size(result, "slowdown", buckets, STATISTICS)
    divided = breakdown.divided(result) if breakdown.are_kept(result) else None
    output = []
    for bucket, row in zip(buckets, table.to_dicts(), strict=True):
        if row["flows"] == 0:
            continue
        group = {"name": bucket.name, "isAll": bucket == metrics.ALL, "flows": row["flows"]}
        group["values"] = {name: _value(row[name]) for name in STATISTICS}
        group["atLeast"] = [name for name in row["at_least"].split(",") if name]
        members = metrics.judged(result, bucket).drop_nulls("slowdown")
        group["finished"] = _value(members["slowdown"].mean())
        if divided is not None and not members.is_empty():
            means = breakdown.mean_slowdown(divided.filter(*metrics.within(bucket)))
            group["parts"] = [means[part] for part in PARTS]
        output.append(group)
    return output


def medians(flows: pl.DataFrame, values: pl.Series) -> dict[str, list[float]]:
    """Return the median of finished flows' values along size.

    `size` and `value` are those of the bins with enough flows.
    """
    finished = flows.with_columns(value=values).filter(outcome="finished")
    size_bin = log_bin("size_bytes", 10, MEDIAN_BINS_PER_DECADE)
    line = (
        finished.group_by(bin=size_bin)
        .agg(
            pl.len(),
            size=pl.col("size_bytes").log10().mean(),
            value=pl.col("value").median(),
        )
        .filter(pl.col("len") >= LEAST_FOR_MEDIAN)
        .sort("bin")
    )
    return {"size": (10 ** line["size"]).to_list(), "value": line["value"].to_list()}


def _value(value: Any) -> float | None:
    """Return a number for JSON, which lacks NaN."""
    return None if value is None or math.isnan(value) else float(value)
