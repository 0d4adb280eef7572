"""Processes: runs that call Python, on all cores.

One interpreter runs Python code on one core at a time, so each such run has a process of its own
beside this one. A process serves run after run: it gets a scenario, tells how far it is, and gives
back a result. What is no longer wanted is killed, whatever the code of a controller is busy with.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.runs.results import Result

TELLS_S = 0.1
"""How often a process tells how far its run is."""

COMMAND = "from sojourn.runs.runner import serve; serve()"
"""What a process does."""


@dataclass
class FarWatch:
    """Watches a run in another process, as `_core.Watch` does one in this."""

    reason: str = ""
    told: tuple[float, int, int] = (0.0, 0, 0)
    stopped: threading.Event = field(default_factory=threading.Event)
    process: subprocess.Popen[bytes] | None = None

    def stop(self, reason: str = "") -> None:
        """Stop the run, and say why; the first reason stays."""
        self.reason = self.reason or reason
        self.stopped.set()
        if (process := self.process) is not None:
            process.kill()

    def is_stopped(self) -> bool:
        """Tell whether a stop was asked for."""
        return self.stopped.is_set()

    def progress(self) -> tuple[float, int, int]:
        """Tell simulated seconds, flows that have ended and packet-hops."""
        return self.told


class Crew:
    """Processes that wait for runs, started as they are needed."""

    def __init__(self) -> None:
        self._idle: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Crew":
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """End all processes."""
        for process in self._idle:
            _end(process)

    def simulate(self, text: str, texts: Sequence[str], watch: FarWatch) -> Result:
        """Run one scenario given as JSON with the `texts` of its files."""
        try:
            # Each is taken by one thread, and lists are safe to share.
            process = self._idle.pop()
        except IndexError:
            # Of a session of its own: Ctrl-C is for who asks, and that kills it.
            process = subprocess.Popen(
                [sys.executable, "-c", COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        watch.process = process
        try:
            answer = _asked(process, (text, list(texts)), watch)
        finally:
            watch.process = None
        if answer is None:
            _end(process)
            reason = (
                "interrupted" if watch.is_stopped() else "its process ended: too little memory?"
            )
            raise ScenarioError(watch.reason or reason)
        self._idle.append(process)
        if isinstance(answer, Exception):
            raise answer
        result: Result = answer
        return result


def _asked(process: subprocess.Popen[bytes], request: Any, watch: FarWatch) -> Any:
    """Hand over a request; return its answer, or nothing if the process ends before."""
    there, back = process.stdin, process.stdout
    assert there, "it has a pipe"
    assert back, "it has two"
    try:
        if watch.is_stopped():
            return None
        pickle.dump(request, there)
        there.flush()
        while isinstance(answer := pickle.load(back), tuple):
            watch.told = answer
        return answer
    except (EOFError, OSError, pickle.UnpicklingError):
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def serve(work: Any) -> None:
    """Answer requests on the standard input by `work(text, texts, watch)`, until it is closed."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What controllers print is not to lie among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            text, texts = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        _answer(answers, work, text, texts)


def _answer(answers: IO[bytes], work: Any, text: str, texts: Sequence[str]) -> None:
    watch, over = _core.Watch(), threading.Event()

    def tell() -> None:
        while not over.wait(TELLS_S):
            try:
                pickle.dump(watch.progress(), answers)
                answers.flush()
            except OSError:
                os._exit(1)  # who asked is gone

    teller = threading.Thread(target=tell, name="sojourn-tell", daemon=True)
    teller.start()
    try:
        answer: Result | Exception = work(text, texts, watch)
    except ScenarioError as error:
        answer = error
    finally:
        over.set()
        teller.join()
    pickle.dump(answer, answers)
    answers.flush()
