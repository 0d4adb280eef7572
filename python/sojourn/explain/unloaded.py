"""Unloaded FCTs: flows of each size alone in the network, with the same transport.

The ideal FCT, which slowdowns divide by, is at line rate and depends on path and size only. An
unloaded FCT adds what a transport takes without any other flow: its handshake, slow start and
pacing. So a slowdown is the ratio of the unloaded FCT to the ideal one, the cost of the transport,
times the ratio of the FCT to the unloaded one, the cost of load.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis import metrics
from sojourn.base import files
from sojourn.base.units import format_count, format_size, format_time
from sojourn.runs.results import Result, Run
from sojourn.runs.runner import run_many
from sojourn.scale.fold import fold
from sojourn.scenario.fidelity import FIELD, SAMPLE, read
from sojourn.show.table import Table

REPRESENTATIVES = 5
"""Number of flows of each size and class that run alone: at the middles of fifths of the sizes."""

REMOVED = ("account", "account_flows", "record", "failures", "samples", "warm_up", FIELD)
"""Fields of a scenario that do not concern a flow alone in an idle network."""

OF_CLASSES = ("transports", "traffic_classes")
"""Fields with an entry for each class of flows."""


def unloaded(
    runs: Iterable[Run],
    schemes: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    **options: Any,
) -> pl.DataFrame:
    """Return slowdowns and unloaded FCTs by size and class for each scheme.

    `schemes` are labels and scenarios; `runs` have the same labels, and seeds, which are pooled. A
    row has the labels, `size`, `class`, `flows` (number of finished flows), `middle_bytes` (median
    size), `ideal_s` and `unloaded_s` (of that size), the mean `slowdown` of all flows, the mean
    `unloaded_over_ideal` of the flows that ran alone, and the ratio of both, `fct_over_unloaded`.
    Flows of samples run alone in a folded network.
    The options are those of `run_many`. Raises `ScenarioError` if no flow has finished.
    """
    runs = list(runs)
    buckets = metrics.sizes_and_classes(run.result for run in runs)
    rows: list[dict[str, Any]] = []
    scenarios: list[dict[str, Any]] = []
    for labels, scenario in schemes:
        total = 0
        results = [run.result for run in runs if _has_labels(run, labels)]
        network = _of_sample(scenario, results[0])
        for bucket in buckets:
            parts = [metrics.timed(result, bucket) for result in results]
            flows = pl.concat(parts).filter(outcome="finished").sort("size_bytes", "flow")
            total = flows.height if bucket == metrics.ALL else total
            # A size or class of all flows repeats the first row.
            if flows.is_empty() or (bucket != metrics.ALL and flows.height == total):
                continue
            count = flows.height
            mean = flows["slowdown"].mean()
            rows.append({**labels, **bucket.where, "flows": count, "slowdown": mean})
            for rank in _ranks(count):
                scenarios.append(_alone(network, flows.row(rank, named=True)))
    if not rows:
        raise ScenarioError("no flow has finished, so that no size can be simulated alone")
    alone = iter(run_many(scenarios, **options))
    columns = [_of_alone([next(alone) for _ in _ranks(row["flows"])]) for row in rows]
    table = pl.DataFrame(
        [{**row, **more} for row, more in zip(rows, columns, strict=True)], infer_schema_length=None
    )
    ratio = pl.col("slowdown") / pl.col("unloaded_over_ideal")
    return table.with_columns(fct_over_unloaded=ratio)


def _has_labels(run: Run, labels: Mapping[str, Any]) -> bool:
    """Return true if a run is one of the scheme with these labels, whatever their names."""
    own = (value for name, value in run.labels.items() if name != "seed")
    return list(map(str, own)) == list(map(str, labels.values()))


def _ranks(count: int) -> list[int]:
    """Return the ranks, among `count` flows by size, of those that run alone."""
    number = min(count, REPRESENTATIVES)
    return [(2 * part + 1) * count // (2 * number) for part in range(number)]


def _of_sample(scenario: Mapping[str, Any], result: Result) -> Mapping[str, Any]:
    """Return the scenario of a folded network, whose hosts flows of samples name."""
    chosen = result.summary.get("fidelity", {})
    if chosen.get("kind") != SAMPLE:
        return scenario
    return fold(scenario, read(scenario[FIELD]).hosts, chosen["seeds"][0]).scenario


def _alone(scenario: Mapping[str, Any], flow: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scenario with one flow."""
    kept = {name: value for name, value in scenario.items() if name not in REMOVED}
    for name in OF_CLASSES:
        if name in kept:
            kept[name] = {key: value for key, value in kept[name].items() if key == flow["class"]}
    only = {name: flow[name] for name in ("source", "target", "class")}
    only["size"] = f"{flow['size_bytes']} B"
    if flow["deadline_s"] is not None:
        only["deadline"] = f"{flow['deadline_s'] * 1e12:.0f} ps"
    return {**kept, "workload": {"kind": "flows", "flows": [only]}}


def _of_alone(results: Sequence[Result]) -> dict[str, float]:
    """Return the columns that follow from flows alone; NaN if one of them does not finish."""
    flows = pl.concat(
        result.flows.select("size_bytes", "fct_s", "ideal_fct_s") for result in results
    )
    middle = flows.row(len(results) // 2, named=True)
    times = flows["fct_s"].fill_null(math.nan).to_numpy()
    return {
        "middle_bytes": middle["size_bytes"],
        "ideal_s": middle["ideal_fct_s"],
        "unloaded_s": float(times[len(results) // 2]),
        "unloaded_over_ideal": float((times / flows["ideal_fct_s"].to_numpy()).mean()),
    }


COLUMNS = ("flows", "median size", "ideal FCT", "unloaded FCT")
RATIOS = {
    "slowdown": "slowdown",
    "unloaded / ideal": "unloaded_over_ideal",
    "FCT / unloaded": "fct_over_unloaded",
}
"""Printed columns; the first of `RATIOS` is the product of the others."""


def tables(table: pl.DataFrame, labels: Sequence[str]) -> list[Table]:
    """Return the printed table."""
    rows = [
        [
            *(str(row[name]) for name in (*labels, "size", "class")),
            format_count(row["flows"]),
            format_size(row["middle_bytes"]),
            *map(_time, (row["ideal_s"], row["unloaded_s"])),
            *(f"{row[name]:.2f}" if row[name] == row[name] else "-" for name in RATIOS.values()),
        ]
        for row in table.to_dicts()
    ]
    title = "flows under load and unloaded (alone, with the same transport)"
    return [Table(title, [*labels, "size", "class", *COLUMNS, *RATIOS], rows)]


def _time(seconds: float) -> str:
    return "-" if math.isnan(seconds) else format_time(seconds)


def write(table: pl.DataFrame, out: Path) -> list[str]:
    """Write the table; return the file's name."""
    files.write_text(out / "unloaded.csv", table.write_csv())
    return ["unloaded.csv"]
