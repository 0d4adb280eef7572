"""Tables of a run: their files and columns, and how they follow from the core's columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from sojourn import _core

FLOWS, SAMPLES, LINKS = "flows.parquet", "samples.parquet", "links.parquet"
ACCOUNT, CHAIN = "account.parquet", "chain.parquet"
PACKETS, GAUGES = "packets.parquet", "gauges.parquet"
SERIES, HOPS = "series.parquet", "hops.parquet"

TABLES = (FLOWS, SAMPLES, LINKS, ACCOUNT, CHAIN, PACKETS, GAUGES, SERIES, HOPS)
"""Files of tables; only the first is mandatory."""

OF_FLOWS = (ACCOUNT, CHAIN, PACKETS, GAUGES)
"""Files of tables with rows of flows, besides the flow records."""

OUTCOMES = ("finished", "unfinished", "long_lived", "terminated")
"""Outcomes of flows; a terminated flow was stopped because it would have missed its deadline."""

COLUMNS = {name: has_nulls for name, _, has_nulls in _core.flow_columns()}
"""Columns of `flows.parquet` in order, and true for those with nulls. The core declares them."""

WHOLE = ("lost_packets", "reordered_packets", "reordering_extent", "step")
"""Columns of `flows.parquet` with nulls whose values are whole numbers."""


def sample_table(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Return the table of samples from the core's columns; probe indices become names."""
    samples = columns["samples"]
    return pl.DataFrame(
        {
            "time_s": samples["time_s"],
            "probe": _names(samples["probe"], columns["probes"]),
            "value": samples["value"],
        }
    )


def chain_table(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Return the causal chains from the core's columns; indices of reasons become names."""
    intervals = dict(columns["chain"])
    intervals["reason"] = _names(intervals["reason"], columns["reasons"])
    return pl.DataFrame(intervals)


def record_tables(record: Mapping[str, Any], links: list[str]) -> dict[str, pl.DataFrame]:
    """Return the recorded tables by file name from the core's columns."""
    names = {"link": links, "lost_at": links} | {
        name: record[name] for name in ("kind", "because", "lost_why", "gauge")
    }

    def table(columns: Mapping[str, Any]) -> pl.DataFrame:
        named = {
            name: _names(values, names[name]) if name in names else values
            for name, values in columns.items()
        }
        may_be_absent = pl.col("^((arrived|lost|starts)_ps|number)$")
        # The core's value for an absent time or number is the greatest of its type.
        is_present = may_be_absent != may_be_absent.upper_bound()
        return pl.DataFrame(named).with_columns(pl.when(is_present).then(may_be_absent))

    files_by_name = {PACKETS: "packets", GAUGES: "gauges", SERIES: "series", HOPS: "hops"}
    return {file: table(record[name]) for file, name in files_by_name.items()}


def flow_table(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Return the flow records from the core's columns; NaN becomes null, indices become names.

    Removes the columns of flows: of ten million, the core's copy takes a gigabyte.
    """
    flows, names = columns["flows"], {"class": columns["classes"], "outcome": OUTCOMES}

    def series(name: str) -> pl.Series:
        values = flows.pop(name)
        if name in names:
            return _names(values, names[name]).alias(name)
        column = pl.Series(name, values)
        if COLUMNS[name]:
            column = column.fill_nan(None)
        return column.cast(pl.UInt32) if name in WHOLE else column

    return pl.DataFrame([series(name) for name in COLUMNS if name in flows])


def _names(indices: Any, names: Any) -> pl.Series:
    """Return the names at the given indices, and null beyond the last."""
    if len(indices) == 0:
        return pl.Series([], dtype=pl.String)
    indices = pl.Series(np.asarray(indices, dtype=np.uint32))
    indices = indices.set(indices >= len(names), None)
    return pl.Series(names, dtype=pl.String).gather(indices)


def empty_table(name: str) -> pl.DataFrame:
    """Return an empty table for a missing file."""
    return pl.DataFrame(schema=EMPTY_SCHEMAS[name])


SENT_PACKET: dict[str, Any] = {
    **{"flow": pl.UInt64, "kind": pl.String, "number": pl.UInt32},
    **dict.fromkeys(("from", "to"), pl.UInt32),
    **{"bytes": pl.UInt16, "copy": pl.UInt16, "because": pl.String},
    **{"ecn": pl.Boolean, "marked": pl.Boolean, "sent_ps": pl.UInt64},
}
"""Columns of a packet at its sender, which packets and hops have."""

EMPTY_SCHEMAS: dict[str, Any] = {
    SAMPLES: {"time_s": pl.Float64, "probe": pl.String, "value": pl.Float64},
    LINKS: {
        **{"name": pl.String, "rate_bps": pl.UInt64},
        **{"bytes": pl.UInt64, "utilisation": pl.Float64},
    },
    ACCOUNT: dict.fromkeys(
        (
            *("flow", "fct_ps", "rounds"),
            *("alone_propagation_ps", "alone_transmission_ps", "alone_queue_own_ps"),
        ),
        pl.UInt64,
    ),
    CHAIN: {"flow": pl.UInt64, "reason": pl.String, "begins_ps": pl.UInt64},
    PACKETS: {
        **SENT_PACKET,
        **dict.fromkeys(("arrived_ps", "lost_ps"), pl.UInt64),
        **dict.fromkeys(("lost_at", "lost_why"), pl.String),
    },
    GAUGES: {"flow": pl.UInt64, "time_ps": pl.UInt64, "gauge": pl.String, "value": pl.Float64},
    SERIES: {
        **{"link": pl.String, "bin": pl.UInt32, "bytes": pl.UInt64},
        **{"queue_mean_bytes": pl.Float64, "queue_max_bytes": pl.UInt64},
        **dict.fromkeys(("marks", "drops", "losses"), pl.UInt32),
        "paused_ps": pl.UInt64,
    },
    HOPS: {
        "link": pl.String,
        **SENT_PACKET,
        **dict.fromkeys(("came_ps", "starts_ps", "queue_bytes"), pl.UInt64),
        "dropped": pl.Boolean,
    },
}
