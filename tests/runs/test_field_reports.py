"""Small cases like those of public bug reports on simulators, with values by hand."""

import math
from pathlib import Path
from typing import Any

import pytest

from sojourn import Result, run

LINK = {"kind": "link", "rate": "1 Gbps", "delay": "20 ms"}
PACKET = {"payload": "1000 B", "header": "40 B"}


def one_flow(size: str, transport: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a scenario with one flow, as papers have it."""
    return {
        "environment": "paper",
        "transport": transport,
        "packet": PACKET,
        "time_limit": "100 s",
        "workload": {"kind": "flows", "flows": [{"source": 0, "target": 1, "size": size}]},
        **fields,
    }


def losing(folder: Path, *losses: tuple[int, int]) -> dict[str, Any]:
    """Return the link that loses transmissions: segments, and how often they were sent."""
    file = folder / "losses.csv"
    rows = [f"0,{segment},{time}" for segment, time in losses]
    file.write_text("\n".join(["flow,segment,time", *rows, ""]), encoding="utf-8")
    return {**LINK, "losses": str(file)}


def fct_ms(result: Result) -> float:
    return float(result.flows["fct_s"][0] * 1e3)


def counts(result: Result, *names: str) -> list[int]:
    return [result.summary["counts"][name] for name in names]


@pytest.mark.parametrize("recovery", ["new_reno", "reno", "selective_repeat", "rack"])
@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        # Ten segments leave at 40 ms. All are lost: timeout at 240 ms, then 1, 2, 4 and 3 segments.
        ([(segment, 1) for segment in range(1, 11)], (380, 1, 10)),
        # Segments 5 to 10: the ACKs at 80 ms restart the timer (280 ms), then 1, 2 and 3 segments.
        ([(segment, 1) for segment in range(5, 11)], (380, 1, 6)),
        # The fifth is lost twice more: timeouts at 280, 680 and 1480 ms.
        ([*((segment, 1) for segment in range(5, 11)), (5, 2), (5, 3)], (1580, 3, 8)),
    ],
    ids=["all", "tail", "tail thrice"],
)
def test_a_lost_tail_takes_timeouts_and_slow_start(
    losses: list[tuple[int, int]],
    expected: tuple[float, int, int],
    recovery: str,
    tmp_path: Path,
) -> None:
    transport = {"kind": "tcp", "reliability": {"recovery": recovery}}
    result = run(one_flow("10 KB", transport, topology=losing(tmp_path, *losses)))
    expected_ms, *expected_counts = expected
    assert fct_ms(result) == pytest.approx(expected_ms, abs=0.1)
    assert counts(result, "timeouts", "retransmits") == expected_counts


@pytest.mark.parametrize(
    ("second_lost", "timestamps", "expected_ms"),
    [(2, False, 780.03), (2, True, 580.03), (3, False, 580.03), (3, True, 580.03)],
)
def test_a_doubled_timeout_stays_until_there_is_a_sample(
    second_lost: int, timestamps: bool, expected_ms: float, tmp_path: Path
) -> None:
    # One segment at a time (RFC 6298 §5.5 and Karn). Without timestamps the ACK of a retransmission
    # gives no sample, so the second timeout is doubled, unless a segment in between gave a sample.
    transport = {
        "kind": "tcp",
        "window": {"initial": 1, "max": 1},
        "reliability": {"timestamps": timestamps},
    }
    topology = losing(tmp_path, (1, 1), (second_lost, 1))
    result = run(one_flow("4 KB", transport, topology=topology))
    assert fct_ms(result) == pytest.approx(expected_ms, abs=0.01)


def test_data_starts_with_three_seconds_after_a_spurious_timeout_of_the_syn() -> None:
    # RFC 6298 §5.7: windows of 1, 2, 4, 8 and 5 segments at an RTT of 2.5 s.
    scenario = one_flow(
        "20 KB",
        {"kind": "tcp", "reliability": {"timestamps": False}},
        topology={"kind": "link", "rate": "100 Mbps", "delay": "1250 ms"},
        environment="internet",
    )
    result = run(scenario)
    assert result.flows["fct_s"][0] == pytest.approx(5.5 * 2.5, rel=1e-3)
    assert counts(result, "retransmits") == [0]


def test_a_window_grows_only_while_it_is_used() -> None:
    # 20 segments may be in flight; Linux lets slow start double what is used.
    scenario = {
        "environment": "internet",
        "topology": {"kind": "link", "rate": "100 Mbps", "delay": "10 ms"},
        "transport": {"kind": "cubic", "reliability": {"receive_window": 20}},
        "samples": {"interval": "100 ms", "flows": [0]},
        "workload": {"kind": "long_lived", "flows": 1},
        "time_limit": "20 s",
    }
    windows = run(scenario).samples.filter(probe="window_bytes flow 0")["value"]
    assert 20 * 1448 <= float(windows.max()) <= 40 * 1448  # type: ignore[arg-type]


def test_a_short_flow_passes_a_long_one_of_its_host() -> None:
    long = {"source": 0, "target": 2, "size": "500 MB"}
    short = [{"source": source, "target": 3, "size": "10 KB"} for source in (0, 1)]
    scenario = {
        "topology": {
            "kind": "dumbbell",
            "senders": 2,
            "receivers": 2,
            "rate": "10 Gbps",
            "delay": "5 us",
            "bottleneck_rate": "40 Gbps",
        },
        "host": {"kernel": "linux"},
        "transport": "tcp",
        "workload": {
            "kind": "flows",
            "flows": [long, short[0] | {"start": "200 ms"}, short[1] | {"start": "300 ms"}],
        },
    }
    _, beside, alone = run(scenario).flows["fct_s"]
    # Handshake and data alone take three paths of 15 us and some packets.
    assert alone == pytest.approx(0.055e-3, rel=0.05)
    assert beside < 3 * alone


def test_codel_drops_at_the_times_of_its_control_law() -> None:
    # A first drop after 100 ms above the target, then one 100 ms / sqrt(n) after the n-th (RFC 8289
    # §5).
    scenario = {
        "environment": "paper",
        "topology": {
            "kind": "dumbbell",
            "senders": 1,
            "receivers": 1,
            "rate": "1 Gbps",
            "delay": "10 us",
            "bottleneck_rate": "10 Mbps",
        },
        "transport": {"kind": "constant_rate", "rate": "20 Mbps"},
        "packet": {"payload": "1472 B", "header": "28 B"},
        "queue": "codel",
        "workload": {"kind": "long_lived", "flows": 1},
        "time_limit": "4 s",
    }
    due, drops = 0.11, 0
    while due < 4:
        drops += 1
        due += 0.1 / math.sqrt(drops)
    assert counts(run(scenario), "drops")[0] == pytest.approx(drops, abs=2)


def test_an_incast_of_a_thousand_flows_is_lossless_with_pause_frames() -> None:
    incast = {"kind": "incast", "fan_in": 143, "size": "8 KB", "target": 0, "events": 1}
    scenario = {
        "environment": "paper",
        "topology": {"kind": "leaf_spine"},
        "transport": "dcqcn",
        "switch": {"shared_buffer": "8 MB", "pause": {}},
        "workload": {"kind": "mixed", "parts": [incast | {"interval": "1 s"}] * 7},
        "time_limit": "100 ms",
    }
    result = run(scenario)
    assert counts(result, "drops", "finished") == [0, 1001]
    # 1001 flows of eight packets of 1040 B at 10 Gb/s.
    last = result.flows["fct_s"].max()
    assert last == pytest.approx(1001 * 8 * 1040 * 8 / 10e9, rel=0.002)


def test_a_receiver_sends_an_ack_for_every_so_many_packets() -> None:
    flows = [{"source": source, "target": 1, "size": "1600 KB"} for source in (0, 2)]
    scenario = {
        "environment": "paper",
        "topology": {"kind": "star", "hosts": 3},
        "transport": {"kind": "dcqcn", "ack_every": 16},
        "workload": {"kind": "flows", "flows": flows},
        "time_limit": "1 s",
    }
    hops = run(scenario).summary["counts"]["packet_hops"]
    # 1600 packets and 100 ACKs a flow, each over two links; CNPs count with the ACKs.
    assert hops["data"] == 2 * 2 * 1600
    assert 0 <= hops["ack"] - 2 * 2 * 100 < 40


@pytest.mark.parametrize("loss", [1e-4, 1e-3, 1e-2])
def test_go_back_n_sends_a_round_trip_again_for_each_loss(loss: float, tmp_path: Path) -> None:
    cable = tmp_path / "cable.csv"
    cable.write_text(
        f"from,to,rate,delay,loss\nh0,s,100 Gbps,1 us,0\ns,h1,100 Gbps,1 us,{loss}\n",
        encoding="utf-8",
    )
    scenario = one_flow(
        "100 MB",
        {"kind": "dcqcn", "reliability": {"nack_interval": "10 us"}},
        topology={"kind": "graph", "file": str(cable)},
        packet={"payload": "1000 B", "header": "48 B", "ack": "60 B"},
    )
    # An RTT of 4.1 us holds 49 packets of 1048 B, and the lost one.
    window = 4.1e-6 * 100e9 / 8 / 1048 + 1
    expected = run(scenario).flows["ideal_fct_s"][0] * (1 + loss * window / (1 - loss))
    assert run(scenario).flows["fct_s"][0] == pytest.approx(expected, rel=0.03)


def test_bbr_measures_the_bandwidth_that_the_receive_window_allows() -> None:
    scenario = one_flow(
        "100 MB",
        {"kind": "bbr", "reliability": {"receive_window": 793}},
        topology={"kind": "link", "rate": "500 Mbps", "delay": "50 ms"},
        samples={"interval": "100 ms", "flows": [0]},
    )
    result = run(scenario)
    # A window of 793 KB per RTT of 100 ms: 63.44 Mb/s.
    bandwidth = result.samples.filter(probe="bandwidth_bps flow 0")["value"].max()
    assert bandwidth == pytest.approx(793e3 * 8 / 0.1, rel=0.002)
    assert 100e6 / 7.93e6 < result.flows["fct_s"][0] < 100e6 / 7.93e6 + 1.5


def test_a_stack_on_a_slow_link_has_the_goodput_of_its_headers() -> None:
    scenario = one_flow(
        "10 MiB",
        {"kind": "cubic"},
        host={"kernel": "linux"},
        topology={"kind": "link", "rate": "10 Mbps", "delay": "15 ms"},
        queue={"kind": "drop_tail", "capacity": "25 packets"},
        packet={"payload": "1252 B", "header": "42 B"},
    )
    goodput = 10 * 2**20 * 8 / run(scenario).flows["fct_s"][0]
    most = 10e6 * 1252 / 1294
    assert 0.985 * most < goodput <= most


def test_rack_adapts_to_reordering_without_loss(tmp_path: Path) -> None:
    paths = tmp_path / "paths.csv"
    rows = ["h0,s0,1", "s0,a,10", "a,s1,10", "s0,b,20", "b,s1,20", "s1,h1,1"]
    links = [f"{start},{end},10 Gbps,{delay} us" for start, end, delay in map(_split, rows)]
    paths.write_text("\n".join(["from,to,rate,delay", *links, ""]), encoding="utf-8")
    scenario = {
        "topology": {"kind": "graph", "file": str(paths)},
        "routing": "spray_round_robin",
        "host": {"kernel": "linux"},
        "transport": "tcp",
        "queue": {"kind": "drop_tail", "capacity": "2 MB"},
        "workload": {"kind": "flows", "flows": [{"source": 0, "target": 1, "size": "500 MB"}]},
        "time_limit": "3 s",
    }
    result = run(scenario)
    # 1448 of 1500 B at 10 Gb/s.
    assert fct_ms(result) == pytest.approx(500e6 * 1500 / 1448 * 8 / 10e9 * 1e3, rel=0.01)
    assert counts(result, "retransmits")[0] < 20


def _split(row: str) -> tuple[str, str, str]:
    start, end, delay = row.split(",")
    return start, end, delay
