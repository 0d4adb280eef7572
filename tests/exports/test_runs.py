"""Exports of runs: against the results, and against tshark's analysis where it is installed."""

import functools
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn
from exports.readers import frames, read_trace, slices_of
from sojourn import Result
from sojourn.exports import pcapng, perfetto, qlog
from sojourn.exports.recorded import with_bytes

TCP: dict[str, Any] = {
    "environment": "internet",
    "topology": {"kind": "dumbbell", "senders": 4, "receivers": 4}
    | {"rate": "20 Mbps", "delay": "5 ms"},
    "transport": "tcp",
    "queue": {"kind": "drop_tail", "capacity": "20 KB"},
    "workload": {
        "kind": "poisson",
        "load": 0.8,
        "flows": 60,
        "sizes": {"kind": "uniform", "min": "1 B", "max": "300 KB"},
    },
    "time_limit": "60 s",
    "account": True,
    "record": {"flows": list(range(60)), "hops": ["left->right"]},
}
RDMA: dict[str, Any] = {name: value for name, value in TCP.items() if name != "queue"} | {
    "environment": "paper",
    "topology": TCP["topology"] | {"rate": "1 Gbps", "delay": "5 us"},
}
SCENARIOS = {
    "tcp": TCP,
    "losses": TCP | {"topology": TCP["topology"] | {"loss": 0.03, "ack_loss": 0.02}},
    "new_reno": TCP | {"transport": {"kind": "tcp", "reliability": {"recovery": "new_reno"}}},
    "bbr": TCP | {"transport": "bbr"},
    "dctcp": RDMA | {"transport": "dctcp"},
    "dcqcn": RDMA | {"transport": "dcqcn"},
}
FIELDS = {
    "ip.src": pl.String,
    "tcp.srcport": pl.UInt32,
    "tcp.dstport": pl.UInt32,
    "tcp.len": pl.UInt64,
    "tcp.ack_raw": pl.UInt64,
    "tcp.analysis.ack_rtt": pl.String,
    **dict.fromkeys(
        (
            "tcp.analysis.retransmission",
            "tcp.analysis.out_of_order",
            "tcp.analysis.lost_segment",
            "_ws.malformed",
        ),
        pl.String,
    ),
}


@functools.cache
def run(name: str) -> Result:
    """Return the result of a scenario."""
    return sojourn.run(SCENARIOS[name])


def tshark(file: Path) -> pl.DataFrame:
    """Return a row for each packet, with the columns `FIELDS` and the `flow`."""
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("tshark is not installed: captures were not checked against it")
    command = [program, "-r", str(file), "-T", "fields", "-E", "occurrence=f"]
    command += [word for name in FIELDS for word in ("-e", name)]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    options: Any = {"separator": "\t", "has_header": False, "schema": FIELDS}
    rows = pl.read_csv(io.BytesIO(printed), **options, quote_char=None)
    # Congestion notifications are UDP. Ports of senders are 10000 and more.
    return rows.drop_nulls("tcp.len").with_columns(
        flow=pl.max_horizontal("tcp.srcport", "tcp.dstport") - 10000
    )


def round_trips(result: Result) -> pl.DataFrame:
    """Return `flow`, `tcp.ack_raw` and `rtt_ns` of the first ACK of each segment sent once."""
    packets = with_bytes(result.packets, result)
    data = packets.filter(kind="data").group_by("flow", end=pl.col("offset") + pl.col("length"))
    once = data.agg(pl.col("sent_ps").first(), sendings=pl.len()).filter(sendings=1)
    acks = packets.filter(kind="ack").group_by("flow", end="offset")
    acked = once.join(acks.agg(pl.col("arrived_ps").min()), on=["flow", "end"])
    return acked.drop_nulls("arrived_ps").select(
        pl.col("flow").cast(pl.UInt32),
        (pl.col("end") + 1).alias("tcp.ack_raw"),
        rtt_ns=(pl.col("arrived_ps") - pl.col("sent_ps")) / 1000,
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_tshark_finds_the_retransmissions_round_trips_and_sizes(name: str, tmp_path: Path) -> None:
    result = run(name)
    pcapng.write(result, tmp_path / "flows.pcapng")
    rows = tshark(tmp_path / "flows.pcapng")
    assert rows["_ws.malformed"].is_null().all()
    assert rows["tcp.analysis.lost_segment"].is_null().all()
    again = pl.any_horizontal(
        pl.col("tcp.analysis.retransmission", "tcp.analysis.out_of_order").is_not_null()
    )
    # SYNs that are sent again are not `retransmits`, which counts data.
    by_flow = rows.group_by("flow").agg(
        retransmits=(again & (pl.col("tcp.len") > 0)).sum(),
        size_bytes=pl.col("tcp.len").filter(~again).sum(),
    )
    expected = result.flows.select("flow", "retransmits", "size_bytes")
    sizes = by_flow.join(expected.cast({"flow": pl.UInt32}), on="flow", how="left")
    assert sizes["retransmits"].equals(sizes["retransmits_right"])
    assert sizes["size_bytes"].equals(sizes["size_bytes_right"])
    assert sizes.height == result.flows.height
    ours = round_trips(result)
    theirs = rows.drop_nulls("tcp.analysis.ack_rtt").join(ours, on=["flow", "tcp.ack_raw"])
    assert theirs.height == ours.height
    error = theirs["tcp.analysis.ack_rtt"].cast(pl.Float64) * 1e9 - theirs["rtt_ns"]
    assert error.abs().to_numpy().max() <= 1.001


def test_a_capture_at_a_link_has_the_packets_that_it_did_not_drop(tmp_path: Path) -> None:
    result = run("tcp")
    pcapng.write(result, tmp_path / "link.pcapng", at="left->right")
    captured = frames(tmp_path / "link.pcapng")
    assert result.hops["dropped"].sum() > 0
    assert len(captured) == result.hops.filter(dropped=False).height
    data = result.packets.filter(kind="data").drop_nulls("arrived_ps")
    payload = with_bytes(data, result)["length"].sum()
    assert sum(frame.length for frame in captured) == payload


@pytest.mark.parametrize("name", ["losses", "dcqcn"])
def test_qlog_acknowledges_and_loses_only_packets_that_were_sent(name: str, tmp_path: Path) -> None:
    result = run(name)
    for flow in result.flows.sort("retransmits")["flow"].tail(5):
        qlog.write(result, tmp_path / "flow.qlog", flow)
        (trace,) = json.loads((tmp_path / "flow.qlog").read_text())["traces"]
        times = [event["time"] for event in trace["events"]]
        assert times == sorted(times)
        sent, acked, lost = set(), set(), []
        for event in trace["events"]:
            data = event["data"]
            if event["name"] == "recovery:metrics_updated":
                continue
            number = data["header"]["packet_type"], data["header"]["packet_number"]
            if event["name"] == "transport:packet_sent":
                assert number not in sent
                sent.add(number)
            elif event["name"] == "recovery:packet_lost":
                assert number in sent
                lost.append(number)
            for low, high in data.get("frames", [{}])[0].get("acked_ranges", ()):
                acked |= {("1RTT", number) for number in range(low, high + 1)}
                assert acked <= sent
        packets = result.packets.filter(flow=flow, kind="data")
        assert len(lost) == packets.filter(pl.col("because").is_in(["gap", "timeout"])).height
        assert len(acked) >= packets.n_unique("number")


@pytest.mark.parametrize("name", ["losses", "dcqcn"])
def test_perfetto_slices_of_flows_last_for_their_fcts(name: str, tmp_path: Path) -> None:
    result = run(name)
    perfetto.write(result, tmp_path / "run.pftrace")
    _, events = read_trace(tmp_path / "run.pftrace")
    found = {
        int(re.findall(r"\d+", title)[0]): (begin, end)
        for title, depth, begin, end in slices_of(events)
        if depth == 0
    }
    flows = result.flows.select("flow", "start_s", end_s=pl.col("start_s") + pl.col("fct_s"))
    assert sorted(found) == flows["flow"].to_list()
    for flow, start_s, end_s in flows.iter_rows():
        begin, end = found[flow]
        assert begin == pytest.approx(start_s * 1e9, abs=1)
        assert end == pytest.approx(end_s * 1e9, abs=1)


def test_perfetto_utilisation_is_a_share_of_the_rate_of_that_time(tmp_path: Path) -> None:
    rates = {"name": "rates", "text": "time_s,rate_bps\n0,40e6\n0.8,10e6\n1.2,0\n1.4,20e6\n"}
    result = sojourn.run(
        {
            "transport": "cubic",
            "time_limit": "2 s",
            "topology": {"kind": "link", "delay": "1 ms", "rate_trace": rates},
            "workload": {"kind": "long_lived", "flows": 1},
            "account": True,
            "record": {"bins": 20},
        }
    )
    perfetto.write(result, tmp_path / "run.pftrace")
    tracks, events = read_trace(tmp_path / "run.pftrace")
    parents = {
        uuid: tracks[track.parent_uuid].name for uuid, track in tracks.items() if track.parent_uuid
    }
    shares = [
        event.double_counter_value
        for event in (packet.track_event for packet in events)
        if event.type == 4
        and tracks[event.track_uuid].name == "utilisation"
        and parents[event.track_uuid] == "left->right"
    ]
    # The last bins are that in which the run ends, and the end of the series.
    assert len(shares) > 10
    assert shares[:-2] == pytest.approx([100] * (len(shares) - 2), abs=2)
