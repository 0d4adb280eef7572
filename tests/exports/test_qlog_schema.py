"""Exported qlog and its official schema."""

import hashlib
import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sojourn.exports import qlog

from .test_exports import recorded

cbor2 = pytest.importorskip("cbor2", reason="pycddl is not installed")
pycddl = pytest.importorskip("pycddl", reason="pycddl is not installed")

VENDOR = Path(__file__).parent / "vendor"

BODIES = {
    "transport:packet_sent": "TransportPacketSent",
    "transport:packet_received": "TransportPacketReceived",
    "recovery:packet_lost": "RecoveryPacketLost",
    "recovery:metrics_updated": "RecoveryMetricsUpdated",
}
"""Rules of the events' data, which the rule of an event does not name."""

FRAMES = {"stream": "StreamFrame", "ack": "AckFrame", "ping": "PingFrame"}


@cache
def schema_of(rule: str) -> Any:
    """Return the schema of a rule; the first rule of a file is that of its documents."""
    rules = (VENDOR / "qlog.cddl").read_text(encoding="utf-8")
    # The validator takes the key `time` for the type of that name.
    return pycddl.Schema(f"root = {rule}\n{rules}".replace(" time: ", ' "time": '))


def validate(rule: str, value: Any) -> None:
    """Validate a value. Numbers with a decimal point in JSON are no integers in CBOR."""
    schema_of(rule).validate_cbor(cbor2.dumps(value))


def validate_document(document: dict[str, Any]) -> None:
    """Validate a document, the data of its events, and their frames.

    The validator does not find the type of a frame in the list of a packet.
    """
    validate("QlogFile", document)
    for trace in document["traces"]:
        for event in trace["events"]:
            data = dict(event["data"])
            for frame in data.pop("frames", []):
                validate(FRAMES[frame["frame_type"]], frame)
            validate(BODIES[event["name"]], data)


def exported(folder: Path) -> dict[str, Any]:
    file = folder / "flow.qlog"
    qlog.write(recorded(), file, 7)
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return document


def test_the_schema_is_the_published_one() -> None:
    source = tomllib.loads((VENDOR / "SOURCE.toml").read_text(encoding="utf-8"))
    content = (VENDOR / "qlog.cddl").read_bytes()
    assert {"qlog.cddl": hashlib.sha256(content).hexdigest()} == source["sha256"]


def test_an_exported_flow_satisfies_the_schema(tmp_path: Path) -> None:
    document = exported(tmp_path)
    validate_document(document)
    names = {event["name"] for trace in document["traces"] for event in trace["events"]}
    assert names == set(BODIES), "the flow has events of each kind"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("transport:packet_sent", {"trigger": "gap"}),
        ("transport:packet_received", {"header": {"packet_type": "data", "packet_number": 1}}),
        ("recovery:packet_lost", {"header": {"packet_number": 1}}),
        ("recovery:metrics_updated", {"congestion_window": 4000.5}),
        ("transport:packet_sent", {"frames": [{"frame_type": "stream", "stream_id": 0}]}),
    ],
)
def test_a_faulty_event_violates_the_schema(
    name: str, change: dict[str, Any], tmp_path: Path
) -> None:
    document = exported(tmp_path)
    event = next(it for it in document["traces"][0]["events"] if it["name"] == name)
    event["data"] |= change
    with pytest.raises(pycddl.ValidationError):
        validate_document(document)
