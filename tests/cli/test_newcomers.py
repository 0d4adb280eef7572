"""Options that a newcomer tries first: errors in one line, and warnings."""

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn import cli
from sojourn.show.warnings import scenario_warnings

SCENARIO = """
transport = "dctcp"

[topology]
kind = "dumbbell"
senders = 2
receivers = 2

[workload]
kind = "poisson"
load = 0.3
flows = 20
sizes = { kind = "fixed", size = "20 KB" }
"""

SCHEMES = (
    SCENARIO.replace('transport = "dctcp"', "")
    + """
[schemes.a]
transport = "dctcp"

[schemes.b]
transport = "swift"

[schemes.c]
transport = "tcp"
"""
)

FABRIC = SCENARIO.replace(
    'kind = "dumbbell"\nsenders = 2\nreceivers = 2',
    'kind = "leaf_spine"\nleaves = 16\nhosts_per_leaf = 16',
)

TEN = """
import sojourn


class Ten(sojourn.Controller):
    size = 10

    def on_start(self, path):
        self.payload = path.payload_bytes

    def allowance(self):
        return self.size


class TenPackets(Ten):
    def allowance(self):
        return 10 * self.payload


class Still(Ten):
    burst = 1

    def allowance(self):
        return sojourn.Allowance(1e6, 0.0)
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SCENARIO, encoding="utf-8")
    Path("fabric.toml").write_text(FABRIC, encoding="utf-8")
    Path("lab.toml").write_text(SCHEMES, encoding="utf-8")
    Path("ten.py").write_text(TEN, encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["view", "s.toml", "--flow", "1000", "--no-open"],
            "s.toml: --flow 1000: the run has flows 0 to",
        ),
        (["view", "lab.toml", "--no-open"], "one run or two, not 3; choose two with --scheme NAME"),
        (["view", "lab.toml", "--scheme", "d"], "--scheme d: expected one of a, b, c"),
        (["fold", "fabric.toml", "--hosts", "8"], "fabric.toml: --hosts: 8: too few"),
        (["fold", "lab.toml"], "schemes: give --scheme NAME, one of a, b, c"),
        (["real", "lab.toml"], "schemes: give --scheme NAME, one of a, b, c"),
        (["run", "s.toml", "--set", "transport=gentle.py"], "a controller is FILE:CLASS, such as"),
        (["export", "out", "--flow", "17", "--perfetto", "x"], "--flow: needs --qlog FILE or"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_fold_of_a_scheme_is_run_as_it_is_written() -> None:
    schemes = """
fidelity = "sample"
[schemes.small]
transport = "dcqcn"
[schemes.large]
transport = "swift"
topology.leaves = 20
workload = { load = 0.2, flows = 4000 }
fidelity.hosts = 128
"""
    top, *tables = FABRIC.replace('transport = "dctcp"', "").partition("[topology]")
    fields, *named = schemes.partition("[schemes")
    Path("big.toml").write_text("".join([top, fields, *tables, *named]), encoding="utf-8")
    arguments = ["fold", "big.toml", "--scheme", "large", "--hosts", "64", "--out", "fold.toml"]
    assert cli.invoke(arguments) == 0
    written = sojourn.read("fold.toml")
    assert not {"schemes", "fidelity"} & written.keys()
    assert (written["transport"], written["environment"]) == ("swift", "lossless_datacentre")
    assert (written["topology"]["leaves"], written["workload"]["flows"]) == (4, 800)
    assert written["workload"]["load"] == 0.2


@pytest.mark.parametrize("field", ["fidelty", "scheme"])
def test_fields_of_the_laboratory_are_suggested(field: str) -> None:
    suggested = {"fidelty": "fidelity", "scheme": "schemes"}[field]
    with pytest.raises(sojourn.ScenarioError) as error:
        sojourn.check(sojourn.read("s.toml") | {field: "x"})
    assert f"did you mean `{suggested}`?" in str(error.value)
    assert "`engine`, `fidelity`, `schemes`)" in str(error.value)


def test_two_schemes_are_viewed() -> None:
    arguments = ["view", "lab.toml", "--scheme", "a", "--scheme", "c", "--no-open"]
    assert cli.invoke(arguments) == 0
    assert Path("results/view/lab.html").exists()


def test_recordings_of_missing_flows_are_warned_of() -> None:
    scenario: dict[str, Any] = sojourn.read("s.toml") | {"account": True}
    result = sojourn.run(scenario | {"record": {"flows": [3, 1000]}})
    line = "warning: record.flows: not recorded: flow 1000; flows started: 20"
    assert line in scenario_warnings([result])
    assert repr(result).startswith("<Result 'unnamed': 20 flows, 0.00")


def test_windows_below_one_packet_and_rates_of_zero_are_warned_of() -> None:
    def warnings(name: str, **parameters: Any) -> list[str]:
        transport = {"kind": f"ten.py:{name}", **parameters}
        summary = sojourn.run(sojourn.read("s.toml") | {"transport": transport}).summary
        assert json.dumps(summary["warnings"])
        return [line for line in summary["warnings"] if "less than one packet" in line]

    for name in ("Ten", "Still"):
        (line,) = warnings(name)
        assert line.endswith("was allowed at every call; windows are bytes, rates bits per second")
    assert not warnings("TenPackets")


def test_parts_show_fields_of_scenarios_and_what_environments_set(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sojourn.show.console.console.width", 400)

    def printed(name: str) -> str:
        assert cli.invoke(["parts", name]) == 0
        return " ".join(capsys.readouterr().out.split())

    assert "scenario: time_limit" in printed("time_limit")
    assert 'routing flow_hash one of "flow_hash", "ecmp",' in printed("routing")
    assert "convergence 50 ms a duration with its unit" in printed("convergence")
    for name, changed in (("dcqcn", "reliability.min_rto"), ("drop_tail", "capacity")):
        (line,) = printed(name).split("environments other than")[1:]
        assert changed in line.split(": `sojourn parts environment`")[0]
    assert "environments other than" not in printed("dumbbell")
