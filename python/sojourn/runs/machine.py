"""Description of this machine, and the scenario on which its speed is measured."""

import contextlib
import os
import platform
from pathlib import Path
from typing import Any

REFERENCE: dict[str, Any] = {
    "environment": "paper",
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
}
"""Scenario that measures speed: web search at a load of 0.6 on a leaf-spine of 144 hosts."""


def machine() -> dict[str, Any]:
    """Return a description of this machine for the manifest of results."""
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
