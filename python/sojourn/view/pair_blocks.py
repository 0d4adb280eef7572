"""Flows of two runs as blocks of a page: the same flows row by row, and what changed."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from sojourn.analysis import breakdown, metrics
from sojourn.analysis.breakdown import PARTS, TOTAL
from sojourn.analysis.paired import IDENTITY
from sojourn.runs.results import Run
from sojourn.view import flow_blocks
from sojourn.view.flow_blocks import SCHEME

AS_BEFORE = 0.05
"""Change of an FCT below which it has no cause."""


def same_flows(runs: Sequence[Run]) -> bool:
    """Return true if both runs have the same flows, and breakdowns that can be compared."""
    first, second = (metrics.judged(run.result).sort("flow") for run in runs)
    names = ("flow", *IDENTITY)
    return (
        first.height > 0
        and first.select(names).equals(second.select(names))
        and all(breakdown.are_kept(run.result) for run in runs)
        and len({breakdown.is_ideal(run.result) for run in runs}) == 1
    )


def finished_in_both(rows: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Return the rows of `flow_blocks.rows` of flows that finished in both runs.

    The second table has the column `change`: the index in `PARTS` of the part that changed most in
    the direction of the FCT's change, or the index after them if the FCT is as before.
    """
    finished = [table.filter(outcome="finished") for table in rows]
    one, two = (
        table.join(other, on="flow", how="semi", maintain_order="left")
        for table, other in (finished, finished[::-1])
    )
    two = one.select("flow").join(two, on="flow", how="left", maintain_order="left")
    ratio = two["fct_s"] / one["fct_s"]
    changes = [two[part] * two["fct_s"] - one[part] * one["fct_s"] for part in PARTS]
    sign = (ratio - 1).sign()
    largest = pl.DataFrame([change * sign for change in changes]).select(
        pl.concat_list(pl.all()).list.arg_max().cast(pl.Int64)
    )
    is_as_before = (ratio.log().abs() < AS_BEFORE).alias("is_as_before")
    change = pl.select(
        pl.when(is_as_before).then(len(PARTS)).otherwise(largest.to_series()).alias("change")
    )
    return [one, two.with_columns(change.to_series())]


def groups(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return by size and class the ratio of mean FCTs, and each part of the difference.

    `parts` are in mean FCTs of the first run, and add up to `ratio` less 1.
    """
    table = breakdown.differences(runs, SCHEME)
    if table.is_empty():
        return []
    buckets = {bucket.name: bucket for bucket in metrics.sizes_and_classes(r.result for r in runs)}
    output = []
    keys = [name for name in ("size", "class") if name in table.columns]
    for part in table.partition_by(keys, maintain_order=True):
        values = dict(zip(part["metric"], part["value"], strict=True))
        names = [part[key][0] for key in keys]
        name = next((one for one in names if one != metrics.ALL.name), metrics.ALL.name)
        inside = metrics.within(buckets[name])
        pair = [breakdown.divided(run.result).filter(*inside) for run in runs]
        base = pair[0].join(pair[1], on="flow", how="semi")
        mean: Any = base["fct_s"].mean()
        output.append(
            {
                "name": name,
                "isAll": name == metrics.ALL.name,
                "flows": base.height,
                "ratio": 1 + values[TOTAL] / mean,
                "parts": [values[part] / mean for part in PARTS],
            }
        )
    return output


def medians(one: pl.DataFrame, two: pl.DataFrame) -> dict[str, list[float]]:
    """Return the median ratio of FCTs along size, as `flow_blocks.medians`."""
    return flow_blocks.medians(one, two["fct_s"] / one["fct_s"])
