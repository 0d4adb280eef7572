"""Import of topologies and flows of the HPCC simulator and its descendants."""

from pathlib import Path

import pytest

import sojourn
from imports.conftest import Convert, write

TOPOLOGY = """6 2 5
4 5
0 4 10Gbps 0.001ms 0
1 4 10000000000.0 1000ns 0.000000
2 5 10Gbps 1us 0
3 5 10Gb/s 1us 0
4 5 20Gbps 2us 0
0 5 1Gbps 1us 0
some notes
"""

FLOWS = """2
0 2 3 10000 1000000 0.001
1 3 3 10001 1000000 0.001
0 3 3 10002 700000000 0.003
"""

LINKS = """from,to,rate,delay
h0,s4,10 Gbps,1 us
h1,s4,10 Gbps,1 us
h2,s5,10 Gbps,1 us
h3,s5,10 Gbps,1 us
s4,s5,20 Gbps,2 us
"""


def test_only_the_rows_of_the_header_count(convert: Convert, tmp_path: Path) -> None:
    imported = convert({"topology.txt": TOPOLOGY, "flow.txt": FLOWS})
    assert imported.texts["topology.csv"] == LINKS
    assert imported.texts["flows.csv"] == (
        "start_s,source,target,size_bytes\n0.001,h0,h2,1000000\n0.001,h1,h3,1000000\n"
    )
    lines = "\n".join(imported.lines)
    assert "topology.txt: 2 lines after the 5 links of the header are ignored" in lines
    assert "flow.txt: 1 line after the 2 flows of the header are ignored" in lines
    result = sojourn.run(sojourn.read(write(imported, tmp_path)))
    # 1000 packets of 1048 B at 10 Gb/s are 838.4 us; cables are 4 us; the last packet takes
    # 0.4192 us at 20 Gb/s and 0.8384 us at 10 Gb/s. The flows share the cable of 20 Gb/s only.
    by_hand = 838.4e-6 + 4e-6 + 0.4192e-6 + 0.8384e-6
    # Ports of hosts are up to 0.01 % slower.
    assert result.flows["ideal_fct_s"].to_list() == pytest.approx([by_hand] * 2, rel=1e-4)
    assert result.flows["fct_s"].to_list() == pytest.approx([by_hand] * 2, rel=1e-3)


def test_headers_of_three_four_and_six_fields(convert: Convert) -> None:
    rest = TOPOLOGY.partition("\n")[2]
    four = convert({"topology.txt": f"6 2 2 5\n{rest}"})
    assert four.texts["topology.csv"] == LINKS
    # The NVSwitch 4 joins the hosts of a server, which have two links each.
    six = (
        "6 2 1 1 4 H100\n4 5\n0 4 900Gbps 0.000025ms 0\n1 4 900Gbps 25ns 0\n"
        "0 5 100Gbps 0.0005ms 0\n1 5 100Gbps 500ns 0\n"
    )
    imported = convert({"topology.txt": six})
    assert imported.texts["topology.csv"] == (
        "from,to,rate,delay\nh0,nv4,900 Gbps,25 ns\nh1,nv4,900 Gbps,25 ns\n"
        "h0,s5,100 Gbps,500 ns\nh1,s5,100 Gbps,500 ns\n"
    )
    assert 'hosts = ["h0", "h1"]' in imported.texts["scenario.toml"]
    assert "2 hosts without a link left out, such as h2" in "\n".join(imported.lines)
    assert "SimAI sends over the NVSwitch only" in "\n".join(imported.lines)
    # Each GPU of a server has a switch of its own.
    rails = (
        "5 2 1 2 5 H100\n2 3 4\n0 2 900Gbps 25ns 0\n1 2 900Gbps 25ns 0\n0 3 100Gbps 500ns 0\n"
        "1 4 100Gbps 500ns 0\n3 4 100Gbps 500ns 0\n"
    )
    assert "NVSwitch only" not in "\n".join(convert({"topology.txt": rails}).lines)


def test_hosts_keep_their_numbers(convert: Convert, tmp_path: Path) -> None:
    topology = "5 1 4\n4\n3 4 25Gbps 1us 0\n2 4 25Gbps 1us 0\n1 4 25Gbps 1us 0\n0 4 100Gbps 1us 0\n"
    imported = convert({"topology.txt": topology, "flow.txt": "1\n0 1 3 100 1000000 0\n"})
    flows = sojourn.run(sojourn.read(write(imported, tmp_path))).flows
    assert flows.select("source", "target").rows() == [(0, 1)]
    assert "results number" not in "\n".join(imported.lines)


def test_the_summary_states_rates_and_delays(convert: Convert) -> None:
    imported = convert({"topology.txt": TOPOLOGY})
    assert "topology.txt: rates 10 Gbps to 20 Gbps, delays 1 us to 2 us" in imported.lines
    assert "warning" not in "\n".join(imported.lines)
    misread = convert({"topology.txt": "3 1 2\n2\n0 2 25 1us 0\n1 2 25Gbps 1 0\n"}).lines
    assert misread[1:4] == [
        "topology.txt: rates 25 bps to 25 Gbps, delays 1 us to 1 s",
        "topology.txt: warning: 1 cable has a rate below 1 Mbps, such as h0 to s2 with 25 bps; "
        "numbers without a unit count bit/s and seconds",
        "topology.txt: warning: 1 cable has a delay of 1 s or more, such as h1 to s2 with 1 s; "
        "numbers without a unit count bit/s and seconds",
    ]


def test_new_numbers_of_hosts_are_stated(convert: Convert) -> None:
    topology = "5 2 4\n0 1\n2 0 25Gbps 1us 0\n3 0 25Gbps 1us 0\n4 1 25Gbps 1us 0\n"
    imported = convert({"topology.txt": topology + "0 1 100Gbps 1us 0\n"})
    assert imported.lines[-2] == (
        "results number the hosts 2, 3, 4 as 0, 1, 2; names, such as h2, keep the numbers of the "
        "file"
    )


def test_error_rates_priorities_and_other_columns(convert: Convert) -> None:
    topology = TOPOLOGY.replace("2us 0\n", "2us 0.001\n")
    # Parsimon's flows have a number before; the later flow comes first.
    flows = "2\n7 0 2 3 100 5000 0.5\n8 1 3 1 100 6000 2.5e-1\n"
    imported = convert({"topology.txt": topology, "flow.txt": flows})
    assert "s4,s5,20 Gbps,2 us,0.001\n" in imported.texts["topology.csv"]
    assert imported.texts["flows.csv"] == (
        "start_s,source,target,size_bytes,class\n"
        "0.25,h1,h3,6000,priority1\n0.5,h0,h2,5000,priority3\n"
    )
    # ConWeave's have no port. Without a topology, the hosts are on a star.
    imported = convert({"flow.txt": "9\n0 3 3 2000 2.000000001\n"})
    assert imported.texts["flows.csv"] == (
        "start_s,source,target,size_bytes\n2.000000001,0,3,2000\n"
    )
    assert 'kind = "star", hosts = 4' in imported.texts["scenario.toml"]
    assert "flow.txt: the header states 9 flows" in imported.lines
    assert "flow.txt: ports are dropped" not in imported.lines


@pytest.mark.parametrize(
    ("topology", "flows", "expected"),
    [
        (TOPOLOGY.replace("6 2 5\n", "6 2 5 1 1\n"), FLOWS, "topology.txt:1: expected `nodes"),
        (TOPOLOGY.replace("6 2 5", "6 2 0"), FLOWS, "topology.txt:1: the number of links must be"),
        (TOPOLOGY.replace("6 2 5", "6 7 5"), FLOWS, "topology.txt:1: 7 switches, but 6 nodes"),
        (TOPOLOGY.replace("\n4 5\n", "\n4 4\n"), FLOWS, "topology.txt:2: the switch 4 is listed"),
        (
            TOPOLOGY.replace("0.001ms", "1 us"),
            FLOWS,
            "topology.txt:3: link 1 of 5, `a b rate delay",
        ),
        (
            TOPOLOGY.replace("10Gb/s", "fast"),
            FLOWS,
            ":6: link 4 of 5, `a b rate delay error`: the r",
        ),
        (
            TOPOLOGY.replace("2us 0\n", "2us 1.5\n"),
            FLOWS,
            "error rate must be from 0 to 1, not `1.5`",
        ),
        ("\n".join(TOPOLOGY.split("\n")[:4]), FLOWS, "topology.txt: ends before link 3 of 5, `a b"),
        (
            TOPOLOGY,
            FLOWS.replace("1 3 3", "1 4 3"),
            ":3: 4 is not a host of topology.txt, which has 0 to 3",
        ),
        (TOPOLOGY, FLOWS.replace("1 3 3", "1 1 3"), ":3: source and target must differ, and both"),
        (
            TOPOLOGY.replace("4 5 20", "4 0 20"),
            FLOWS,
            "topology.txt: no path between the hosts `h0` and `h2`",
        ),
        (
            TOPOLOGY,
            FLOWS.replace("10001 ", ""),
            "flow.txt:3: expected the number of flows, and for",
        ),
        (TOPOLOGY, FLOWS.replace("0.001", "now"), "flow.txt:2: expected the number of flows, and"),
        (TOPOLOGY, "0\n0 1 3 100 5 0.1\n", "flow.txt: no flows"),
    ],
)
def test_errors_name_the_line_and_the_shape(
    topology: str, flows: str, expected: str, convert: Convert
) -> None:
    formats = ["hpcc-topology", "hpcc-flows"]
    with pytest.raises(sojourn.ScenarioError) as error:
        convert({"topology.txt": topology, "flow.txt": flows}, names=formats)
    assert expected in str(error.value)
