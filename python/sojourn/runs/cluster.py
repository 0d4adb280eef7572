"""Execution of a sweep's runs on the workers of a Dask cluster.

A run is a function of scenario, seed and version, so every worker must have the same source hash as
this process. The hash is checked on all workers before the first run, and again by every run on its
worker. The functions that check it are pickled by value and need no module of this package, so they
also work on a worker without the package.

Dask restarts the tasks of a dead worker elsewhere, but does not stop running tasks. A run therefore
polls the state of its own task, and stops if the task was cancelled or its client has disconnected.
"""

import asyncio
import contextlib
import importlib
import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from sojourn import _core
from sojourn.base.errors import ClusterError
from sojourn.base.messages import did_you_mean, install_command
from sojourn.runs.results import Result

PROTOCOLS = ("tcp", "tls")
"""Protocols of a scheduler's address."""

CERTIFICATES = (
    "needs certificates: set distributed.comm.tls.ca-file, .client.cert and .client.key in "
    "Dask's configuration"
)

CONNECT_S = 10.0
"""Timeout of a connection to the scheduler."""

POLL_INTERVAL_S = 0.5
"""Interval at which a run polls the state of its task, and a sweep the number of workers."""

Source = tuple[str, str]
"""Version, and hash of the sources from which it was built."""

LOCAL_SOURCE: Source = (_core.VERSION, _core.SOURCE_HASH)


@contextlib.contextmanager
def remote_workers(address: str) -> Iterator[Executor]:
    """Yield an executor on the cluster of the scheduler at `address`, for tasks of `remote_work`.

    Waits for a first worker if necessary, and prints a message. Raises `ClusterError` if the
    address is malformed, the scheduler does not respond, a worker has another source, or the
    connection is lost. Tasks that are still pending at the end of the block are cancelled.
    """
    option = f"--cluster {address}"
    _check_address(address)
    try:
        import distributed  # noqa: F401, PLC0415 - an optional extra
    except ImportError:
        message = f"needs Dask: {install_command('cluster')}"
        raise ClusterError(f"{option}: {message}") from None
    with _silence_dask():
        client = _client(address, option)
        with client, _convert_errors(option), _watch_workers(client, option):
            _check_sources(client, option)
            pool = client.get_executor()
            try:
                yield pool
            finally:
                # Cancelling fails if the connection to the scheduler is lost.
                with contextlib.suppress(Exception, CancelledError):
                    pool.shutdown(wait=False)


def _check_address(address: str) -> None:
    protocol, separator, _ = address.partition("://")
    try:
        parts = urlsplit(address)
        is_valid = separator and parts.hostname and parts.port and not parts.path.strip("/")
    except ValueError:
        is_valid = False
    if not is_valid or protocol not in PROTOCOLS:
        is_misspelt = separator and protocol not in PROTOCOLS
        hint = did_you_mean(protocol, PROTOCOLS) if is_misspelt else ""
        raise ClusterError(
            f"--cluster {address}: expected tcp://HOST:PORT or tls://HOST:PORT{hint}"
        )


def _client(address: str, option: str) -> Any:
    """Return a client that is connected to the scheduler."""
    from distributed import Client, Security  # noqa: PLC0415 - an optional extra

    try:
        security = Security()
        arguments = security.get_connection_args("client")
    except (OSError, ValueError) as error:
        raise ClusterError(f"{option}: {CERTIFICATES}: {error}") from None
    # Without certificates Dask would hang when it connects.
    if address.startswith("tls:") and arguments.get("ssl_context") is None:
        raise ClusterError(f"{option}: {CERTIFICATES}")
    _check_scheduler(address, arguments, option)
    try:
        return Client(address, security=security, timeout=CONNECT_S, set_as_default=False)
    except OSError as error:
        reason = " ".join(str(error).split())
        raise ClusterError(f"{option}: cannot be reached: {reason}") from None


def _check_scheduler(address: str, connection: Any, option: str) -> None:
    """Raise `ClusterError` unless a scheduler responds; a client would wait without a timeout."""
    from distributed.core import rpc  # noqa: PLC0415 - an optional extra

    async def identity() -> Any:
        async with rpc(address, timeout=CONNECT_S, connection_args=connection) as scheduler:
            return await scheduler.identity()

    # In another thread, because the main thread of a notebook runs an event loop already.
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(lambda: asyncio.run(asyncio.wait_for(identity(), CONNECT_S)))
        try:
            kind = future.result()["type"]
        except TimeoutError:
            reason = f"no response in {CONNECT_S:g} s"
            raise ClusterError(f"{option}: cannot be reached: {reason}") from None
        # Another service may send any bytes, which Dask tries to parse.
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ClusterError(f"{option}: cannot be reached: {reason}") from None
    if kind != "Scheduler":
        raise ClusterError(f"{option}: is a Dask {kind.lower()}, not a scheduler")


@contextlib.contextmanager
def _convert_errors(option: str) -> Iterator[None]:
    """Convert errors of the cluster to `ClusterError`."""
    from distributed.comm import CommClosedError  # noqa: PLC0415 - an optional extra
    from distributed.scheduler import KilledWorker, NoValidWorkerError  # noqa: PLC0415

    try:
        yield
    except (CancelledError, CommClosedError, NoValidWorkerError):
        message = "the connection to the scheduler was lost; finished runs are in the cache"
        raise ClusterError(f"{option}: {message}") from None
    except KilledWorker as error:
        message = (
            f"{error.allowed_failures + 1} workers ended during one run, the last at "
            f"{error.last_worker.address}: too little memory? Finished runs are in the cache"
        )
        raise ClusterError(f"{option}: {message}") from None
    except ImportError as error:
        if error.name != __name__:
            raise
        raise ClusterError(f"{option}: {_source_mismatch(*error.args)}") from None


@contextlib.contextmanager
def _silence_dask() -> Iterator[None]:
    """Suppress Dask's log output and warnings; `ClusterError` reports the relevant errors."""

    def silent(_: logging.LogRecord) -> bool:
        return False

    # On import Dask adds a handler to several loggers.
    loggers = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict)]
    handlers = {
        handler
        for logger in loggers
        if logger.name.startswith(("distributed", "tornado"))
        for handler in logger.handlers
    }
    for handler in handlers:
        handler.addFilter(silent)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"distributed\b")
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(silent)


@contextlib.contextmanager
def _watch_workers(client: Any, option: str) -> Iterator[None]:
    """Wait for a worker; during the block print a message when the last worker is lost."""

    def has_workers() -> bool:
        return bool(client.nthreads())

    def report(problem: str) -> None:
        print(f"sojourn: {option}: {problem}; waiting for one (Ctrl-C to stop)", file=sys.stderr)

    def watch() -> None:
        had_workers = True
        # A lost connection is reported by `_convert_errors`.
        with contextlib.suppress(Exception, CancelledError):
            while not finished.wait(POLL_INTERVAL_S):
                now_has_workers = has_workers()
                if had_workers and not now_has_workers:
                    report("lost its last worker")
                had_workers = now_has_workers

    if not has_workers():
        report("has no workers")
        while not has_workers():
            time.sleep(POLL_INTERVAL_S)
    finished = threading.Event()
    watcher = threading.Thread(target=watch, name="sojourn-cluster", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join(CONNECT_S)


def _check_sources(client: Any, option: str) -> None:
    """Raise `ClusterError` if the source of a worker differs from the local source."""

    # A nested function is pickled by value: the worker does not need this module.
    def source() -> Any:
        try:
            from sojourn import _core  # noqa: PLC0415 - imported on the worker
        except ImportError:
            return None
        return _core.VERSION, _core.SOURCE_HASH

    for worker, remote in client.run(source, on_error="return").items():
        if isinstance(remote, Exception):
            reason = f"cannot read the version of the worker at {worker}: {remote}"
            raise ClusterError(f"{option}: {reason}")
        if remote != LOCAL_SOURCE:
            raise ClusterError(f"{option}: {_source_mismatch(worker, remote)}")


def _source_mismatch(worker: str, remote: Source | None) -> str:
    """Return a message with the version of a worker and the local version."""

    def version(source: Source) -> str:
        return f"{source[0]} (source {source[1][:12]})"

    problem = "has no sojourn" if remote is None else f"has sojourn {version(remote)}"
    return (
        f"the worker at {worker} {problem}, here is {version(LOCAL_SOURCE)};"
        " install the same on both"
    )


Work = Callable[[str, Sequence[str], _core.RunControl], Result]
"""Function that runs a scenario, given as JSON and the texts of its files, until it is stopped."""


def remote_work(function: Work) -> Callable[[str, Sequence[str]], Result]:
    """Return a task that checks the source of its worker and then calls `function` there.

    `function` must be defined at the top level of a module; the worker imports it by name.
    """
    local_source, this_module = LOCAL_SOURCE, __name__
    module, name = function.__module__, function.__name__

    # Pickled by value, including its annotations, which therefore name no class of this package:
    # the scheduler unpickles tasks too, and a worker that cannot unpickle a task crashes.
    def work(text: str, texts: Any) -> Any:
        from distributed import get_worker  # noqa: PLC0415 - imported on the worker

        source = None
        with contextlib.suppress(ImportError):
            from sojourn import _core  # noqa: PLC0415 - imported on the worker

            source = (_core.VERSION, _core.SOURCE_HASH)
        if source != local_source:
            raise ImportError(get_worker().address, source, name=this_module)
        imported = getattr(importlib.import_module(module), name)
        return importlib.import_module(this_module).run_task(imported, text, texts)

    return work


def run_task(function: Work, text: str, texts: Sequence[str]) -> Result:
    """Run one scenario on this worker, and stop the run if its task is no longer needed.

    A task is no longer needed if it was cancelled, its client has disconnected, or the worker is
    closing.
    """
    from distributed import get_worker  # noqa: PLC0415 - an optional extra

    worker: Any = get_worker()
    task, control, finished = worker.get_current_task(), _core.RunControl(), threading.Event()

    def is_needed() -> bool:
        state = worker.state.tasks.get(task)
        return worker.status.name in ("running", "paused", "closing_gracefully") and (
            state is not None and state.state == "executing"
        )

    def poll() -> None:
        while not finished.wait(POLL_INTERVAL_S):
            if not is_needed():
                return control.stop("")

    threading.Thread(target=poll, name="sojourn-task", daemon=True).start()
    try:
        return function(text, texts, control)
    finally:
        finished.set()
