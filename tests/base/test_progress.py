"""Progress of runs: share, speed and remaining time."""

import threading
import time
from importlib import import_module
from typing import Any

import pytest

from conftest import IN_WINDOWS, SCENARIO
from sojourn import ScenarioError, _core
from sojourn.base.progress import Report, RunProgress, progress_display
from sojourn.base.units import format_long_time
from sojourn.scenario.encoding import encode

LONG = {"kind": "poisson", "load": 0.5, "flows": 10**6, "sizes": {"kind": "fixed", "size": "1 MB"}}
LIMIT = {"time_limit": "1000 s", "workload": LONG}


@pytest.mark.parametrize(
    ("scenario", "threads"),
    [
        ({**SCENARIO, **LIMIT, "engine": "events"}, 1),
        ({**IN_WINDOWS, **LIMIT}, 1),
        ({**IN_WINDOWS, **LIMIT}, 2),
        ({**SCENARIO, **LIMIT, "model": "processor_sharing"}, 1),
    ],
    ids=["events", "windows", "threads", "ideal"],
)
def test_a_run_reports_its_progress(scenario: dict[str, Any], threads: int) -> None:
    watch = _core.RunControl()
    reports: list[Report] = []

    def work() -> None:
        with pytest.raises(ScenarioError, match="enough"):
            _core.prepare(encode(scenario)[0]).run(watch, threads)

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive() and (len(reports) < 3 or reports[-1].ended == 0):
        now = Report(*watch.progress())
        if now.now_s > 0 and (not reports or now.now_s > reports[-1].now_s):
            reports.append(now)
        time.sleep(0.01)
    watch.stop("enough")
    thread.join()
    assert len(reports) >= 3
    assert reports == sorted(reports)
    is_packet = "model" not in scenario
    for report in reports:
        assert 0 <= report.ended <= report.started
        assert (report.hops > 0) == (report.started_bytes > 0) == is_packet
        assert report.delivered_bytes <= report.started_bytes


def run_progress(  # noqa: PLR0913 - the fields of a report and of an estimate
    flows: float | None,
    now: float,
    ended: int,
    hops: int = 0,
    *,
    started: int = 0,
    bytes_of_started: tuple[int, int] = (0, 0),
    packet_hops: float = 0.0,
    payload_bytes: float = 0.0,
) -> RunProgress:
    """Return the progress of a run with a time limit of 10 s."""

    class FixedProgress:
        def progress(self) -> Report:
            return Report(now, started, ended, *bytes_of_started, hops)

    needs = {"flows": flows, "payload_bytes": payload_bytes, "packet_hops": packet_hops}
    return RunProgress(needs | {"limit_s": 10.0, "ends_s": 4.0}, FixedProgress())  # type: ignore[arg-type]


def test_progress_is_that_of_the_most_advanced_measure() -> None:
    assert run_progress(100, 1.0, 50).share() == 0.5
    assert run_progress(100, 1.0, 50).text() == "50 of 100 flows"
    assert run_progress(100, 8.0, 50).text() == "8 of 10 s"
    assert run_progress(None, 2.0, 50).text() == "2 of 4 s"
    assert run_progress(100, 1.0, 120).share() == 0.999  # More flows than expected.
    finished = run_progress(100, 1.0, 0)
    finished.is_finished = True
    assert finished.share() == 1.0


def test_progress_is_that_of_the_payload() -> None:
    # All flows end together: none has ended, but a quarter of the payload has been delivered.
    together = run_progress(
        100, 0.1, 0, started=100, bytes_of_started=(4000, 1000), payload_bytes=4000
    )
    assert (together.share(), together.text()) == (0.25, "0 of 100 flows")
    # Half of the flows have started. They are larger than expected; the others count as expected.
    half = run_progress(100, 0.1, 50, started=50, bytes_of_started=(6000, 6000), payload_bytes=4000)
    assert half.share() == 6000 / (6000 + 2000)


def test_long_times_have_about_two_digits() -> None:
    texts = [format_long_time(seconds) for seconds in (3, 80, 400, 4000, 40_000, 4e6)]
    assert texts == ["3 s", "80 s", "6.7 min", "67 min", "11 h", "46 d"]


def test_without_a_terminal_a_line_is_written_every_20_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    finished = run_progress(10, 0.0, 10)
    finished.is_finished = True
    with progress_display([finished, run_progress(10, 0.0, 4, 90_000_000)], "sweep") as update:
        for clock[0] in (1.0, 30.0, 31.0, 60.0):
            update()
    assert capsys.readouterr().err.splitlines() == [
        "sweep: 70 % (1 of 2), 3.0 million packet-hops/s, 13 s left, 30 s",
        "sweep: 70 % (1 of 2), 1.5 million packet-hops/s, 26 s left, 60 s",
    ]


def test_runs_are_weighted_by_their_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    long = run_progress(10, 0.0, 10, packet_hops=9e6)
    long.is_finished = True
    short = run_progress(10, 0.0, 0, packet_hops=1e6)
    with progress_display([long, short], "sweep") as update:
        for clock[0] in (1.0, 27.0):
            update()
    assert capsys.readouterr().err == "sweep: 90 % (1 of 2), 3 s left, 27 s\n"


def test_a_long_expected_run_time_is_printed_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with progress_display([run_progress(100, 0.0, 1)], "one.toml") as update:
        for clock[0] in (1.0, 10.0, 11.0):
            update()
    assert capsys.readouterr().err == "one.toml: expected run time 17 min\n"


def test_no_run_time_is_expected_while_processes_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    starting = run_progress(100, 0.0, 1)
    with progress_display([starting], "one.toml") as update:
        clock[0] = 3.0
        update()
        starting.is_finished = True
        clock[0] = 4.0
        update()
    assert not capsys.readouterr().err


def test_an_estimate_above_half_of_the_memory_limit_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    needs = {"bytes": 120e6, "result_bytes": 0, "flows": 200, "limit_s": 10, "ends_s": 1}
    import_module("sojourn.runs.runner")._announce_memory(
        [RunProgress(needs)], 1, 200_000_000, "one.toml"
    )
    texts = "one.toml: needs about 120 MB of memory (limit 200 MB)\n"
    assert capsys.readouterr().err == texts
    import_module("sojourn.runs.runner")._announce_memory(
        [RunProgress(needs)], 1, 300_000_000, "one.toml"
    )
    assert not capsys.readouterr().err
