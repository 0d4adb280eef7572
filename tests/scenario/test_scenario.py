"""Scenarios: reading, overriding, short names of fields."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from conftest import SCENARIO
from sojourn import ScenarioError, check, expand, override, read, run, schema
from sojourn.experiments.modern_fabrics.paper import schemes
from sojourn.scenario import fields, overrides, reading, values

WORDS = st.text("abcd", min_size=1, max_size=3)
TABLES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    WORDS, st.recursive(st.integers(), lambda inner: st.dictionaries(WORDS, inner, max_size=3))
)


@given(TABLES, TABLES)
def test_merging_changes_only_the_fields_of_the_change(
    base: dict[str, Any], change: dict[str, Any]
) -> None:
    changed = overrides.merge(base, change)
    assert overrides.merge(changed, change) == changed
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


def test_the_order_of_changes_is_irrelevant() -> None:
    base = SCENARIO | {"queue": {"kind": "drop_tail", "capacity": "50 KB"}}
    changes: dict[str, Any] = {"queue.capacity": "90 KB", "queue.kind": "codel"}
    swapped = dict(reversed(changes.items()))
    by_name: dict[str, Any] = {"queue.capacity": "90 KB", "queue": "codel"}
    for each in (changes, swapped, by_name):
        changed = {"kind": "codel", "capacity": "90 KB"}
        assert override(base, each)["queue"] == changed
        assert overrides.with_settings(base, each)["queue"] == changed
        ((labels, scenario),) = expand(base, {name: [value] for name, value in each.items()})
        assert scenario["queue"] == changed
        assert list(labels.items()) == list(each.items())
    # A short name of a field that the other change brings.
    assert overrides.with_settings(base, {"max_mdf": 0.4, "transport": "swift"})["transport"] == {
        "kind": "swift",
        "max_mdf": 0.4,
    }
    with pytest.raises(ScenarioError, match="max_mdf: unknown field"):
        overrides.with_settings(base, {"max_mdf": 0.4, "transport": "tcp"})


@pytest.mark.parametrize(
    "changes",
    [
        {"record": {}, "account": True},
        {"warm_up": "11 s", "time_limit": "20 s"},
        {"workload.kind": "incast", "workload.fan_in": 2, "workload.size": "2 KB"},
    ],
)
def test_changes_are_checked_together(changes: dict[str, Any]) -> None:
    every = {"workload.interval": "1 ms"} if "workload.kind" in changes else {}
    for each in (changes | every, dict(reversed((changes | every).items()))):
        check(overrides.with_settings(SCENARIO, each))
    # The first mistake, of a scenario that stays invalid.
    with pytest.raises(ScenarioError, match=r"^record: .*account"):
        overrides.with_settings(SCENARIO, {"record": {}, "laod": 1})


def test_a_variation_names_the_values_of_files_that_it_replaces() -> None:
    transports = {"a.toml": "dctcp", "b.toml": {"kind": "swift"}}
    files = {Path(name): SCENARIO | {"transport": each} for name, each in transports.items()}
    base = overrides.as_schemes(files)
    replaced = "its varied values replace `dctcp` of a, `swift` of b"
    for name in ("transport", "transport.kind"):
        assert overrides.replaced_values(base, {name: ["tcp"]}) == [f"warning: {name}: {replaced}"]
    assert overrides.replaced_values(base, {"load": [0.2, 0.4]}) == []
    assert overrides.replaced_values(SCENARIO, {"transport": ["tcp"]}) == []


def test_a_variation_of_kinds_names_the_parameters_that_it_drops() -> None:
    base = SCENARIO | {"transport": {"kind": "dctcp", "gain": 0.1, "min_window": 2}}
    warning = (
        "warning: transport: parameters of dctcp that the scenario sets are dropped for dcqcn, "
        "swift: gain, min_window"
    )
    dropped = overrides.dropped_parameters
    assert dropped(base, {"transport": ["dcqcn", "swift"]}) == [warning]
    assert dropped(base, {"transport.kind": ["dcqcn", "swift"]}) == [warning]
    tables = [{"kind": "dctcp", "gain": 0.2}, {"kind": "dcqcn"}, "dcqcn", "swift"]
    assert dropped(base, {"transport": tables}) == [f"{warning}; dctcp keeps them"]
    assert dropped(base, {"transport": ["dctcp", {"gain": 0.3}], "load": [0.2]}) == []
    assert dropped(SCENARIO, {"transport": ["dctcp", "swift"]}) == []
    # A field that only the other variation's transport has.
    assert dropped(base, {"transport": ["swift"], "max_mdf": [0.4]})[0].startswith(warning[:60])
    assert dropped(base, {"queue": ["none"]}) == []
    without_kind = SCENARIO | {"queue": {"capacity": "90 KB"}}
    (line,) = dropped(without_kind, {"queue": ["codel"]})
    assert "parameters of the default kind that the scenario sets are dropped for codel" in line
    # Another variation, or the value itself, gives the parameter.
    gain: dict[str, Any] = {"transport.kind": ["dcqcn"], "transport.gain": [0.1]}
    assert dropped(base, gain)[0].endswith("for dcqcn: min_window")
    assert dropped(base, gain | {"transport.min_window": [1]}) == []
    assert dropped(base, {"transport": [{"kind": "tcp", "gain": 1, "min_window": 1}]}) == []
    # Parameters in tables.
    base = SCENARIO | {"transport": {"kind": "tcp", "window": {"initial": 2, "max": 9}}}
    kinds = {"transport": ["cubic"]}
    assert dropped(base, kinds)[0].endswith("for cubic: window.initial, window.max")
    assert dropped(base, kinds | {"window.initial": [2]})[0].endswith("for cubic: window.max")
    given = {"kind": "cubic", "window": {"initial": 2}}
    assert dropped(base, {"transport": [given]})[0].endswith("for cubic: window.max")
    # A file is a value, not a kind with parameters.
    file = {"name": "b.trace", "text": "1"}
    base = SCENARIO | {"topology": {"kind": "link", "rate_trace": file}}
    assert dropped(base, {"topology.rate_trace": ["a.trace", "c.trace"]}) == []
    assert dropped(base, {"topology": ["star"]})[0].endswith("for star: rate_trace")


def test_none_is_replaced_by_a_table() -> None:
    assert override({"samples": "none"}, {"samples.queues": ["a->b"]}) == {
        "samples": {"queues": ["a->b"]}
    }


def test_overriding_does_not_modify_the_base() -> None:
    base = {"a": {"b": 1}}
    override(base, {"a.b": 2})
    assert base == {"a": {"b": 1}}


def test_a_short_name_finds_the_only_matching_field() -> None:
    assert fields.find(SCENARIO, "load") == "workload.load"
    assert fields.find(SCENARIO, "transport") == "transport"
    with pytest.raises(ScenarioError, match=r"kind: ambiguous, could be .*`topology.kind`"):
        fields.find(SCENARIO, "kind")
    with pytest.raises(ScenarioError, match=r"laod: unknown field; did you mean `workload.load`\?"):
        fields.find(SCENARIO, "laod")


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
        ('name="a,b",[{ c = "]," }],c', ("name", ["a,b", [{"c": "],"}], "c"])),
        ("name=it's,b,]c,[", ("name", ["it's", "b", "]c", "["])),
        ("x=1\ny = 2", ("x", ["1\ny = 2"])),
    ],
)
def test_values_of_variations_are_toml_or_plain_words(text: str, expected: object) -> None:
    assert overrides.parse_variation(text) == expected


@pytest.mark.parametrize("text", ["load", "load=", "=1", "load=1,,2"])
def test_a_variation_needs_a_name_and_values(text: str) -> None:
    with pytest.raises(ScenarioError, match="expected NAME=VALUE"):
        overrides.parse_variation(text)


def test_a_parameter_is_varied_only_once() -> None:
    variations = overrides.parse_variations(["load=0.1,0.2", "transport=tcp"])
    assert variations == {"load": [0.1, 0.2], "transport": ["tcp"]}
    with pytest.raises(ScenarioError, match=r"--vary load=0\.3: `load` is given twice"):
        overrides.parse_variations(["load=0.1", "load=0.3"])


def test_files_are_read_from_the_folder_of_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("1,1\n", encoding="utf-8")
    file = tmp_path / "scenario.toml"
    file.write_text('[workload.sizes]\nfile = "sizes.csv"\n', encoding="utf-8")
    loaded = {"name": "sizes.csv", "text": "1,1\n"}
    assert read(file) == {"workload": {"sizes": {"file": loaded}}}
    assert reading.with_files(read(file)) == read(file)


def test_a_topology_names_files_of_its_links(tmp_path: Path) -> None:
    (tmp_path / "losses.csv").write_text("flow,segment,time\n0,1,1\n", encoding="utf-8")
    file = tmp_path / "scenario.toml"
    file.write_text('[topology]\nlosses = "losses.csv"\nrate_trace = "none"\n', encoding="utf-8")
    loaded = {"name": "losses.csv", "text": "flow,segment,time\n0,1,1\n"}
    assert read(file) == {"topology": {"losses": loaded, "rate_trace": "none"}}
    # Outside of `topology` the word may be a class of flows.
    transports = {"transports": {"losses": "tcp"}}
    assert reading.with_files(transports, tmp_path) == transports


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed = 1\nname = 'a'\nseed = 2\n", "3: seed: given twice"),
        ("seed = 1\nseed = 2", "2: seed: given twice"),
        ("seed = 1\r\nseed = 2\r\n", "2: seed: given twice"),
        (
            "[w]\n[transport]\ngain = 0.1\n# why\n gain = 0.2 # b\n",
            "5: transport.gain: given twice",
        ),
        ("[w]\na.b = 1\na.'b' = 1\n", "3: w.a.b: given twice"),
        ("'a \u00e9' = 1\n\"a \u00e9\" = 1\n", "2: a \u00e9: given twice"),
        ("[[w.parts]]\na = 1\n[[w.parts]]\na = 1\na = 2\n", "5: w.parts.a: given twice"),
        ('"a\\nb" = 1\n"a\\nb" = 1\n', "2: a\\nb: given twice"),
        # The key is in the first line of its value; other lines look like tables and keys.
        ("a = [\n[1],\n[2]\n]\nb = 1\na = [\n[1],\n[2]\n]\n", "6: a: given twice"),
        ("[w]\na = '''\n[b]\nc = 1\n'''\na = '''\n[b]\nc = 1\n'''\n", "6: w.a: given twice"),
        ("[w]\na = 1\n[w]\nb = 1\n", "3: w: given twice"),
        ("[[w]]\na = 1\n[w]\n", "3: w: given twice"),
        ("[w.a]\n[w]\na.b = 1\n", "3: w.a: given twice"),
        ("transport = 'dctcp'\n[transport]\ngain = 1\n", "2: transport: given twice"),
        ("w = { a = 1 }\nw.b = 2\n", "2: w: given twice"),
        ("w = 1\nw.b = 2\n", "2: w: given as a value and as a table"),
        ("w = { a = 1, b = 2, a = 3 }\n", "1: a: given twice in one table"),
        ("w = [\n{ a = 1 },\n{ b.a = 1, b.a = 3 }]\n", "3: a: given twice in one table"),
    ],
)
def test_a_key_that_is_given_twice_is_named(text: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_bytes(text.encode())
    with pytest.raises(ScenarioError) as caught:
        read(file)
    assert str(caught.value) == f"{file}:{expected}"


def test_a_checked_scenario_is_complete_and_stable() -> None:
    checked = check(SCENARIO)
    assert checked["seed"] == 1
    assert check(checked) == checked


@pytest.mark.parametrize("name", ["nscc", "rccc", "EQDS"])
def test_names_elsewhere_are_explained_by_a_table_that_is_valid(name: str) -> None:
    with pytest.raises(ScenarioError, match=f"there is no `{name}`; ") as error:
        check(SCENARIO | {"transport": name})
    table = re.search(r"{.*?}", str(error.value))
    assert table
    transport = tomllib.loads(f"transport = {table[0]}")["transport"]
    checked = check(SCENARIO | {"transport": transport})["transport"]
    assert (checked["kind"], checked["control"]) == ("uet", "nscc" if name == "nscc" else "rccc")
    if name == "EQDS":
        assert checked == check(SCENARIO | {"transport": schemes["EQDS"]["transport"]})["transport"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("all", "must not be `all`, which names all flows"),
        ("a request", "must not end in ` request` or ` response`, as classes of calls do, not"),
        ("a response", "must not end in ` request` or ` response`, as classes of calls do, not"),
    ],
)
def test_classes_with_names_of_tables_are_rejected(name: str, message: str) -> None:
    # Otherwise the flows would be added to all flows, or counted as calls without a response.
    part = SCENARIO["workload"]
    mixed = {"kind": "mixed", "parts": [part, part | {"class": name}]}
    with pytest.raises(ScenarioError, match=re.escape(f"workload.parts[1].class: {message}")):
        check(SCENARIO | {"workload": mixed})
    with pytest.raises(ScenarioError, match=re.escape(f"workload.class: {message}")):
        check(override(SCENARIO, {"workload.class": name}))
    check(override(SCENARIO, {"workload.class": f"{name} of a"}))


def test_values_of_other_types_are_rejected() -> None:
    with pytest.raises(
        ScenarioError, match="seed: must be a string, a number, true or false, a list or a table"
    ):
        check({"seed": object()})


@pytest.mark.parametrize(
    ("field", "value", "most"),
    [("seed", 2**64, 2**64 - 1), ("topology.hosts", 2**32, 2**32 - 1), ("seed", 1e30, 2**64 - 1)],
)
def test_errors_of_large_numbers_state_the_largest(field: str, value: float, most: int) -> None:
    with pytest.raises(ScenarioError, match=rf"^{field}: must be at most {most}, not "):
        check(override({"topology": {"kind": "star"}}, {field: value}))


TOO_DEEP = {
    "lists": f"a = {500 * '['}{500 * ']'}",
    "tables": f"a = {400 * '{a = '}1{400 * '}'}",
    "dotted keys": f"{3000 * 'a.'}a = 1",
    "heads": f"[{3000 * 'a.'}a]",
    "lists of tables": "\n".join(f"[[{'.'.join('a' * depth)}]]" for depth in range(1, 100)),
}


@pytest.mark.parametrize("text", TOO_DEEP.values(), ids=TOO_DEEP.keys())
def test_deeply_nested_files_are_rejected(text: str, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match="nested too deeply, at most 60 levels") as caught:
        read(file)
    assert len(str(caught.value)) < 300


def nested(depth: int) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for _ in range(depth):
        table = {"a": table}
    return table


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deeply_nested_dictionaries_are_rejected(depth: int) -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop
    for deep in (nested(depth), loop):
        for call in (
            lambda deep=deep: check(deep),
            lambda deep=deep: reading.with_files(deep),
            lambda deep=deep: overrides.merge(deep, deep),
            lambda deep=deep: override(deep, deep),
            lambda deep=deep: expand(deep, {"seed": [1]}),
        ):
            with pytest.raises(ScenarioError, match="nested too deeply"):
                call()
    with pytest.raises(ScenarioError, match="nested too deeply"):
        check(override({}, {".".join("a" * depth): 1}))
    with pytest.raises(ScenarioError, match="nested too deeply"):
        overrides.parse_variation(f"a={500 * '['}{500 * ']'}")


def test_splitting_many_values_takes_linear_time(tmp_path: Path) -> None:
    _, values = overrides.parse_variation("load=" + ",".join(["0.5"] * 30_000))
    assert len(values) == 30_000


def make_pipe(file: Path) -> None:
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (make_pipe, "a pipe, not a file"),
        (Path.mkdir, "a directory, not a file"),
        (lambda file: file.symlink_to("/dev/zero"), "a device, not a file"),
        (lambda file: file.symlink_to(file), "Too many levels of symbolic links"),
        (lambda file: file.write_bytes(b"a = '\xff'"), "not UTF-8 text"),
        (lambda file: os.truncate(os.open(file, os.O_CREAT | os.O_WRONLY), 2**40), "larger than"),
    ],
)
def test_only_regular_utf8_files_are_read(make: Any, expected: str, tmp_path: Path) -> None:
    make(tmp_path / "odd")
    with pytest.raises(ScenarioError, match=f"odd: cannot be read: {expected}"):
        read(tmp_path / "odd")
    (tmp_path / "scenario.toml").write_text('[workload.sizes]\nfile = "odd"\n', encoding="utf-8")
    with pytest.raises(ScenarioError, match=rf"workload\.sizes\.file: cannot read .*: {expected}"):
        read(tmp_path / "scenario.toml")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a\0b", "invalid file name"),
        ("\ud800", "invalid file name"),
        (300 * "x", "File name too long"),
        ("", "a directory, not a file"),
        ("/proc/self/mem", "Input/output error"),
    ],
)
def test_invalid_file_names_are_rejected(name: str, expected: str) -> None:
    with pytest.raises(ScenarioError, match=expected):
        read(name)
    with pytest.raises(ScenarioError, match=expected):
        check({"workload": {"sizes": {"file": name}}})


def test_byte_order_marks_and_crlf_line_ends_are_accepted(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_bytes(b"\xef\xbb\xbfseed = 1\r\nname = 'x'\r\n")
    assert read(file) == {"seed": 1, "name": "x"}


def test_control_characters_in_file_names_are_escaped(tmp_path: Path) -> None:
    scenario = {"workload": {"file": "a\0\nb"}}
    with pytest.raises(ScenarioError, match=r"workload\.file: cannot read `.*a\\x00\\nb`: invalid"):
        reading.with_files(scenario, tmp_path)


def test_units_are_accepted_as_results_print_them() -> None:
    units = {"delay": "2.5 µs", "rate": "50 Mb/s"}
    printed = override(SCENARIO, {"topology.delay": units["delay"], "topology.rate": units["rate"]})
    topology = check(printed)["topology"]
    assert (topology["delay"], topology["rate"]) == ("2.5 us", "50 Mbps")
    assert Draft7Validator(schema()).is_valid(printed)
    assert values.parse("1 µs:3 µs:1 µs") == ["1 µs", "2 µs", "3 µs"]
    assert run({**printed, "warm_up": "1 µs", "time_limit": "1 ms"}).flows.height > 0
