"""Clusters: a Dask scheduler and its workers on this machine, run by the ordinary commands."""

import contextlib
import importlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import sojourn
from conftest import SCENARIO
from sojourn import _core, cli
from sojourn.base import paths
from sojourn.runs import cluster
from sojourn.runs.cluster import ClusterError, remote_workers
from sojourn.runs.runner import simulate_guarded
from sojourn.scenario.encoding import as_json

distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

LONGER = sojourn.override(SCENARIO, {"workload.flows": 10_000})
"""A scenario that takes some tenths of a second."""

ENDLESS = {"topology.rate": "100 Gbps", "workload.flows": 100_000_000, "time_limit": "1000 s"}
"""What makes a scenario take as good as for ever."""


class Process:
    """A command that runs until it is told to end."""

    def __init__(self, command: list[str], folder: Path, **environment: str) -> None:
        self._log = folder / f"{len(list(folder.iterdir()))}.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=os.environ | environment,
                start_new_session=True,
            )

    def signal(self, number: int) -> None:
        """Send a signal to the process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """End it at once, and take no leave."""
        self.signal(signal.SIGKILL)
        self._process.wait()

    def errors(self) -> str:
        """Return what it has told on the error output so far."""
        return self._log.read_text(encoding="utf-8")

    def end(self) -> tuple[int, str]:
        """Wait for its end; return its status and what it told on the error output."""
        self._process.wait(timeout=30)
        return self._process.returncode, self.errors()


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait until a condition holds, and return what it returned."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    return found


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[Process] = []
        self.scheduler = self._start("scheduler", "--no-dashboard", "--port", "0")
        said = until(lambda: re.search(r"Scheduler at: *(tcp:\S+)", self.scheduler.errors()))
        self.address = str(said[1])

    def _start(self, *command: str, **environment: str) -> Process:
        given = ["dask", *command, "--host", "127.0.0.1"]
        self._started.append(Process(given, self.folder, **environment))
        return self._started[-1]

    def worker(self, threads: int = 1, **environment: str) -> Process:
        """Start a worker that a kill ends for good."""
        given = ("--no-dashboard", "--no-nanny", "--nthreads", str(threads))
        return self._start("worker", self.address, *given, **environment)

    def wait_for_workers(self, count: int) -> None:
        """Wait until so many workers are there, no more and no fewer."""
        with self.client() as client:
            until(lambda: len(client.nthreads()) == count)

    @contextlib.contextmanager
    def client(self) -> Iterator[Any]:
        """Open a client of our own."""
        with distributed.Client(self.address, set_as_default=False) as client:
            yield client

    def end(self) -> None:
        """End whatever still runs."""
        for process in self._started:
            process.kill()


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("dask"))
    try:
        for _ in range(2):
            started.worker()
        started.wait_for_workers(2)
        yield started
    finally:
        started.end()


@pytest.fixture(scope="module")
def no_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("dask"))
    try:
        yield started
    finally:
        started.end()


def compare(scenario_file: Path, address: str, *options: str) -> Process:
    """Start a comparison on a cluster, as a user does."""
    given = ["sojourn", "compare", str(scenario_file), "--cluster", address, *options]
    (scenario_file.parent / "here").mkdir(exist_ok=True)
    return Process(given, scenario_file.parent / "here")


def finished(cache: Path) -> int:
    return len(list(cache.glob("*/summary.json")))


def test_a_sweep_on_a_cluster_is_that_of_threads(
    two_workers: Cluster,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenarios = [{**SCENARIO, "seed": seed} for seed in range(1, 7)]
    for name in ("DISPLAY_DELAY_S", "LINE_INTERVAL_S"):
        monkeypatch.setattr(importlib.import_module("sojourn.base.progress"), name, 0.0)
    remote = sojourn.run_many(scenarios, cluster=two_workers.address, cache=cache, what="sweep")
    assert re.fullmatch(r"(sweep: \d+ % \(\d of 6\), .*\d+ s\n)+", capsys.readouterr().err)
    assert finished(cache) == 6
    for one, other in zip(remote, sojourn.run_many(scenarios), strict=True):
        assert_frame_equal(one.flows, other.flows)
        assert one.summary["counts"] == other.summary["counts"]
        assert one.summary["links"] == other.summary["links"]


def test_a_controller_in_python_and_a_search_run_there_as_here(
    two_workers: Cluster, tmp_path: Path
) -> None:
    # No worker has the file: its text travels.
    mine = tmp_path / "mine.py"
    gentle = paths.EXAMPLES / "controllers" / "gentle.py"
    mine.write_text(gentle.read_text(encoding="utf-8"), encoding="utf-8")
    base = sojourn.override(SCENARIO, {"workload.flows": 30}) | {"transport": f"{mine}:Gentle"}
    scenarios = [sojourn.override(base, {"transport.target": target}) for target in (1.1, 2.0)]
    remote = sojourn.run_many(scenarios, cluster=two_workers.address)
    here = [sojourn.run(scenario) for scenario in scenarios]
    assert not here[0].flows.equals(here[1].flows)
    assert all(one.flows.equals(other.flows) for one, other in zip(remote, here, strict=True))
    pytest.importorskip("optuna", reason="the extra `tune` is not installed")
    options: dict[str, Any] = {"minimise": "mean fct", "trials": 4, "seeds": 1}
    there, local = (
        sojourn.tune.search(base, {"transport.target": "1.1:2"}, cluster=address, **options)
        for address in (two_workers.address, None)
    )
    assert there.trials.equals(local.trials)
    assert there.gain == local.gain


def test_a_sweep_outlives_a_worker_that_is_killed(two_workers: Cluster, cache: Path) -> None:
    victim = two_workers.worker()
    two_workers.wait_for_workers(3)
    scenarios = [{**LONGER, "seed": seed} for seed in range(1, 13)]

    def kill() -> None:
        until(lambda: finished(cache))
        victim.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    results = sojourn.run_many(scenarios, cluster=two_workers.address, cache=cache)
    killer.join()
    two_workers.wait_for_workers(2)
    assert [result.summary["seed"] for result in results] == list(range(1, 13))
    assert_frame_equal(results[-1].flows, sojourn.run(scenarios[-1]).flows)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_remote_runs_end_when_whoever_asked_is_gone(
    two_workers: Cluster, scenario_file: Path, number: int
) -> None:
    changes = [
        option for change in ENDLESS.items() for option in ("--vary", "{}={}".format(*change))
    ]
    process = compare(scenario_file, two_workers.address, *changes, "--seeds", "5")
    with two_workers.client() as client:
        until(lambda: all(client.processing().values()))
        process.signal(number)
        # Each worker has one thread: it answers once that is free.
        free = [client.submit(os.getpid, workers=[name], pure=False) for name in client.nthreads()]
        assert len({future.result(timeout=10) for future in free}) == 2
    status, told = process.end()
    if number == signal.SIGINT:
        assert (status, told) == (130, "sojourn: interrupted; finished runs are in the cache\n")


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ("VERSION, SOURCE_HASH = '0.0.9', 'beef' * 4", "has sojourn 0.0.9 (source beefbeefbeef)"),
        ("raise ImportError", "has no sojourn"),
    ],
)
def test_a_worker_without_our_version_is_refused(
    two_workers: Cluster, tmp_path: Path, theirs: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sojourn").mkdir()
    (tmp_path / "sojourn" / "__init__.py").touch()
    (tmp_path / "sojourn" / "_core.py").write_text(theirs, encoding="utf-8")
    stranger = two_workers.worker(threads=4, PYTHONPATH=str(tmp_path))
    two_workers.wait_for_workers(3)
    ours = rf"here is {_core.VERSION} \(source {_core.SOURCE_HASH[:12]}\)"
    message = rf"--cluster {two_workers.address}: the worker at tcp:\S+ {re.escape(told)}, {ours}"
    scenarios = [{**LONGER, "seed": seed} for seed in range(1, 9)]
    try:
        with pytest.raises(ClusterError, match=message):
            sojourn.run_many([SCENARIO], cluster=two_workers.address)
        # One that comes later is met by the run that it is given.
        monkeypatch.setattr(cluster, "_check_sources", lambda *_: None)
        with pytest.raises(ClusterError, match=message):
            sojourn.run_many(scenarios, cluster=two_workers.address)
    finally:
        stranger.kill()
        two_workers.wait_for_workers(2)


def test_waiting_for_workers_can_be_ended(no_workers: Cluster, scenario_file: Path) -> None:
    sweep = compare(scenario_file, no_workers.address, "--vary", "flows=5000")
    until(lambda: "has no workers" in sweep.errors())
    sweep.signal(signal.SIGINT)
    status, told = sweep.end()
    assert status == 130
    assert told.splitlines()[1:] == ["sojourn: interrupted; finished runs are in the cache"]


def test_a_sweep_waits_for_workers_and_tells_of_a_scheduler_that_goes(
    no_workers: Cluster, scenario_file: Path, cache: Path
) -> None:
    address = no_workers.address
    sweep = compare(scenario_file, address, "--vary", "flows=5000", "--seeds", "60")
    waits = f"sojourn: --cluster {address}: has no workers; waiting for one (Ctrl-C to stop)\n"
    until(lambda: sweep.errors() == waits)
    first = no_workers.worker()
    until(lambda: finished(cache))
    first.kill()
    waits += waits.replace("has no workers", "lost its last worker")
    until(lambda: sweep.errors() == waits)
    no_workers.scheduler.kill()
    lost = "the connection to the scheduler was lost; finished runs are in the cache"
    assert sweep.end() == (2, f"{waits}sojourn: --cluster {address}: {lost}\n")
    assert 0 < finished(cache) < 60


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("tcp://127.0.0.1:9", "cannot be reached: "),
        ("tls://127.0.0.1:9", "needs certificates: set distributed.comm.tls.ca-file"),
        ("127.0.0.1:9", "expected tcp://HOST:PORT or tls://HOST:PORT"),
        ("tcp://localhost", "expected tcp://HOST:PORT"),
        ("tcp://localhost:99999", "expected tcp://HOST:PORT"),
        ("tcp://[::1:9", "expected tcp://HOST:PORT"),
        ("tsl://localhost:9", "did you mean `tls`?"),
        ("", "expected tcp://HOST:PORT"),
    ],
)
def test_a_bad_address_is_told_in_one_line(
    scenario_file: Path,
    address: str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 0.3)
    given = ["compare", str(scenario_file), "--vary", "load=0.2", "--cluster", address]
    assert cli.invoke(given) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"sojourn: --cluster {address}: ")
    assert told in errors
    assert errors.count("\n") == 1


def test_what_answers_nothing_or_is_a_worker_is_no_scheduler(
    two_workers: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_workers.client() as client:
        worker = next(iter(client.nthreads()))
    with pytest.raises(ClusterError, match="is a Dask worker, not a scheduler"):
        sojourn.run_many([SCENARIO], cluster=worker)
    monkeypatch.setattr(cluster, "CONNECT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ClusterError, match=r"cannot be reached: no response in 0\.3 s"):
            sojourn.run_many([SCENARIO], cluster=address)


def test_what_fails_in_a_remote_run_is_told_as_in_one_here(two_workers: Cluster) -> None:
    with remote_workers(two_workers.address) as pool:
        wrong = as_json({**SCENARIO, "workload": {"kind": "nonesuch"}})
        with pytest.raises(sojourn.ScenarioError, match="nonesuch"):
            pool.submit(cluster.remote_work(simulate_guarded), wrong, []).result()
