"""Readers of exported files, independent of the writers."""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perfetto.protos.perfetto.trace import perfetto_trace_pb2


class Frame(NamedTuple):
    """Packet of a pcapng file, as an independent reader sees it."""

    place: str
    time_ns: int
    ecn: int
    sequence: int
    acknowledged: int
    flags: int
    length: int
    comment: str


def blocks(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Read the blocks of a pcapng file: type and body."""
    position = 0
    while position < len(content):
        kind, length = struct.unpack_from("<II", content, position)
        assert length % 4 == 0
        assert struct.unpack_from("<I", content, position + length - 4) == (length,)
        yield kind, content[position + 8 : position + length - 4]
        position += length


def options(content: bytes) -> dict[int, bytes]:
    """Read the options of a block."""
    found, position = {}, 0
    while position < len(content):
        code, length = struct.unpack_from("<HH", content, position)
        if code == 0:
            break
        found[code] = content[position + 4 : position + 4 + length]
        position += 4 + (length + 3) // 4 * 4
    return found


def frames(path: Path) -> list[Frame]:
    """Read the TCP packets of a pcapng file."""
    places, read = [], []
    for kind, body in blocks(path.read_bytes()):
        if kind == 1:
            assert struct.unpack_from("<H", body) == (101,)
            given_options = options(body[8:])
            assert given_options[9] == b"\x09", "nanoseconds"
            places.append(given_options[2].decode())
        if kind == 6:
            place, high, low, captured, length = struct.unpack_from("<5I", body)
            headers = body[20 : 20 + captured]
            words = struct.unpack(">10H", headers[:20])
            assert sum(words) % 0xFFFF == 0, "the IPv4 checksum"
            assert words[1] == length
            sequence, acknowledged, size, flags = struct.unpack_from(">IIBB", headers, 24)
            assert 20 + size // 4 == captured
            comment = options(body[20 + (captured + 3) // 4 * 4 :]).get(1, b"").decode()
            numbers = headers[1] & 3, sequence, acknowledged, flags, length - captured
            read.append(Frame(places[place], (high << 32) + low, *numbers, comment))
    return read


def read_trace(path: Path) -> tuple[dict[int, Any], list[Any]]:
    """Return the descriptors of a Perfetto trace's tracks by number, and its events."""
    trace = perfetto_trace_pb2.Trace()
    trace.ParseFromString(path.read_bytes())
    tracks = {packet.track_descriptor.uuid: packet.track_descriptor for packet in trace.packet}
    return tracks, [packet for packet in trace.packet if packet.HasField("track_event")]


def slices_of(events: Sequence[Any]) -> list[tuple[str, int, int, int]]:
    """Return name, depth, begin and end of all slices, in order of their ends."""
    stacks: dict[int, list[tuple[str, int]]] = {}
    slices = []
    for packet in events:
        event = packet.track_event
        stack = stacks.setdefault(event.track_uuid, [])
        if event.type == 1:
            stack.append((event.name, packet.timestamp))
        elif event.type == 2:
            name, begin = stack.pop()
            slices.append((name, len(stack), begin, packet.timestamp))
    assert not any(stacks.values()), "every slice ends"
    return slices
