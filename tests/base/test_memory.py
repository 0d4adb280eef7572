"""Memory: what is refused before it runs, and what is stopped while it does."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import sojourn
from conftest import IN_WINDOWS, SCENARIO
from sojourn import ScenarioError, _core, cli
from sojourn.base import memory
from sojourn.runs.runner import key
from sojourn.scenario.encoding import encode, with_texts

STAR: dict[str, Any] = {"topology": {"kind": "star", "hosts": 8}, "transport": "dctcp"}
SIZES = {"kind": "fixed", "size": "1 KB"}
CALLS = {"kind": "rpc", "request": SIZES, "response": SIZES}
INCAST = {"kind": "incast", "fan_in": 4, "size": "10 KB", "interval": "1 ns"}

TOO_LARGE: dict[str, tuple[dict[str, Any], str]] = {
    "many flows": (
        {"workload": {"kind": "long_lived", "flows": 4_000_000_000}},
        r"workload: needs about \d\.\d TB of memory, .* at a time, and 20 GB may be used",
    ),
    "many samples": (
        {"workload": {"kind": "permutation"}, "samples": {"interval": "1 ps"}},
        r"samples\.interval: needs about 600 TB of memory, .* 1\.000e13 samples",
    ),
    "many callers": (
        {"workload": {**CALLS, "pattern": {"outstanding": 10_000_000}}},
        r"workload: needs about \d+ GB of memory, .* 8\.000e7 flows at a time",
    ),
    "many incasts": ({"workload": INCAST}, r"workload: needs about \d\.\d TB of memory"),
    "some of them": (
        {"workload": {"kind": "mixed", "parts": [INCAST, {"kind": "permutation"}]}},
        r"workload: needs about \d\.\d TB of memory",
    ),
}


@pytest.mark.parametrize(("change", "message"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_what_could_never_be_held_is_refused_at_once_with_the_number(
    change: dict[str, Any], message: str
) -> None:
    begun = time.monotonic()
    with pytest.raises(ScenarioError, match=message):
        sojourn.run({**STAR, **change}, memory="20 GB")
    assert time.monotonic() - begun < 5


def test_more_flows_than_there_are_numbers_are_refused_however_much_memory_there_is() -> None:
    many = {"kind": "incast", "fan_in": 4, "size": "1 B", "interval": "1 ps"}
    with pytest.raises(ScenarioError, match=r"workload: 4\.000e12 flows; .* than 4294967295"):
        sojourn.run({**STAR, "workload": many}, memory="1000 TB")


def test_the_command_line_takes_an_amount_and_refuses_what_needs_more(
    scenario_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["run", str(scenario_file), "--memory", "10 KB"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"sojourn: {scenario_file}: ")
    assert told.endswith(" and 10 KB may be used\n")
    assert cli.invoke(["run", str(scenario_file), "--memory", "4 GG"]) == 2
    assert '--memory 4 GG: expected an amount such as "4 GB"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"), [("4 GB", 4_000_000_000), ("1.5 MB", 1_500_000), ("2KiB", 2048)]
)
def test_amounts_have_units(text: str, expected: int) -> None:
    assert memory.budget(text) == expected


def test_by_default_runs_may_take_most_of_what_is_free() -> None:
    assert 0 < memory.budget() < memory.free() <= psutil.virtual_memory().total


def test_a_run_that_grows_beyond_what_it_may_take_is_stopped_and_says_so(tmp_path: Path) -> None:
    # One slow link in the middle, at which flows pile up: that no estimate knows.
    rows = "from,to,rate,delay\nm,n,1 Mbps,1 us\n"
    rows += "".join(f"h{i},{'mn'[i % 2]},100 Gbps,1 us\n" for i in range(8))
    (tmp_path / "net.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "grows.toml").write_text(
        """
        transport = "dctcp"
        topology = { kind = "graph", file = "net.csv" }
        [workload]
        kind = "poisson"
        load = 0.5
        stop = "10 s"
        flows = 200000
        sizes = { kind = "fixed", size = "20 KB" }
        """,
        encoding="utf-8",
    )
    needs = json.loads(_core.estimate(*encode(sojourn.read(tmp_path / "grows.toml"))))
    assert needs["bytes"] < 90e6
    command = [sys.executable, "-m", "sojourn", "run", "grows.toml", "--memory", "100 MB"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    last = done.stderr.splitlines()[-1]
    assert last.startswith("sojourn: grows.toml: out of memory: ")
    assert last.endswith(" used, the limit is 100 MB")


@pytest.mark.parametrize("scenario", [SCENARIO, IN_WINDOWS, {**SCENARIO, "model": "max_min"}])
def test_a_run_that_is_stopped_says_why(scenario: dict[str, Any]) -> None:
    watch = _core.Watch()
    watch.stop("no more memory")
    longer = sojourn.override(scenario, {"workload": {**SCENARIO["workload"], "flows": 20_000}})
    with pytest.raises(ScenarioError, match="no more memory"):
        _core.run(*encode(longer)[:1], watch)


def test_runs_that_do_not_fit_together_run_one_after_another() -> None:
    scenarios = [{**SCENARIO, "seed": seed} for seed in (1, 2, 3)]
    needs = json.loads(_core.estimate(*encode(SCENARIO)))["bytes"]
    tight = sojourn.run_many(scenarios, threads=3, memory=200_000_000)
    assert [result.summary["seed"] for result in tight] == [1, 2, 3]
    with pytest.raises(ScenarioError, match="may be used"):
        sojourn.run_many(scenarios, threads=3, memory=int(needs / 2))


TRACE = "start_s,source,target,size_bytes\n0,0,1,1500\n1e-6,1,2,3000\n"


def test_the_texts_of_files_stand_beside_the_scenario_and_results_have_them() -> None:
    file = {"name": "flows.csv", "text": TRACE}
    given = {**STAR, "workload": {"kind": "trace", "file": file}}
    text, texts = encode(given)
    assert texts == [TRACE]
    assert TRACE[:5] not in text
    assert with_texts(json.loads(text), texts) == given
    assert sojourn.check(given)["workload"]["file"] == file
    result = sojourn.run(given)
    assert result.summary["scenario"]["workload"]["file"] == file
    assert result.flows["size_bytes"].to_list() == [1500, 3000]
    other = {**given, "workload": {"kind": "trace", "file": {**file, "text": TRACE + "\n"}}}
    assert key(given) != key(other)


def test_a_long_trace_is_not_held_several_times() -> None:
    code = """
import resource, sojourn
text = "start_s,source,target,size_bytes\\n" + "0.5,0,1,1500\\n" * 2_000_000
file = {"name": "flows.csv", "text": text}
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
workload = {"kind": "trace", "file": file}
sojourn.check({"topology": "star", "transport": "dctcp", "workload": workload})
print((peak() - before) * 1024 / len(text))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1.5


def test_a_trace_of_more_classes_than_people_read_is_refused() -> None:
    rows = "".join(f"0.{i:04},0,1,1500,c{i}\n" for i in range(1025))
    file = {"name": "flows.csv", "text": f"start_s,source,target,size_bytes,class\n{rows}"}
    with pytest.raises(ScenarioError, match=r"flows\.csv:1026: class: `c1024` is one class too"):
        sojourn.check({**STAR, "workload": {"kind": "trace", "file": file}})


def test_what_is_nested_too_deep_is_refused_in_one_line() -> None:
    for depth in (200, 200_000):
        with pytest.raises(ScenarioError, match="lists and tables inside each other more than 127"):
            _core.check('{"seed":' * depth)


def test_a_huge_key_is_neither_compared_for_long_nor_repeated_whole() -> None:
    begun = time.monotonic()
    with pytest.raises(ScenarioError, match="unknown field") as caught:
        _core.check(json.dumps({**STAR, "workload": "permutation", "x" * 20_000_000: 1}))
    assert time.monotonic() - begun < 5
    assert len(str(caught.value)) < 3000


def test_a_mixture_of_many_parts_takes_no_longer_than_its_flows() -> None:
    part = {"kind": "flows", "flows": [{"source": 0, "target": 1, "size": "1 KB"}]}
    text = json.dumps({**STAR, "workload": {"kind": "mixed", "parts": [part] * 60_000}})
    begun = time.monotonic()
    assert len(_core.trace(text)["flows"]["flow"]) == 60_000
    assert time.monotonic() - begun < 10
