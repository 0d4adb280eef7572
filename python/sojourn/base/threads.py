"""Threads that run code of users, and interrupts of that code."""

import contextlib
import ctypes
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

GRACE_S = 0.1
"""Time in which a thread may end by itself before it is interrupted."""

PATIENCE_S = 0.5
"""Time after which a thread is abandoned: its code catches interrupts, or blocks outside Python."""


def interrupt(raise_once: Callable[[], None], is_finished: Callable[[float], bool]) -> None:
    """Raise interrupts until a thread has finished, for `PATIENCE_S` at most.

    `is_finished` waits for a time in seconds, and returns true if the thread has finished.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not is_finished(GRACE_S) and time.monotonic() < deadline:
        raise_once()


def set_interrupt(thread: threading.Thread, kind: type[BaseException] | None) -> None:
    """Raise an exception in a thread when it next executes Python code; `None` withdraws it."""
    exception = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), exception)


class InterruptibleThread(Executor):
    """Executor with one thread, in which Python code can be interrupted.

    Signals reach the main thread only. The thread is a daemon: abandoned code does not delay the
    end of the process.
    """

    def __init__(self) -> None:
        """Start the thread."""
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._tasks = queue.SimpleQueue()
        self._is_idle, self._is_interrupted = threading.Event(), False
        self._is_idle.set()
        # An interrupt outside of a call could leave a lock of its future acquired.
        self._lock, self._is_interruptible = threading.Lock(), False
        self._thread = threading.Thread(target=self._work, name="sojourn-run", daemon=True)
        self._thread.start()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Append a call to the queue of the thread."""
        future: Future[Any] = Future()
        self._tasks.put((future, lambda: function(*args, **kwargs)))
        return future

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, call = task
            if self._is_interrupted or not future.set_running_or_notify_cancel():
                continue
            self._is_idle.clear()
            result, error = self._outcome(call)
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
            self._is_idle.set()

    def _outcome(self, call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """Return the result or the error of a call; no interrupt arrives after it."""
        result, failure = None, None
        try:
            self._permit_interrupts(True)
            result = call()
        except BaseException as error:
            failure = error
        while self._is_interruptible:
            with contextlib.suppress(KeyboardInterrupt):
                self._permit_interrupts(False)
        return result, failure

    def _permit_interrupts(self, is_interruptible: bool) -> None:
        with self._lock:
            if not is_interruptible:
                set_interrupt(self._thread, None)
            self._is_interruptible = is_interruptible

    def __exit__(self, *error: Any) -> None:
        """Wait for the end of all calls; after an error, interrupt them."""
        if error[0] is not None and not self._is_interrupted:
            self.interrupt()
        self.shutdown()

    def interrupt(self) -> None:
        """Interrupt the call in progress, and drop the calls in the queue."""
        self._is_interrupted = True
        interrupt(self._raise_once, self._is_idle.wait)

    def _raise_once(self) -> None:
        with self._lock:
            if self._is_interruptible:
                set_interrupt(self._thread, KeyboardInterrupt)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the end of all calls, unless they were interrupted."""
        self._tasks.put(None)
        if wait and not self._is_interrupted:
            self._thread.join()
