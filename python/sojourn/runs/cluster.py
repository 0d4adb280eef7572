"""Clusters: the runs of a sweep on the workers of a Dask scheduler.

A run is a function of scenario, seed and version, so a worker must have our version to the bit of
its source: that is asked of every worker before the first run, and by every run of the worker that
it comes to. What travels to workers and to the scheduler for that is code by value that needs
nothing of ours, so those that lack the package can say so.

Dask starts again elsewhere what a dead worker had begun, and it does not stop what runs: a run
watches whether its worker still wants it, and ends itself if not. So it ends when the sweep is
interrupted, and also when whoever asked for it is gone.
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
from sojourn.base.messages import did_you_mean
from sojourn.runs.results import Result

PROTOCOLS = ("tcp", "tls")
"""How a scheduler is spoken to."""

CERTIFICATES = (
    "needs certificates: set distributed.comm.tls.ca-file, .client.cert and .client.key in "
    "Dask's configuration"
)

CONNECT_S = 10.0
"""How long a scheduler may take to answer."""

LOOK_S = 0.5
"""How often a run looks whether it is wanted, and a sweep whether there is anybody to run it."""

Source = tuple[str, str]
"""A version, and the hash of the sources that it was built from."""

OURS: Source = (_core.VERSION, _core.SOURCE_HASH)


@contextlib.contextmanager
def remote_workers(address: str) -> Iterator[Executor]:
    """Open the cluster of the scheduler at `address`, which is to be given `remote_work`.

    Waits for a worker if there is none, and says so on the error output. Raises `ClusterError` if
    the address is malformed, nobody answers there, a worker has not our source, or the scheduler
    goes away meanwhile. What is still pending when the block is left is cancelled.
    """
    told = f"--cluster {address}"
    _check_address(address)
    try:
        import distributed  # noqa: F401, PLC0415 - an optional extra
    except ImportError:
        message = "needs the extra `cluster`: pip install 'sojourn[cluster]'"
        raise ClusterError(f"{told}: {message}") from None
    with _quiet():
        client = _client(address, told)
        with client, _told(told), _waiting(client, told):
            _refuse_strangers(client, told)
            pool = client.get_executor()
            try:
                yield pool
            finally:
                # Of a scheduler that is gone nothing can be cancelled.
                with contextlib.suppress(Exception, CancelledError):
                    pool.shutdown(wait=False)


def _check_address(address: str) -> None:
    wanted = "expected tcp://HOST:PORT or tls://HOST:PORT"
    protocol, separator, _ = address.partition("://")
    try:
        parts = urlsplit(address)
        found = separator and parts.hostname and parts.port and not parts.path.strip("/")
    except ValueError:
        found = False
    if not found or protocol not in PROTOCOLS:
        hint = did_you_mean(protocol, PROTOCOLS) if separator else ""
        hint = "" if protocol in PROTOCOLS else hint
        raise ClusterError(f"--cluster {address}: {wanted}{hint}")


def _client(address: str, told: str) -> Any:
    """Connect to the scheduler."""
    from distributed import Client, Security  # noqa: PLC0415 - an optional extra

    try:
        security = Security()
        given = security.get_connection_args("client")
    except (OSError, ValueError) as error:
        raise ClusterError(f"{told}: {CERTIFICATES}: {error}") from None
    # Dask would find that out when it connects, and hang.
    if address.startswith("tls:") and given.get("ssl_context") is None:
        raise ClusterError(f"{told}: {CERTIFICATES}")
    _knock(address, given, told)
    try:
        return Client(address, security=security, timeout=CONNECT_S, set_as_default=False)
    except OSError as error:
        reason = " ".join(str(error).split())
        raise ClusterError(f"{told}: cannot be reached: {reason}") from None


def _knock(address: str, connection: Any, told: str) -> None:
    """Make sure that a scheduler answers: a client would wait for ever for one that is silent."""
    from distributed.core import rpc  # noqa: PLC0415 - an optional extra

    async def identity() -> Any:
        async with rpc(address, timeout=CONNECT_S, connection_args=connection) as scheduler:
            return await scheduler.identity()

    # In a thread: a notebook's own has a loop that runs.
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(lambda: asyncio.run(asyncio.wait_for(identity(), CONNECT_S)))
        try:
            kind = asked.result()["type"]
        except TimeoutError:
            reason = f"no answer in {CONNECT_S:g} s"
            raise ClusterError(f"{told}: cannot be reached: {reason}") from None
        # What is no scheduler may answer anything, and Dask tries to read it.
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ClusterError(f"{told}: cannot be reached: {reason}") from None
    if kind != "Scheduler":
        raise ClusterError(f"{told}: is a Dask {kind.lower()}, not a scheduler")


@contextlib.contextmanager
def _told(told: str) -> Iterator[None]:
    """Say in a line what befell the cluster while it was used."""
    from distributed.comm import CommClosedError  # noqa: PLC0415 - an optional extra
    from distributed.scheduler import KilledWorker, NoValidWorkerError  # noqa: PLC0415

    try:
        yield
    except (CancelledError, CommClosedError, NoValidWorkerError):
        message = "the connection to the scheduler was lost; what has finished is kept"
        raise ClusterError(f"{told}: {message}") from None
    except KilledWorker as error:
        message = (
            f"a run ended {error.allowed_failures + 1} workers, the last at "
            f"{error.last_worker.address}: too little memory? What has finished is kept"
        )
        raise ClusterError(f"{told}: {message}") from None
    except ImportError as error:
        if error.name != __name__:
            raise
        raise ClusterError(f"{told}: {_stranger(*error.args)}") from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves what Dask logs and warns of: what matters of it is told in our words."""

    def silent(_: logging.LogRecord) -> bool:
        return False

    # Dask hands each of a few loggers a handler of its own, when it is imported.
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
def _waiting(client: Any, told: str) -> Iterator[None]:
    """Wait for a worker; then say while the block lasts when there is none any more."""

    def alone() -> bool:
        return not client.nthreads()

    def say(words: str) -> None:
        print(f"sojourn: {told}: {words}; waiting for one (Ctrl-C ends it)", file=sys.stderr)

    def watch() -> None:
        was_alone = False
        # Of a scheduler that is gone others tell.
        with contextlib.suppress(Exception, CancelledError):
            while not over.wait(LOOK_S):
                is_alone = alone()
                if is_alone and not was_alone:
                    say("has lost its last worker")
                was_alone = is_alone

    if alone():
        say("has no workers")
        while alone():
            time.sleep(LOOK_S)
    over = threading.Event()
    watcher = threading.Thread(target=watch, name="sojourn-cluster", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(CONNECT_S)


def _refuse_strangers(client: Any, told: str) -> None:
    """Refuse a cluster of which some worker has not our source."""

    # A function inside another travels by value: a worker need not have this module to read it.
    def source() -> Any:
        try:
            from sojourn import _core  # noqa: PLC0415 - the worker's
        except ImportError:
            return None
        return _core.VERSION, _core.SOURCE_HASH

    for worker, theirs in client.run(source, on_error="return").items():
        if isinstance(theirs, Exception):
            reason = f"the worker at {worker} cannot be asked for its version: {theirs}"
            raise ClusterError(f"{told}: {reason}")
        if theirs != OURS:
            raise ClusterError(f"{told}: {_stranger(worker, theirs)}")


def _stranger(worker: str, theirs: Source | None) -> str:
    """Say which version a worker has, and which is here."""

    def words(source: Source) -> str:
        return f"{source[0]} (source {source[1][:12]})"

    has = "has no sojourn" if theirs is None else f"has sojourn {words(theirs)}"
    return f"the worker at {worker} {has}, here is {words(OURS)}; install the same on both"


Work = Callable[[str, Sequence[str], _core.Watch], Result]
"""Runs a scenario given as JSON, with the texts of its files, until it is asked to stop."""


def remote_work(function: Work) -> Callable[[str, Sequence[str]], Result]:
    """Return what runs `function` on a worker, once it has made sure that our source is there.

    The function is one of a module's; it is found by its name there.
    """
    ours, here = OURS, __name__
    module, name = function.__module__, function.__name__

    # By value as well, whatever its types name included, and of those ours may be missing there:
    # the scheduler reads what passes, and a worker that cannot read it dies.
    def work(text: str, texts: Any) -> Any:
        from distributed import get_worker  # noqa: PLC0415 - the worker's

        theirs = None
        with contextlib.suppress(ImportError):
            from sojourn import _core  # noqa: PLC0415 - the worker's

            theirs = (_core.VERSION, _core.SOURCE_HASH)
        if theirs != ours:
            raise ImportError(get_worker().address, theirs, name=here)
        found = getattr(importlib.import_module(module), name)
        return importlib.import_module(here).while_wanted(found, text, texts)

    return work


def while_wanted(function: Work, text: str, texts: Sequence[str]) -> Result:
    """Run one scenario on this worker, and stop the run when the worker no longer wants it.

    That is so when the task was cancelled, its client is gone, or the worker closes.
    """
    from distributed import get_worker  # noqa: PLC0415 - an optional extra

    worker: Any = get_worker()
    task, watch, over = worker.get_current_task(), _core.Watch(), threading.Event()

    def wanted() -> bool:
        state = worker.state.tasks.get(task)
        return worker.status.name in ("running", "paused", "closing_gracefully") and (
            state is not None and state.state == "executing"
        )

    def look() -> None:
        while not over.wait(LOOK_S):
            if not wanted():
                return watch.stop("")

    threading.Thread(target=look, name="sojourn-wanted", daemon=True).start()
    try:
        return function(text, texts, watch)
    finally:
        over.set()
