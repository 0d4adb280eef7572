"""Recorded flows as blocks of a page: packets, gauges and causal chains."""

from typing import Any

import polars as pl

from sojourn.analysis import chains
from sojourn.analysis.breakdown import PARTS
from sojourn.explain.waterfall import REASONS
from sojourn.runs.first_sample import links_of_first_sample
from sojourn.runs.results import Result
from sojourn.view import flow_blocks
from sojourn.web import columns

MOST_ROWS = 1500
"""Packets of a flow in a page, if all recordings fit into `MOST_BYTES`."""

MOST_BYTES = 550_000
"""Size of all recordings of a page."""

MOST_LOST = 20
"""Packets of a flow that were lost or sent again, for each other packet of `MOST_ROWS`."""

SMALLER = 0.7
"""Factor of `MOST_ROWS` until the recordings fit."""

LEAST_ROWS = 50

GAUGES = 4
"""Packets of a flow for each value of a gauge."""

KEYS = ("size_bytes", "source", "target", "lasts_s", "fct_s", "ideal_fct_s", "start_s", "outcome")
"""Columns of flow records and of `lasting` that the page has of recorded flows."""

TIMES = ("sent", "arrived", "lost")


def blocks(
    result: Result, prefix: str, most_bytes: int
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the recorded flows for the head of the page, and their blocks.

    Names of blocks are `prefix`, the content and the flow's number, such as `packets0-17`.
    """
    entries = recorded(result)
    flows = flow_blocks.lasting(result.flows, result)
    packets, gauges, starts_ps = {}, {}, {}
    chains_of: dict[str, str] = {}
    heads = []
    links = {link["name"] for link in links_of_first_sample(result.summary)}
    for entry in entries:
        number = entry["flow"]
        row = flows.filter(flow=number).row(0, named=True)
        starts_ps[number] = round(row["start_s"] * 1e12)
        packets[number] = result.packets.filter(flow=number)
        gauges[number] = result.gauges.filter(flow=number)
        pieces = piece_rows(result, number)
        if not pieces.is_empty():
            chains_of[f"pieces{prefix}-{number}"] = columns.pack(pieces)
        # Flows on one connection share its packets.
        is_apart = row["lost_packets"] is not None
        has_links = links.issuperset(entry["forward"])
        known = {key: row[key] for key in KEYS}
        heads.append({**entry, **known, "hasOwnPackets": is_apart, "hasLinks": has_links})
    most = MOST_ROWS
    while True:
        shown = {number: thinned(table, most) for number, table in packets.items()}
        made = dict(chains_of)
        for number, start_ps in starts_ps.items():
            tables = {
                "packets": packet_rows(shown[number], start_ps),
                "gauges": gauge_rows(gauges[number], start_ps, most // GAUGES),
            }
            for name, table in tables.items():
                if not table.is_empty():
                    made[f"{name}{prefix}-{number}"] = columns.pack(table)
        if sum(map(len, made.values())) <= most_bytes or most < LEAST_ROWS:
            return [head | {"shown": shown[head["flow"]].height} for head in heads], made
        most = int(most * SMALLER)


def recorded(result: Result) -> list[dict[str, Any]]:
    """Return what the summary states of recorded flows; of a flow with a chain only, its number."""
    record = result.summary.get("record") or {}
    entries = {entry["flow"]: entry for entry in record.get("flows", [])}
    for flow in result.chain["flow"].unique(maintain_order=True):
        entries.setdefault(
            flow, {"flow": flow, "forward": [], "reverse": [], "packets": 0, "has_chain": True}
        )
    return [entries[flow] for flow in sorted(entries)]


def thinned(packets: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return about `most` packets that arrived when first sent, and more of the others.

    Each kind keeps the same share.
    """
    special = (pl.col("copy") > 1) | pl.col("lost_ps").is_not_null()
    every = {
        is_special: -(-packets.filter(special == is_special).height // max(room, 1))
        for is_special, room in ((True, MOST_LOST * most), (False, most))
    }
    # Data and ACKs alternate: counted together, every second packet would be of one kind.
    ordered = packets.with_columns(
        order=pl.int_range(pl.len()).over(special, "kind"), every=special.replace_strict(every)
    )
    is_kept = pl.col("order") % pl.max_horizontal("every", 1) == 0
    return ordered.filter(is_kept).drop("order", "every")


def packet_rows(packets: pl.DataFrame, start_ps: int) -> pl.DataFrame:
    """Return packets with times in nanoseconds since the flow's start."""
    times = [
        ((pl.col(f"{name}_ps").cast(pl.Int64) - start_ps) / 1000).round().cast(pl.Int64).alias(name)
        for name in TIMES
    ]
    names = ("kind", "number", "from", "to", "bytes", "copy", "because", "marked")
    return packets.select(*names, *times, pl.col("lost_at", "lost_why"))


def gauge_rows(gauges: pl.DataFrame, start_ps: int, most: int) -> pl.DataFrame:
    """Return about `most` values of each gauge, with times in nanoseconds since the flow's start.

    Values are whole bytes, bits per second, nanoseconds, or millionths.
    """
    time = ((pl.col("time_ps").cast(pl.Int64) - start_ps) / 1000).round().cast(pl.Int64)
    is_whole = pl.col("gauge").str.ends_with("_bytes") | pl.col("gauge").str.ends_with("_bps")
    scale = pl.when(pl.col("gauge").str.ends_with("_s")).then(1e9).otherwise(1e6)
    value = (pl.col("value") * pl.when(is_whole).then(1.0).otherwise(scale)).round().cast(pl.Int64)
    every = (pl.len().over("gauge") / max(most - 1, 1)).ceil().cast(pl.Int64)
    order = pl.int_range(pl.len()).over("gauge")
    # The last value holds until the end.
    is_last = order == pl.len().over("gauge") - 1
    finite = gauges.filter(pl.col("value").is_finite())
    return finite.filter((order % every == 0) | is_last).select("gauge", time.alias("time"), value)


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
