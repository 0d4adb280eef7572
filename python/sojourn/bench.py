"""The benchmark: fixed scenarios, each measured in a fresh process that loads only the core.

This file is both the command's module and the program of that process, so it imports nothing
beyond the standard library at the top.
"""

import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any

DUMBBELL = {
    "topology": {
        "kind": "dumbbell",
        "senders": 10,
        "receivers": 10,
        "rate": "10 Gbps",
        "delay": "1 us",
    },
    "transport": {"kind": "dctcp"},
    "time_limit": "100 ms",
}

LONG_LINK = {
    "topology": {"kind": "link", "rate": "2.4 Gbps", "delay": "50 ms"},
    "queue": {"kind": "drop_tail", "capacity": "30000 packets"},
    "packet": {"payload": "960 B", "header": "40 B", "ack": "40 B"},
    "workload": {
        "kind": "poisson",
        "load": 0.9,
        "stop": "20 s",
        "sizes": {"kind": "pareto", "mean": "24 KB", "shape": 1.2, "whole_packets": True},
    },
    "time_limit": "20 s",
}

FABRIC = {
    "topology": {"kind": "leaf_spine", "host_delay": "2.7 us", "fabric_delay": "200 ns"},
    "routing": "spray_round_robin",
    "packet": {"payload": "1460 B", "header": "40 B", "ack": "40 B"},
}

WEB_SEARCH = {
    "kind": "poisson",
    "load": 0.8,
    "sizes": {"kind": "empirical", "table": "web_search_packets"},
}

LIVE_FLOWS = {
    "topology": {"kind": "fat_tree", "k": 16, "rate": "100 Gbps", "delay": "1 us"},
    "transport": {"kind": "tcp", "window": {"initial": 1, "max": 1}},
    "time_limit": "400 us",
}

ACKS = {
    "topology": {"kind": "link", "rate": "10 Gbps", "delay": "10 us"},
    "workload": {"kind": "long_lived", "flows": 10},
    "time_limit": "1 s",
}

CONTROLLERS = Path(__file__).parent / "examples" / "controllers"

SCENARIOS: dict[str, dict[str, Any]] = {
    "W1": {
        **DUMBBELL,
        "name": "W1: 10 long DCTCP flows on a dumbbell of 10 Gb/s",
        "workload": {"kind": "long_lived", "flows": 10},
    },
    "W2": {
        "name": "W2: web search at load 0.6 on a leaf-spine of 144 hosts",
        "topology": {
            "kind": "leaf_spine",
            "leaves": 9,
            "spines": 4,
            "hosts_per_leaf": 16,
            "host_rate": "10 Gbps",
            "fabric_rate": "40 Gbps",
        },
        "transport": {"kind": "dctcp"},
        "workload": {
            "kind": "poisson",
            "load": 0.6,
            "flows": 5000,
            "sizes": {"kind": "empirical", "table": "web_search"},
        },
    },
    "W3": {
        "name": "W3: permutation of 2 MB flows on a fat-tree of 1024 hosts",
        "topology": {"kind": "fat_tree", "k": 16, "rate": "100 Gbps", "delay": "1 us"},
        "transport": {"kind": "dctcp"},
        "workload": {"kind": "permutation", "size": "2 MB"},
    },
    "W4": {
        **DUMBBELL,
        "name": "W4: 1000 long DCTCP flows on a dumbbell of 10 Gb/s",
        "workload": {"kind": "long_lived", "flows": 1000},
    },
    "W5-TCP": {
        **LONG_LINK,
        "name": "W5: Pareto flows at load 0.9 on 2.4 Gb/s and 100 ms, TCP SACK",
        "transport": {"kind": "tcp", "window": {"initial": 2}},
    },
    "W5-RCP": {
        **LONG_LINK,
        "name": "W5: the same under RCP",
        "transport": {"kind": "rcp"},
    },
    "W6": {
        **FABRIC,
        "name": "W6: pFabric, 5000 flows of web search at load 0.8 on 144 hosts",
        "transport": "pfabric",
        "workload": {**WEB_SEARCH, "flows": 5000},
    },
    "W7": {
        **FABRIC,
        "name": "W7: the omniscient scheduler, 1 M flows of web search at load 0.8 on 144 hosts",
        "model": "omniscient",
        "workload": {**WEB_SEARCH, "flows": 1_000_000},
        "time_limit": "20 s",
    },
    "W8": {
        "name": "W8: TIMELY over pause frames, calls of 64 KB at load 0.7 on a Clos of 1024 hosts",
        "topology": {"kind": "clos", "pods": 8, "edges_per_pod": 8, "cores": 32},
        "packet": {"payload": "1460 B", "header": "40 B", "ack": "40 B"},
        "transport": {"kind": "timely", "segments": {"pacing": "per_burst"}},
        "switch": {"shared_buffer": "12 MB", "pause": {}},
        "host": {"stamps": "wire"},
        "workload": {
            "kind": "rpc",
            "request": {"kind": "fixed", "size": "64 KB"},
            "response": {"kind": "fixed", "size": "64 B"},
            "pattern": {"load": 0.7, "pairs": "longest", "stop": "3 ms"},
        },
        "time_limit": "3 ms",
    },
    "W9": {
        "name": "W9: fair queueing of 10 000 flows with a window each on one link of 10 Gb/s",
        "topology": {"kind": "link", "rate": "10 Gbps", "delay": "10 us"},
        "queue": {"kind": "fair_queueing"},
        "transport": {"kind": "tcp", "window": {"initial": 4, "max": 4}},
        "workload": {"kind": "long_lived", "flows": 10_000},
        "time_limit": "1 s",
    },
    "W10": {
        **ACKS,
        "name": "W10: an idle controller in Python, 10 long flows on one link of 10 Gb/s",
        "transport": f"{CONTROLLERS / 'constant_window.py'}:ConstantWindow",
    },
    "W10-Reno": {
        **ACKS,
        "name": "W10: the same under TCP Reno in Python",
        "transport": f"{CONTROLLERS / 'reno.py'}:Reno",
    },
    "W14": {
        "name": "W14: permutation of 1 MB flows on a fat-tree of 8192 hosts",
        "topology": {"kind": "fat_tree", "k": 32, "rate": "100 Gbps", "delay": "1 us"},
        "transport": {"kind": "dctcp"},
        "workload": {"kind": "permutation", "size": "1 MB"},
    },
    "W15": {
        **LIVE_FLOWS,
        "name": "W15: a million live flows with a window of a packet each on 1024 hosts",
        "workload": {"kind": "long_lived", "flows": 1_000_000, "jitter": "100 us"},
    },
    "W15-few": {
        **LIVE_FLOWS,
        "name": "W15-few: the same with 10 000 flows",
        "workload": {"kind": "long_lived", "flows": 10_000, "jitter": "100 us"},
    },
}


def measure(names: Iterable[str], repeats: int = 5, threads: int = 1) -> list[dict[str, Any]]:
    """Measure the named scenarios one after the other; each time is the least of `repeats`."""
    return [measure_one(name, SCENARIOS[name], repeats, threads) for name in names]


def measure_one(
    name: str, scenario: dict[str, Any], repeats: int, threads: int = 1
) -> dict[str, Any]:
    """Measure one scenario in a process of its own."""
    from sojourn import _core  # noqa: PLC0415 - the measuring process has no package
    from sojourn.scenario import with_files  # noqa: PLC0415

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
