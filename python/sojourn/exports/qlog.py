"""One recorded flow as qlog 0.3, which qvis reads.

Schema: draft-ietf-quic-qlog-main-schema-02 and -quic-events-01, from the viewpoint of the sender. A
flow is one stream, and each sending of a segment has a packet number of its own, as in QUIC.
"""

import bisect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.base import files
from sojourn.base.units import count
from sojourn.exports import recorded
from sojourn.runs.results import Result

TRIGGERS = {
    "gap": "retransmit_reordered",
    "timeout": "retransmit_timeout",
    "probe": "pto_probe",
}
"""Triggers of retransmissions, by `because`."""

LOSS_TRIGGERS = {"gap": "reordering_threshold", "timeout": "pto_expired"}
"""Triggers of detected losses, by `because` of the retransmission."""

INTEGERS = {
    "window_bytes": "congestion_window",
    "in_flight_bytes": "bytes_in_flight",
    "rate_bps": "pacing_rate",
}
"""Names in qlog of gauges that are integers there."""

RTTS = {"smoothed_rtt_s": "smoothed_rtt", "min_rtt_s": "min_rtt"}
"""Names in qlog of RTTs, which are in milliseconds there."""

MAX_RANGES = 32
"""Number of ranges in an ACK, the latest (RFC 9000 §13.2.3 permits a limit)."""

Event = tuple[int, int, str, dict[str, Any]]
"""Time in picoseconds, order of simultaneous events, name, data."""


def write(result: Result, path: Path, flow: int) -> list[str]:
    """Write a flow; return notes in words. Raises `ScenarioError` if it was not recorded."""
    packets = recorded.packets(result, flow)
    keeps_gaps = not _goes_back_n(result, flow)
    events = [*_packets(packets, keeps_gaps), *_metrics(result.gauges.filter(flow=flow))]
    # An ACK reveals losses and permits sendings; gauges have the values after these.
    events.sort(key=lambda event: event[:2])
    notes = recorded.thinned(result, [flow])
    trace = {
        "vantage_point": {"type": "client", "name": f"host {packets['source'][0]}"},
        "title": f"flow {flow}",
        "description": "; ".join(notes),
        "common_fields": {"group_id": str(flow), "time_format": "relative", "reference_time": 0.0},
        "events": [
            {"time": time_ps / 1e9, "name": name, "data": data} for time_ps, _, name, data in events
        ],
    }
    document = {
        "qlog_version": "0.3",
        "qlog_format": "JSON",
        "title": result.summary["scenario"]["name"],
        "description": f"sojourn {_core.VERSION}",
        "traces": [trace],
    }
    files.write_text(path, json.dumps(document, separators=(",", ":")))
    return [f"{count(len(events), 'event')} of flow {flow}", *notes]


def _goes_back_n(result: Result, flow: int) -> bool:
    """Return true if the flow's receiver discards packets out of order."""
    scenario = result.summary["scenario"]
    flow_class = result.flows.filter(flow=flow)["class"].item()
    transport = scenario["transports"].get(flow_class, scenario["transport"])
    reliability = transport.get("reliability", {})
    return bool(reliability.get("recovery") == "go_back_n")


def _packets(packets: pl.DataFrame, keeps_gaps: bool) -> Iterator[Event]:
    """Return the events of packets that the sender sends and receives.

    If `keeps_gaps` is false, the receiver discards packets out of order.
    """
    is_syn = pl.col("kind").is_in(["syn", "syn_ack"])
    packets = packets.with_columns(
        space=pl.when(is_syn).then(pl.lit("initial")).otherwise(pl.lit("1RTT"))
    ).with_columns(packet_number=pl.int_range(pl.len()).over("is_answer", "space"))
    ranges = _acked_ranges(packets, keeps_gaps)
    latest: dict[int, dict[str, Any]] = {}
    for row in packets.iter_rows(named=True):
        header = {"packet_type": row["space"], "packet_number": row["packet_number"]}
        data = {"header": header, "raw": {"length": row["bytes"]}}
        because, number = row["because"], row["number"]
        frame: dict[str, Any] = {"frame_type": "ping"}
        if row["is_answer"]:
            if row["kind"] in ("ack", "nack"):
                frame = {"frame_type": "ack", "acked_ranges": next(ranges)}
            if row["arrived_ps"] is not None:
                yield row["arrived_ps"], 0, "transport:packet_received", data | {"frames": [frame]}
            continue
        if row["kind"] == "data":
            place = {name: row[name] for name in ("offset", "length")}
            is_last = row["offset"] + row["length"] == row["size"]
            frame = {"frame_type": "stream", "stream_id": 0, **place, "fin": is_last}
            if because in LOSS_TRIGGERS and number in latest:
                lost = {"header": latest[number], "trigger": LOSS_TRIGGERS[because]}
                yield row["sent_ps"], 1, "recovery:packet_lost", lost
            latest[number] = header
        trigger = {"trigger": TRIGGERS[because]} if because in TRIGGERS else {}
        yield row["sent_ps"], 2, "transport:packet_sent", data | {"frames": [frame]} | trigger


def _acked_ranges(packets: pl.DataFrame, keeps_gaps: bool) -> Iterator[list[list[int]]]:
    """Return for each ACK, in order of sending, the packet numbers received by then."""
    is_data = (pl.col("space") == "1RTT") & ~pl.col("is_answer")
    arrived = packets.filter(is_data).drop_nulls("arrived_ps").sort("arrived_ps")
    if not keeps_gaps:
        arrived = arrived.filter(_is_in_order(arrived))
    times, numbers = arrived["arrived_ps"].to_list(), arrived["packet_number"].to_list()
    ranges: list[list[int]] = []
    position = 0
    for sent_ps in packets.filter(pl.col("kind").is_in(["ack", "nack"]))["sent_ps"]:
        while position < len(times) and times[position] <= sent_ps:
            _insert(ranges, numbers[position])
            position += 1
        yield [pair.copy() for pair in ranges[-MAX_RANGES:]]


def _is_in_order(arrived: pl.DataFrame) -> list[bool]:
    """Return for each arrival of data whether all data before it have arrived in order, too."""
    expected = 0
    in_order = []
    for offset, length in arrived.select("offset", "length").iter_rows():
        in_order.append(offset <= expected)
        if offset == expected:
            expected += length
    return in_order


def _insert(ranges: list[list[int]], number: int) -> None:
    """Insert a number into ascending ranges, and join those that it connects."""
    place = bisect.bisect(ranges, [number])
    ranges.insert(place, [number, number])
    for right in (place + 1, place):
        if 0 < right < len(ranges) and ranges[right - 1][1] + 1 == ranges[right][0]:
            ranges[right - 1][1] = ranges.pop(right)[1]


def _metrics(gauges: pl.DataFrame) -> Iterator[Event]:
    """Return an event for each time at which gauges changed."""
    known = gauges.filter(pl.col("gauge").is_in([*INTEGERS, *RTTS])).sort("time_ps")
    for (time_ps,), changes in known.group_by("time_ps", maintain_order=True):
        values = dict(zip(changes["gauge"], changes["value"], strict=True))
        data = {INTEGERS[gauge]: round(values[gauge]) for gauge in values if gauge in INTEGERS}
        data |= {RTTS[gauge]: 1000 * values[gauge] for gauge in values if gauge in RTTS}
        yield int(time_ps), 3, "recovery:metrics_updated", data
