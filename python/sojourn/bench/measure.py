"""Benchmark: measures each scenario in a new process that loads the core only.

This file is also the program of that process, so its top-level imports are limited to the standard
library.
"""

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any


def measure(names: Iterable[str], repeats: int = 5, threads: int = 1) -> list[dict[str, Any]]:
    """Measure scenarios by name; each reported time is the minimum over `repeats` runs."""
    from sojourn.bench.scenarios import SCENARIOS  # noqa: PLC0415 - see `measure_one`

    return [measure_one(name, SCENARIOS[name], repeats, threads) for name in names]


def measure_one(
    name: str, scenario: dict[str, Any], repeats: int, threads: int = 1
) -> dict[str, Any]:
    """Measure one scenario in a new process."""
    from sojourn import _core  # noqa: PLC0415 - the measuring process has no package
    from sojourn.scenario.reading import with_files  # noqa: PLC0415

    text = json.dumps(with_files({"environment": "paper", **scenario}))
    _core.prepare(text).check()
    command = [sys.executable, "-I", __file__, str(_core.__file__), str(repeats), str(threads)]
    process = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise RuntimeError(f"{name} failed:\n{process.stderr}")
    return {"name": name, "about": scenario["name"], **json.loads(process.stdout)}


def single_thread_row(summary: dict[str, Any], cpu_seconds: float) -> dict[str, Any]:
    """Return the measurements of a run on one thread, from its summary and least CPU time.

    An ideal has no packets, so only its CPU time is reported.
    """
    counts, engine = summary["counts"], summary.get("engine", {})
    row = {"flows": counts["flows"], "engine": engine.get("kind")}
    if "packet_hops" not in counts:
        return row | {"cpu_seconds": cpu_seconds}
    hops = counts["packet_hops"]["data"] + counts["packet_hops"]["ack"]
    return row | {
        "packet_hops": hops,
        "events": engine["events"],
        "cpu_seconds": cpu_seconds,
        "packet_hops_per_cpu_second": hops / cpu_seconds,
        "ns_per_packet_hop": 1e9 * cpu_seconds / hops,
        "events_per_packet_hop": engine["events"] / hops,
        "bytes_per_live_flow": summary.get("memory", {}).get("bytes_per_live_flow"),
        "bytes_per_idle_flow": summary.get("memory", {}).get("bytes_per_idle_flow"),
    }


def multi_thread_row(
    summary: dict[str, Any], seconds: tuple[float, float], seconds_on_one: float
) -> dict[str, Any]:
    """Return the measurements of a run on several threads, relative to a run on one thread.

    `seconds` are the wall time and the CPU time of all threads.
    """
    wall, cpu = seconds
    complete = single_thread_row(summary, cpu)
    names = ("flows", "engine", "packet_hops")
    row: dict[str, Any] = {name: complete[name] for name in names if name in complete}
    if "packet_hops" in row:
        row["packet_hops_per_second"] = row["packet_hops"] / wall
    return row | {
        "threads": summary.get("engine", {}).get("threads", 1),
        "wall_seconds": wall,
        "cpu_seconds": cpu,
        "wall_seconds_on_one_thread": seconds_on_one,
        "speed_up": seconds_on_one / wall,
    }


def peak_memory() -> int:
    """Return the peak resident set size of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux a process inherits `ru_maxrss` from its parent.
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        import psutil  # noqa: PLC0415 - only on Windows

        return int(psutil.Process().memory_info().peak_wset)  # type: ignore[attr-defined] # Windows
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def timed(core: Any, scenario: str, threads: int) -> tuple[float, float, dict[str, Any]]:
    """Run once; return the wall time, the CPU time and the summary."""
    cpu_clock = time.thread_time if threads == 1 else time.process_time
    wall, cpu = time.perf_counter(), cpu_clock()
    columns = core.prepare(scenario).run(core.RunControl(), threads)
    wall, cpu = time.perf_counter() - wall, cpu_clock() - cpu
    return wall, cpu, json.loads(columns["summary"])


def main(library: str, repeats: int, threads: int) -> None:
    """Run the scenario on standard input `repeats` times and print the measurements as JSON.

    Runs on several threads and on one thread alternate, because the load of the machine varies.
    """
    loader = ExtensionFileLoader("_core", library)
    spec = importlib.util.spec_from_file_location("_core", library, loader=loader)
    assert spec is not None, "the loader is set"
    core: Any = importlib.util.module_from_spec(spec)
    loader.exec_module(core)
    # Python controllers import the package, which must use the same core.
    sys.modules["sojourn._core"] = core
    scenario = sys.stdin.read()
    before = peak_memory()
    times, single_thread_times = [], []
    for _ in range(repeats):
        wall, cpu, summary = timed(core, scenario, threads)
        times.append((wall, cpu))
        if len(times) == 1:
            peak = peak_memory()
        if threads > 1:
            single_thread_times.append(timed(core, scenario, 1)[0])
    if threads > 1:
        row = multi_thread_row(summary, min(times), min(single_thread_times))
    else:
        row = single_thread_row(summary, min(cpu for _, cpu in times))
    memory = {"peak_memory_bytes": peak, "memory_before_bytes": before}
    print(json.dumps(row | memory))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
