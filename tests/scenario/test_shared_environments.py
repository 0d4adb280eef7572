"""Environments: the same hosts, loss recovery and switches for every scheme."""

from pathlib import Path
from typing import Any

import pytest

from conftest import SCENARIO
from sojourn import ScenarioError, check, expand, run
from sojourn.compare import comparison, tables
from sojourn.scenario import overrides
from sojourn.show import environment

AUTOMATIC = {**SCENARIO, "environment": "automatic"}


def test_all_schemes_get_the_network_that_one_of_them_needs() -> None:
    alone = check(AUTOMATIC)
    assert alone["environment"] == "lossy_datacentre"
    for transports in (["dctcp", "dcqcn"], ["dcqcn", "dctcp"]):
        schemes = [scenario for _, scenario in expand(AUTOMATIC, {"transport": transports})]
        assert {check(scenario)["environment"] for scenario in schemes} == {"lossless_datacentre"}
    pair = expand(AUTOMATIC, {"transport": ["dctcp", "tcp"]})
    assert {check(scenario)["environment"] for _, scenario in pair} == {"lossy_datacentre"}


def test_a_line_names_the_values_that_alone_would_have_another_environment() -> None:
    delays = {"topology.delay": ["5 ms", "1 us"]}
    (line,) = overrides.shared_environment_lines(AUTOMATIC, delays)
    expected = "environment of all runs: internet; run separately, topology.delay=1 us would use "
    assert line == expected + "lossy_datacentre"
    both: dict[str, list[Any]] = {"load": [0.1, 0.2], "transport": ["tcp", "dcqcn", "swift"]}
    (line,) = overrides.shared_environment_lines(AUTOMATIC, both)
    expected = "environment of all runs: lossless_datacentre; run separately, transport=tcp, "
    assert line == f"{expected}transport=swift would use lossy_datacentre"
    assert overrides.shared_environment_lines(AUTOMATIC, {"transport": ["tcp", "swift"]}) == []
    assert (
        overrides.shared_environment_lines({**AUTOMATIC, "environment": "internet"}, delays) == []
    )


def test_a_named_environment_stays() -> None:
    named = expand(AUTOMATIC, {"environment": ["internet", "paper"], "transport": ["dcqcn"]})
    assert [check(scenario)["environment"] for _, scenario in named] == ["internet", "paper"]
    with pytest.raises(ScenarioError, match=r"^environment: expected one of"):
        check({**SCENARIO, "environment": "internett"})


def test_the_same_law_in_python_takes_the_same_time(tmp_path: Path) -> None:
    # A window of ten packets, which neither transport changes within the first round trip.
    (tmp_path / "ten.py").write_text(
        "import sojourn\n\n\n"
        "class Ten(sojourn.Controller):\n"
        "    def on_start(self, path: sojourn.Path) -> None:\n"
        "        self.window = 10 * path.payload_bytes\n\n"
        "    def allowance(self) -> float:\n"
        "        return self.window\n"
    )
    flow = {"source": 0, "target": 1, "size": "10 KB"}
    link = {
        "environment": "automatic",
        "topology": {"kind": "link", "rate": "20 Mbps", "delay": "50 ms"},
        "workload": {"kind": "flows", "flows": [flow]},
    }
    own = run({**link, "transport": f"{tmp_path / 'ten.py'}:Ten"})
    built_in = run({**link, "transport": "tcp"})
    assert own.summary["scenario"]["environment"] == "internet"
    assert own.flows["fct_s"].to_list() == built_in.flows["fct_s"].to_list()
    # In papers only one of them has a handshake.
    own, built_in = (
        run({**link, "environment": "paper", "transport": transport})
        for transport in (f"{tmp_path / 'ten.py'}:Ten", "tcp")
    )
    assert built_in.flows["fct_s"][0] - own.flows["fct_s"][0] == pytest.approx(0.1, rel=0.01)


def test_a_comparison_states_its_environment_and_how_schemes_differ() -> None:
    alike = AUTOMATIC | {"reliability": {"recovery": "selective_repeat"}}
    table, runs = comparison.compare(alike, {"transport": ["dctcp", "pfabric"]})
    notes = tables.comparison_notes(table, runs, median=False)
    (line,) = [note for note in notes if note.startswith("environment ")]
    assert line.startswith("environment of dctcp: lossy_datacentre: packets of 1.448 KB + 52 B")
    (line,) = [
        note
        for note in notes
        if note.startswith("apart from congestion control, schemes differ in ")
    ]
    # Three base RTTs: three links of 10 Gb/s and 1 us, a packet of 1500 B and an ACK of 52 B.
    assert "reliability.fixed_rto (dctcp none, pfabric 29.1744 us)" in line
    assert "handshake" not in line


@pytest.mark.parametrize("pair", [["tcp", "cubic"], ["dctcp", "swift"]])
def test_schemes_of_one_environment_differ_in_their_law_and_queue_alone(pair: list[str]) -> None:
    _, runs = comparison.compare(AUTOMATIC, {"transport": pair})
    (line,) = environment.difference_lines(runs, "transport")
    same = "the schemes differ only in congestion control and its parameters"
    assert line == same if pair[0] == "tcp" else "reliability" not in line


def test_a_transport_that_extends_another_has_its_reliability() -> None:
    _, runs = comparison.compare(AUTOMATIC, {"transport": ["dctcp", "pias"]})
    (line,) = environment.difference_lines(runs, "transport")
    assert "reliability" not in line
    assert "open connections, rack" in environment.environment_line(runs[1].result)
