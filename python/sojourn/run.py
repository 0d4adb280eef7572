"""Running scenarios: a cache by content, all cores, progress, and a clean stop.

Every finished run is written to the cache as a whole and under the hash of what it is a function
of, so an interrupted sweep is resumed by the same command.
"""

import contextlib
import functools
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sojourn import _core
from sojourn import cache as store
from sojourn._core import ScenarioError
from sojourn.cluster import remote_work, remote_workers
from sojourn.results import Result, Run
from sojourn.scenario import Labels, as_json, check, with_files

PATIENCE_S = 2.0
"""Nothing is said about work that takes no longer than this."""


def key(scenario: Mapping[str, Any]) -> str:
    """Return the name of a scenario's result: a hash of all that the result depends on."""
    return store.name_of(check(scenario))


def run(
    scenario: Mapping[str, Any], *, cache: Path | None = None, threads: int | None = None
) -> Result:
    """Run one scenario; with a `cache`, take the result from there if it is known."""
    return run_many([scenario], cache=cache, threads=threads)[0]


def run_many(
    scenarios: Sequence[Mapping[str, Any]],
    *,
    cache: Path | None = None,
    threads: int | None = None,
    cluster: str | None = None,
    what: str = "runs",
) -> list[Result]:
    """Run scenarios on all cores, or on a Dask cluster, and return their results in order.

    All scenarios are checked before the first one runs. Where threads are more than runs, a run
    may use several; its result is the same. Interrupted, it stops what is running, keeps in the
    cache what has finished, and raises `KeyboardInterrupt`.
    """
    most = _core.MOST_THREADS
    if threads is not None and not 1 <= threads <= most:
        raise ScenarioError(f"threads: must be from 1 to {most}, not {threads}")
    keys = [key(scenario) for scenario in scenarios]
    texts = {
        name: as_json(with_files(scenario)) for name, scenario in zip(keys, scenarios, strict=True)
    }
    known = {} if cache is None else store.known(cache, texts, simulate)

    def keep(name: str, result: Result) -> None:
        known[name] = result if cache is None else store.keep(cache / name, result, simulate)

    missing = {name: text for name, text in texts.items() if name not in known}
    if missing:
        if cache is not None:
            store.prepare(cache)
        stop = _core.Stop()
        workers = threads or min(os.cpu_count() or 1, most)
        # A remote run cannot see our flag: it ends itself when its future is cancelled.
        shared = functools.partial(_Shares(workers, len(missing)).simulate, stop=stop)
        work = shared if cluster is None else remote_work(simulate)
        with _executor(cluster, min(workers, len(missing))) as pool:
            futures = {pool.submit(work, text): name for name, text in missing.items()}
            _collect(futures, keep, stop, what)
    return [known[name] for name in keys]


def sweep(runs: Sequence[tuple[Labels, Mapping[str, Any]]], **options: Any) -> list[Run]:
    """Run labelled scenarios; the options are those of `run_many`."""
    results = run_many([scenario for _, scenario in runs], **options)
    return [Run(labels, result) for (labels, _), result in zip(runs, results, strict=True)]


def over_seeds(
    runs: Sequence[tuple[Labels, Mapping[str, Any]]], seeds: int
) -> list[tuple[Labels, Mapping[str, Any]]]:
    """Repeat labelled scenarios with consecutive seeds, starting at the scenario's own."""
    return [
        (labels | {"seed": seed}, {**scenario, "seed": seed})
        for labels, scenario in runs
        for seed in range(int(scenario.get("seed", 1)), int(scenario.get("seed", 1)) + seeds)
    ]


def simulate(text: str, stop: _core.Stop | None = None, threads: int = 1) -> Result:
    """Run one scenario given as JSON, and note what it took.

    The CPU time is null if several threads had a part in it: those of one run cannot be told from
    those of the next.
    """
    wall, cpu = time.perf_counter(), time.thread_time()
    columns = _core.run(text, stop or _core.Stop(), threads)
    manifest = {
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.thread_time() - cpu,
        "source_hash": _core.SOURCE_HASH,
        "machine": machine(),
    }
    result = Result.from_core(columns, manifest)
    if result.threads > 1:
        result.summary["cpu_seconds"] = None
    return result


class _Shares:
    """Shares out threads: each run that starts takes its part of those that are idle.

    That is one thread as long as no fewer runs are still to start than threads are idle.
    """

    def __init__(self, threads: int, runs: int) -> None:
        self._lock = threading.Lock()
        self._idle, self._to_start = threads, runs

    def simulate(self, text: str, stop: _core.Stop) -> Result:
        """Run one scenario given as JSON on its share."""
        with self._lock:
            share = max(1, self._idle // self._to_start)
            self._idle -= share
            self._to_start -= 1
        try:
            return simulate(text, stop, share)
        finally:
            with self._lock:
                self._idle += share


def machine() -> dict[str, Any]:
    """Describe this machine, for the manifest beside the results."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _collect(
    futures: dict[Future[Result], str],
    keep: Callable[[str, Result], None],
    stop: _core.Stop,
    what: str,
) -> None:
    """Keep results as they finish; on any error stop the rest, but keep what has finished."""
    pending = set(futures)
    try:
        total = len(futures)
        with _progress(total, what) as advance:
            while pending:
                done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    # Forgotten at once: the tables of a sweep may not fit in memory.
                    keep(futures.pop(future), future.result())
                del done
                advance(total - len(pending))
    except BaseException:
        whole = {future for future in pending if future.done() and not future.cancelled()}
        stop.set()
        for future in pending:
            future.cancel()
        for future in whole:
            if future.exception() is None:
                keep(futures[future], future.result())
        raise


@contextlib.contextmanager
def _executor(cluster: str | None, threads: int) -> Iterator[Executor]:
    """Open what runs the simulations: threads here, or a Dask cluster's workers."""
    if cluster is None:
        # The core releases the interpreter's lock, so threads use all cores.
        with ThreadPoolExecutor(threads) as pool:
            yield pool
        return
    with remote_workers(cluster) as remote:
        yield remote


@contextlib.contextmanager
def _progress(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Show progress once the work takes long: a bar on a terminal, else a line now and then."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(what, total=total)
    begun = time.monotonic()
    line_due = begun + 10 * PATIENCE_S

    def advance(done: int) -> None:
        nonlocal line_due
        now = time.monotonic()
        bar.update(task, completed=done)
        if console.is_terminal and now - begun > PATIENCE_S:
            bar.start()
        elif not console.is_terminal and now > line_due:
            line_due = now + 10 * PATIENCE_S
            console.print(f"{what}: {done} of {total}, {now - begun:.0f} s")

    try:
        yield advance
    finally:
        if console.is_terminal:
            bar.stop()
