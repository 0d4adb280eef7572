"""JSON schema of scenarios: accepts and rejects the same scenarios as the core."""

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft7Validator

import sojourn
from sojourn import cli
from sojourn.base import paths
from sojourn.bench import scenarios
from sojourn.figures import discovery
from sojourn.scenario import examples
from sojourn.scenario.reading import parse

SCHEMA = sojourn.schema()
VALIDATOR = Draft7Validator(SCHEMA)
FIGURES = discovery.discover(paths.EXPERIMENTS)


def problems(scenario: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(scenario)]


def test_the_schema_is_valid() -> None:
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", [*examples.examples().values(), examples.FIRST], ids=str)
def test_every_example_is_valid(file: Any) -> None:
    assert problems(parse(file)) == []


@pytest.mark.parametrize("name", scenarios.SCENARIOS)
def test_every_benchmark_is_valid(name: str) -> None:
    assert problems(scenarios.SCENARIOS[name]) == []


def test_parameters_of_the_default_queue_need_no_kind() -> None:
    base = {"topology": "star", "transport": "dctcp", "workload": "permutation"}
    for field in ("queue", "host_queue"):
        scenario = {**base, field: {"capacity": "100 KB"}}
        assert problems(scenario) == []
        assert sojourn.check(scenario)[field]["kind"] == "ecn_threshold"
        assert problems({**base, field: {"kind": "ecn", "capacity": "100 KB"}})


def only_names(value: Any) -> Any:
    """Return a scenario as in a file: files by name, lists in place of tuples."""
    if isinstance(value, dict):
        if value.keys() == {"name", "text"}:
            return value["name"]
        return {key: only_names(inner) for key, inner in value.items()}
    return [only_names(inner) for inner in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("name", FIGURES)
def test_the_first_scenarios_of_every_figure_are_valid(name: str) -> None:
    for _, scenario in FIGURES[name].plan("smoke")[:3]:
        assert problems(only_names(scenario)) == []
        # The schema must accept every default too.
        assert problems(only_names(sojourn.check(scenario))) == []


GOOD = """
transport = { kind = "dctcp", gain = 0.1, reliability = { min_rto = "10 ms" } }
topology = { kind = "dumbbell", rate = "10 Gbps" }
queue = { kind = "drop_tail", capacity = "65 packets" }
routing = "flow_hash"
seed = 3
[workload]
kind = "mixed"
[[workload.parts]]
kind = "poisson"
load = 0.5
sizes = { kind = "fixed", size = "20 KB" }
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seed = 3", "sede = 3"),
        ("seed = 3", "seed = -3"),
        ("seed = 3", "seed = 3.5"),
        ("seed = 3", 'seed = "3"'),
        ("gain = 0.1", "gian = 0.1"),
        ("gain = 0.1", 'gain = "0.1"'),
        ('"dctcp"', '"dctpc"'),
        ('{ min_rto = "10 ms" }', '{ min_roto = "10 ms" }'),
        ('"10 ms"', "10"),
        ('"10 ms"', '"10 Gbps"'),
        ('"10 ms"', '"ten ms"'),
        ('"65 packets"', '"65.5 packets"'),
        ('"65 packets"', '"65 bytes"'),
        ('rate = "10 Gbps"', 'senders = "10"'),
        ('"dumbbell"', '"star"\nsenders = 4'),
        ('kind = "dumbbell", rate', "rate"),
        ('"flow_hash"', '"flow_hsah"'),
        ('"mixed"', '"poisson"'),
        ("load = 0.5\n", ""),
        ("load = 0.5", 'load = "none"'),
        (', size = "20 KB"', ""),
        ('{ kind = "fixed", size = "20 KB" }', '"fixed"'),
        ('[[workload.parts]]\nkind = "poisson"', '[[workload.parts]]\nkind = "poison"'),
    ],
)
def test_scenarios_that_the_core_rejects_by_type_or_name_are_invalid(old: str, new: str) -> None:
    assert old in GOOD
    good, broken = (tomllib.loads(text) for text in (GOOD, inline(GOOD.replace(old, new, 1))))
    assert problems(good) == []
    sojourn.check(good)
    with pytest.raises(sojourn.ScenarioError):
        sojourn.check(broken)
    assert problems(broken)


def inline(text: str) -> str:
    """Return the text with inline tables on one line, as TOML requires."""
    return text.replace('"star"\nsenders', '"star", senders')


QUANTITIES = (
    *(
        "10 ms",
        " 10ms ",
        "1.5 us",
        "0.5 s",
        "1. s",
        ".5 s",
        "-1 s",
        "+1 s",
        "1e3 us",
        "10",
        "10 MS",
    ),
    *(
        "1.2.3 s",
        "ms",
        "",
        "10 ms ms",
        "10\tms",
        "10 KB",
        "10KiB",
        "3 packets",
        "1 packet",
        "3packets",
    ),
    *(" 3 packets", "3 packets ", "+3 packets", "3.5 packets", ".5 packets", "5. packets"),
    *("1e2 packets", "-3 packets", "x packets", "none", "٣ packets", "٣ ms"),
)


@pytest.mark.parametrize("text", QUANTITIES)
@pytest.mark.parametrize(
    ("kind", "field"),
    [("drop_tail", "capacity"), ("red", "min_threshold"), ("red", "interval")],
)
def test_the_schema_and_the_core_accept_the_same_quantities(
    kind: str, field: str, text: str
) -> None:
    scenario = tomllib.loads(GOOD) | {"queue": {"kind": kind, field: text}}
    try:
        sojourn.check(scenario)
        problem = ""
    except sojourn.ScenarioError as error:
        problem = str(error)
    # The schema checks the form of a quantity, not its range.
    is_malformed = "expected" in problem or "must be zero or more" in problem
    assert bool(problems(scenario)) == is_malformed, problem


def tables(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema of a table with fields in a schema."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for inner in schema:
            yield from tables(inner)


def test_parameters_have_the_descriptions_and_defaults_of_the_catalogue() -> None:
    families = sojourn.parts()
    for family in ("topology", "workload", "sizes", "transport", "queue", "router", "rtt_noise"):
        for part in families[family]:
            for parameter in part["parameters"]:
                schema: Any = {"properties": component_fields(family, part["name"])}
                for name in parameter["name"].split("."):
                    schema = field(schema, name)
                assert schema["description"].startswith(parameter["about"])
                if "properties" not in schema and parameter["default"] is not None:
                    assert schema["default"] == parameter["default"]


def component_fields(family: str, name: str) -> Any:
    """Return the fields of a component of a family; names are unique within a family only."""
    candidates = tables(SCHEMA["definitions"][family]["anyOf"])
    return next(table for table in candidates if table.get("title") == name)["properties"]


def field(schema: Any, name: str) -> Any:
    """Return the schema of a field of a table, also of an optional table or a list."""
    return next(table for table in tables(schema) if name in table["properties"])["properties"][
        name
    ]


def test_every_field_has_a_description() -> None:
    for table in tables(SCHEMA):
        for name, schema in table["properties"].items():
            assert name == "kind" or schema["description"].endswith((".", ")")), name


def test_the_command_schema_writes_the_schema(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["schema"]) == 0
    printed = capsys.readouterr().out
    assert '"title": "A scenario of Sojourn' in printed
    assert cli.invoke(["schema", "--out", str(tmp_path / "x.json")]) == 0
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == printed
