"""Exports of hand-made tables: a flow of four segments, of which one is lost."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.readers import frames, read_trace, slices_of
from sojourn import Result, ScenarioError, cli
from sojourn.exports import pcapng, perfetto, qlog
from sojourn.runs import result_tables

US = 10**6
"""Picoseconds in a microsecond."""


def packet(kind: str, number: int, sent_us: int, **more: Any) -> dict[str, Any]:
    """Return a row of `packets.parquet`; the packet arrives 10 us later, unless it is lost."""
    row = {"flow": 7, "kind": kind, "number": number, "from": 0, "to": 0, "bytes": 1040, "copy": 1}
    row |= {"because": "none", "ecn": kind == "data", "marked": False, "sent_ps": sent_us * US}
    lost = dict.fromkeys(("lost_ps", "lost_at", "lost_why"))
    return row | {"arrived_ps": (sent_us + 10) * US} | lost | more


LOST = {"arrived_ps": None, "lost_ps": 25 * US, "lost_at": "left->right", "lost_why": "queue"}
PACKETS = [
    packet("syn", 0, 0),
    packet("syn_ack", 0, 10),
    packet("data", 0, 20),
    packet("data", 1, 21, **LOST),
    packet("data", 2, 22, marked=True),
    packet("data", 3, 23),
    packet("ack", 1, 30),
    packet("ack", 1, 32, **{"from": 2, "to": 3, "marked": True}),
    packet("ack", 1, 33, **{"from": 2, "to": 4}),
    packet("data", 1, 43, copy=2, because="gap"),
    packet("ack", 4, 53),
]
FLOW = {"flow": 7, "source": 0, "target": 3, "size_bytes": 3500, "outcome": "finished"}
FLOW |= {"start_s": 0.0, "fct_s": 53e-6, "class": "all"}
LATER = FLOW | {"flow": 8, "start_s": 70e-6, "fct_s": None, "outcome": "unfinished"}
SCENARIO = {
    "name": "four segments",
    "packet": {"payload": "1 KB", "sack": True},
    "transport": {"kind": "tcp", "reliability": {"recovery": "selective_repeat"}},
    "transports": {},
}
SUMMARY = {
    "scenario": SCENARIO,
    "record": {"bin_ps": 10 * US, "flows": [{"flow": 7, "every": 1, "every_lost": 1}]},
    "links": [{"name": "left->right", "rate_bps": 1e9}, {"name": "right->left", "rate_bps": 1e9}],
    "simulated_s": 80e-6,
}
CHAIN = [
    {"reason": "handshake", "begins_ps": 0, "propagation_ps": 20 * US, "queue_others_there_ps": 0},
    {"reason": "recovery_gap", "begins_ps": 20 * US, "propagation_ps": 20 * US}
    | {"queue_others_there_ps": 3 * US},
    {"reason": "flight", "begins_ps": 43 * US, "propagation_ps": 4 * US + 1}
    | {"queue_others_there_ps": 6 * US - 1},
]


def recorded(**changes: Any) -> Result:
    """Return the result of the hand-made flow; `changes` are other tables or summaries."""
    rows = {
        result_tables.PACKETS: PACKETS,
        result_tables.CHAIN: [{"flow": 7, **piece} for piece in CHAIN],
        result_tables.GAUGES: [
            {"flow": 7, "time_ps": time_us * US, "gauge": gauge, "value": value}
            for time_us, gauge, value in (
                (20, "window_bytes", 4000.0),
                (43, "window_bytes", 2000.0),
                (43, "smoothed_rtt_s", 20e-6),
                (43, "alpha", 0.5),
            )
        ],
        result_tables.SERIES: [
            {"link": "left->right", "bin": 2, "bytes": 625, "queue_mean_bytes": 300.0},
            {"link": "left->right", "bin": 5, "bytes": 1250, "queue_mean_bytes": 0.0},
        ],
        result_tables.HOPS: [
            {"link": "left->right", "came_ps": row["sent_ps"], "starts_ps": starts_ps, **row}
            for row, starts_ps in ((PACKETS[2], 21 * US), (PACKETS[3], None), (PACKETS[4], 22 * US))
        ],
    }
    tables = {
        name: pl.DataFrame(table, schema_overrides=result_tables.EMPTY_SCHEMAS[name])
        for name, table in rows.items()
    }
    tables[result_tables.HOPS] = tables[result_tables.HOPS].select(
        *(
            name
            for name in result_tables.EMPTY_SCHEMAS[result_tables.HOPS]
            if name in tables[result_tables.HOPS]
        )
    )
    numbers: Any = {"flow": pl.UInt64, "size_bytes": pl.UInt64}
    numbers |= {"source": pl.UInt32, "target": pl.UInt32}
    flows = pl.DataFrame([FLOW, LATER], schema_overrides=numbers)
    return Result(flows, pl.DataFrame(), SUMMARY | changes, tables)


def nothing_recorded(**changes: Any) -> Result:
    """Return a result without recorded tables, of a scenario with changes."""
    complete = recorded()
    scenario = complete.summary["scenario"] | changes
    return Result(complete.flows, complete.samples, {**SUMMARY, "scenario": scenario})


def test_a_capture_at_the_sender_has_its_sendings_and_arriving_acks(tmp_path: Path) -> None:
    file = tmp_path / "flows.pcapng"
    assert pcapng.write(recorded(), file) == ["11 packets of 1 flow at host 0"]
    read = frames(file)
    assert [frame.time_ns // 1000 for frame in read] == [0, 20, 20, 21, 22, 23, 40, 42, 43, 43, 63]
    # The SYN-ACK precedes the data that it permits.
    syn, ack = 2, 16
    assert [frame.flags for frame in read[:3]] == [syn, syn | ack, ack]
    data = [frame for frame in read if frame.length]
    assert [frame.sequence for frame in data] == [1, 1001, 2001, 3001, 1001]
    assert [frame.length for frame in data] == [1000, 1000, 1000, 500, 1000]
    assert {frame.ecn for frame in data} == {2}, "no packet is marked yet"
    assert [frame.comment for frame in data] == [
        *("", "lost at left->right (queue)", "", ""),
        "sending 2 of the segment (gap)",
    ]
    acks = [frame for frame in read if frame.flags & ack and not frame.length]
    assert [frame.acknowledged for frame in acks] == [1, 1001, 1001, 1001, 3501]
    assert [bool(frame.flags & 64) for frame in acks] == [False, False, True, False, False]


def test_a_capture_at_the_receiver_lacks_lost_packets_and_shows_marks(tmp_path: Path) -> None:
    file = tmp_path / "flows.pcapng"
    pcapng.write(recorded(), file, at="3", flow=7)
    data = [frame for frame in frames(file) if frame.length]
    assert [(frame.sequence, frame.ecn) for frame in data] == [
        *((1, 2), (2001, 3), (3001, 2)),
        (1001, 2),
    ]
    assert {frame.place for frame in data} == {"host 3"}


def test_a_capture_at_a_link_has_all_packets_that_it_transmits(tmp_path: Path) -> None:
    file = tmp_path / "link.pcapng"
    notes = pcapng.write(recorded(), file, at="left->right")
    assert notes[0] == "2 packets of 1 flow at left->right"
    assert [(frame.place, frame.time_ns, frame.sequence) for frame in frames(file)] == [
        ("left->right", 21_000, 1),
        ("left->right", 22_000, 2001),
    ]


def test_captures_and_traces_state_that_packets_are_missing(tmp_path: Path) -> None:
    thin = recorded(record={"bin_ps": 10 * US, "flows": [{"flow": 7, "every": 1, "every_lost": 4}]})
    expected = (
        "packets are missing: of 1 flow at least one in 4 is recorded; raise `record.packets`"
    )
    assert pcapng.write(thin, tmp_path / "a") == ["11 packets of 1 flow at host 0", expected]
    assert expected in (tmp_path / "a").read_bytes().decode(errors="replace")
    assert qlog.write(thin, tmp_path / "b", 7)[1:] == [expected]


@pytest.mark.parametrize(
    ("export", "message"),
    [
        (
            lambda result, file: pcapng.write(result, file, flow=9),
            "--flow 9: the run has flows",
        ),
        (lambda result, file: pcapng.write(result, file, at="5"), "--at 5: no recorded flow"),
        (lambda result, file: pcapng.write(result, file, at="left->rigth"), "did you mean `left->"),
        (lambda result, file: pcapng.write(result, file, at="right->left"), "record.hops = "),
        (lambda result, file: qlog.write(result, file, 8), "--flow 8: has no recorded.*: 7"),
        (lambda _, file: pcapng.write(nothing_recorded(), file), "no packets are recorded"),
        (lambda _, file: qlog.write(nothing_recorded(), file, 7), "no packets are recorded"),
        (lambda _, file: qlog.write(nothing_recorded(record="none"), file, 7), "no packets are"),
        (lambda _, file: pcapng.write(nothing_recorded(record={}), file), "`record.flows` names"),
        (lambda _, file: perfetto.write(nothing_recorded(), file), "nothing is recorded"),
    ],
)
def test_an_export_of_packets_that_were_not_recorded_is_an_error(
    export: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError, match=message):
        export(recorded(), tmp_path / "file")
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("recovery", "acknowledged"),
    [("selective_repeat", [[0, 0], [2, 4]]), ("go_back_n", [[0, 0], [4, 4]])],
)
def test_qlog_acknowledges_packets_that_the_receiver_keeps(
    recovery: str, acknowledged: list[list[int]], tmp_path: Path
) -> None:
    transport = {"kind": "dcqcn", "reliability": {"recovery": recovery}}
    scenario = SCENARIO | {"transport": transport}
    file = tmp_path / "flow.qlog"
    qlog.write(recorded(scenario=scenario), file, 7)
    received = [
        event["data"]["frames"][0]
        for event in json.loads(file.read_text())["traces"][0]["events"]
        if event["name"] == "transport:packet_received"
    ]
    assert received[-1]["acked_ranges"] == acknowledged


def test_qlog_has_one_packet_number_for_each_sending_and_ordered_times(tmp_path: Path) -> None:
    file = tmp_path / "flow.qlog"
    qlog.write(recorded(), file, 7)
    document = json.loads(file.read_text())
    assert (document["qlog_version"], document["qlog_format"]) == ("0.3", "JSON")
    (trace,) = document["traces"]
    assert trace["vantage_point"]["type"] == "client"
    assert trace["common_fields"]["time_format"] == "relative"
    events = trace["events"]
    assert all(set(event) == {"time", "name", "data"} for event in events)
    times = [event["time"] for event in events]
    assert times == sorted(times)

    def of(name: str) -> list[Any]:
        return [event["data"] for event in events if event["name"] == name]

    sent = [data for data in of("transport:packet_sent") if data["frames"][0] != PING]
    assert [data["header"]["packet_number"] for data in sent] == [0, 1, 2, 3, 4]
    assert [data["frames"][0]["offset"] for data in sent] == [0, 1000, 2000, 3000, 1000]
    assert [data.get("trigger") for data in sent] == [None] * 4 + ["retransmit_reordered"]
    assert [data["frames"][0]["fin"] for data in sent] == [False, False, False, True, False]
    received = [data["frames"][0] for data in of("transport:packet_received")]
    ranges = [frame["acked_ranges"] for frame in received if frame != PING]
    assert ranges == [[[0, 0]], [[0, 0], [2, 2]], [[0, 0], [2, 3]], [[0, 0], [2, 4]]]
    (lost,) = of("recovery:packet_lost")
    assert (lost["header"]["packet_number"], lost["trigger"]) == (1, "reordering_threshold")
    assert of("recovery:metrics_updated") == [
        {"congestion_window": 4000.0},
        {"congestion_window": 2000.0, "smoothed_rtt": pytest.approx(0.02)},
    ]


PING = {"frame_type": "ping"}


@given(st.lists(st.integers(0, 30), unique=True))
def test_ranges_contain_the_inserted_numbers_and_are_not_adjacent(numbers: list[int]) -> None:
    ranges: list[list[int]] = []
    for number in numbers:
        qlog._insert(ranges, number)
    covered = [number for low, high in ranges for number in range(low, high + 1)]
    assert covered == sorted(numbers)
    assert all(left[1] + 1 < right[0] for left, right in pairwise(ranges))


def test_perfetto_slices_nest_and_last_as_long_as_the_flow(tmp_path: Path) -> None:
    file = tmp_path / "run.pftrace"
    perfetto.write(recorded(), file)
    tracks, events = read_trace(file)
    times = [packet.timestamp for packet in events]
    assert times == sorted(times)
    slices = slices_of(events)
    assert [(name, depth) for name, depth, *_ in slices] == [
        *(("handshake", 2), ("handshake", 1)),
        *(("loss recovery", 2), ("cross-traffic queueing", 2), ("loss recovery", 1)),
        *(("last packet", 2), ("cross-traffic queueing", 2), ("last packet", 1)),
        ("flow 7: host 0 to host 3, 3.5 KB", 0),
    ]
    assert slices[-1][2:] == (0, 53_000)
    # A part that ends 1 ps after a nanosecond ends at that nanosecond.
    assert slices[-4][2:] == (43_000, 47_000)
    instants = [packet.track_event.name for packet in events if packet.track_event.type == 3]
    assert instants == ["data lost at left->right (queue)", "marked data arrives"]
    counters: dict[str, list[tuple[int, float]]] = {}
    for packet in events:
        event = packet.track_event
        if event.type == 4:
            name = tracks[event.track_uuid].name
            value = packet.timestamp // 1000, event.double_counter_value
            counters.setdefault(name, []).append(value)
    assert counters["flows in progress"] == [(0, 1), (53, 0), (70, 1), (80, 0)]
    assert counters["window"] == [(20, 4000), (43, 2000)]
    assert counters["queue"] == [(0, 0), (20, 300), (30, 0)]
    assert counters["utilisation"] == [(0, 0), (20, 50), (30, 0), (50, 100), (60, 0)]
    parents = {track.name: tracks[track.parent_uuid].name for track in tracks.values()}
    assert (parents["window"], parents["queue"]) == ("flow 7", "left->right")


def test_terminated_flows_are_not_in_progress_in_a_trace(tmp_path: Path) -> None:
    file, result = tmp_path / "run.pftrace", recorded()
    outcome = pl.when(pl.col("flow") == 8).then(pl.lit("terminated")).otherwise("outcome")
    perfetto.write(result.with_flows(result.flows.with_columns(outcome=outcome)), file)
    tracks, events = read_trace(file)
    counted = [
        (packet.timestamp // 1000, packet.track_event.double_counter_value)
        for packet in events
        if tracks[packet.track_event.track_uuid].name == "flows in progress"
    ]
    assert counted == [(0, 1), (53, 0)]


def test_the_command_writes_each_file_and_states_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    recorded().write("run")
    options = ["--pcap", "a.pcapng", "--qlog", "a.qlog", "--flow", "7", "--perfetto", "a.pftrace"]
    assert cli.invoke(["export", "run", *options]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "written to a.pcapng: 11 packets of 1 flow at host 0",
        "written to a.qlog: 14 events of flow 7",
        "written to a.pftrace: 36 events of 1 flow and 1 link",
    ]
    assert all(Path(name).stat().st_size for name in options if name.startswith("a."))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "expected at least one of --pcap FILE, --qlog FILE, --perfetto FILE"),
        (["--perfetto", "a", "--at", "3"], "--at: needs --pcap FILE"),
        (["--qlog", "a"], "--qlog: needs --flow N, one recorded flow"),
        (["--pcap", "a", "--flow", "8"], "run: --flow 8: has no recorded packets"),
        (["--pcap", "a", "--flow", str(10**30)], f"run: --flow {10**30}: the run has flows"),
        (["--pcap", "a", "--at", str(10**30)], f"run: --at {10**30}: no recorded flow"),
        (["--pcap", "run"], "run: Is a directory"),
    ],
)
def test_a_wrong_command_line_is_an_error_in_one_line(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    recorded().write("run")
    assert cli.invoke(["export", "run", *options]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"sojourn: {message}")
    assert printed.err.count("\n") == 1
    assert not printed.out


def test_a_path_that_is_not_a_result_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["export", str(tmp_path), "--pcap", str(tmp_path / "a")]) == 2
    expected = f"sojourn: {tmp_path}: expected a folder that `sojourn run --out` wrote\n"
    assert capsys.readouterr().err == expected
