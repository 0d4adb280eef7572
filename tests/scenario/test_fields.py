"""Paths of fields: entries of lists by index, parts of mixed workloads by class, short names."""

from typing import Any

import pytest

from sojourn import ScenarioError, check, expand, override
from sojourn.scenario import fields, overrides

PARTS: list[dict[str, Any]] = [
    {
        "kind": "poisson",
        "class": "web",
        "load": 0.2,
        "flows": 20,
        "sizes": {"kind": "fixed", "size": "20 KB"},
    },
    {"kind": "incast", "fan_in": 3, "size": "10 KB", "interval": "1 ms", "events": 2},
]

MIXED: dict[str, Any] = {
    "topology": {"kind": "star", "hosts": 5},
    "workload": {"kind": "mixed", "parts": PARTS},
    "transport": "dctcp",
}


@pytest.mark.parametrize(
    "name",
    [
        "workload.parts.1.size",
        "workload.parts[1].size",
        "workload.incast.size",
        "incast.size",
        "parts.1.size",
    ],
)
def test_a_field_of_a_part_has_a_path_by_index_and_by_class(name: str) -> None:
    assert fields.find(MIXED, name) == "workload.parts.1.size"
    (_, small), (_, large) = expand(MIXED, {name: ["1 KB", "90 KB"]})
    assert check(small)["workload"]["parts"][1]["size"] == "1 KB"
    assert check(large)["workload"]["parts"][1]["size"] == "90 KB"
    assert large["workload"]["parts"][0] == PARTS[0]


def test_a_short_name_in_one_part_only_is_found() -> None:
    assert fields.find(MIXED, "fan_in") == "workload.parts.1.fan_in"
    # A field that is not in a list comes first.
    assert fields.find(MIXED, "hosts") == "topology.hosts"
    assert fields.find(MIXED, "web.sizes.size") == "workload.parts.0.sizes.size"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("load", "load: ambiguous, could be `workload.web.load`, `workload.incast.load`; give"),
        ("workload.incst.size", "unknown class `incst`.*did you mean `incast`.*web, incast"),
        ("workload.load", r"unknown class `load` of the mixed workload \(classes: web, incast\)"),
        ("workload.parts.2.size", "workload.parts.2.size: unknown field"),
        ("workload.parts.x.size", "workload.parts.x.size: unknown field"),
    ],
)
def test_an_unknown_or_ambiguous_path_is_an_error(name: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        fields.find(MIXED, name)


def test_a_class_of_two_parts_is_ambiguous() -> None:
    twice = override(MIXED, {"workload.parts": [PARTS[0], PARTS[0]]})
    with pytest.raises(ScenarioError, match=r"could be `workload.parts.0`, `workload.parts.1`"):
        fields.find(twice, "workload.web.load")


def test_overrides_change_entries_of_lists() -> None:
    by_path = override(MIXED, {"workload.web.load": 0.4, "workload.parts.1.fan_in": 2})
    by_table = override(MIXED, {"workload": {"web": {"load": 0.4}, "incast": {"fan_in": 2}}})
    assert by_path == by_table
    assert [part.get("load") for part in by_path["workload"]["parts"]] == [0.4, None]
    assert by_path["workload"]["parts"][1]["fan_in"] == 2
    assert MIXED["workload"]["parts"] == PARTS
    # Another kind drops the parameters of a part.
    other = override(MIXED, {"workload.parts.1": {"kind": "permutation", "size": "1 KB"}})
    assert other["workload"]["parts"][1] == {"kind": "permutation", "size": "1 KB"}
    with pytest.raises(ScenarioError, match=r"workload\.parts\.7: expected an index from 0 to 1"):
        override(MIXED, {"workload.parts.7.load": 0.4})
    with pytest.raises(ScenarioError, match="unknown class `bulk`"):
        override(MIXED, {"workload.bulk.load": 0.4})
    with pytest.raises(ScenarioError, match="by class or by index"):
        override(MIXED, {"workload": {"web": {"load": 0.4}, "parts": {"1": {"fan_in": 2}}}})


def test_a_workload_of_another_kind_replaces_a_mixed_one() -> None:
    workload = {"kind": "permutation", "size": "1 KB"}
    assert override(MIXED, {"workload": workload})["workload"] == workload


def test_a_field_of_flows_has_a_path_by_index() -> None:
    flows = [{"source": 0, "target": 1, "size": "1 KB"}, {"source": 1, "target": 0, "size": "2 KB"}]
    base = MIXED | {"workload": {"kind": "flows", "flows": flows}}
    (_, changed), _ = expand(base, {"workload.flows.1.size": ["5 KB", "6 KB"]})
    assert [flow["size"] for flow in changed["workload"]["flows"]] == ["1 KB", "5 KB"]


def test_values_at_paths_are_those_of_the_complete_scenario() -> None:
    complete = check(MIXED)
    assert fields.value_at(complete, "workload.parts.1.size") == "10 KB"
    assert fields.value_at(complete, "workload.parts.9.size") == "none"
    assert fields.value_at(complete, "workload.parts.x") == "none"


def test_a_field_is_varied_only_once_and_values_differ() -> None:
    names = {"workload.web.load": [0.1], "workload.parts.0.load": [0.2]}
    with pytest.raises(ScenarioError, match=r"`workload\.parts\.0\.load` is varied twice"):
        expand(MIXED, names)
    with pytest.raises(ScenarioError, match="transport: duplicate value `dctcp`"):
        expand(MIXED, {"transport": ["dctcp", "swift", "dctcp"]})
    with pytest.raises(ScenarioError, match=r"web\.load: duplicate value `1.0`"):
        expand(MIXED, {"workload.web.load": [1, 1.0]})


def test_a_change_may_give_the_transport_that_a_file_lacks() -> None:
    base = {name: value for name, value in MIXED.items() if name != "transport"}
    assert fields.find(base, "transport") == "transport"
    labelled = overrides.expand(base, {"transport": ["dctcp", "swift"]})
    assert [scenario["transport"] for _, scenario in labelled] == ["dctcp", "swift"]
    assert overrides.with_settings(base, {"transport": "swift"})["transport"] == "swift"
    with pytest.raises(ScenarioError, match="topology"):
        fields.find({"workload": base["workload"]}, "transport")
