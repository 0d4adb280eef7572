"""Schemes that a scenario names, and values of variations as lists and ranges."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

import sojourn
from conftest import SCENARIO
from sojourn import ScenarioError, expand, override, read
from sojourn.base.paths import EXAMPLES
from sojourn.scenario import overrides, values
from sojourn.scenario.reading import parse

PFC: dict[str, Any] = {"transport": "dcqcn", "switch": {"shared_buffer": "12 MB", "pause": {}}}

SCHEMES = SCENARIO | {"schemes": {"dctcp": {}, "pfc": PFC}}


def test_schemes_differ_in_several_fields() -> None:
    (labels, dctcp), (other_labels, pfc) = expand(SCHEMES, {})
    assert (labels, other_labels) == ({"scheme": "dctcp"}, {"scheme": "pfc"})
    assert (dctcp["transport"], pfc["transport"]) == ("dctcp", "dcqcn")
    assert "switch" not in dctcp
    assert pfc["switch"]["pause"] == {}
    assert dctcp["environment"] == pfc["environment"]
    assert dctcp["workload"] == pfc["workload"] == SCENARIO["workload"]


def test_schemes_come_before_variations() -> None:
    labels = [labels for labels, _ in expand(SCHEMES, {"load": [0.1, 0.2]})]
    assert labels == [
        {"scheme": scheme, "load": load} for scheme in ("dctcp", "pfc") for load in (0.1, 0.2)
    ]


def test_a_scheme_in_a_file_names_fields_with_dots_and_files(tmp_path: Path) -> None:
    controller = (EXAMPLES / "controllers" / "constant_window.py").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(controller, encoding="utf-8")
    file = tmp_path / "lab.toml"
    file.write_text(
        """
        transport = "dctcp"
        topology = { kind = "star", hosts = 4 }
        [workload]
        kind = "mixed"
        parts = [
            { kind = "permutation", size = "1 KB" },
            { kind = "incast", fan_in = 2, size = "1 KB", interval = "1 ms", events = 1 },
        ]
        [schemes.dctcp]
        [schemes.mine]
        transport = "mine.py:ConstantWindow"
        workload.incast.size = "2 KB"
        [schemes."with a dot.5"]
        workload.parts.1.size = "3 KB"
        """,
        encoding="utf-8",
    )
    schemes = dict(zip(overrides.scheme_names(read(file)), expand(read(file), {}), strict=True))
    sizes = {name: each["workload"]["parts"][1]["size"] for name, (_, each) in schemes.items()}
    assert sizes == {"dctcp": "1 KB", "mine": "2 KB", "with a dot.5": "3 KB"}
    assert schemes["mine"][1]["transport"]["controller"]["text"] == controller
    assert not list(Draft7Validator(sojourn.schema()).iter_errors(parse(file)))


@pytest.mark.parametrize(
    ("schemes", "message"),
    [
        ({}, "schemes: expected tables of changes, such as"),
        ("dctcp", "schemes: expected tables of changes, such as"),
        ({"": {}}, "schemes: a scheme needs a name"),
        ({"a": {"schemes": {}}}, "schemes.a: a scheme cannot name schemes"),
        ({"a": "dctcp"}, "schemes.a: expected a table of changes"),
        ({"a": {}, "b": {"seed": 2}}, "seed: `a` has 1 and `b` has 2; schemes are compared on"),
        ({"a": {}, "b": {"trnsport": "tcp"}}, "scheme=b: trnsport: unknown field"),
        ({"a": {"workload.parts.0.load": 1}}, "workload.parts: unknown field"),
    ],
)
def test_an_invalid_scheme_is_an_error(schemes: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        expand(SCENARIO | {"schemes": schemes}, {})


def test_a_run_needs_one_scheme() -> None:
    for call in (sojourn.check, sojourn.run):
        with pytest.raises(ScenarioError, match="schemes: a run has one scheme"):
            call(SCHEMES)
    with pytest.raises(ScenarioError, match="give --scheme NAME, one of dctcp, pfc"):
        overrides.choose_scheme(SCHEMES, None)
    with pytest.raises(ScenarioError, match=r"--scheme pfd: .*did you mean `pfc`"):
        overrides.choose_scheme(SCHEMES, "pfd")
    with pytest.raises(ScenarioError, match="the scenario has no table `schemes`"):
        overrides.choose_scheme(SCENARIO, "pfc")
    assert overrides.choose_scheme(SCENARIO, None) == SCENARIO
    assert overrides.choose_scheme(SCHEMES, "pfc") == expand(SCHEMES, {})[1][1]


def test_the_check_of_schemes_is_a_scenario_with_the_same_schemes() -> None:
    checked = overrides.check_schemes(SCHEMES)
    assert checked["workload"]["load"] == 0.5
    # In the environment of both, the default buffer is that of the scheme.
    assert set(checked["schemes"]["pfc"]) == {"transport"}
    complete = [sojourn.check(scenario) for _, scenario in expand(SCHEMES, {})]
    assert [sojourn.check(scenario) for _, scenario in expand(checked, {})] == complete
    assert overrides.check_schemes(SCENARIO) == sojourn.check(SCENARIO)


def test_scenarios_of_several_files_are_schemes() -> None:
    def labels(**names: str) -> list[str]:
        scenarios = {
            Path(path.replace("_", "/") + ".toml"): override(
                SCENARIO, {"name": name} if name else {}
            )
            for path, name in names.items()
        }
        return overrides.scheme_names(overrides.as_schemes(scenarios))

    assert labels(a="First", b="Second") == ["First", "Second"]
    assert labels(a="Same", b="Same") == ["a", "b"]
    assert labels(a="", b="Second") == ["a", "b"]
    assert labels(x_a="", y_a="") == ["x/a.toml", "y/a.toml"]
    assert labels(a="Only") == ["a"]
    with pytest.raises(ScenarioError, match=r"b\.toml: names schemes"):
        overrides.as_schemes({Path("a.toml"): SCENARIO, Path("b.toml"): SCHEMES})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.1:0.5:0.2", [0.1, 0.3, 0.5]),
        ("0.1:0.35:0.1", [0.1, 0.2, 0.3]),
        ("1:5:2", [1, 3, 5]),
        ("1:2:0.5", [1.0, 1.5, 2.0]),
        ("10 KB:30 KB:10 KB", ["10 KB", "20 KB", "30 KB"]),
        ("500 us:2 ms:500 us", ["500 us", "1000 us", "1500 us", "2000 us"]),
        ("1:3:1,10", [1, 2, 3, 10]),
        ("a.py:A,b.py:B", ["a.py:A", "b.py:B"]),
        ('"1:2"', ["1:2"]),
        ("1,,2", []),
    ],
)
def test_a_range_has_a_step_and_both_ends(text: str, expected: list[Any]) -> None:
    assert values.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.1:0.5", "a range of values needs a step, as in 0.1:0.5:STEP; or list .* in 0.1,0.5"),
        ("0.1:0.5:log", "needs a step"),
        ("1:2:3:4", "needs a step"),
        ("1:5:0", "STEP > 0, not 1:5:0"),
        ("5:1:1", "FIRST <= LAST"),
        ("1:5:-1", "STEP > 0"),
        ("1 KB:5 us:1 KB", "incompatible units"),
        ("1 KB:5:1 KB", "incompatible units"),
        ("0:1:1e-9", "at most 10000 values"),
    ],
)
def test_an_invalid_range_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        overrides.parse_variation(f"load={text}")


def test_settings_have_one_value_each() -> None:
    assert overrides.parse_settings(["load=0.2", "a=[1, 2]"]) == {"load": 0.2, "a": [1, 2]}
    for text in ("load", "load=", "=1", "load=1,2"):
        with pytest.raises(ScenarioError, match=r"--set .*: expected (NAME=VALUE|one value)"):
            overrides.parse_settings([text])
    with pytest.raises(ScenarioError, match="`load` is given twice"):
        overrides.parse_settings(["load=1", "load=2"])


def test_a_field_of_the_schemes_cannot_be_varied() -> None:
    schemes = {"one": {"transport": "dctcp"}, "other": {"transport.kind": "swift"}, "load": {}}
    base = {**SCENARIO, "schemes": schemes}
    message = r"^transport: is set by the schemes \(one, other\); vary another field"
    with pytest.raises(ScenarioError, match=message):
        expand(base, {"transport": ["tcp", "dctcp"]})
    assert len(expand(base, {"load": [0.1, 0.2]})) == 6
