"""Worker processes for runs with controllers in Python.

An interpreter runs Python code on one core at a time, so each such run gets a process of its own. A
process serves one run after another: it receives a scenario, reports its progress, and returns a
result. A run is stopped by killing its process, because the code of a controller may block.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base.progress import Report
from sojourn.runs.results import Result

REPORT_INTERVAL_S = 0.1
"""Interval between the progress reports of a worker process."""

COMMAND = "from sojourn.runs.runner import serve; serve()"
"""Python code that a worker process executes."""


@dataclass
class ProcessControl:
    """Handle to a run in another process, with the interface of `_core.RunControl`."""

    reason: str = ""
    last_progress: Report = field(default_factory=Report)
    stopped: threading.Event = field(default_factory=threading.Event)
    process: subprocess.Popen[bytes] | None = None

    def stop(self, reason: str = "") -> None:
        """Stop the run for a reason; only the first reason is kept."""
        self.reason = self.reason or reason
        self.stopped.set()
        if (process := self.process) is not None:
            process.kill()

    def is_stopped(self) -> bool:
        """Return true if a stop has been requested."""
        return self.stopped.is_set()

    def progress(self) -> Report:
        """Return the progress that the run reported last."""
        return self.last_progress


class WorkerPool:
    """Pool of worker processes, which are started on demand."""

    def __init__(self) -> None:
        self._idle: list[subprocess.Popen[bytes]] = []
        # Killed processes leave their temporary files.
        self._temporary = tempfile.TemporaryDirectory(prefix="sojourn-", ignore_cleanup_errors=True)

    def __enter__(self) -> "WorkerPool":
        """Return the pool."""
        return self

    def __exit__(self, *error: object) -> None:
        """End all processes."""
        for process in self._idle:
            _end(process)
        self._temporary.cleanup()

    def simulate(self, text: str, texts: Sequence[str], control: ProcessControl) -> Result:
        """Run one scenario, given as JSON and the `texts` of its files."""
        try:
            # List operations are atomic, so threads may share the list.
            process = self._idle.pop()
        except IndexError:
            # In its own session: Ctrl-C reaches this process only, which kills its workers.
            process = subprocess.Popen(
                [sys.executable, "-c", COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "TMPDIR": self._temporary.name},
                start_new_session=True,
            )
        control.process = process
        try:
            response = _request(process, (text, list(texts)), control)
        finally:
            control.process = None
        if response is None:
            _end(process)
            reason = (
                "interrupted"
                if control.is_stopped()
                else "the worker process ended: too little memory?"
            )
            raise ScenarioError(control.reason or reason)
        self._idle.append(process)
        if isinstance(response, Exception):
            raise response
        result: Result = response
        return result


def _request(process: subprocess.Popen[bytes], request: Any, control: ProcessControl) -> Any:
    """Send a request; return its response, or `None` if the process ends before."""
    requests, responses = process.stdin, process.stdout
    assert requests, "opened as a pipe"
    assert responses, "opened as a pipe"
    try:
        if control.is_stopped():
            return None
        pickle.dump(request, requests)
        requests.flush()
        while isinstance(response := pickle.load(responses), tuple):
            control.last_progress = Report(*response)
        return response
    except (EOFError, OSError, pickle.UnpicklingError):
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def serve(work: Any) -> None:
    """Serve requests from standard input by `work(text, texts, control)`, until it is closed."""
    responses = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # The output of controllers must not mix with the responses.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            text, texts = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        _respond(responses, work, text, texts)


def _respond(responses: IO[bytes], work: Any, text: str, texts: Sequence[str]) -> None:
    """Run one request; write progress reports and the response."""
    control, finished = _core.RunControl(), threading.Event()

    def report() -> None:
        while not finished.wait(REPORT_INTERVAL_S):
            try:
                pickle.dump(control.progress(), responses)
                responses.flush()
            except OSError:
                os._exit(1)  # The requesting process has ended.

    reporter = threading.Thread(target=report, name="sojourn-progress", daemon=True)
    reporter.start()
    try:
        response: Result | Exception = work(text, texts, control)
    except ScenarioError as error:
        response = error
    finally:
        finished.set()
        reporter.join()
    pickle.dump(response, responses)
    responses.flush()
