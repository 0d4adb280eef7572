"""Recorded flows as blocks of a page: packets, gauges and causal chains."""

from typing import Any

import polars as pl

from sojourn.analysis import chains
from sojourn.analysis.breakdown import PARTS
from sojourn.explain.waterfall import REASONS
from sojourn.runs.results import Result
from sojourn.web import columns

MOST_ROWS = 1500
"""Packets of a flow in a page, if all recordings fit into `MOST_BYTES`."""

MOST_BYTES = 550_000
"""Size of all recordings of a page."""

SMALLER = 0.7
"""Factor of `MOST_ROWS` until the recordings fit."""

LEAST_ROWS = 50

TIMES = ("sent", "arrived", "lost")


def blocks(
    result: Result, prefix: str, most_bytes: int
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the recorded flows for the head of the page, and their blocks.

    Names of blocks are `prefix`, the content and the flow's number, such as `packets0-17`.
    """
    whole = _recorded(result)
    most = MOST_ROWS
    while True:
        made: dict[str, str] = {}
        heads = [_flow(result, dict(entry), prefix, most, made) for entry in whole]
        if sum(map(len, made.values())) <= most_bytes or most < LEAST_ROWS:
            return heads, made
        most = int(most * SMALLER)


def _recorded(result: Result) -> list[dict[str, Any]]:
    """Return what the summary states of recorded flows; of a flow with a chain only, its number."""
    record = result.summary.get("record") or {}
    entries = {entry["flow"]: entry for entry in record.get("flows", [])}
    for flow in result.chain["flow"].unique(maintain_order=True):
        entries.setdefault(
            flow, {"flow": flow, "forward": [], "reverse": [], "packets": 0, "every": 1}
        )
    return [entries[flow] for flow in sorted(entries)]


def _flow(
    result: Result, entry: dict[str, Any], prefix: str, most: int, made: dict[str, str]
) -> dict[str, Any]:
    """Add the blocks of a recorded flow; return its entry in the head of the page."""
    number = entry["flow"]
    row = result.flows.filter(flow=number).row(0, named=True)
    start_ps = round(row["start_s"] * 1e12)
    tables = {"pieces": piece_rows(result, number)}
    counts = {"rows": 0, "shown": 0}
    if hasattr(result, "packets") and hasattr(result, "gauges"):
        packets = result.packets.filter(flow=number)
        shown = thinned(packets, most)
        counts = {"rows": packets.height, "shown": shown.height}
        tables["packets"] = packet_rows(shown, start_ps)
        tables["gauges"] = gauge_rows(result.gauges.filter(flow=number), start_ps)
    for name, table in tables.items():
        if not table.is_empty():
            made[f"{name}{prefix}-{number}"] = columns.pack(table)
    keys = ("size_bytes", "source", "target", "fct_s", "ideal_fct_s", "start_s", "outcome")
    return {**entry, **{key: row[key] for key in keys}, **counts}


def thinned(packets: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return about `most` packets: all that were lost or sent again, and every n-th other."""
    special = (pl.col("copy") > 1) | pl.col("lost_ps").is_not_null()
    others = packets.height - packets.filter(special).height
    every = -(-others // max(most, 1))
    if every <= 1:
        return packets
    order = (~special).cum_sum()
    return packets.filter(special | (order % every == 0))


def packet_rows(packets: pl.DataFrame, start_ps: int) -> pl.DataFrame:
    """Return packets with times in nanoseconds since the flow's start."""
    times = [
        ((pl.col(f"{name}_ps").cast(pl.Int64) - start_ps) / 1000).round().cast(pl.Int64).alias(name)
        for name in TIMES
    ]
    names = ("kind", "number", "from", "to", "bytes", "copy", "because", "marked")
    return packets.select(*names, *times, pl.col("lost_at", "lost_why"))


def gauge_rows(gauges: pl.DataFrame, start_ps: int) -> pl.DataFrame:
    """Return the values of gauges with times in nanoseconds since the flow's start."""
    time = ((pl.col("time_ps").cast(pl.Int64) - start_ps) / 1000).round().cast(pl.Int64)
    return gauges.select("gauge", time.alias("time"), "value")


def piece_rows(result: Result, flow: int) -> pl.DataFrame:
    """Return the causal chain of a flow with times in nanoseconds; empty if it has none."""
    if result.chain.filter(flow=flow).is_empty():
        return pl.DataFrame()
    pieces = chains.pieces(result, flow)
    present = [part for part in PARTS if pieces[part].sum() > 0]
    times = pl.col("begins_s", "lasts_s", *present)
    nanoseconds = pieces.select((times * 1e9).round().cast(pl.Int64)).rename(
        {"begins_s": "begins", "lasts_s": "lasts"}
    )
    reason = pieces["reason"].replace_strict(REASONS)
    is_recovery = pieces["reason"].str.starts_with("recovery").alias("is_recovery")
    return nanoseconds.with_columns(reason, is_recovery)
