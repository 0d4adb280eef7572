"""Runs: results, threads, cache keys, interruption and resumption."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sojourn
from conftest import IN_WINDOWS, SCENARIO
from sojourn import Result, ScenarioError, _core
from sojourn.base.progress import RunProgress
from sojourn.runs import runner
from sojourn.runs.result_tables import COLUMNS
from sojourn.runs.runner import key
from sojourn.scenario.encoding import as_json


def test_flow_records_have_the_documented_columns() -> None:
    flows = sojourn.run(SCENARIO).flows
    assert tuple(flows.columns[: len(COLUMNS)]) == tuple(COLUMNS)
    kinds = dict(zip(flows.columns, flows.dtypes, strict=True))
    assert kinds["flow"] == kinds["size_bytes"] == pl.UInt64
    assert kinds["source"] == kinds["target"] == kinds["retransmits"] == pl.UInt32
    assert kinds["fct_s"] == kinds["slowdown"] == kinds["deadline_s"] == pl.Float64
    assert kinds["class"] == kinds["outcome"] == pl.String
    assert not any(flows[name].is_nan().any() for name in ("fct_s", "slowdown", "deadline_s"))
    assert flows["deadline_s"].null_count() == flows.height


def test_a_folder_that_is_written_again_gives_the_new_tables(tmp_path: Path) -> None:
    first, second = (sojourn.run(SCENARIO | {"seed": seed}) for seed in (1, 2))
    read = []
    for result in (first, second):
        read.append(Result.read(result.write(tmp_path / "out")))
        assert_frame_equal(read[-1].flows, result.flows)


def test_a_result_may_replace_itself(tmp_path: Path) -> None:
    result = sojourn.run(SCENARIO | {"account": True})
    result.write(tmp_path)
    stored = Result.read(tmp_path)
    stored.write(tmp_path)
    assert_frame_equal(Result.read(tmp_path).account, result.account)
    first = stored.with_flows(stored.flows.head(5))
    first.write(tmp_path)
    assert Result.read(tmp_path).flows.height == 5
    assert not list(tmp_path.glob(".*"))


def test_runs_that_end_with_one_that_fails_are_stored() -> None:
    failed, finished = Future[Result](), Future[Result]()
    failed.set_exception(ScenarioError("a: boom"))
    finished.set_result(sojourn.run(SCENARIO))
    stored: list[str] = []
    estimate = {"packet_hops": 1.0, "flows": 1, "limit_s": 1.0, "ends_s": None}
    runs = {name: RunProgress(estimate, name=name) for name in ("a", "b")}
    with pytest.raises(ScenarioError, match="boom"):
        runner._collect(
            {failed: "a", finished: "b"},
            lambda name, _: stored.append(name),
            runs,
            "runs",
            lambda _: None,
        )
    assert stored == ["b"]


@pytest.mark.parametrize("seed", [1.9, True, "x", None])
def test_seeds_are_whole_numbers(seed: object) -> None:
    with pytest.raises(ScenarioError, match=r"^seed: must be a whole number"):
        sojourn.over_seeds([({}, SCENARIO | {"seed": seed})], 2)


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    result = sojourn.run(SCENARIO)
    stored = Result.read(result.write(tmp_path / "out"))
    assert_frame_equal(stored.flows, result.flows)
    assert stored.summary == result.summary
    assert stored.summary["source_hash"]
    assert stored.summary["machine"]["cores"]
    assert stored.summary["wall_seconds"] > 0


def test_fct_breakdowns_add_up_and_change_no_fct(tmp_path: Path) -> None:
    plain, detailed = sojourn.run(SCENARIO), sojourn.run({**SCENARIO, "account": True})
    assert_frame_equal(detailed.flows, plain.flows)
    account = detailed.account
    assert set(account.dtypes) == {pl.UInt64}
    assert account["flow"].to_list() == plain.flows["flow"].to_list()
    ideals = account.select("^alone_.*$").sum_horizontal()
    assert ideals.to_list() == [round(ideal * 1e12) for ideal in plain.flows["ideal_fct_s"]]
    parts = account.drop("flow", "fct_ps", "rounds", "^alone_.*$")
    assert parts.columns[0] == "handshake_propagation_ps"
    assert (parts.sum_horizontal() == account["fct_ps"]).all()
    assert account["fct_ps"].to_list() == [round(fct * 1e12) for fct in plain.flows["fct_s"]]
    assert_frame_equal(Result.read(detailed.write(tmp_path / "out")).account, account)
    assert plain.account.is_empty()
    plain.write(tmp_path / "out")
    assert not (tmp_path / "out" / "account.parquet").exists()
    assert Result.read(tmp_path / "out").account.is_empty()


def test_the_intervals_of_a_chain_are_contiguous_and_add_up_to_the_breakdown(
    tmp_path: Path,
) -> None:
    detailed = sojourn.run({**SCENARIO, "account": True, "account_flows": [5, 2, 10**9]})
    assert_frame_equal(detailed.account, sojourn.run({**SCENARIO, "account": True}).account)
    chain = detailed.chain
    assert chain["flow"].unique(maintain_order=True).to_list() == [2, 5]
    durations = pl.sum_horizontal(pl.exclude("flow", "reason", "begins_ps"))
    for (flow,), intervals in chain.group_by("flow"):
        account = detailed.account.filter(flow=flow)
        ends = intervals.select(pl.col("begins_ps") + durations).to_series()
        assert intervals["begins_ps"].to_list() == [0, *ends[:-1]]
        assert ends[-1] == account["fct_ps"].item()
        by_reason = intervals.group_by("reason").agg(durations.sum().alias("duration"))
        for reason, spent in by_reason.iter_rows():
            assert account.select(pl.sum_horizontal(f"^{reason}_.*$")).item() == spent
    assert_frame_equal(Result.read(detailed.write(tmp_path / "out")).chain, chain)
    with pytest.raises(ScenarioError, match="account_flows: needs `account = true`"):
        sojourn.run({**SCENARIO, "account_flows": [1]})


def test_files_do_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    scenarios = [{**SCENARIO, "seed": seed} for seed in (1, 2, 3, 4)]
    contents = []
    for threads in (1, 4):
        for number, result in enumerate(sojourn.run_many(scenarios, threads=threads)):
            directory = result.write(tmp_path / f"{threads}-{number}")
            contents.append((directory / "flows.parquet").read_bytes())
    assert contents[:4] == contents[4:]
    assert len(set(contents)) == 4


def test_flows_of_a_run_do_not_depend_on_its_threads() -> None:
    single, parallel = (sojourn.run(IN_WINDOWS, threads=threads) for threads in (1, 3))
    assert (single.threads, parallel.threads) == (1, 3)
    assert_frame_equal(parallel.flows, single.flows)
    assert parallel.summary["links"] == single.summary["links"]
    assert single.summary["cpu_seconds"] > 0
    assert parallel.summary["cpu_seconds"] is None


@pytest.mark.parametrize(
    ("runs", "threads", "expected"),
    [(1, 4, [4]), (2, 4, [2, 2]), (3, 8, [2, 3, 3]), (2, 2, [1, 1]), (3, 1, [1, 1, 1])],
)
def test_runs_share_all_threads(runs: int, threads: int, expected: list[int]) -> None:
    scenarios = [{**IN_WINDOWS, "seed": seed} for seed in range(1, runs + 1)]
    results = sojourn.run_many(scenarios, threads=threads)
    assert sorted(result.threads for result in results) == expected


def test_the_longest_run_starts_first_and_results_keep_their_order(cache: Path) -> None:
    sizes = [50, 800, 200]
    scenarios = [sojourn.override(SCENARIO, {"workload": {"flows": flows}}) for flows in sizes]
    results = sojourn.run_many(scenarios, cache=cache, threads=1)
    assert [len(result.flows) for result in results] == sizes
    ended = sorted(cache.glob("*/summary.json"), key=lambda file: file.stat().st_mtime_ns)
    flows = [json.loads(file.read_text("utf-8"))["counts"]["flows"] for file in ended]
    assert flows == sorted(sizes, reverse=True)


def test_a_run_of_the_event_engine_uses_one_thread() -> None:
    result = sojourn.run({**SCENARIO, "engine": "events"}, threads=4)
    assert set(result.summary["engine"]) == {"kind", "events"}
    assert result.threads == 1
    assert result.summary["cpu_seconds"] > 0


def test_cache_keys_do_not_depend_on_threads(cache: Path) -> None:
    first = sojourn.run(IN_WINDOWS, cache=cache, threads=1)
    assert sojourn.run(IN_WINDOWS, cache=cache, threads=2).summary == first.summary


@pytest.mark.parametrize("threads", [-1, 0, _core.MOST_THREADS + 1])
def test_an_invalid_number_of_threads_is_rejected(threads: int) -> None:
    message = f"threads: must be from 1 to {_core.MOST_THREADS}, not {threads}"
    with pytest.raises(ValueError, match=message):
        _core.prepare(as_json(SCENARIO)).run(_core.RunControl(), threads)
    with pytest.raises(ScenarioError, match=message):
        sojourn.run_many([SCENARIO], threads=threads)


def test_a_run_on_several_threads_can_be_stopped() -> None:
    watch = _core.RunControl()
    watch.stop()
    with pytest.raises(ScenarioError, match="interrupted"):
        _core.prepare(as_json(IN_WINDOWS)).run(watch, 2)


def test_equal_scenarios_have_equal_keys() -> None:
    checked = sojourn.check(SCENARIO)
    assert key(checked) == key(SCENARIO) == key(dict(reversed(checked.items())))
    assert key({**SCENARIO, "seed": 2}) != key(SCENARIO)


def test_cached_results_are_not_run_again(cache: Path) -> None:
    first = sojourn.run(SCENARIO, cache=cache)
    second = sojourn.run(SCENARIO, cache=cache)
    assert second.summary == first.summary  # Includes the wall time.
    assert_frame_equal(second.flows, first.flows)
    assert [entry.name for entry in cache.glob("[!.]*")] == [key(SCENARIO)]


def test_an_invalid_scenario_stops_a_sweep_before_any_run(cache: Path) -> None:
    invalid = sojourn.override(SCENARIO, {"workload.load": -1})
    with pytest.raises(ScenarioError, match=r"workload\.load"):
        sojourn.run_many([SCENARIO, invalid], cache=cache)
    assert not cache.exists()


def entries(cache: Path) -> dict[str, int]:
    """Return the modification times of finished runs by name."""
    return {file.parent.name: file.stat().st_mtime_ns for file in cache.glob("*/summary.json")}


def test_an_interrupted_sweep_keeps_finished_runs_and_resumes(
    cache: Path, scenario_file: Path, tmp_path: Path
) -> None:
    seeds = 60
    arguments = ["compare", str(scenario_file), "--vary", "flows=5000", "--threads", "1"]
    command = [sys.executable, "-m", "sojourn", *arguments, "--seeds", str(seeds)]
    # In its own process group, as in a shell, so that the interrupt reaches the sweep only.
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not entries(cache) and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors == "sojourn: interrupted; finished runs are in the cache\n"
    finished = entries(cache)
    assert 0 < len(finished) < seeds
    assert not list(cache.glob(".draft-*"))
    assert not (tmp_path / "results").exists()

    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    resumed = entries(cache)
    assert len(resumed) == seeds
    assert {name: resumed[name] for name in finished} == finished


def test_threads_and_cluster_exclude_each_other() -> None:
    with pytest.raises(ScenarioError, match="--threads cannot be combined with --cluster"):
        sojourn.run_many([SCENARIO], threads=2, cluster="tcp://127.0.0.1:1")


def test_a_fluid_on_two_threads_has_the_result_and_the_cpu_time_of_one() -> None:
    fluid = {key: value for key, value in SCENARIO.items() if key != "transport"}
    fluid = sojourn.override(fluid | {"model": "processor_sharing"}, {"workload.flows": 5_000})
    one, two = (sojourn.run(fluid, threads=threads) for threads in (1, 2))
    assert_frame_equal(one.flows, two.flows)
    assert two.summary["cpu_seconds"] > 0


def test_a_process_that_was_forked_after_runs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_PROCESS_OF_RUNS", [0])
    with pytest.raises(RuntimeError, match=r"forked after a run .*get_context\(\"spawn\"\)"):
        sojourn.run(SCENARIO)
