"""Clusters: a Dask scheduler and its workers on this machine, started by Dask's commands."""

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
from sojourn.base.errors import ClusterError
from sojourn.runs import cluster
from sojourn.runs.cluster import remote_workers
from sojourn.runs.runner import simulate_guarded
from sojourn.scenario.encoding import as_json

distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

LONGER = sojourn.override(SCENARIO, {"workload.flows": 10_000})
"""A scenario that takes some tenths of a second."""

ENDLESS = {"topology.rate": "100 Gbps", "workload.flows": 30_000_000, "time_limit": "1000 s"}
"""Changes that make a run practically endless."""

PATIENCE_S = 180
"""Time after which a test fails instead of waiting. Workers on a busy machine start in a minute."""


class Process:
    """Command that runs in the background."""

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
        """Kill the process."""
        self.signal(signal.SIGKILL)
        self._process.wait()

    def __repr__(self) -> str:
        """Show the standard error output when a test fails."""
        return f"Process({self.errors()!r}, ended {self._process.poll()})"

    def errors(self) -> str:
        """Return the standard error output so far."""
        return self._log.read_text(encoding="utf-8")

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit status and the standard error output."""
        self._process.wait(timeout=PATIENCE_S)
        return self._process.returncode, self.errors()


def until(condition: Callable[[], Any], *processes: Process) -> Any:
    """Wait until a condition holds, and return what it returned; a failure shows the processes."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"timeout: {processes}"
        time.sleep(0.05)
    return value


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[Process] = []
        self.scheduler = self._start("scheduler", "--no-dashboard", "--port", "0")
        match = until(lambda: re.search(r"Scheduler at: *(tcp:\S+)", self.scheduler.errors()))
        self.address = str(match[1])

    def _start(self, *command: str, **environment: str) -> Process:
        arguments = ["dask", *command, "--host", "127.0.0.1"]
        self._started.append(Process(arguments, self.folder, **environment))
        return self._started[-1]

    def worker(self, threads: int = 1, **environment: str) -> Process:
        """Start a worker that is not restarted after a kill."""
        options = ("--no-dashboard", "--no-nanny", "--nthreads", str(threads))
        return self._start("worker", self.address, *options, **environment)

    def wait_for_workers(self, count: int) -> None:
        """Wait until the number of workers is `count`."""
        with self.client() as client:
            until(lambda: len(client.nthreads()) == count)

    @contextlib.contextmanager
    def client(self) -> Iterator[Any]:
        """Open a client."""
        with distributed.Client(self.address, set_as_default=False) as client:
            yield client

    def end(self) -> None:
        """Kill all processes."""
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
    arguments = ["sojourn", "compare", str(scenario_file), "--cluster", address, *options]
    (scenario_file.parent / "here").mkdir(exist_ok=True)
    return Process(arguments, scenario_file.parent / "here")


def finished(cache: Path) -> int:
    return len(list(cache.glob("*/summary.json")))


def test_a_sweep_on_a_cluster_gives_the_results_of_threads(
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
    for result, expected in zip(remote, sojourn.run_many(scenarios), strict=True):
        assert_frame_equal(result.flows, expected.flows)
        assert result.summary["counts"] == expected.summary["counts"]
        assert result.summary["links"] == expected.summary["links"]


def test_python_controllers_and_searches_run_on_a_cluster(
    two_workers: Cluster, tmp_path: Path
) -> None:
    # No worker has the file; the scenario contains its text.
    mine = tmp_path / "mine.py"
    gentle = paths.EXAMPLES / "controllers" / "gentle.py"
    mine.write_text(gentle.read_text(encoding="utf-8"), encoding="utf-8")
    base = sojourn.override(SCENARIO, {"workload.flows": 30}) | {"transport": f"{mine}:Gentle"}
    scenarios = [sojourn.override(base, {"transport.target": target}) for target in (1.1, 2.0)]
    remote = sojourn.run_many(scenarios, cluster=two_workers.address)
    local = [sojourn.run(scenario) for scenario in scenarios]
    assert not local[0].flows.equals(local[1].flows)
    assert all(a.flows.equals(b.flows) for a, b in zip(remote, local, strict=True))
    pytest.importorskip("optuna", reason="the extra `tune` is not installed")
    options: dict[str, Any] = {"minimise": "mean fct", "trials": 4, "seeds": 1}
    remote_search, local_search = (
        sojourn.tune.search(base, {"transport.target": "1.1:2"}, cluster=address, **options)
        for address in (two_workers.address, None)
    )
    assert remote_search.trials.equals(local_search.trials)
    assert remote_search.gain == local_search.gain


def test_a_sweep_survives_a_killed_worker(two_workers: Cluster, cache: Path) -> None:
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
def test_remote_runs_stop_when_their_client_disconnects(
    two_workers: Cluster, scenario_file: Path, number: int
) -> None:
    changes = [
        option for change in ENDLESS.items() for option in ("--vary", "{}={}".format(*change))
    ]
    process = compare(scenario_file, two_workers.address, *changes, "--seeds", "5")
    with two_workers.client() as client:
        until(lambda: all(client.processing().values()), process)
        process.signal(number)
        # Each worker has one thread, which runs the next task once the thread is free.
        free = [client.submit(os.getpid, workers=[name], pure=False) for name in client.nthreads()]
        assert len({future.result(timeout=PATIENCE_S) for future in free}) == 2
    status, errors = process.end()
    if number == signal.SIGINT:
        assert (status, errors) == (130, "sojourn: interrupted; finished runs are in the cache\n")


@pytest.mark.parametrize(
    ("core", "problem"),
    [
        ("VERSION, SOURCE_HASH = '0.0.9', 'beef' * 4", "has sojourn 0.0.9 (source beefbeefbeef)"),
        ("raise ImportError", "has no sojourn"),
    ],
)
def test_a_worker_with_another_version_is_rejected(
    two_workers: Cluster, tmp_path: Path, core: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sojourn").mkdir()
    (tmp_path / "sojourn" / "__init__.py").touch()
    (tmp_path / "sojourn" / "_core.py").write_text(core, encoding="utf-8")
    other_worker = two_workers.worker(threads=4, PYTHONPATH=str(tmp_path))
    two_workers.wait_for_workers(3)
    local = rf"here is {_core.VERSION} \(source {_core.SOURCE_HASH[:12]}\)"
    message = (
        rf"--cluster {two_workers.address}: the worker at tcp:\S+ {re.escape(problem)}, {local}"
    )
    scenarios = [{**LONGER, "seed": seed} for seed in range(1, 9)]
    try:
        with pytest.raises(ClusterError, match=message):
            sojourn.run_many([SCENARIO], cluster=two_workers.address)
        # A worker that joins later is checked by its first run.
        monkeypatch.setattr(cluster, "_check_sources", lambda *_: None)
        with pytest.raises(ClusterError, match=message):
            sojourn.run_many(scenarios, cluster=two_workers.address)
    finally:
        other_worker.kill()
        two_workers.wait_for_workers(2)


def test_waiting_for_workers_can_be_interrupted(no_workers: Cluster, scenario_file: Path) -> None:
    sweep = compare(scenario_file, no_workers.address, "--vary", "flows=5000")
    until(lambda: "has no workers" in sweep.errors())
    sweep.signal(signal.SIGINT)
    status, errors = sweep.end()
    assert status == 130
    assert errors.splitlines()[1:] == ["sojourn: interrupted; finished runs are in the cache"]


def test_a_sweep_waits_for_workers_and_reports_a_lost_scheduler(
    no_workers: Cluster, scenario_file: Path, cache: Path
) -> None:
    address = no_workers.address
    sweep = compare(scenario_file, address, "--vary", "flows=5000", "--seeds", "60")
    messages = f"sojourn: --cluster {address}: has no workers; waiting for one (Ctrl-C to stop)\n"
    until(lambda: sweep.errors() == messages)
    first = no_workers.worker()
    until(lambda: finished(cache))
    first.kill()
    messages += messages.replace("has no workers", "lost its last worker")
    until(lambda: sweep.errors() == messages)
    no_workers.scheduler.kill()
    lost = "the connection to the scheduler was lost; finished runs are in the cache"
    assert sweep.end() == (2, f"{messages}sojourn: --cluster {address}: {lost}\n")
    assert 0 < finished(cache) < 60


@pytest.mark.parametrize(
    ("address", "problem"),
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
def test_an_invalid_address_is_a_one_line_error(
    scenario_file: Path,
    address: str,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 0.3)
    arguments = ["compare", str(scenario_file), "--vary", "load=0.2", "--cluster", address]
    assert cli.invoke(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"sojourn: --cluster {address}: ")
    assert problem in errors
    assert errors.count("\n") == 1


def test_silent_addresses_and_workers_are_rejected(
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


def test_errors_of_remote_runs_are_raised_locally(two_workers: Cluster) -> None:
    with remote_workers(two_workers.address) as pool:
        invalid = as_json({**SCENARIO, "workload": {"kind": "nonesuch"}})
        with pytest.raises(sojourn.ScenarioError, match="nonesuch"):
            pool.submit(cluster.remote_work(simulate_guarded), invalid, []).result()


def test_folded_networks_and_fluids_run_on_a_cluster(two_workers: Cluster, cache: Path) -> None:
    scenario = {
        **SCENARIO,
        "topology": {"kind": "leaf_spine", "leaves": 8},
        "fidelity": {"kind": "flows", "hosts": 64},
    }
    local = sojourn.run(scenario)
    (answer,) = sojourn.run_many([scenario], cluster=two_workers.address, cache=cache)
    assert_frame_equal(answer.flows, local.flows)
    # Two samples by packets and as fluids, and the whole as a fluid.
    assert finished(cache) == 5
