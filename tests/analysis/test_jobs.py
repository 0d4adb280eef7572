"""Tests of metrics of jobs: durations, stragglers, steps, critical paths."""

from typing import Any

import polars as pl
import pytest

import sojourn
from sojourn import jobs
from sojourn.runs.results import Result

RING: dict[str, Any] = {
    "environment": "paper",
    "topology": {"kind": "star", "hosts": 6, "rate": "10 Gbps", "delay": "1 us"},
    "transport": "dctcp",
    "workload": {
        "kind": "collective",
        "algorithm": "ring",
        "ranks": 3,
        "jobs": 2,
        "size": "300 KB",
        "compute": "7 us",
    },
}


def made(rows: list[tuple[Any, ...]]) -> Result:
    """Create the result of a run of 1 s; a row is step, source, target, start, FCT."""
    names = ("step", "source", "target", "start_s", "fct_s")
    flows = pl.DataFrame(
        [
            {"flow": i, "class": "job"} | dict(zip(names, row, strict=True))
            for i, row in enumerate(rows)
        ]
    )
    flows = flows.with_columns(acked_s=pl.col("fct_s") + 0.01)
    job = {"class": "job", "ranks": 3, "messages": len(rows), "steps": 2, "start_s": 0.1}
    job |= {"compute_s": 0.0, "computed_steps": [1, 2], "bound_s": 0.2}
    return Result(flows, pl.DataFrame(), {"simulated_s": 1.0, "jobs": [job]})


ROWS = [(0, 0, 1, 0.1, 0.1), (0, 2, 0, 0.1, 0.15), (1, 1, 2, 0.25, 0.2), (1, 0, 1, 0.3, 0.1)]
"""Flow 2 follows flow 0 by 50 ms, flow 3 flow 1, also by 50 ms."""


def test_a_job_lasts_from_its_first_start_to_its_last_delivery() -> None:
    row = jobs.jobs(made(ROWS)).row(0, named=True)
    assert row["duration_s"] == pytest.approx(0.35)
    assert row["ratio"] == pytest.approx(1.75)
    assert (row["steps"], row["flows"], row["last_host"]) == (2, 4, 2)
    # Hosts 0, 1 and 2 are done at 0.25, 0.4 and 0.45.
    assert row["median_host_s"] == pytest.approx(0.3)
    assert jobs.over_bound()(made(ROWS)).value == pytest.approx(1.75)
    assert jobs.duration("job")(made(ROWS)).value == pytest.approx(0.35)
    with pytest.raises(ValueError, match=r"unknown job `jab`, did you mean|unknown job `jab`"):
        jobs.duration("jab")(made(ROWS))


def test_an_unfinished_job_counts_with_the_time_until_the_end_of_the_run() -> None:
    result = made([*ROWS[:3], (1, 0, 1, 0.3, None)])
    assert jobs.jobs(result).row(0, named=True)["duration_s"] is None
    for metric, expected in ((jobs.duration(), 0.9), (jobs.over_bound(), 4.5)):
        value, at_least = metric(result)
        assert value == pytest.approx(expected)
        assert at_least
    # A job that would start after the end has lasted for no time.
    result.summary["simulated_s"] = 0.05
    assert jobs.duration()(result) == (0.0, True)


def test_messages_that_have_not_started_are_unfinished() -> None:
    result = made(ROWS)
    result.summary["jobs"][0]["messages"] = 6
    row = jobs.jobs(result).row(0, named=True)
    assert (row["flows"], row["unfinished"], row["duration_s"]) == (6, 2, None)
    assert row["not_started"] == 2
    cut = sojourn.run({**RING, "time_limit": "100 us"})
    for row in jobs.jobs(cut).to_dicts():
        assert (row["steps"], row["flows"]) == (4, 12)
        assert (
            row["unfinished"]
            == 12 - cut.flows.filter(pl.col("class") == row["job"])["fct_s"].count()
        )
        assert row["duration_s"] is None


def test_a_pipeline_computes_before_its_first_message() -> None:
    workload = RING["workload"] | {
        "algorithm": {"kind": "pipeline", "micro_batches": 1},
        "compute": "300 us",
        "start": "1 ms",
        "jobs": 1,
    }
    result = sojourn.run({**RING, "workload": workload})
    row = jobs.jobs(result).row(0, named=True)
    assert row["start_s"] == pytest.approx(1e-3)
    assert 1 - 1e-9 <= row["ratio"] < 1.1
    path = jobs.critical_path(result, "collective")
    assert path["waited_s"].to_list() == pytest.approx([300e-6] * 4)
    total = path.select((pl.col("fct_s") + pl.col("waited_s")).sum()).item()
    assert total == pytest.approx(row["duration_s"])


def test_a_critical_path_leads_back_through_what_hosts_received_and_sent() -> None:
    path = jobs.critical_path(made(ROWS), "job")
    assert path["flow"].to_list() == [0, 2]
    assert path["waited_s"].to_list() == pytest.approx([0.0, 0.05])
    # The acknowledgement of flow 3 arrives at host 0 at 0.41.
    later = made([*ROWS, (2, 0, 2, 0.42, 0.5)])
    assert jobs.critical_path(later, "job")["flow"].to_list() == [1, 3, 4]


def test_a_critical_path_leads_through_the_message_that_was_sent_before() -> None:
    # A message of 1 MB takes 0.8 ms; computing, 0.3 ms, takes place meanwhile.
    workload = RING["workload"] | {
        "algorithm": {"kind": "pipeline", "micro_batches": 3},
        "ranks": 2,
        "size": "3 MB",
        "compute": "300 us",
        "jobs": 1,
    }
    path = jobs.critical_path(sojourn.run({**RING, "workload": workload}), "collective")
    assert path["step"].to_list() == [0, 0, 0, 1]
    assert path["waited_s"].to_list() == pytest.approx([300e-6, 0, 0, 300e-6])


def test_steps_have_their_slowest_flow() -> None:
    table = jobs.steps(made(ROWS), "job").to_dicts()
    assert [row["slowest"] for row in table] == [1, 2]
    assert table[1]["begins_s"] == pytest.approx(0.15)
    assert table[1]["ends_s"] == pytest.approx(0.35)


def test_a_run_without_jobs_has_none() -> None:
    result = Result(pl.DataFrame(), pl.DataFrame(), {"simulated_s": 1.0, "jobs": []})
    assert jobs.jobs(result).is_empty()
    with pytest.raises(ValueError, match="no jobs"):
        jobs.duration()(result)


def test_the_critical_path_of_a_simulated_ring_adds_up_to_its_duration() -> None:
    result = sojourn.run(RING)
    table = jobs.jobs(result)
    assert table["job"].to_list() == ["collective 1", "collective 2"]
    for row in table.to_dicts():
        path = jobs.critical_path(result, row["job"])
        assert path["step"].to_list() == [0, 1, 2, 3]
        assert path["waited_s"].to_list() == pytest.approx([0, 7e-6, 7e-6, 0])
        total = path.select((pl.col("fct_s") + pl.col("waited_s")).sum()).item()
        assert total == pytest.approx(row["duration_s"])
        assert row["ratio"] >= 1
    alone = sojourn.run({**RING, "model": "alone"})
    assert jobs.over_bound()(alone).value == pytest.approx(1)
