"""The benchmark: each scenario is measured in a fresh process that loads only the core.

This file is both the command's module and the program of that process, so it imports nothing
beyond the standard library at the top.
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
    """Measure the named scenarios one after the other; each time is the least of `repeats`."""
    from sojourn.bench.scenarios import SCENARIOS  # noqa: PLC0415 - as below

    return [measure_one(name, SCENARIOS[name], repeats, threads) for name in names]


def measure_one(
    name: str, scenario: dict[str, Any], repeats: int, threads: int = 1
) -> dict[str, Any]:
    """Measure one scenario in a process of its own."""
    from sojourn import _core  # noqa: PLC0415 - the measuring process has no package
    from sojourn.scenario.reading import with_files  # noqa: PLC0415

    text = json.dumps(with_files(scenario))
    _core.check(text)
    command = [sys.executable, "-I", __file__, str(_core.__file__), str(repeats), str(threads)]
    process = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise RuntimeError(f"{name} failed:\n{process.stderr}")
    return {"name": name, "about": scenario["name"], **json.loads(process.stdout)}


def figures(summary: dict[str, Any], cpu_seconds: float) -> dict[str, Any]:
    """Return what is reported, from a run's summary and the least CPU time.

    An ideal has no packets: of it there is the time.
    """
    counts = summary["counts"]
    ran = {"flows": counts["flows"], "engine": summary.get("engine", {}).get("kind")}
    if "packet_hops" not in counts:
        return ran | {"cpu_seconds": cpu_seconds}
    hops = counts["packet_hops"]["data"] + counts["packet_hops"]["ack"]
    return ran | {
        "packet_hops": hops,
        "events": counts["events"],
        "cpu_seconds": cpu_seconds,
        "packet_hops_per_cpu_second": hops / cpu_seconds,
        "ns_per_packet_hop": 1e9 * cpu_seconds / hops,
        "events_per_packet_hop": counts["events"] / hops,
        "bytes_per_live_flow": summary.get("memory", {}).get("bytes_per_live_flow"),
        "bytes_per_idle_flow": summary.get("memory", {}).get("bytes_per_idle_flow"),
    }


def figures_on_threads(
    summary: dict[str, Any], seconds: tuple[float, float], seconds_on_one: float
) -> dict[str, Any]:
    """Return what is reported of a run on several threads, beside that on one.

    `seconds` are by the clock on the wall and of all threads together.
    """
    wall, cpu = seconds
    shared = figures(summary, cpu)
    told = ("flows", "engine", "packet_hops")
    ran: dict[str, Any] = {name: shared[name] for name in told if name in shared}
    if "packet_hops" in ran:
        ran["packet_hops_per_second"] = ran["packet_hops"] / wall
    return ran | {
        "threads": summary.get("engine", {}).get("threads", 1),
        "wall_seconds": wall,
        "cpu_seconds": cpu,
        "wall_seconds_on_one_thread": seconds_on_one,
        "speed_up": seconds_on_one / wall,
    }


def peak_memory() -> int:
    """Return the most memory this process has had, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not `ru_maxrss`, which on Linux a process inherits from the one that started it.
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
    """Run once; return the time by the clock on the wall, the CPU time and the summary."""
    cpu_clock = time.thread_time if threads == 1 else time.process_time
    wall, cpu = time.perf_counter(), cpu_clock()
    columns = core.run(scenario, core.Watch(), threads)
    wall, cpu = time.perf_counter() - wall, cpu_clock() - cpu
    return wall, cpu, json.loads(columns["summary"])


def main(library: str, repeats: int, threads: int) -> None:
    """Run the scenario on standard input `repeats` times and print the measurements as JSON.

    Runs on several threads take turns with runs on one, for what else the machine does changes.
    """
    loader = ExtensionFileLoader("_core", library)
    spec = importlib.util.spec_from_file_location("_core", library, loader=loader)
    assert spec is not None, "a loader was given"
    core: Any = importlib.util.module_from_spec(spec)
    loader.exec_module(core)
    # Controllers in Python import the package, and that is to have the same.
    sys.modules["sojourn._core"] = core
    scenario = sys.stdin.read()
    before = peak_memory()
    times, alone = [], []
    for _ in range(repeats):
        wall, cpu, summary = timed(core, scenario, threads)
        times.append((wall, cpu))
        if len(times) == 1:
            peak = peak_memory()
        if threads > 1:
            alone.append(timed(core, scenario, 1)[0])
    if threads > 1:
        measured = figures_on_threads(summary, min(times), min(alone))
    else:
        measured = figures(summary, min(cpu for _, cpu in times))
    memory = {"peak_memory_bytes": peak, "memory_before_bytes": before}
    print(json.dumps(measured | memory))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
