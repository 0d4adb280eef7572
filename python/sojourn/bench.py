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
}


def measure(names: Iterable[str], repeats: int = 5) -> list[dict[str, Any]]:
    """Measure the named scenarios one after the other; each time is the least of `repeats`."""
    return [measure_one(name, SCENARIOS[name], repeats) for name in names]


def measure_one(name: str, scenario: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Measure one scenario in a process of its own."""
    from sojourn import _core  # noqa: PLC0415 - the measuring process has no package

    _core.check(json.dumps(scenario))
    command = [sys.executable, "-I", __file__, str(_core.__file__), str(repeats)]
    process = subprocess.run(
        command, input=json.dumps(scenario), capture_output=True, text=True, check=False
    )
    if process.returncode != 0:
        raise RuntimeError(f"{name} failed:\n{process.stderr}")
    return {"name": name, "about": scenario["name"], **json.loads(process.stdout)}


def figures(summary: dict[str, Any], cpu_seconds: float) -> dict[str, Any]:
    """Return what is reported, from a run's summary and the least CPU time.

    An ideal has no packets: of it there is the time.
    """
    counts = summary["counts"]
    if "packet_hops" not in counts:
        return {"flows": counts["flows"], "cpu_seconds": cpu_seconds}
    hops = counts["packet_hops"]["data"] + counts["packet_hops"]["ack"]
    return {
        "flows": counts["flows"],
        "packet_hops": hops,
        "events": counts["events"],
        "cpu_seconds": cpu_seconds,
        "packet_hops_per_cpu_second": hops / cpu_seconds,
        "ns_per_packet_hop": 1e9 * cpu_seconds / hops,
        "events_per_packet_hop": counts["events"] / hops,
        "bytes_per_live_flow": summary.get("memory", {}).get("bytes_per_live_flow"),
        "bytes_per_idle_flow": summary.get("memory", {}).get("bytes_per_idle_flow"),
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


def main(library: str, repeats: int) -> None:
    """Run the scenario on standard input `repeats` times and print the measurements as JSON."""
    loader = ExtensionFileLoader("_core", library)
    spec = importlib.util.spec_from_file_location("_core", library, loader=loader)
    assert spec is not None, "a loader was given"
    core: Any = importlib.util.module_from_spec(spec)
    loader.exec_module(core)
    scenario = sys.stdin.read()
    before = peak_memory()
    times, summary = [], {}
    for _ in range(repeats):
        begun = time.thread_time()
        columns = core.run(scenario, core.Stop())
        times.append(time.thread_time() - begun)
        summary = json.loads(columns["summary"])
        if len(times) == 1:
            peak = peak_memory()
    measured = {"peak_memory_bytes": peak, "memory_before_bytes": before}
    print(json.dumps(figures(summary, min(times)) | measured))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
