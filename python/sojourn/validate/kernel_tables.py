"""What `sojourn real` shows and writes: completion times here beside the kernel's."""

import json
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


def sizes(measured: Measured) -> pl.DataFrame:
    """Return completion times by size: ours, the kernel's (`_kernel`) and the ratio of both."""
    ours, kernel = (
        metrics.by_size(result, "fct_s", BUCKETS, STATISTICS).drop("terminated")
        for result in (measured.ours, measured.kernel)
    )
    both = ours.join(kernel.drop("flows"), on="size", suffix="_kernel", maintain_order="left")
    return both.filter(pl.col("flows") > 0).with_columns(
        (pl.col(name) / pl.col(f"{name}_kernel")).alias(f"{name}_ratio") for name in STATISTICS
    )


def tables(measured: Measured) -> list[Table]:
    """Return what is printed: completion times by size, and what was lost and sent again."""
    columns = [f"{name}, {what}" for name in STATISTICS for what in ("ours", "kernel", "ratio")]
    rows = [
        [
            row["size"],
            f"{row['flows']}",
            *(cell for name in STATISTICS for cell in _cells(row, name)),
        ]
        for row in sizes(measured).to_dicts()
    ]
    by_size = Table("flow completion time", ["size", "flows", *columns], rows)
    counted = [[name, *map(_number, pair)] for name, pair in counts(measured).items()]
    return [by_size, Table("what happened", ["", "ours", "kernel"], counted)]


def _cells(row: Mapping[str, Any], name: str) -> list[str]:
    kernel = {name: row[f"{name}_kernel"], "at_least": row["at_least_kernel"]}
    times = [screen.cell(one, name, units.format_time) for one in (row, kernel)]
    is_bound = any("≥" in time for time in times)
    return [*times, "-" if is_bound else f"{row[f'{name}_ratio']:.3f}"]


def counts(measured: Measured) -> dict[str, tuple[int | None, int | None]]:
    """Return by name what happened how often, here and in the kernel; `None` if it is not known."""
    ours, outcome = measured.ours, measured.attempt.outcome
    there, back = (
        metrics.link_counters(ours, link)["drops"] for link in ("left->right", "right->left")
    )
    return {
        "drops": (there, outcome["there"]["drops"]),
        "drops on the way back": (back, outcome["back"]["drops"]),
        "sent again": (int(ours.flows["retransmits"].sum()), outcome["retransmits"]),
        "time-outs": (int(ours.flows["timeouts"].sum()), outcome["timeouts"]),
        "unfinished flows": (_unfinished(ours), _unfinished(measured.kernel)),
    }


def _unfinished(result: Result) -> int:
    return int((result.flows["outcome"] == "unfinished").sum())


def _number(value: int | None) -> str:
    return "-" if value is None else units.format_count(value)


def sentences(measured: Measured) -> list[str]:
    """Say how late the relay was, whether the run counts, and what a difference may mean."""
    told = [f"run {n}: {_lateness(one)}" for n, one in enumerate(measured.attempts, 1)]
    if not measured.attempt.counts:
        told.append(
            "warning: no run counts, for packets were late: nothing else should be running"
            " (as root the relay has real-time priority)"
        )
    if any(counts(measured)["drops"]):
        told.append("where packets are dropped, single runs differ by 5 to 10 % by chance")
    topology, transport = (measured.ours.summary["scenario"][n] for n in ("topology", "transport"))
    if (topology["kind"], transport["kind"]) == ("link", "bbr"):
        told.append("on `link` ours is paced at the link's rate at most; on a dumbbell it is not")
    return told


def _lateness(one: Attempt) -> str:
    late = f"{one.packets:,} packets left {units.format_time(one.late_s)} late on average"
    most = units.format_time(one.worst_s)
    worst = f"{100 * one.late_share:.2f} % by more than 1 ms, the worst {most}"
    return f"{late}, {worst}{'' if one.counts else ': it does not count'}"


def write(measured: Measured, out: Path) -> list[str]:
    """Write the flows, the table by size and the rest into a folder; return the files' names."""
    known = ("flow", "source", "target", "size_bytes", "start_s", "class", "fct_s")
    both = measured.ours.flows.select(known).join(measured.done, on="flow", how="left")
    told = {
        "version": _core.VERSION,
        "kernel": platform.release(),
        "counts": measured.attempt.counts,
        "happened": {
            name: {"ours": ours, "kernel": kernel}
            for name, (ours, kernel) in counts(measured).items()
        },
        "attempts": [
            {"counts": one.counts, "there": one.outcome["there"], "back": one.outcome["back"]}
            for one in measured.attempts
        ],
        "scenario": measured.ours.summary["scenario"],
    }
    with files.writing(out / "flows.parquet"):
        both.write_parquet(out / "flows.parquet")
    files.write_text(out / "sizes.csv", sizes(measured).write_csv())
    files.write_text(out / "real.json", json.dumps(told, indent=2) + "\n")
    return ["flows.parquet", "sizes.csv", "real.json"]
