"""Interrupts of controllers in Python that loop or wait."""

import _thread
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base.threads import InterruptibleThread
from sojourn.scenario.encoding import encode

CROWD: dict[str, Any] = {
    "topology": {"kind": "fat_tree", "k": 8},
    "workload": {"kind": "permutation", "size": "10 MB"},
    "transport": "mine.py:Mine",
}

BODIES = {
    "on_ack loops": "def on_ack(self, ack):\n    while True: pass",
    "on_start loops": "def on_start(self, path):\n    while True: pass",
    "on_ack sleeps shortly": "def on_ack(self, ack): time.sleep(0.05)",
    "on_start sleeps shortly": "def on_start(self, path): time.sleep(0.05)",
    "on_ack sleeps long": "def on_ack(self, ack): time.sleep(30)",
    "on_ack collects garbage": "def on_ack(self, ack): gc.collect()",
    "on_ack catches everything": """
        def on_ack(self, ack):
            while not STOP.exists():
                try: time.sleep(0.01)
                except BaseException: pass
        """,
}


@pytest.fixture(params=BODIES)
def blocking(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    stop = tmp_path / "stop"
    body = textwrap.indent(textwrap.dedent(BODIES[request.param]), "    ")
    Path("mine.py").write_text(
        f"import gc, pathlib, time, sojourn\nSTOP = pathlib.Path({str(stop)!r})\n"
        f"class Mine(sojourn.Controller):\n{body}\n    def allowance(self): return 1e4\n"
    )
    yield
    stop.touch()


def seconds_to_interrupt(scenario: dict[str, Any], **options: Any) -> float:
    """Interrupt the main thread one second after the start of a run; return the delay."""
    times = []

    def interrupt() -> None:
        times.append(time.monotonic())
        _thread.interrupt_main()

    timer = threading.Timer(1.0, interrupt)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sojourn.run(scenario, **options)
    finally:
        timer.cancel()
    return time.monotonic() - times[0]


# Hypothesis has a callback of the garbage collector, where Python ignores the interrupt with a
# warning; the run must end all the same.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("blocking")
def test_an_interrupt_ends_a_run_whose_controller_blocks() -> None:
    # A second without load; other processes may delay it.
    assert seconds_to_interrupt(CROWD) < 3.0


def test_an_interrupt_ends_a_run_in_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "import sojourn\nclass Mine(sojourn.Controller):\n    def allowance(self):\n"
        "        while True: pass\n"
    )
    assert seconds_to_interrupt(CROWD | {"engine": "windows"}, threads=2) < 3.0


def test_a_stopped_run_without_all_calls_of_its_controllers_has_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "import time, sojourn\nclass Mine(sojourn.Controller):\n"
        "    def on_start(self, path): time.sleep(0.5)\n    def allowance(self): return 1e4\n"
    )
    flow = {"source": 0, "target": 1, "size": "1 KB"}
    workload = {"kind": "flows", "flows": [flow, flow]}
    # The run has fewer events than the core handles between two polls of the control.
    text, texts = encode({"topology": "link", "workload": workload, "transport": "mine.py:Mine"})
    control = _core.RunControl()
    threading.Timer(0.2, control.stop, ["too large"]).start()
    with pytest.raises(ScenarioError, match=r"^too large$"):
        _core.prepare(text, texts).run(control)


def test_an_interrupted_command_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "import sojourn\nclass Mine(sojourn.Controller):\n    def allowance(self):\n"
        "        print('ready', flush=True)\n        while True: pass\n"
    )
    Path("s.toml").write_text(
        "topology = 'link'\nworkload = 'permutation'\ntransport = 'mine.py:Mine'\n"
    )
    command = [sys.executable, "-m", "sojourn", "run", "s.toml"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        start = time.monotonic()
        process.send_signal(2)
        try:
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
    assert time.monotonic() - start < 5.0
    assert (process.returncode, errors.count(b"\n")) == (130, 1)


def test_an_interrupt_before_the_runs_are_collected_ends_them() -> None:
    stop = threading.Event()

    def block() -> None:
        while not stop.wait(0.01):
            pass

    def fail() -> None:
        with InterruptibleThread() as thread:
            thread.submit(block)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    stop.set()


def test_an_error_of_a_thread_is_that_of_its_call() -> None:
    def fail() -> None:
        raise ScenarioError("no")

    with InterruptibleThread() as thread:
        futures = [thread.submit(fail), thread.submit(lambda: 3)]
        with pytest.raises(ScenarioError, match="no"):
            futures[0].result()
        assert futures[1].result() == 3
