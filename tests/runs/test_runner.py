"""Runs: results, the cache, interruption and resumption."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sojourn
from conftest import IN_WINDOWS, SCENARIO
from sojourn import Result, ScenarioError, _core
from sojourn.runs.results import COLUMNS
from sojourn.runs.runner import key
from sojourn.scenario.encoding import as_json


def test_flow_records_have_the_promised_columns() -> None:
    flows = sojourn.run(SCENARIO).flows
    assert tuple(flows.columns[: len(COLUMNS)]) == COLUMNS
    kinds = dict(zip(flows.columns, flows.dtypes, strict=True))
    assert kinds["flow"] == kinds["size_bytes"] == pl.UInt64
    assert kinds["source"] == kinds["target"] == kinds["retransmits"] == pl.UInt32
    assert kinds["fct_s"] == kinds["slowdown"] == kinds["deadline_s"] == pl.Float64
    assert kinds["class"] == kinds["outcome"] == pl.String
    assert not any(flows[name].is_nan().any() for name in ("fct_s", "slowdown", "deadline_s"))
    assert flows["deadline_s"].null_count() == flows.height


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    result = sojourn.run(SCENARIO)
    again = Result.read(result.write(tmp_path / "out"))
    assert_frame_equal(again.flows, result.flows)
    assert again.summary == result.summary
    assert again.summary["source_hash"]
    assert again.summary["machine"]["cores"]
    assert again.summary["wall_seconds"] > 0


def test_accounts_add_up_and_change_no_completion_time(tmp_path: Path) -> None:
    plain, kept = sojourn.run(SCENARIO), sojourn.run({**SCENARIO, "account": True})
    assert_frame_equal(kept.flows, plain.flows)
    account = kept.account
    assert set(account.dtypes) == {pl.UInt64}
    assert account["flow"].to_list() == plain.flows["flow"].to_list()
    alone = account.select("^alone_.*$").sum_horizontal()
    assert alone.to_list() == [round(ideal * 1e12) for ideal in plain.flows["ideal_fct_s"]]
    parts = account.drop("flow", "fct_ps", "rounds", "^alone_.*$")
    assert parts.columns[0] == "handshake_propagation_ps"
    assert (parts.sum_horizontal() == account["fct_ps"]).all()
    assert account["fct_ps"].to_list() == [round(fct * 1e12) for fct in plain.flows["fct_s"]]
    assert_frame_equal(Result.read(kept.write(tmp_path / "out")).account, account)
    assert plain.account.is_empty()
    plain.write(tmp_path / "out")
    assert not (tmp_path / "out" / "account.parquet").exists()
    assert Result.read(tmp_path / "out").account.columns == ["flow", "fct_ps", "rounds"]


def test_the_pieces_of_a_chain_follow_one_another_and_are_the_account(tmp_path: Path) -> None:
    kept = sojourn.run({**SCENARIO, "account": True, "account_flows": [5, 2, 10**9]})
    assert_frame_equal(kept.account, sojourn.run({**SCENARIO, "account": True}).account)
    chain = kept.chain
    assert chain["flow"].unique(maintain_order=True).to_list() == [2, 5]
    lasted = pl.sum_horizontal(pl.exclude("flow", "reason", "begins_ps"))
    for (flow,), pieces in chain.group_by("flow"):
        account = kept.account.filter(flow=flow)
        ends = pieces.select(pl.col("begins_ps") + lasted).to_series()
        assert pieces["begins_ps"].to_list() == [0, *ends[:-1]]
        assert ends[-1] == account["fct_ps"].item()
        by_reason = pieces.group_by("reason").agg(lasted.sum().alias("lasted"))
        for reason, spent in by_reason.iter_rows():
            assert account.select(pl.sum_horizontal(f"^{reason}_.*$")).item() == spent
    assert_frame_equal(Result.read(kept.write(tmp_path / "out")).chain, chain)
    with pytest.raises(ScenarioError, match="account_flows: must be empty unless account = true"):
        sojourn.run({**SCENARIO, "account_flows": [1]})


def test_the_same_scenario_gives_the_same_bytes_on_any_number_of_threads(tmp_path: Path) -> None:
    scenarios = [{**SCENARIO, "seed": seed} for seed in (1, 2, 3, 4)]
    written = []
    for threads in (1, 4):
        for number, result in enumerate(sojourn.run_many(scenarios, threads=threads)):
            directory = result.write(tmp_path / f"{threads}-{number}")
            written.append((directory / "flows.parquet").read_bytes())
    assert written[:4] == written[4:]
    assert len(set(written)) == 4


def test_one_run_gives_the_same_flows_on_any_number_of_threads() -> None:
    alone, shared = (sojourn.run(IN_WINDOWS, threads=threads) for threads in (1, 3))
    assert (alone.threads, shared.threads) == (1, 3)
    assert_frame_equal(shared.flows, alone.flows)
    assert shared.summary["links"] == alone.summary["links"]
    assert alone.summary["cpu_seconds"] > 0
    assert shared.summary["cpu_seconds"] is None  # nobody can tell


@pytest.mark.parametrize(
    ("runs", "threads", "expected"),
    [(1, 4, [4]), (2, 4, [2, 2]), (3, 8, [2, 3, 3]), (2, 2, [1, 1]), (3, 1, [1, 1, 1])],
)
def test_runs_use_the_threads_that_would_be_idle(
    runs: int, threads: int, expected: list[int]
) -> None:
    scenarios = [{**IN_WINDOWS, "seed": seed} for seed in range(1, runs + 1)]
    results = sojourn.run_many(scenarios, threads=threads)
    assert sorted(result.threads for result in results) == expected


def test_the_longest_run_begins_first_and_results_keep_their_order(cache: Path) -> None:
    given = [50, 800, 200]
    scenarios = [sojourn.override(SCENARIO, {"workload": {"flows": flows}}) for flows in given]
    results = sojourn.run_many(scenarios, cache=cache, threads=1)
    assert [len(result.flows) for result in results] == given
    ended = sorted(cache.glob("*/summary.json"), key=lambda file: file.stat().st_mtime_ns)
    flows = [json.loads(file.read_text("utf-8"))["counts"]["flows"] for file in ended]
    assert flows == sorted(given, reverse=True)


def test_a_run_by_events_uses_one_thread_however_many_are_idle() -> None:
    result = sojourn.run({**SCENARIO, "engine": "events"}, threads=4)
    assert result.summary["engine"] == {"kind": "events"}
    assert result.threads == 1
    assert result.summary["cpu_seconds"] > 0


def test_what_is_known_does_not_depend_on_threads(cache: Path) -> None:
    first = sojourn.run(IN_WINDOWS, cache=cache, threads=1)
    assert sojourn.run(IN_WINDOWS, cache=cache, threads=2).summary == first.summary


@pytest.mark.parametrize("threads", [-1, 0, _core.MOST_THREADS + 1])
def test_a_bad_number_of_threads_is_refused(threads: int) -> None:
    message = f"threads: must be from 1 to {_core.MOST_THREADS}, not {threads}"
    with pytest.raises(ValueError, match=message):
        _core.run(as_json(SCENARIO), _core.Watch(), threads)
    with pytest.raises(ScenarioError, match=message):
        sojourn.run_many([SCENARIO], threads=threads)


def test_a_run_on_several_threads_can_be_stopped() -> None:
    watch = _core.Watch()
    watch.stop()
    with pytest.raises(ScenarioError, match="interrupted"):
        _core.run(as_json(IN_WINDOWS), watch, 2)


def test_equal_scenarios_have_one_key_however_they_are_written() -> None:
    given = sojourn.check(SCENARIO)
    assert key(given) == key(SCENARIO) == key(dict(reversed(given.items())))
    assert key({**SCENARIO, "seed": 2}) != key(SCENARIO)


def test_what_is_known_is_not_run_again(cache: Path) -> None:
    first = sojourn.run(SCENARIO, cache=cache)
    second = sojourn.run(SCENARIO, cache=cache)
    assert second.summary == first.summary  # with its wall time
    assert_frame_equal(second.flows, first.flows)
    assert [entry.name for entry in cache.glob("[!.]*")] == [key(SCENARIO)]


def test_one_bad_scenario_stops_a_sweep_before_it_starts(cache: Path) -> None:
    bad = sojourn.override(SCENARIO, {"workload.load": -1})
    with pytest.raises(ScenarioError, match=r"workload\.load"):
        sojourn.run_many([SCENARIO, bad], cache=cache)
    assert not cache.exists()


def entries(cache: Path) -> dict[str, int]:
    """Return the finished runs and when they were written."""
    return {file.parent.name: file.stat().st_mtime_ns for file in cache.glob("*/summary.json")}


def test_an_interrupted_sweep_keeps_what_finished_and_resumes(
    cache: Path, scenario_file: Path, tmp_path: Path
) -> None:
    seeds = 60
    given = ["compare", str(scenario_file), "--vary", "flows=5000", "--threads", "1"]
    command = [sys.executable, "-m", "sojourn", *given, "--seeds", str(seeds)]
    # A process group of its own, as a shell would give it: Ctrl-C is for the sweep alone.
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
    kept = entries(cache)
    assert 0 < len(kept) < seeds
    assert not list(cache.glob(".draft-*"))
    assert not (tmp_path / "results").exists()

    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    resumed = entries(cache)
    assert len(resumed) == seeds
    assert {name: resumed[name] for name in kept} == kept


def test_threads_are_not_those_of_a_cluster() -> None:
    with pytest.raises(ScenarioError, match="--threads cannot be combined with --cluster"):
        sojourn.run_many([SCENARIO], threads=2, cluster="tcp://127.0.0.1:1")
