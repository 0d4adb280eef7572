"""Running scenarios: a cache by content, all cores, progress, and a clean stop.

Every finished run is written to the cache as a whole and under the hash of what it is a function
of, so an interrupted sweep is resumed by the same command.
"""

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base.memory import budget, guard
from sojourn.base.progress import Course, shown
from sojourn.base.units import format_memory
from sojourn.runs import cache as store
from sojourn.runs import processes
from sojourn.runs.machine import machine
from sojourn.runs.processes import Crew, FarWatch
from sojourn.runs.results import Result, Run
from sojourn.scenario import controller_files
from sojourn.scenario.encoding import apart, check, together
from sojourn.scenario.reading import Labels, with_files

LOOKS_S = 0.1
"""How often progress is looked at."""


def key(scenario: Mapping[str, Any], may_use: int | None = None) -> str:
    """Return the name of a scenario's result: a hash of all that the result depends on.

    What needs more than so many bytes of memory is refused; `None` is what the machine has free.
    """
    return store.name_of(check(scenario, may_use))


def run(
    scenario: Mapping[str, Any],
    *,
    cache: Path | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
) -> Result:
    """Run one scenario; with a `cache`, take the result from there if it is known.

    `memory` is what it may take, such as `"4 GB"`; by default most of what the machine has free.
    """
    return run_many([scenario], cache=cache, threads=threads, memory=memory)[0]


def run_many(  # noqa: PLR0913 - each is an option of its own
    scenarios: Sequence[Mapping[str, Any]],
    *,
    cache: Path | None = None,
    threads: int | None = None,
    cluster: str | None = None,
    memory: str | int | None = None,
    what: str = "runs",
) -> list[Result]:
    """Run scenarios on all cores, or on a Dask cluster, and return their results in order.

    All scenarios are checked before the first one runs; the longest runs first. Where threads are
    more than runs, a run may use several; its result is the same. Interrupted, it stops what is
    running, keeps in the cache what has finished, and raises `KeyboardInterrupt`.

    All runs together may take so much `memory`, such as `"4 GB"`, or as many bytes; by default most
    of what the machine has free. What needs more by itself is refused before anything runs; of
    others so many run at a time as fit. If they grow beyond it nevertheless, all are stopped and
    `ScenarioError` is raised.
    """
    most = _core.MOST_THREADS
    if threads is not None and not 1 <= threads <= most:
        raise ScenarioError(f"threads: must be from 1 to {most}, not {threads}")
    if threads is not None and cluster is not None:
        raise ScenarioError("threads: are this machine's; a cluster's workers have their own")
    # The workers of a cluster look after their own memory.
    may_use = budget(memory) if cluster is None or memory is not None else sys.maxsize
    scenarios = [with_files(scenario) for scenario in scenarios]
    keys = [key(scenario, may_use) for scenario in scenarios]
    given = dict(zip(keys, scenarios, strict=True))
    known = {} if cache is None else store.known(cache, given, simulate_alone)

    def keep(name: str, result: Result) -> None:
        known[name] = result if cache is None else store.keep(cache / name, result, simulate_alone)

    missing = {name: apart(one) for name, one in given.items() if name not in known}
    if missing:
        if cache is not None:
            store.prepare(cache)
        workers = threads or min(os.cpu_count() or 1, most)
        # On a cluster each run is in a process anyway.
        calls_python = cluster is None and any(
            controller_files.are_in(given[name]) for name in missing
        )
        crew = Crew() if calls_python and min(workers, len(missing)) > 1 else None
        courses = {
            name: Course(
                json.loads(_core.estimate(*one, max(1, workers // len(missing)))),
                FarWatch() if crew else _core.Watch(),
            )
            for name, one in missing.items()
        }
        # The longest first, so that the last ones end together.
        in_turn = sorted(missing, key=lambda one: -courses[one].needs["packet_hops"])
        shares = _Shares(workers, len(missing), may_use, crew, keeps=cache is None)
        _announce(courses.values(), workers, may_use, what)
        with (
            crew or contextlib.nullcontext(),
            _executor(cluster, min(workers, len(missing))) as pool,
        ):
            if cluster is None:
                futures = {
                    pool.submit(shares.simulate, *missing[name], courses[name]): name
                    for name in in_turn
                }
            else:
                # A remote run cannot be watched: it ends itself when its future is cancelled.
                from sojourn.runs.cluster import remote_work  # noqa: PLC0415 - loads asyncio

                work = remote_work(simulate_alone)
                futures = {pool.submit(work, *missing[name]): name for name in in_turn}
            with guard(may_use, _stop_all(courses.values())):
                _collect(futures, keep, courses, what)
    return [known[name] for name in keys]


def _announce(courses: Collection[Course], workers: int, may_use: int, what: str) -> None:
    """Say on the error output if runs will take much memory."""
    needs = sorted((course.needs["bytes"] for course in courses), reverse=True)
    if sum(needs[:workers]) > may_use / 2:
        told = (
            f"about {format_memory(needs[0])} of memory, and {format_memory(may_use)} may be used"
        )
        print(f"{what}: {'a run' if len(needs) > 1 else 'it'} needs {told}", file=sys.stderr)


def _stop_all(courses: Iterable[Course]) -> Callable[[str], None]:
    def stop(reason: str) -> None:
        for course in courses:
            course.watch.stop(reason)

    return stop


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


def simulate_alone(
    text: str, texts: Sequence[str] = (), watch: _core.Watch | None = None
) -> Result:
    """Run one scenario that looks after its memory itself, as on a machine of a cluster."""
    watch, may_use = watch or _core.Watch(), budget()
    _core.check(text, list(texts), may_use)
    with guard(may_use, watch.stop):
        return simulate(text, texts, watch)


def serve() -> None:
    """Run the scenarios that come on the standard input, for whoever has started this process."""
    processes.serve(simulate_alone)


def simulate(text: str, texts: Sequence[str], watch: _core.Watch, threads: int = 1) -> Result:
    """Run one scenario given as JSON with the `texts` of its files, and note what it took.

    The CPU time is null if several threads had a part in it: those of one run cannot be told from
    those of the next.
    """
    wall, cpu = time.perf_counter(), time.thread_time()
    columns = _core.run(text, watch, threads, list(texts))
    manifest = {
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.thread_time() - cpu,
        "source_hash": _core.SOURCE_HASH,
        "machine": machine(),
    }
    result = Result.from_core(columns, manifest)
    result.summary["scenario"] = together(result.summary["scenario"], texts)
    if result.threads > 1:
        result.summary["cpu_seconds"] = None
    return result


class _Shares:
    """Shares out threads and memory: each run that starts takes its part of what is left.

    That is one thread as long as no fewer runs are still to start than threads are idle. A run for
    which there is too little memory waits until others have ended. What results take is given back
    with the run, unless it `keeps` them.
    """

    def __init__(
        self, threads: int, runs: int, may_use: int, crew: Crew | None, *, keeps: bool
    ) -> None:
        self._crew = crew
        self._changed = threading.Condition()
        self._idle, self._to_start, self._running = threads, runs, 0
        self._left, self._keeps = float(may_use), keeps

    def simulate(self, text: str, texts: Sequence[str], course: Course) -> Result:
        """Run one scenario given as JSON on its share."""
        watch, needs = course.watch, course.needs
        with self._changed:
            while self._running and needs["bytes"] > self._left and not watch.is_stopped():
                self._changed.wait(LOOKS_S)
            share = max(1, self._idle // self._to_start)
            self._idle -= share
            self._to_start -= 1
            self._running += 1
            self._left -= needs["bytes"]
        try:
            if self._crew is not None and isinstance(watch, FarWatch):
                return self._crew.simulate(text, texts, watch)
            assert isinstance(watch, _core.Watch), "only runs in this process are watched from here"
            return simulate(text, texts, watch, share)
        finally:
            with self._changed:
                self._idle += share
                self._running -= 1
                self._left += needs["bytes"] - (needs["result_bytes"] if self._keeps else 0.0)
                self._changed.notify_all()


def _collect(
    futures: dict[Future[Result], str],
    keep: Callable[[str, Result], None],
    courses: Mapping[str, Course],
    what: str,
) -> None:
    """Keep results as they finish; on any error stop the rest, but keep what has finished."""
    pending = set(futures)
    try:
        with shown(list(courses.values()), what) as show:
            while pending:
                done, pending = wait(pending, timeout=LOOKS_S, return_when=FIRST_COMPLETED)
                for future in done:
                    # Forgotten at once: the tables of a sweep may not fit in memory.
                    name = futures.pop(future)
                    keep(name, future.result())
                    courses[name].is_over = True
                del done
                show()
    except BaseException:
        whole = {future for future in pending if future.done() and not future.cancelled()}
        _stop_all(courses.values())("")
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
    from sojourn.runs.cluster import remote_workers  # noqa: PLC0415 - loads asyncio

    with remote_workers(cluster) as remote:
        yield remote
