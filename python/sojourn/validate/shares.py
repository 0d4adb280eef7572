"""Shares: what part of all that arrived in a period each flow had, ours beside the other's.

So flows are compared that never end. `shares.csv` of a folder of cases tells how many bytes of
each flow arrived from when to when; ours are sampled (`delivered_bytes`).
"""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from sojourn.base.errors import FileError
from sojourn.runs.results import Result
from sojourn.scenario.typed import TEXT, Column, read_csv

COLUMNS = {
    **dict.fromkeys(("case", "run"), TEXT),
    **dict.fromkeys(("from_s", "to_s"), Column(maximum=1e9)),
    **dict.fromkeys(("flow", "bytes"), Column(is_integer=True)),
}

PERIOD = ("from_s", "to_s")


def read(file: Path) -> pl.DataFrame:
    """Return what arrived of each flow by run and period: nothing if there is no such file."""
    if not file.exists():
        types = {name: pl.String if one is TEXT else pl.Float64 for name, one in COLUMNS.items()}
        return pl.DataFrame(schema=types)
    return read_csv(file, COLUMNS)


def check(rows: pl.DataFrame, end_s: float, where: str) -> None:
    """Refuse periods of a run in which shares cannot be compared; `where` is said of them."""
    for period in rows.partition_by(PERIOD):
        since, until = period.select(PERIOD).row(0)
        if (problem := _problem(period, since, until, end_s)) is not None:
            raise FileError(f"{where}: the period {since:g} to {until:g} s {problem}")


def _problem(period: pl.DataFrame, since: float, until: float, end_s: float) -> str | None:
    if since >= until:
        return "ends before it begins"
    if until > end_s:
        return f"ends after the run, at `end_s` = {end_s:g}"
    if period["flow"].is_duplicated().any():
        return "has a flow twice"
    if period.height < 2:
        return "has one flow only, and so no shares"
    return None if period["bytes"].sum() > 0 else "has nothing that arrived"


def beside(theirs: pl.DataFrame, runs: Iterable[Result]) -> pl.DataFrame:
    """Return the shares by period and flow: the mean of our runs' and the other's.

    Columns: `from_s`, `to_s`, `flow`, `share_other`; and of ours `share`, `lowest` and `highest`.
    Where nothing of any flow arrived, each has none.
    """
    by = (*PERIOD, "flow")
    share = (pl.col("bytes") / pl.col("bytes").sum().over(PERIOD)).fill_nan(0)
    periods = theirs.select(by)
    each = [periods.with_columns(bytes=_arrived(periods, run)) for run in runs]
    ours = pl.concat(one.select(*by, share=share) for one in each).group_by(by)
    known = ours.agg(pl.mean("share"), lowest=pl.min("share"), highest=pl.max("share"))
    wanted = theirs.select(*by, share_other=share)
    return wanted.join(known, on=by, maintain_order="left")


def _arrived(periods: pl.DataFrame, run: Result) -> pl.Series:
    """Return what arrived of each row's flow in its period, in bytes."""

    def until(time_s: float, flow: int) -> float:
        # What arrived only grows, so the last sample up to then is the largest.
        then = pl.col("time_s") <= time_s + 1e-9
        sampled = run.samples.filter(pl.col("probe") == f"delivered_bytes flow {flow}", then)
        return float(sampled["value"].to_numpy().max(initial=0))

    return pl.Series(
        [until(end, flow) - until(start, flow) for start, end, flow in periods.rows()],
        dtype=pl.Float64,
    )
