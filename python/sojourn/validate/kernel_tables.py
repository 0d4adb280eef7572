"""Output of `sojourn real`: completion times of Sojourn and of the kernel."""

import json
import math
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.analysis import metrics
from sojourn.base import files, units
from sojourn.runs.results import Result
from sojourn.show import result as screen
from sojourn.show.table import Table
from sojourn.validate.kernel import Attempt, Measured

BUCKETS = (*metrics.size_buckets(10e3, 100e3, 1e6), metrics.ALL)
STATISTICS = ("mean", "p95")

FILE_KEYS = {"retransmissions": "sent again", "timeouts": "time-outs"}
"""Keys of counts in `real.json` that differ from the names in tables."""


def size_table(measured: Measured) -> pl.DataFrame:
    """Return completion times by size, of Sojourn and of the kernel (`_kernel`), with ratios."""
    simulated, kernel = (
        metrics.by_size(result, "fct_s", BUCKETS, STATISTICS).drop("terminated")
        for result in (measured.simulated, measured.kernel)
    )
    table = simulated.join(kernel.drop("flows"), on="size", suffix="_kernel", maintain_order="left")
    return table.filter(pl.col("flows") > 0).with_columns(
        (pl.col(name) / pl.col(f"{name}_kernel")).alias(f"{name}_ratio") for name in STATISTICS
    )


def tables(measured: Measured) -> list[Table]:
    """Return the printed tables: completion times by size, and counts of losses."""
    sources = ("Sojourn", "kernel", "ratio")
    columns = [f"{name}, {source}" for name in STATISTICS for source in sources]
    rows = [
        [
            row["size"],
            f"{row['flows']}",
            *(cell for name in STATISTICS for cell in _cells(row, name)),
        ]
        for row in size_table(measured).to_dicts()
    ]
    by_size = Table("flow completion time", ["size", "flows", *columns], rows)
    count_rows = [[name, *map(_number, pair)] for name, pair in counts(measured).items()]
    return [by_size, Table("counts", ["", "Sojourn", "kernel"], count_rows)]


def _cells(row: Mapping[str, Any], name: str) -> list[str]:
    kernel = {name: row[f"{name}_kernel"], "at_least": row["at_least_kernel"]}
    times = [screen.cell(values, name, units.format_time) for values in (row, kernel)]
    ratio = row[f"{name}_ratio"]
    has_ratio = math.isfinite(ratio) and not any("≥" in time for time in times)
    return [*times, f"{ratio:.3f}" if has_ratio else "-"]


def counts(measured: Measured) -> dict[str, tuple[int | None, int | None]]:
    """Return (Sojourn, kernel) for each count; `None` if unknown."""
    simulated, outcome = measured.simulated, measured.attempt.outcome
    forward, reverse = (
        metrics.link_counters(simulated, link)["drops"] for link in ("left->right", "right->left")
    )
    return {
        "drops": (forward, outcome["there"]["drops"]),
        "drops on the reverse path": (reverse, outcome["back"]["drops"]),
        "retransmissions": (int(simulated.flows["retransmits"].sum()), outcome["retransmits"]),
        "timeouts": (int(simulated.flows["timeouts"].sum()), outcome["timeouts"]),
        "unfinished flows": (_unfinished(simulated), _unfinished(measured.kernel)),
    }


def _unfinished(result: Result) -> int:
    return int((result.flows["outcome"] == "unfinished").sum())


def _number(value: int | None) -> str:
    return "-" if value is None else units.format_count(value)


def sentences(measured: Measured) -> list[str]:
    """Return lines with the lateness of the relay, and warnings about the comparison."""
    lines = [f"run {n}: {_lateness(attempt)}" for n, attempt in enumerate(measured.attempts, 1)]
    if not measured.attempt.counts:
        lines.append(
            "warning: no valid run, because the relay missed its deadlines; stop other programs"
            " (as root, the relay has real-time priority)"
        )
    if any(counts(measured)["drops"]):
        lines.append("with drops, the results of single runs vary by 5 to 10 %")
    return lines


def _lateness(attempt: Attempt) -> str:
    mean, worst = units.format_time(attempt.late_s), units.format_time(attempt.worst_s)
    late = f"{100 * attempt.late_share:.2f} % by more than 1 ms, at most {worst}"
    validity = "" if attempt.counts else "; invalid"
    return f"{attempt.packets:,} packets left {mean} late on average, {late}{validity}"


def write(measured: Measured, out: Path) -> list[str]:
    """Write flows, sizes and counts to a folder; return the names of the files."""
    columns = ("flow", "source", "target", "size_bytes", "start_s", "class", "fct_s")
    flows = measured.simulated.flows.select(columns).join(measured.done, on="flow", how="left")
    content = {
        "version": _core.VERSION,
        "kernel": platform.release(),
        "counts": measured.attempt.counts,
        "happened": {
            FILE_KEYS.get(name, name): {"ours": simulated, "kernel": kernel}
            for name, (simulated, kernel) in counts(measured).items()
        },
        "attempts": [
            {
                "counts": attempt.counts,
                "there": attempt.outcome["there"],
                "back": attempt.outcome["back"],
            }
            for attempt in measured.attempts
        ],
        "scenario": measured.simulated.summary["scenario"],
    }
    with files.writing(out / "flows.parquet"):
        flows.write_parquet(out / "flows.parquet")
    files.write_text(out / "sizes.csv", size_table(measured).write_csv())
    files.write_text(out / "real.json", json.dumps(content, indent=2) + "\n")
    return ["flows.parquet", "sizes.csv", "real.json"]
