"""Packets as pcapng, which Wireshark and tshark read: headers of IPv4 and TCP without payload.

Kinds without a counterpart in TCP (probes, congestion notifications) are UDP. Format: pcapng
(draft-ietf-opsawg-pcapng), link type 101, raw IPv4.
"""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base import files
from sojourn.base.messages import did_you_mean, some_of
from sojourn.base.units import count
from sojourn.exports import recorded
from sojourn.runs.results import Result

RAW_IPV4 = 101
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
COMMENT, NAME, APPLICATION, RESOLUTION, DIRECTION = 1, 2, 4, 9, 2
"""Types of blocks, and codes of their options."""

TCP, UDP = 6, 17
ECT_0, CE = 2, 3
FIN, SYN, ACK, ECE = 1, 2, 16, 64
FLAGS = {"data": ACK, "ack": ACK, "nack": ACK, "syn": SYN, "syn_ack": SYN | ACK, "fin": FIN | ACK}
"""Flags of the kinds that are TCP."""

WINDOW_SCALE = 14
MAX_IPV4 = 65535


class Format(NamedTuple):
    """Format of a scenario's packets: payload of a full one, and true if ACKs have SACK blocks."""

    payload: int
    has_sack: bool


def write(result: Result, path: Path, at: str | None = None, flow: int | None = None) -> list[str]:
    """Write the packets of recorded flows as they pass a place; return notes in words.

    The place is by default the sender of each flow; `at` is the number of a host, or the name of a
    link in `record.hops`. Raises `ScenarioError` if there are no such packets.
    """
    if recorded.payload_bytes(result) + 80 > MAX_IPV4:
        raise ScenarioError("--pcap: packets are longer than IPv4 permits (65 535 B)")
    if at is None or at.isdecimal():
        rows = _at_hosts(result, None if at is None else int(at), flow)
        notes = recorded.thinned(result, rows["flow"])
    else:
        rows, notes = _on_link(result, at, flow), []
    places = rows["place"].unique(maintain_order=True).to_list()
    flows = rows["flow"].n_unique()
    if rows.filter(kind="syn")["flow"].n_unique() < flows:
        notes.append("flows without a SYN have no handshake: they begin with data")
    scenario = result.summary["scenario"]
    format_ = Format(recorded.payload_bytes(result), bool(scenario["packet"]["sack"]))
    with files.writing(path), path.open("wb") as stream:
        stream.write(_section("; ".join(filter(None, [scenario["name"][:1000], *notes]))))
        for place in places:
            stream.write(_interface(place))
        for row in rows.iter_rows(named=True):
            stream.write(_packet(row, places.index(row["place"]), _headers(row, format_)))
    of = ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
    return [f"{count(rows.height, 'packet')} of {count(flows, 'flow')} at {of}", *notes]


def _at_hosts(result: Result, at: int | None, flow: int | None) -> pl.DataFrame:
    """Return packets as the sender's host of their flow, or host `at`, sends and receives them."""
    rows = recorded.packets(result, flow)
    host = pl.col("source") if at is None else pl.lit(at)
    rows = rows.filter((pl.col("source") == host) | (pl.col("target") == host))
    if rows.is_empty():
        recorded_rows = recorded.packets(result, flow)
        hosts = pl.concat([recorded_rows["source"], recorded_rows["target"]]).unique().sort()
        raise ScenarioError(
            f"--at {at}: no recorded flow begins or ends at this host "
            f"(hosts of recorded flows: {some_of(map(str, hosts))})"
        )
    leaves = pl.col("is_answer") != (pl.col("source") == host)
    return (
        rows.with_columns(
            leaves=leaves,
            time_ps=pl.when(leaves).then("sent_ps").otherwise("arrived_ps"),
            marked=pl.col("marked") & (~leaves | (pl.col("kind") != "data")),
            place=pl.concat_str(pl.lit("host "), host),
        )
        .drop_nulls("time_ps")
        # A packet that arrives may cause those that are sent at the same time.
        .sort("time_ps", "leaves", maintain_order=True)
    )


def _on_link(result: Result, link: str, flow: int | None) -> pl.DataFrame:
    """Return packets as a link transmits them."""
    names = [row["name"] for row in result.summary["links"]]
    if link not in names:
        hint = did_you_mean(link, names)
        raise ScenarioError(f"--at {link}: no such link; expected a link or a host's number{hint}")
    rows = result.hops.filter(link=link)
    if rows.is_empty():
        raise ScenarioError(f'--at {link}: not recorded; `record.hops = ["{link}"]` records it')
    rows = rows if flow is None else recorded.of_flow(rows, flow, result)
    return (
        recorded.with_bytes(rows, result)
        .drop_nulls("starts_ps")
        .with_columns(
            leaves=pl.lit(True),
            place=pl.col("link"),
            time_ps=pl.col("starts_ps"),
            lost_why=pl.lit(None, pl.String),
        )
        .sort("time_ps", maintain_order=True)
    )


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)


def _option(code: int, content: bytes) -> bytes:
    return struct.pack("<HH", code, len(content)) + _padded(content)


def _block(kind: int, content: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(content))
    return struct.pack("<I", kind) + length + content + length


def _section(comment: str) -> bytes:
    """Return the header of the file."""
    fields = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
    name = _option(APPLICATION, f"sojourn {_core.VERSION}".encode())
    return _block(SECTION, fields + name + _option(COMMENT, comment.encode()) + _option(0, b""))


def _interface(place: str) -> bytes:
    """Return the description of a place; its times are nanoseconds."""
    options = _option(NAME, place.encode()) + _option(RESOLUTION, b"\x09") + _option(0, b"")
    return _block(INTERFACE, struct.pack("<HHI", RAW_IPV4, 0, 0) + options)


def _packet(row: dict[str, Any], interface: int, headers: bytes) -> bytes:
    """Return a packet with its direction and, if it was lost or sent again, a comment."""
    high, low = divmod(row["time_ps"] // 1000, 1 << 32)
    length = len(headers) + row["length"]
    fields = struct.pack("<IIIII", interface, high, low, len(headers), length)
    comments = []
    if row["copy"] > 1:
        comments.append(f"sending {row['copy']} of the segment ({row['because']})")
    if row["lost_why"] is not None:
        comments.append(f"lost at {row['lost_at']} ({row['lost_why']})")
    options = _option(COMMENT, "; ".join(comments).encode()) if comments else b""
    options += _option(DIRECTION, struct.pack("<I", 2 if row["leaves"] else 1)) + _option(0, b"")
    return _block(PACKET, fields + _padded(headers) + options)


def _headers(row: dict[str, Any], format_: Format) -> bytes:
    """Return the headers of a packet."""
    flow = row["flow"]
    ends = [(row["source"], 10000 + flow % 50000), (row["target"], 5001 + flow // 50000 % 50000)]
    hosts, ports = zip(*(reversed(ends) if row["is_answer"] else ends), strict=True)
    if row["kind"] not in FLAGS:
        inner = struct.pack(">HHHH", *ports, 8, 0)
        return _ipv4(hosts, UDP, 0, len(inner)) + inner
    flags, ecn = FLAGS[row["kind"]], ECT_0 if row["ecn"] else 0
    if row["marked"]:
        flags, ecn = (flags | ECE, ecn) if row["is_answer"] else (flags, CE)
    # Initial sequence numbers are 0, and a SYN takes one.
    sequence = 0 if flags & SYN else 1 + (0 if row["is_answer"] else row["offset"])
    acknowledged = 1 + (row["offset"] if row["is_answer"] else 0) if flags & ACK else 0
    options = _tcp_options(row, format_)
    # The checksum would cover payload, which the file lacks.
    numbers = sequence % 2**32, acknowledged % 2**32
    rest = 16 * (5 + len(options) // 4), flags, 65535, 0, 0
    inner = struct.pack(">HHIIBBHHH", *ports, *numbers, *rest) + options
    return _ipv4(hosts, TCP, ecn, len(inner) + row["length"]) + inner


def _tcp_options(row: dict[str, Any], format_: Format) -> bytes:
    """Return the options of a SYN (RFC 9293, 7323, 2018), or the SACK block of an ACK."""
    if row["kind"] in ("syn", "syn_ack"):
        sack_permitted = struct.pack("4B", 1, 1, 4, 2) if format_.has_sack else b""
        scale = struct.pack("4B", 1, 3, 3, WINDOW_SCALE)
        return struct.pack(">BBH", 2, 4, format_.payload) + scale + sack_permitted
    if row["sack_begin"] < row["sack_end"]:
        edges = ((row[name] + 1) % 2**32 for name in ("sack_begin", "sack_end"))
        return struct.pack(">4BII", 1, 1, 5, 10, *edges)
    return b""


def _ipv4(hosts: Sequence[int], protocol: int, ecn: int, length: int) -> bytes:
    """Return the IPv4 header between two hosts; host 0 is 10.0.0.1."""
    dont_fragment, time_to_live = 0x4000, 64
    begin = struct.pack(
        ">BBHHHBB", 0x45, ecn, 20 + length, 0, dont_fragment, time_to_live, protocol
    )
    addresses = struct.pack(">II", *((10 << 24) + 1 + host for host in hosts))
    total = sum(struct.unpack(">9H", begin + addresses))
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return begin + struct.pack(">H", checksum) + addresses
