"""The fidelity `auto`."""

import math
from typing import Any

import pytest

import sojourn
from conftest import FOLDABLE
from sojourn import ScenarioError
from sojourn.analysis.fidelity import doubts
from sojourn.compare.comparison import compare
from sojourn.runs import choice
from sojourn.scenario.fidelity import with_kind
from sojourn.show.fidelity import fidelity_lines

SCENARIO: dict[str, Any] = FOLDABLE | {
    "workload": FOLDABLE["workload"] | {"flows": 1500},
    "fidelity": {"kind": "auto", "hosts": 64, "check": False},
}


def trace_of(scenario: dict[str, Any]) -> dict[str, Any]:
    rows = [f"{number}e-6,{number % 192},{(7 * number + 1) % 192},20000" for number in range(3000)]
    text = "\n".join(["start_s,source,target,size_bytes", *rows])
    return scenario | {"workload": {"kind": "trace", "file": {"name": "t.csv", "text": text}}}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit of the expected time below that of `SCENARIO`."""
    monkeypatch.setattr(choice, "LONGEST_S", 1e-6)


def test_another_kind_keeps_the_parameters_that_it_has() -> None:
    given = {"kind": "sample", "hosts": 64, "samples": 4, "precision": "5%"}
    flows = with_kind({"seed": 3, "fidelity": given}, "flows")
    assert flows == {"seed": 3, "fidelity": {"kind": "flows", "hosts": 64, "samples": 4}}
    assert with_kind({}, "sample") == {"fidelity": {"kind": "sample"}}
    assert with_kind({"fidelity": given}, "packets") == {"fidelity": {"kind": "packets"}}
    with pytest.raises(ScenarioError, match=r"fidelity\.kind: expected one of .*, not flow"):
        with_kind({}, "flow")


def test_packets_are_chosen_if_they_fit_memory_and_time() -> None:
    answer = sojourn.run(SCENARIO)
    whole = sojourn.run(SCENARIO | {"fidelity": "packets"})
    assert answer.flows.equals(whole.flows)
    fidelity = answer.summary["fidelity"]
    assert fidelity["kind"] == "packets"
    assert fidelity["reason"].startswith("auto chose packets: about ")
    assert fidelity_lines([answer]) == [f"fidelity: {fidelity['reason']}"]
    assert doubts(answer) == {}
    # The run itself has no reason, with or without a cache.
    assert "fidelity" not in whole.summary


@pytest.mark.usefixtures("slow")
def test_samples_are_chosen_if_the_racks_are_alike() -> None:
    answer = sojourn.run(SCENARIO)
    chosen = {"kind": "sample", "hosts": 64, "check": False}
    assert answer.flows.equals(sojourn.run(SCENARIO | {"fidelity": chosen}).flows)
    assert "all racks are alike" in answer.summary["fidelity"]["reason"]
    # The scenario of the result gives the same answer on any machine.
    assert answer.summary["scenario"]["fidelity"]["kind"] == "sample"


@pytest.mark.usefixtures("slow")
def test_flows_are_chosen_for_a_trace() -> None:
    answer = sojourn.run(trace_of(SCENARIO))
    assert answer.summary["fidelity"]["kind"] == "flows"
    assert answer.flows.height == 3000


def test_memory_decides_too() -> None:
    needed = choice._cost(SCENARIO).memory
    for limit, kind in ((math.ceil(needed), "packets"), (int(0.9 * needed), "sample")):
        ((scenario, reason),) = choice.resolved([""], [SCENARIO], limit)
        assert scenario["fidelity"]["kind"] == kind
    assert "of memory (limit" in reason


def test_all_schemes_have_the_choice_of_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "LONGEST_S", 1.5 * choice._cost(SCENARIO).seconds)
    _, runs = compare(SCENARIO, {"workload.flows": [1500, 3000]})
    kinds = {run.result.summary["fidelity"]["kind"] for run in runs}
    assert kinds == {"sample"}
    assert sojourn.run(SCENARIO).summary["fidelity"]["kind"] == "packets"


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topology": "star"}, "auto chose sample: packets need .* star does not fold"),
        (
            {"failures": [{"link": "leaf0->spine0", "fails": "1 us"}]},
            "auto chose sample: .* failures: do not fold",
        ),
        ({"fidelity": "auto"}, "packets need .* the network is as small as its fold"),
        (trace_of({"account": True}), "auto chose flows: .* account: fidelity `flows` predicts"),
    ],
)
def test_without_a_suitable_fidelity_the_error_states_why(changes: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as error:
        sojourn.run(SCENARIO | changes)
    assert "\n" not in str(error.value)
