"""Execution of scenarios: cache, threads and processes, progress, memory limit, clean stop.

Every finished run is stored in the cache atomically, under the hash of its inputs, so the same
command resumes an interrupted sweep.
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
from sojourn.base.errors import check_whole, naming
from sojourn.base.memory import budget, guard
from sojourn.base.progress import RunProgress, progress_display
from sojourn.base.threads import InterruptibleThread
from sojourn.base.units import format_memory
from sojourn.runs import answers, choice, processes
from sojourn.runs import cache as result_cache
from sojourn.runs.machine import machine
from sojourn.runs.processes import ProcessControl, WorkerPool
from sojourn.runs.results import Result, Run
from sojourn.scenario import controller_files
from sojourn.scenario.encoding import Prepared, check, with_texts
from sojourn.scenario.fidelity import FIELD
from sojourn.scenario.reading import Labels, ScenarioLike, as_scenario

POLL_INTERVAL_S = 0.1
"""Interval between updates of the progress."""

FLUID_FLOW_HOPS = 30
"""Packet-hops of a simulation that take as long as a flow of an ideal, on a large network."""

_PROCESS_OF_RUNS: list[int] = []
"""The process that has started runs, if any."""

MAX_RUNS = 100_000
"""Largest number of runs in a comparison or a search, against mistyped options."""


def key(scenario: ScenarioLike, memory_limit: int | None = None) -> str:
    """Return a hash of everything that the result of a scenario depends on.

    It is the name of the cache entry of a scenario without `fidelity`; answers of others are stored
    as the runs of which they consist. Raises `ScenarioError` for an invalid scenario, and for one
    that needs more than `memory_limit` bytes (default: the share of the free memory in
    `base.memory`).
    """
    return result_cache.entry_name(check(scenario, memory_limit))


def run(
    scenario: ScenarioLike,
    *,
    cache: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
) -> Result:
    """Run one scenario, or the scenario file of a path, and return its result.

    With a `cache` (a folder), a stored result is returned without a run. `threads` and `memory` are
    those of `run_many`. Raises `ScenarioError`.
    """
    return run_many([scenario], cache=cache, threads=threads, memory=memory)[0]


def run_many(  # noqa: PLR0913 - each argument is an independent option
    scenarios: Sequence[ScenarioLike],
    *,
    cache: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    cluster: str | None = None,
    memory: str | int | None = None,
    what: str = "runs",
) -> list[Result]:
    """Run scenarios on all cores, or on a Dask cluster, and return their results in order.

    All scenarios are checked before the first run; the longest runs start first. If there are more
    threads than runs, a run may use several, with the same result. An interrupt stops all runs and
    raises `KeyboardInterrupt`; finished runs remain in the cache.

    Args:
        scenarios: scenarios as `read` returns them, or paths of scenario files.
        cache: folder of stored results, as `default_cache()`; by default nothing is stored.
        threads: number of threads (default: all cores).
        cluster: address of a Dask scheduler, such as `tcp://HOST:PORT`.
        memory: limit of all runs together in bytes, or a text such as `"4 GB"` (default: 90 % of
            the free memory). Runs start only while their estimates fit.
        what: title of the progress display.

    Raises:
        ScenarioError: for an invalid scenario or option, for a scenario whose estimate exceeds the
            memory limit, and if the runs exceed the limit while they run.
        RuntimeError: in a process that was forked from one with runs. It lacks the threads of
            Polars, and would wait for them forever.

    """
    _check_process()
    if isinstance(scenarios, str | os.PathLike | Mapping):
        raise ScenarioError("scenarios: expected a list of scenarios; `run` runs one")
    names = [f"scenarios[{number}]" for number in range(len(scenarios))]
    return _run_named(
        names, scenarios, cache, threads=threads, cluster=cluster, memory=memory, what=what
    )


def _check_process() -> None:
    """Raise `RuntimeError` in a process that was forked after runs."""
    process = os.getpid()
    if _PROCESS_OF_RUNS and [process] != _PROCESS_OF_RUNS:
        raise RuntimeError(
            "this process was forked after a run and lacks threads: give the pool "
            'mp_context=multiprocessing.get_context("spawn"), or use run_many'
        )
    _PROCESS_OF_RUNS[:] = [process]


def _run_named(
    names: Sequence[str],
    scenarios: Sequence[ScenarioLike],
    cache: str | os.PathLike[str] | None = None,
    **options: Any,
) -> list[Result]:
    """Run scenarios as `run_many`; if there are several, errors begin with their names."""
    shown = names if len(names) > 1 else [""] * len(names)
    plans: list[answers.Answer] = []
    chosen = choice.resolved(
        shown, scenarios, _memory_limit(options.get("memory"), options.get("cluster"))
    )
    for name, (scenario, reason) in zip(shown, chosen, strict=True):
        with naming(name), naming(reason and f"{FIELD}: {reason}"):
            plans.append(answers.plan(scenario))
    results: list[list[Result]] = [[] for _ in plans]
    while runs := [
        (number, scenario)
        for number, plan in enumerate(plans)
        for scenario in plan.scenarios[len(results[number]) :]
    ]:
        names_of_runs = [shown[number] for number, _ in runs]
        done = _run_each(names_of_runs, [scenario for _, scenario in runs], cache, **options)
        for (number, _), result in zip(runs, done, strict=True):
            results[number].append(result)
        answers.add_samples(plans, results)
    return [
        choice.with_reason(plan.combined(done), reason)
        for plan, done, (_, reason) in zip(plans, results, chosen, strict=True)
    ]


def _memory_limit(memory: str | int | None, cluster: str | None) -> int:
    """Return the memory limit of runs; the workers of a cluster limit their own memory."""
    return budget(memory) if cluster is None or memory is not None else sys.maxsize


def _run_each(  # noqa: PLR0913 - as `run_many`
    names: Sequence[str],
    scenarios: Sequence[ScenarioLike],
    cache_folder: str | os.PathLike[str] | None = None,
    *,
    threads: int | None = None,
    cluster: str | None = None,
    memory: str | int | None = None,
    what: str = "runs",
) -> list[Result]:
    """Run scenarios without a fidelity, as `run_many`; errors begin with names, if not empty."""
    workers = _workers(threads, cluster)
    memory_limit = _memory_limit(memory, cluster)
    cache = None if cache_folder is None else Path(cache_folder)
    keys, prepared = _prepared(names, scenarios, memory_limit)
    results = {} if cache is None else result_cache.find_results(cache, prepared, simulate_guarded)

    def store(key: str, result: Result) -> None:
        if cache is not None:
            result = result_cache.store(cache / key, result, simulate_guarded)
        results[key] = result

    missing = {key: scenario for key, scenario in prepared.items() if key not in results}
    if missing:
        if cache is not None:
            result_cache.prepare_folder(cache)
        # Of equal scenarios, the first has the name.
        names_by_key = dict(zip(reversed(keys), reversed(names), strict=True))
        _simulate_all(
            missing,
            names_by_key,
            store,
            workers=workers,
            cluster=cluster,
            memory_limit=memory_limit,
            keeps_results=cache is None,
            what=what,
        )
    return [results[key] for key in keys]


def _workers(threads: int | None, cluster: str | None) -> int:
    """Return the number of threads of all runs together; raise `ScenarioError` if it is invalid."""
    max_threads = _core.MOST_THREADS
    if threads is None:
        return min(os.cpu_count() or 1, max_threads)
    check_whole("threads", threads)
    if not 1 <= threads <= max_threads:
        raise ScenarioError(f"threads: must be from 1 to {max_threads}, not {threads}")
    if cluster is not None:
        raise ScenarioError("--threads cannot be combined with --cluster")
    return threads


def _prepared(
    names: Sequence[str], scenarios: Sequence[ScenarioLike], memory_limit: int
) -> tuple[list[str], dict[str, Prepared]]:
    """Check scenarios. Return their keys in order, and the prepared scenario of each key."""
    keys, by_key = [], dict[str, Prepared]()
    for name, scenario in zip(names, scenarios, strict=True):
        with naming(name):
            prepared = Prepared(scenario)
            prepared.core.check(memory_limit)
        keys.append(result_cache.entry_name(prepared.complete()))
        by_key[keys[-1]] = prepared
        if len(scenarios) > 1:
            # Only the runs in progress keep their networks.
            prepared.release()
    return keys, by_key


def _simulate_all(  # noqa: PLR0913 - as `run_many`
    scenarios: Mapping[str, Prepared],
    names: Mapping[str, str],
    store: Callable[[str, Result], None],
    *,
    workers: int,
    cluster: str | None,
    memory_limit: int,
    keeps_results: bool,
    what: str,
) -> None:
    """Simulate scenarios by key, the longest first, and store results as they finish."""
    count = len(scenarios)
    # A cluster runs each scenario in a separate process in any case.
    calls_python = cluster is None and any(
        controller_files.has_controllers(json.loads(prepared.text))
        for prepared in scenarios.values()
    )
    worker_pool = WorkerPool() if calls_python and min(workers, count) > 1 else None
    runs = {
        key: RunProgress(
            json.loads(prepared.core.estimate(max(1, workers // count))),
            ProcessControl() if worker_pool else _core.RunControl(),
            names[key],
        )
        for key, prepared in scenarios.items()
    }
    if count > 1:
        for prepared in scenarios.values():
            prepared.release()
    # The longest runs start first, so that all threads finish at about the same time.
    longest_first = sorted(scenarios, key=lambda key: -_relative_time(runs[key].estimate))
    _announce_memory(runs.values(), workers, memory_limit, what)
    can_block = calls_python and worker_pool is None
    with (
        worker_pool or contextlib.nullcontext(),
        _executor(cluster, min(workers, count), can_block=can_block) as pool,
    ):
        if cluster is None:
            resources = _Resources(
                workers, count, memory_limit, worker_pool, keeps_results=keeps_results
            )
            futures = {
                pool.submit(resources.simulate, scenarios[key], runs[key]): key
                for key in longest_first
            }
        else:
            # A remote run has no progress; it stops itself when its future is cancelled.
            from sojourn.runs.cluster import remote_work  # noqa: PLC0415 - loads asyncio

            work = remote_work(simulate_guarded)
            futures = {
                pool.submit(work, scenarios[key].text, scenarios[key].texts): key
                for key in longest_first
            }
        stop = _stop_function(runs.values(), pool)
        with guard(memory_limit, stop):
            _collect(futures, store, runs, what, stop)


def _relative_time(estimate: Mapping[str, Any]) -> float:
    """Return the estimated CPU time of a run relative to others, in packet-hops."""
    hops: float = estimate["packet_hops"]
    return hops or (estimate["flows"] or 0) * FLUID_FLOW_HOPS


def _announce_memory(
    runs: Collection[RunProgress], workers: int, memory_limit: int, title: str
) -> None:
    """Print the estimated memory to standard error if it exceeds half of the limit."""
    estimates = sorted((run.estimate["bytes"] for run in runs), reverse=True)
    if sum(estimates[:workers]) > memory_limit / 2:
        subject = "the largest run needs" if len(estimates) > 1 else "needs"
        largest, limit = format_memory(estimates[0]), format_memory(memory_limit)
        print(f"{title}: {subject} about {largest} of memory (limit {limit})", file=sys.stderr)


def _stop_function(runs: Iterable[RunProgress], pool: Executor) -> Callable[[str], None]:
    def stop(reason: str) -> None:
        for run in runs:
            run.control.stop(reason)
            # The reason concerns all runs.
            run.name = ""
        if isinstance(pool, InterruptibleThread):
            pool.interrupt()

    return stop


def sweep(runs: Sequence[tuple[Labels, ScenarioLike]], **options: Any) -> list[Run]:
    """Run labelled scenarios, with the options of `run_many`; errors name the labels."""
    is_list = isinstance(runs, Sequence) and not isinstance(runs, str)
    if not is_list or not all(map(_is_labelled, runs)):
        raise ScenarioError(
            "runs: expected a list of pairs of labels and a scenario, as `expand` returns them"
        )
    names = [", ".join(f"{name}={value}" for name, value in labels.items()) for labels, _ in runs]
    cache = options.pop("cache", None)
    results = _run_named(names, [scenario for _, scenario in runs], cache, **options)
    return [Run(labels, result) for (labels, _), result in zip(runs, results, strict=True)]


def _is_labelled(entry: Any) -> bool:
    """Return true for a pair of labels and something else."""
    is_pair = isinstance(entry, tuple | list) and len(entry) == 2
    return is_pair and isinstance(entry[0], Mapping)


def over_seeds(
    runs: Sequence[tuple[Labels, ScenarioLike]], seeds: int
) -> list[tuple[Labels, Mapping[str, Any]]]:
    """Repeat labelled scenarios with `seeds` consecutive seeds from the scenario's own seed on.

    Raises `ScenarioError` for less than one seed, and for a seed that is not a whole number.
    """
    check_whole("seeds", seeds)
    if seeds < 1:
        raise ScenarioError(f"seeds: must be at least 1, not {seeds}")
    repeated: list[tuple[Labels, Mapping[str, Any]]] = []
    for labels, given in runs:
        scenario = as_scenario(given)
        first = scenario.get("seed", 1)
        check_whole("seed", first)
        for seed in range(int(first), int(first) + seeds):
            repeated.append((labels | {"seed": seed}, {**scenario, "seed": seed}))
    return repeated


def simulate_guarded(
    text: str, texts: Sequence[str] = (), control: _core.RunControl | None = None
) -> Result:
    """Run one scenario within the default memory limit of this process."""
    control, memory_limit = control or _core.RunControl(), budget()
    prepared = _core.prepare(text, list(texts))
    prepared.check(memory_limit)
    with guard(memory_limit, control.stop):
        return simulate(prepared, texts, control)


def serve() -> None:
    """Run the scenarios that arrive on standard input; entry point of a worker process."""
    processes.serve(simulate_guarded)


def simulate(
    prepared: _core.Prepared, texts: Sequence[str], control: _core.RunControl, threads: int = 1
) -> Result:
    """Run one scenario with the `texts` of its files; record the times.

    The CPU time is null for packets on several threads: the core's threads serve several runs, and
    their CPU time cannot be attributed to one.
    """
    wall, cpu = time.perf_counter(), time.thread_time()
    columns = prepared.run(control, threads)
    manifest = {
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.thread_time() - cpu + control.helper_cpu_s,
        "source_hash": _core.SOURCE_HASH,
        "machine": machine(),
    }
    result = Result.from_core(columns, manifest)
    result.summary["scenario"] = with_texts(result.summary["scenario"], texts)
    if result.threads > 1:
        result.summary["cpu_seconds"] = None
    return result


class _Resources:
    """Allocation of threads and memory to runs.

    A run that starts gets the idle threads divided by the number of runs still to start, at least
    one; a fluid, which may be most of the work, at least two, if there are. A run whose estimate
    exceeds the free memory waits until others have finished. The memory of a result is released
    with its run, unless `keeps_results`.
    """

    def __init__(
        self,
        threads: int,
        runs: int,
        memory_limit: int,
        worker_pool: WorkerPool | None,
        *,
        keeps_results: bool,
    ) -> None:
        self._worker_pool = worker_pool
        self._changed = threading.Condition()
        self._threads = self._idle_threads = threads
        self._to_start, self._running = runs, 0
        self._free_bytes, self._keeps_results = float(memory_limit), keeps_results

    def simulate(self, prepared: Prepared, run: RunProgress) -> Result:
        """Run one scenario on its share."""
        control, needs = run.control, run.estimate
        with self._changed:
            while self._running and needs["bytes"] > self._free_bytes and not control.is_stopped():
                self._changed.wait(POLL_INTERVAL_S)
            least = 1 if needs["packet_hops"] else min(2, self._threads)
            share = max(least, self._idle_threads // self._to_start)
            self._idle_threads -= share
            self._to_start -= 1
            self._running += 1
            self._free_bytes -= needs["bytes"]
        try:
            if self._worker_pool is not None and isinstance(control, ProcessControl):
                return self._worker_pool.simulate(prepared.text, prepared.texts, control)
            assert isinstance(control, _core.RunControl), "without processes, runs are in this one"
            result = simulate(prepared.core, prepared.texts, control, share)
            prepared.release()
            return result
        finally:
            with self._changed:
                self._idle_threads += share
                self._running -= 1
                held = needs["result_bytes"] if self._keeps_results else 0.0
                self._free_bytes += needs["bytes"] - held
                self._changed.notify_all()


def _collect(
    futures: dict[Future[Result], str],
    store: Callable[[str, Result], None],
    runs: Mapping[str, RunProgress],
    title: str,
    stop: Callable[[str], None],
) -> None:
    """Store results as they finish; on an error stop all runs, but store finished ones."""
    pending = set(futures)
    order = {name: number for number, name in enumerate(futures.values())}
    try:
        with progress_display(list(runs.values()), title) as update:
            while pending:
                done, pending = wait(pending, timeout=POLL_INTERVAL_S, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda future: order[futures[future]]):
                    # No reference may remain: the tables of a sweep may not fit in memory.
                    name = futures.pop(future)
                    with naming(runs[name].name):
                        store(name, future.result())
                    runs[name].is_finished = True
                del done
                update()
    except BaseException:
        # Also those that were done together with the one that failed.
        finished = {future for future in futures if future.done() and not future.cancelled()}
        stop("")
        for future in futures:
            future.cancel()
        for future in finished:
            if future.exception() is None:
                store(futures[future], future.result())
        raise


@contextlib.contextmanager
def _executor(cluster: str | None, threads: int, *, can_block: bool) -> Iterator[Executor]:
    """Open the executor of the runs: threads of this process, or a Dask cluster's workers.

    A run that `can_block` calls a controller in Python in this process.
    """
    if cluster is None and can_block:
        with InterruptibleThread() as thread:
            yield thread
        return
    if cluster is None:
        # The core releases the GIL, so threads use all cores.
        with ThreadPoolExecutor(threads) as pool:
            yield pool
        return
    from sojourn.runs.cluster import remote_workers  # noqa: PLC0415 - loads asyncio

    with remote_workers(cluster) as remote:
        yield remote
