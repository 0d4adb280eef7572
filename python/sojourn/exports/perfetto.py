"""Recorded flows and links as a Perfetto trace, for ui.perfetto.dev.

The format is a sequence of TracePackets in protocol buffers, whose field numbers are those of
perfetto/trace/perfetto_trace.proto. Times are nanoseconds since the start of the run.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sojourn._core import ScenarioError
from sojourn.analysis.breakdown import BY_REASON, LABELS, part_of
from sojourn.base import files
from sojourn.base.units import count, format_size
from sojourn.exports import recorded
from sojourn.runs.links import carried_bits
from sojourn.runs.results import Result

PACKET = 1
"""Field of `Trace`."""

TIMESTAMP, SEQUENCE, EVENT, DESCRIPTOR = 8, 10, 11, 60
"""Fields of `TracePacket`."""

TYPE, TRACK, NAME, VALUE = 9, 11, 23, 44
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
"""Fields of `TrackEvent`, and its types; values are doubles."""

UUID, TRACK_NAME, PARENT, COUNTER_TRACK, UNIT_NAME = 1, 2, 5, 8, 6
"""Fields of `TrackDescriptor`, and of its `CounterDescriptor`."""

Value = int | float | str | bytes


def _varint(number: int) -> bytes:
    """Encode an integer: seven bits in each byte, the lowest first."""
    content = bytearray()
    while number > 127:
        content.append(number & 127 | 128)
        number >>= 7
    return bytes([*content, number])


def _message(fields: Mapping[int, Value]) -> bytes:
    """Encode a message: integers as varints, floats as doubles, texts and messages as bytes."""
    content = b""
    for number, value in fields.items():
        if isinstance(value, int):
            content += _varint(number << 3) + _varint(value)
        elif isinstance(value, float):
            content += _varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            text = value.encode() if isinstance(value, str) else value
            content += _varint(number << 3 | 2) + _varint(len(text)) + text
    return content


class _Trace:
    """Tracks and their events."""

    def __init__(self) -> None:
        self.tracks: list[bytes] = []
        self.events: list[tuple[int, bytes]] = []

    def track(self, name: str, parent: int = 0, unit: str | None = None) -> int:
        """Add a track, of a counter if it has a unit; return its number."""
        uuid = len(self.tracks) + 1
        fields: dict[int, Value] = {UUID: uuid, TRACK_NAME: name}
        fields |= {PARENT: parent} if parent else {}
        fields |= {} if unit is None else {COUNTER_TRACK: _message({UNIT_NAME: unit})}
        self.tracks.append(_message({SEQUENCE: 1, DESCRIPTOR: _message(fields)}))
        return uuid

    def event(self, time_ps: int, kind: int, track: int, more: Mapping[int, Value]) -> None:
        """Add an event. Times are rounded down, so that slices remain nested."""
        event = _message({TYPE: kind, TRACK: track, **more})
        time_ns = time_ps // 1000
        packet = _message({TIMESTAMP: time_ns, SEQUENCE: 1, EVENT: event})
        self.events.append((time_ns, packet))

    def slices(self, track: int, nested: Iterable[tuple[int, str | None]]) -> None:
        """Add slices in order of time: a name begins one, and None ends the innermost."""
        for time_ps, name in nested:
            if name is None:
                self.event(time_ps, END, track, {})
            else:
                self.event(time_ps, BEGIN, track, {NAME: name})

    def counter(self, track: int, values: Iterable[tuple[int, float]]) -> None:
        """Add the values of a counter that differ from the value before."""
        last = None
        for time_ps, value in values:
            if value != last:
                self.event(time_ps, COUNTER, track, {VALUE: float(value)})
            last = value

    def packets(self) -> Iterator[bytes]:
        """Return the encoded tracks, then the events in order of time."""
        yield from self.tracks
        # Events of one time keep their order, which is that of nested slices.
        for _, packet in sorted(self.events, key=lambda event: event[0]):
            yield packet


def write(result: Result, path: Path) -> list[str]:
    """Write the recorded flows and links; return notes in words.

    Raises `ScenarioError` if nothing is recorded.
    """
    if result.chain.is_empty() and result.packets.is_empty() and result.series.is_empty():
        raise ScenarioError(f"nothing is recorded; {recorded.HOW_TO_RECORD} flows and links")
    trace = _Trace()
    flows = _add_flows(trace, result)
    _add_links(trace, result)
    with files.writing(path), path.open("wb") as stream:
        for packet in trace.packets():
            stream.write(_message({PACKET: packet}))
    links = count(result.series["link"].n_unique(), "link")
    return [f"{count(len(trace.events), 'event')} of {count(flows, 'flow')} and {links}"]


def _add_flows(trace: _Trace, result: Result) -> int:
    """Add the flows in progress and each recorded flow; return the number of these.

    Terminated flows are not among those in progress: their records lack the time of termination.
    """
    end_ps = round(result.summary["simulated_s"] * 1e12)
    flows = result.flows.select(
        *("flow", "source", "target", "size_bytes", "outcome"),
        begin_ps=(pl.col("start_s") * 1e12).round().cast(pl.Int64),
    ).with_columns(end_ps=pl.col("begin_ps") + (result.flows["fct_s"] * 1e12).round())
    flows = flows.with_columns(pl.col("end_ps").cast(pl.Int64).fill_null(end_ps))
    counted = flows.filter(pl.col("outcome") != "terminated")
    in_progress = pl.concat(
        counted.select(time_ps=column, change=pl.lit(change))
        for column, change in (("begin_ps", 1), ("end_ps", -1))
    )
    steps = in_progress.group_by("time_ps").agg(pl.col("change").sum()).sort("time_ps")
    steps = steps.with_columns(pl.col("change").cum_sum())
    trace.counter(trace.track("flows in progress", unit="flows"), steps.iter_rows())
    kept = pl.concat([result.chain["flow"], result.packets["flow"]]).unique()
    group = trace.track("recorded flows")
    for flow in flows.filter(pl.col("flow").is_in(kept.implode())).to_dicts():
        _add_flow(trace, group, flow, result)
    return len(kept)


def _add_flow(trace: _Trace, group: int, flow: dict[str, Any], result: Result) -> None:
    """Add a flow: its causal chain as slices, losses and marks as instants, and its gauges."""
    number = flow["flow"]
    size = format_size(flow["size_bytes"])
    track = trace.track(f"flow {number}", group)
    title = f"flow {number}: host {flow['source']} to host {flow['target']}, {size}"
    pieces = _pieces(result.chain.filter(flow=number), flow["begin_ps"])
    trace.slices(track, [(flow["begin_ps"], title), *pieces, (flow["end_ps"], None)])
    packets = result.packets.filter(flow=number)
    for row in packets.drop_nulls("lost_ps").iter_rows(named=True):
        name = f"{row['kind']} lost at {row['lost_at']} ({row['lost_why']})"
        trace.event(row["lost_ps"], INSTANT, track, {NAME: name})
    for row in packets.filter(kind="data", marked=True).drop_nulls("arrived_ps").to_dicts():
        trace.event(row["arrived_ps"], INSTANT, track, {NAME: "marked data arrives"})
    gauges = result.gauges.filter(flow=number)
    for (gauge,), changes in gauges.group_by("gauge", maintain_order=True):
        unit = str(gauge).rpartition("_")[2]
        name = str(gauge).removesuffix(f"_{unit}") if unit in UNITS else str(gauge)
        counter = trace.track(name, track, UNITS.get(unit, ""))
        trace.counter(counter, changes.select("time_ps", "value").iter_rows())


UNITS = {"bytes": "B", "bps": "bit/s", "s": "s", "packets": "packets"}
"""Units of gauges by the last word of their names."""


def _pieces(chain: pl.DataFrame, start_ps: int) -> Iterator[tuple[int, str | None]]:
    """Return the pieces of a causal chain as slices, with their parts in order of the path."""
    places = [name for name in chain.columns if name not in ("flow", "reason", "begins_ps")]
    for row in chain.iter_rows(named=True):
        time_ps = start_ps + row["begins_ps"]
        yield time_ps, LABELS[BY_REASON[row["reason"]]]
        parts: dict[str, int] = {}
        for place in places:
            part = part_of(f"{row['reason']}_{place}")
            parts[part] = parts.get(part, 0) + row[place]
        for part, duration_ps in parts.items():
            if duration_ps:
                yield time_ps, LABELS[part]
                time_ps += duration_ps
                yield time_ps, None
        yield time_ps, None


def _add_links(trace: _Trace, result: Result) -> None:
    """Add for each link the mean queue and the utilisation of each bin."""
    if result.series.is_empty():
        return
    bin_ps = result.summary["record"]["bin_ps"]
    rates = {link["name"]: link["rate_bps"] for link in result.summary["links"]}
    edges = np.arange(int(result.series["bin"].to_numpy().max()) + 2) * (bin_ps / 1e12)
    carried = carried_bits(result.summary["scenario"], edges)
    group = trace.track("links")
    for (name,), bins in result.series.group_by("link", maintain_order=True):
        link = trace.track(str(name), group)
        bits = pl.lit(rates[name] * bin_ps / 1e12)
        if name in carried:
            bits = pl.lit(pl.Series(np.diff(carried[str(name)])[bins["bin"].to_numpy()]))
        # A bin without capacity has no utilisation; a packet may leave as it begins.
        share = pl.when(bits > 0).then((100 * 8) * pl.col("bytes") / bits).otherwise(0.0)
        for title, unit, value in (
            ("queue", "B", pl.col("queue_mean_bytes")),
            ("utilisation", "%", share),
        ):
            counter = trace.track(title, link, unit)
            trace.counter(counter, _steps(bins.select("bin", value), bin_ps))


def _steps(bins: pl.DataFrame, bin_ps: int) -> Iterator[tuple[int, float]]:
    """Return the value of each bin at its start, and 0 at the start of a gap."""
    following = 0
    for number, value in bins.iter_rows():
        if number > following:
            yield following * bin_ps, 0.0
        yield number * bin_ps, value
        following = number + 1
    yield following * bin_ps, 0.0
