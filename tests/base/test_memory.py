"""Memory limit: rejection before a run, and the guard during a run."""

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
    "incast in a mixture": (
        {"workload": {"kind": "mixed", "parts": [INCAST, {"kind": "permutation"}]}},
        r"workload: needs about \d\.\d TB of memory",
    ),
}


@pytest.mark.parametrize(("change", "message"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_a_scenario_that_exceeds_memory_is_rejected_before_the_run(
    change: dict[str, Any], message: str
) -> None:
    start = time.monotonic()
    with pytest.raises(ScenarioError, match=message):
        sojourn.run({**STAR, **change}, memory="20 GB")
    assert time.monotonic() - start < 5


def test_links_of_an_ideal_need_less_memory_than_those_of_packets() -> None:
    # 249,600 links took 88 MB under processor sharing.
    clos = {"kind": "clos", "pods": 130, "edges_per_pod": 16, "hosts_per_edge": 48}
    topology = clos | {"aggregations_per_pod": 8, "cores": 64}
    poisson = {"kind": "poisson", "load": 0.1, "flows": 1000, "sizes": SIZES}
    whole = {"topology": topology, "workload": poisson}
    ideal = r"topology: needs about 9\d MB of memory"
    with pytest.raises(ScenarioError, match=ideal):
        sojourn.run(whole | {"model": "processor_sharing"}, memory="50 MB")
    with pytest.raises(ScenarioError, match=r"topology: needs about 7\d\d MB of memory"):
        sojourn.run(whole | {"transport": "dctcp"}, memory="50 MB")


def test_more_flows_than_32_bit_numbers_are_rejected() -> None:
    many = {"kind": "incast", "fan_in": 4, "size": "1 B", "interval": "1 ps"}
    with pytest.raises(ScenarioError, match=r"workload: 4\.000e12 flows; .* than 4294967295"):
        sojourn.run({**STAR, "workload": many}, memory="1000 TB")


def test_the_option_memory_sets_the_limit(
    scenario_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["run", str(scenario_file), "--memory", "10 KB"]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"sojourn: {scenario_file}: ")
    assert message.endswith(" and 10 KB may be used\n")
    assert cli.invoke(["run", str(scenario_file), "--memory", "4 GG"]) == 2
    assert '--memory 4 GG: expected an amount such as "4 GB"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"), [("4 GB", 4_000_000_000), ("1.5 MB", 1_500_000), ("2KiB", 2048)]
)
def test_amounts_of_memory_are_parsed_with_units(text: str, expected: int) -> None:
    assert memory.budget(text) == expected


def test_the_default_limit_is_below_the_free_memory() -> None:
    assert 0 < memory.budget() < memory.free() <= psutil.virtual_memory().total


def test_a_run_that_exceeds_the_limit_is_stopped(tmp_path: Path) -> None:
    # Flows pile up at one slow link in the middle, which the estimate does not predict.
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
        allow_overload = true
        stop = "10 s"
        flows = 200000
        sizes = { kind = "fixed", size = "20 KB" }
        """,
        encoding="utf-8",
    )
    needs = json.loads(_core.prepare(*encode(sojourn.read(tmp_path / "grows.toml"))).estimate())
    assert needs["bytes"] < 90e6
    command = [sys.executable, "-m", "sojourn", "run", "grows.toml", "--memory", "100 MB"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    last = done.stderr.splitlines()[-1]
    assert last.startswith("sojourn: grows.toml: out of memory: ")
    assert last.endswith(" used, the limit is 100 MB")


@pytest.mark.parametrize("scenario", [SCENARIO, IN_WINDOWS, {**SCENARIO, "model": "max_min"}])
def test_a_stopped_run_reports_the_reason(scenario: dict[str, Any]) -> None:
    watch = _core.RunControl()
    watch.stop("no more memory")
    longer = sojourn.override(scenario, {"workload": {**SCENARIO["workload"], "flows": 20_000}})
    with pytest.raises(ScenarioError, match="no more memory"):
        _core.prepare(encode(longer)[0]).run(watch)


def test_runs_that_exceed_the_limit_together_run_one_after_another() -> None:
    scenarios = [{**SCENARIO, "seed": seed} for seed in (1, 2, 3)]
    needs = json.loads(_core.prepare(*encode(SCENARIO)).estimate())["bytes"]
    sequential = sojourn.run_many(scenarios, threads=3, memory=200_000_000)
    assert [result.summary["seed"] for result in sequential] == [1, 2, 3]
    with pytest.raises(ScenarioError, match="may be used"):
        sojourn.run_many(scenarios, threads=3, memory=int(needs / 2))


TRACE = "start_s,source,target,size_bytes\n0,0,1,1500\n1e-6,1,2,3000\n"


def test_texts_of_files_are_encoded_separately_and_are_in_results() -> None:
    file = {"name": "flows.csv", "text": TRACE}
    scenario = {**STAR, "workload": {"kind": "trace", "file": file}}
    text, texts = encode(scenario)
    assert texts == [TRACE]
    assert TRACE[:5] not in text
    assert with_texts(json.loads(text), texts) == scenario
    assert sojourn.check(scenario)["workload"]["file"] == file
    result = sojourn.run(scenario)
    assert result.summary["scenario"]["workload"]["file"] == file
    assert result.flows["size_bytes"].to_list() == [1500, 3000]
    other = {**scenario, "workload": {"kind": "trace", "file": {**file, "text": TRACE + "\n"}}}
    assert key(scenario) != key(other)


def test_a_long_trace_is_not_copied() -> None:
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


def test_a_trace_with_too_many_classes_is_rejected() -> None:
    rows = "".join(f"0.{i:04},0,1,1500,c{i}\n" for i in range(1025))
    file = {"name": "flows.csv", "text": f"start_s,source,target,size_bytes,class\n{rows}"}
    with pytest.raises(ScenarioError, match=r"flows\.csv:1026: class: `c1024` exceeds"):
        sojourn.check({**STAR, "workload": {"kind": "trace", "file": file}})


def test_deep_nesting_is_rejected_in_one_line() -> None:
    for depth in (200, 200_000):
        with pytest.raises(ScenarioError, match="lists and tables inside each other more than 127"):
            _core.prepare('{"seed":' * depth)


def test_a_huge_key_is_rejected_quickly_and_shortened() -> None:
    start = time.monotonic()
    with pytest.raises(ScenarioError, match="unknown field") as caught:
        _core.prepare(json.dumps({**STAR, "workload": "permutation", "x" * 20_000_000: 1}))
    assert time.monotonic() - start < 5
    assert len(str(caught.value)) < 3000


def test_the_time_to_build_a_mixture_grows_with_its_flows() -> None:
    part = {"kind": "flows", "flows": [{"source": 0, "target": 1, "size": "1 KB"}]}
    text = json.dumps({**STAR, "workload": {"kind": "mixed", "parts": [part] * 60_000}})
    start = time.monotonic()
    assert len(_core.prepare(text).trace()["flows"]["flow"]) == 60_000
    assert time.monotonic() - start < 10
