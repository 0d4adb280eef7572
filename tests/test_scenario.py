"""Scenarios: reading, changing, finding short names."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SCENARIO
from sojourn import ScenarioError, check, expand, override, read, scenario

WORDS = st.text("abcd", min_size=1, max_size=3)
TABLES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    WORDS, st.recursive(st.integers(), lambda inner: st.dictionaries(WORDS, inner, max_size=3))
)


@given(TABLES, TABLES)
def test_what_changed_is_as_given_and_the_rest_stays(
    base: dict[str, Any], change: dict[str, Any]
) -> None:
    changed = scenario.merge(base, change)
    assert scenario.merge(changed, change) == changed
    for key, value in base.items():
        if key not in change:
            assert changed[key] == value
    for key, value in change.items():
        if not isinstance(value, dict):
            assert changed[key] == value


def test_a_change_of_kind_drops_the_parameters_of_the_old_kind() -> None:
    base = {"transport": {"kind": "dctcp", "gain": 0.1}}
    assert override(base, {"transport": {"kind": "dcqcn"}}) == {"transport": {"kind": "dcqcn"}}
    assert override(base, {"transport": "dcqcn"}) == {"transport": "dcqcn"}
    assert override(base, {"transport.kind": "dcqcn"}) == {"transport": {"kind": "dcqcn"}}


def test_the_same_kind_keeps_its_parameters() -> None:
    base = {"transport": {"kind": "dctcp", "gain": 0.1}}
    assert override(base, {"transport": "dctcp"}) == base
    assert override({"transport": "dctcp"}, {"transport.gain": 0.1}) == base


def test_what_was_none_becomes_a_table() -> None:
    assert override({"samples": "none"}, {"samples.queues": ["a->b"]}) == {
        "samples": {"queues": ["a->b"]}
    }


def test_the_base_is_left_as_it_was() -> None:
    base = {"a": {"b": 1}}
    override(base, {"a.b": 2})
    assert base == {"a": {"b": 1}}


def test_a_short_name_finds_the_one_field_it_can_mean() -> None:
    assert scenario.find(SCENARIO, "load") == "workload.load"
    assert scenario.find(SCENARIO, "transport") == "transport"
    with pytest.raises(ScenarioError, match=r"kind: could be any of .*`topology.kind`"):
        scenario.find(SCENARIO, "kind")
    with pytest.raises(ScenarioError, match=r"laod: unknown field; did you mean `workload.load`\?"):
        scenario.find(SCENARIO, "laod")


def test_the_product_of_variations_has_every_combination_in_order() -> None:
    combinations = expand(SCENARIO, {"transport": ["dctcp", "dcqcn"], "load": [0.2, 0.8]})
    assert [tuple(labels.values()) for labels, _ in combinations] == [
        ("dctcp", 0.2),
        ("dctcp", 0.8),
        ("dcqcn", 0.2),
        ("dcqcn", 0.8),
    ]
    assert combinations[3][1]["workload"]["load"] == 0.8
    assert combinations[3][1]["transport"] == "dcqcn"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("load=0.2,0.8", ("load", [0.2, 0.8])),
        ("transport=dcqcn,timely", ("transport", ["dcqcn", "timely"])),
        ("delay=1 us, 2 us", ("delay", ["1 us", "2 us"])),
        ("on=true,false", ("on", [True, False])),
        ('t={kind = "a", b = 1},c', ("t", [{"kind": "a", "b": 1}, "c"])),
        ("queues=[1, 2],[3]", ("queues", [[1, 2], [3]])),
    ],
)
def test_variations_are_read_as_toml_values_or_words(text: str, expected: object) -> None:
    assert scenario.parse_variation(text) == expected


@pytest.mark.parametrize("text", ["load", "load=", "=1", "load=1,,2"])
def test_a_variation_without_name_or_values_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="expected NAME=VALUE"):
        scenario.parse_variation(text)


def test_files_are_read_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("1,1\n", encoding="utf-8")
    file = tmp_path / "scenario.toml"
    file.write_text('[workload.sizes]\nfile = "sizes.csv"\n', encoding="utf-8")
    loaded = {"name": "sizes.csv", "text": "1,1\n"}
    assert read(file) == {"workload": {"sizes": {"file": loaded}}}
    assert scenario.with_files(read(file)) == read(file)


def test_a_missing_file_is_named_with_its_field_and_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").touch()
    file = tmp_path / "scenario.toml"
    file.write_text('[workload.sizes]\nfile = "size.csv"\n', encoding="utf-8")
    with pytest.raises(
        ScenarioError, match=r"workload\.sizes\.file: .*size\.csv.*did you mean `sizes\.csv`"
    ):
        read(file)


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text('name = "a"\nseed =\n', encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"scenario\.toml:2: not TOML"):
        read(file)


def test_checking_fills_in_every_default_and_stays_so() -> None:
    shown = check(SCENARIO)
    assert shown["seed"] == 1
    assert check(shown) == shown


def test_values_that_no_file_could_hold_are_refused() -> None:
    with pytest.raises(ScenarioError, match="texts, numbers, lists and tables"):
        check({"seed": object()})
