"""Notes on the environments of a comparison."""

from typing import Any

import pytest

import sojourn
from conftest import COMPARED
from sojourn.compare import comparison, tables
from sojourn.scenario import encoding
from sojourn.show.environment import environment_line, fitted_lines, in_force_lines


def notes(variations: dict[str, Any], **changes: Any) -> list[str]:
    table, runs = comparison.compare(COMPARED | changes, variations)
    return tables.comparison_notes(table, runs, median=False)


def test_every_environment_has_a_line() -> None:
    lines = notes({"environment": ["internet", "lossless_datacentre"]})
    lines = [line for line in lines if line.startswith("environment")]
    assert [line.partition(": packets")[0] for line in lines] == [
        "environment of internet: internet",
        "environment of lossless_datacentre: lossless_datacentre",
    ]
    assert "with pause frames" in lines[1]


def test_differences_name_the_environment_without_the_fields_that_follow() -> None:
    schemes = {
        "a": {"transport": "dctcp"},
        "b": {"transport": "dctcp", "environment": "lossless_datacentre"},
    }
    (line,) = [line for line in notes({}, schemes=schemes) if "differ in" in line]
    assert line.endswith("differ in environment (a lossy_datacentre, b lossless_datacentre)"), line


def test_differences_name_a_table_that_a_scheme_lacks() -> None:
    environment = "lossless_datacentre"
    schemes = {
        "a": {"environment": environment, "switch": {"pause": "none"}},
        "b": {"environment": environment},
    }
    (line,) = [line for line in notes({}, schemes=schemes) if "differ in" in line]
    assert "switch.pause (a none, b given)" in line, line


def test_runs_of_any_label_state_their_differences() -> None:
    lines = notes({"topology.rate": ["10 Gbps", "100 Gbps"]}, environment="lossy_datacentre")
    (line,) = [line for line in lines if "differ in" in line]
    assert line.startswith("runs also differ in "), line
    assert not any("differ" in line for line in notes({"load": [0.2, 0.3]}))


ON_A_STAR = {"environment": "paper", "topology": "star", "workload": "permutation"}


@pytest.mark.parametrize(
    ("transport", "acks"),
    [
        ("dctcp", ["an ACK for every data packet"]),
        ("ndp", ["an ACK for every data packet"]),
        ("dcqcn", ["an ACK for every 16 data packets"]),
        ({"kind": "dcqcn", "ack_every": 1}, ["an ACK for every data packet"]),
        ("uet", ["an ACK for every 16.384 KB of new data"]),
        ("timely", ["an ACK for every segment of 16 KB"]),
        ({"kind": "timely", "segments": {"window": "1 BDP"}}, ["an ACK for every data packet"]),
        ("homa", []),
    ],
)
def test_hosts_in_force_have_the_acks_of_their_transport(transport: Any, acks: list[str]) -> None:
    complete = encoding.check({**ON_A_STAR, "transport": transport})
    *_, hosts = in_force_lines(complete, encoding.queues(complete))
    assert hosts.split("; ")[1:] == acks


def test_a_routing_that_sprays_is_part_of_the_environment() -> None:
    changes = {"topology": "leaf_spine", "time_limit": "1 us"}
    for transport, routing in (("ndp", "entropy"), ("uet", "entropy"), ("dctcp", None)):
        line = environment_line(sojourn.run(COMPARED | changes | {"transport": transport}))
        assert line.endswith(f", routing {routing}") == bool(routing), line
        assert ("routing" in line) == bool(routing)


def test_a_varied_kind_states_the_differences_of_a_varied_component() -> None:
    base = {"queue": {"kind": "drop_tail", "capacity": "90 KB"}, "environment": "internet"}
    of_component, of_kind = (
        [line for line in notes({field: ["drop_tail", "codel"]}, **base) if "differ" in line]
        for field in ("queue", "queue.kind")
    )
    (line,) = of_component
    assert line.startswith("runs also differ in queue.capacity (drop_tail 90 KB, codel "), line
    assert of_kind == of_component


def test_a_varied_transport_of_a_class_states_how_its_loss_recovery_differs() -> None:
    parts = [{**COMPARED["workload"], "class": name} for name in ("a", "b")]
    workload = {"kind": "mixed", "parts": parts}
    (line,) = [
        line
        for line in notes({"transports.b": ["dctcp", "homa"]}, workload=workload)
        if "differ" in line
    ]
    assert line.startswith("apart from congestion control, schemes differ in "), line
    assert "transports.b.reliability.recovery (dctcp rack, homa selective_repeat)" in line, line
    assert "transports.b.reliability.tail_probe (dctcp 10 ms, homa none)" in line, line
    (line,) = [
        line
        for line in notes(
            {"transports.b.gain": [0.1, 0.2]}, workload=workload, transports={"b": "dctcp"}
        )
        if "differ" in line
    ]
    assert line == "the schemes differ only in congestion control and its parameters"


def test_a_class_without_a_transport_of_its_own_has_that_of_the_scenario() -> None:
    parts = [{**COMPARED["workload"], "class": name} for name in ("a", "b")]
    changes = {"workload": {"kind": "mixed", "parts": parts}}
    schemes = {
        "x": {"transport": "dctcp"},
        "y": {"transport": "dctcp", "transports": {"b": "dctcp"}},
    }
    lines = [line for line in notes({}, schemes=schemes, **changes) if "differ" in line]
    assert lines == ["the schemes differ only in congestion control and its parameters"]


def test_parameters_that_follow_sizes_are_printed_with_their_values() -> None:
    flows = [{"source": 0, "target": 1, "size": size} for size in ("100 B", "200 B", "300 B")]
    scenario = {
        "environment": "paper",
        "topology": "star",
        "transport": "homa",
        "workload": {"kind": "flows", "flows": flows},
    }
    summary = sojourn.run(scenario).summary
    cutoffs = summary["fitted"]["transport"]["cutoffs"]
    assert fitted_lines(summary) == [f"transport: cutoffs {cutoffs} (from the sizes of its flows)"]
    assert not fitted_lines(sojourn.run({**scenario, "transport": "dctcp"}).summary)
