"""Shares: the bytes of each flow that arrived in a period, as a share of all flows.

Shares compare long-lived flows. `shares.csv` of a folder of cases contains the bytes of each flow
that arrived in each period of the reference; those of Sojourn are sampled (`delivered_bytes`).
"""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from sojourn.base.errors import FileError
from sojourn.runs.results import Result
from sojourn.scenario.typed import TEXT, Column, read_csv_if_any

COLUMNS = {
    **dict.fromkeys(("case", "run"), TEXT),
    **dict.fromkeys(("from_s", "to_s"), Column(maximum=1e9)),
    **dict.fromkeys(("flow", "bytes"), Column(is_integer=True)),
}

PERIOD = ("from_s", "to_s")


def read(file: Path) -> pl.DataFrame:
    """Return the bytes of each flow by run and period; an empty table if the file is missing."""
    return read_csv_if_any(file, COLUMNS)


def check(rows: pl.DataFrame, end_s: float, location: str) -> None:
    """Raise `FileError`, with `location`, if shares of a period cannot be compared."""
    for period in rows.partition_by(PERIOD):
        since, until = period.select(PERIOD).row(0)
        if (problem := _problem(period, since, until, end_s)) is not None:
            raise FileError(f"{location}: the period {since:g} to {until:g} s {problem}")


def _problem(period: pl.DataFrame, since: float, until: float, end_s: float) -> str | None:
    if since >= until:
        return "ends before it starts"
    if until > end_s:
        return f"ends after the end of the run, `end_s` = {end_s:g}"
    if period["flow"].is_duplicated().any():
        return "contains a flow twice"
    if period.height < 2:
        return "contains only one flow"
    return None if period["bytes"].sum() > 0 else "contains no bytes"


def compare(reference: pl.DataFrame, runs: Iterable[Result]) -> pl.DataFrame:
    """Return the shares by period and flow, of the reference and of Sojourn's runs.

    Columns: `from_s`, `to_s`, `flow`; `share_other` of the reference; mean `share`, `lowest` and
    `highest` of the runs. If no bytes arrived in a period, all shares are 0.
    """
    by = (*PERIOD, "flow")
    share = (pl.col("bytes") / pl.col("bytes").sum().over(PERIOD)).fill_nan(0)
    periods = reference.select(by)
    tables = [periods.with_columns(bytes=_arrived_bytes(periods, run)) for run in runs]
    simulated = pl.concat(table.select(*by, share=share) for table in tables).group_by(by)
    summary = simulated.agg(pl.mean("share"), lowest=pl.min("share"), highest=pl.max("share"))
    shares = reference.select(*by, share_other=share)
    return shares.join(summary, on=by, maintain_order="left")


def _arrived_bytes(periods: pl.DataFrame, run: Result) -> pl.Series:
    """Return the bytes of each row's flow that arrived in its period."""

    def bytes_until(time_s: float, flow: int) -> float:
        # The counter never decreases, so the last sample up to `time_s` is the largest.
        is_before = pl.col("time_s") <= time_s + 1e-9
        samples = run.samples.filter(pl.col("probe") == f"delivered_bytes flow {flow}", is_before)
        return float(samples["value"].to_numpy().max(initial=0))

    return pl.Series(
        [bytes_until(end, flow) - bytes_until(start, flow) for start, end, flow in periods.rows()],
        dtype=pl.Float64,
    )
