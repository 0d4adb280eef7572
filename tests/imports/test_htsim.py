"""Import of connection matrices and topologies of htsim."""

from pathlib import Path

import pytest

import sojourn
from imports.conftest import Convert, write

TWO_TIERS = """# A comment
Nodes 8
Tiers 2
Podsize 8

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 300
Oversubscribed 2

Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Downlink_Latency_ns 500
"""

THREE_TIERS = """nodes 16
tiers 3
podsize 4
tier 0
downlink_speed_gbps 100
radix_down 2
radix_up 2
downlink_latency_ns 1000
tier 1
downlink_speed_gbps 100
radix_down 2
radix_up 4
downlink_latency_ns 1000
queue_up 10000
tier 2
downlink_speed_gbps 100
radix_down 8
downlink_latency_ns 1000
bundle 2
"""

MATRIX = """Nodes 8
Connections 4
Triggers 2
0->4 id 1 start 0 size 1000000 send_done_trigger 1
0->5 id 2 trigger 1 size 1000000 send_done_trigger 2
0->6 id 3 trigger 2 size 1000000
5->2 id 4 start 20000000 size 4096
trigger id 1 oneshot
trigger id 2 oneshot
"""


def test_two_tiers_are_wired_as_in_htsim(convert: Convert) -> None:
    imported = convert({"fabric.topo": TWO_TIERS})
    rows = imported.texts["topology.csv"].splitlines()
    # Eight hosts; two racks with two cables each, to the spines agg0 and agg1.
    assert len(rows) == 1 + 8 + 4
    assert rows[0] == "from,to,rate,delay,reverse_delay"
    # A ToR switch delays packets to its hosts and to spines by 300 ns.
    assert rows[5] == "h4,tor1,100 Gbps,1 us,1300 ns"
    assert rows[9:] == [
        "tor0,agg0,100 Gbps,800 ns,500 ns",
        "tor0,agg1,100 Gbps,800 ns,500 ns",
        "tor1,agg0,100 Gbps,800 ns,500 ns",
        "tor1,agg1,100 Gbps,800 ns,500 ns",
    ]


def test_the_summary_states_rates_delays_and_other_numbers_of_hosts(convert: Convert) -> None:
    imported = convert({"fabric.topo": TWO_TIERS, "flows.cm": MATRIX})
    assert "fabric.topo: rates 100 Gbps, delays 500 ns to 1300 ns" in imported.lines
    assert "states" not in "\n".join(imported.lines)
    imported = convert({"fabric.topo": TWO_TIERS, "flows.cm": MATRIX.replace("8", "32", 1)})
    assert "flows.cm states 32 hosts, and fabric.topo has 8" in imported.lines


def test_three_tiers_are_wired_as_in_htsim(convert: Convert) -> None:
    imported = convert({"fabric.topo": THREE_TIERS})
    rows = imported.texts["topology.csv"].splitlines()
    # 4 pods of 2 racks and 2 aggregation switches, which have 4 cables up each, 2 to each core.
    assert len(rows) == 1 + 16 + 4 * 2 * 2 + 8 * 4
    up = sorted(row.split(",")[1] for row in rows if row.startswith(("agg2,", "agg3,")))
    # The first switch of a pod has the cores 0 and 2, the second 1 and 3.
    assert up == ["core0", "core0", "core1", "core1", "core2", "core2", "core3", "core3"]
    assert "queue sizes of tiers are dropped" in "\n".join(imported.lines)


def test_triggered_flows_start_one_after_the_other(convert: Convert, tmp_path: Path) -> None:
    imported = convert({"fabric.topo": TWO_TIERS, "flows.cm": MATRIX})
    assert imported.texts["flows.csv"] == (
        "start_s,source,target,size_bytes,after\n0,h0,h4,1000000,\n0.00002,h5,h2,4096,\n"
        "0,h0,h5,1000000,0\n0,h0,h6,1000000,2\n"
    )
    result = sojourn.run(sojourn.read(write(imported, tmp_path)))
    flows = result.flows.sort("flow")
    ends = (flows["start_s"] + flows["fct_s"]).to_list()
    # Payloads alone take 80 us each at 100 Gb/s; the four cables of a path are 1 + 0.8 + 0.5 +
    # 1.3 us, and an ACK takes them back before the next flow starts.
    assert ends[0] > 80e-6 + 3.6e-6
    assert flows["start_s"][2] > ends[0] + 3.6e-6
    assert 3 * (80e-6 + 3.6e-6) < ends[3] < 3 * 120e-6


def test_barriers_units_and_priorities(convert: Convert) -> None:
    # Host 1 sends on when it has received a flow and sent its own: a step of a ring.
    ring = (
        "Nodes 3\nConnections 3\nTriggers 1\n1->2 id 3 trigger 7 size 10 prio 2\n"
        "0->1 id 1 start 5 size 10 recv_done_trigger 7\n1->0 id 2 start 2.5 size 10 "
        "send_done_trigger 7\ntrigger id 7 barrier count 2\n"
    )
    imported = convert({"ring.cm": ring}, unit="us")
    assert imported.texts["flows.csv"] == (
        "start_s,source,target,size_bytes,class,after\n0.0000025,1,0,10,,\n"
        "0.000005,0,1,10,,\n0,1,2,10,priority2,0 1\n"
    )


def test_a_multishot_trigger_starts_one_flow_each_time(convert: Convert) -> None:
    # Two flows at a time, as for an all-to-all in windows: each end starts the next flow.
    window = (
        "Nodes 5\nConnections 4\nTriggers 1\n0->1 start 0 size 10 send_done_trigger 1\n"
        "0->2 start 0 size 10 send_done_trigger 1\n0->3 trigger 1 size 10\n"
        "0->4 trigger 1 size 10\ntrigger id 1 multishot\n"
    )
    imported = convert({"window.cm": window})
    assert imported.texts["flows.csv"] == (
        "start_s,source,target,size_bytes,after,after_count\n0,0,1,10,,\n0,0,2,10,,\n"
        "0,0,3,10,0 1,1\n0,0,4,10,0 1,2\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("start 20000000", "start", "flows.cm:7: `start` needs a number"),
        ("size 4096", "", "flows.cm:7: expected `size` with a number of bytes above 0"),
        ("start 20000000 ", "", "flows.cm:7: expected either `start` or `trigger`"),
        ("5->2", "5->5", "flows.cm:7: source and target must differ"),
        ("5->2", "5->8", "flows.cm:7: the hosts are 0 to 7"),
        ("5->2", "5->x", "flows.cm:7: expected `Nodes N`, `Connections N`"),
        ("5->2 id 4", "5->2 idd 4", "flows.cm:7: unknown option `idd` (of start, size, id"),
        ("send_done_trigger 1", "", "flows.cm:5: trigger 1: it is not a done trigger of any"),
        (
            "0->5",
            "3->5",
            "flows.cm:5: trigger 1: a flow can start only after flows that its source",
        ),
        ("0->4 id 1 start 0", "0->4 id 1 trigger 2", "triggers in a circle"),
        (
            "5->2 id 4",
            "0->2 id 4 send_done_trigger 1",
            "trigger 1: a oneshot trigger, but 2 connections",
        ),
        ("Nodes 8", "Knoten 8", "flows.cm:1: expected `Nodes N`"),
    ],
)
def test_errors_of_matrices(old: str, new: str, expected: str, convert: Convert) -> None:
    with pytest.raises(sojourn.ScenarioError) as error:
        convert({"flows.cm": MATRIX.replace(old, new)})
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Radix_Up 2\n", "", "fabric.topo: tier 0: missing Radix_up"),
        ("Podsize 8", "Podsize 4", "fabric.topo: tier 1: Radix_Down must be 1, the number of"),
        ("Radix_Down 2", "Radix_Down 4", "tier 1: Radix_Down must be 2, the number of cables to"),
        ("Tiers 2", "Tiers 3", "fabric.topo: tier 1: missing Radix_up"),
        ("Nodes 8", "Nodes 9", "fabric.topo: Nodes, 9, must be a multiple of Podsize, 8"),
        ("Tier 1", "Tier 0", "fabric.topo:14: expected each of the tiers 0, 1 and 2 once"),
        ("Radix_Down 4", "Radix_Down four", "fabric.topo:8: expected `Nodes N`, `Tiers 2` or `3`"),
    ],
)
def test_errors_of_topologies(old: str, new: str, expected: str, convert: Convert) -> None:
    with pytest.raises(sojourn.ScenarioError) as error:
        convert({"fabric.topo": TWO_TIERS.replace(old, new)})
    assert expected in str(error.value)
