"""Killed sweeps that share a cache: no entry is lost or incomplete.

`make torture COUNT=…` kills more often, from another `SEED` at other moments.
"""

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import sojourn
from conftest import SCENARIO
from sojourn import Result
from sojourn.runs.runner import key

KILLS = int(os.environ.get("SOJOURN_COUNT") or 3)
SEED = int(os.environ.get("SOJOURN_SEED") or 1)

SCENARIOS: list[dict[str, Any]] = [SCENARIO | {"seed": seed} for seed in range(1, 31)]

SWEEP = """
import json, pathlib, sys, sojourn
scenarios = json.loads(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
sojourn.run_many(scenarios, cache=pathlib.Path(sys.argv[1]), threads=2)
"""


class MonitoredCache:
    """Cache whose entries are verified as soon as they appear."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.inodes: dict[str, int] = {}

    def verify(self) -> None:
        """Verify new entries, and check that earlier entries are unchanged."""
        entries = {
            entry.name: entry.inode()
            for entry in (os.scandir(self.cache) if self.cache.exists() else ())
            if not entry.name.startswith(".")
        }
        for name in entries.keys() - self.inodes.keys():
            Result.read(self.cache / name).verify()
        assert {name: entries.get(name) for name in self.inodes} == self.inodes, "an entry was lost"
        self.inodes = entries


def start_sweep(cache: Path, log: Path) -> subprocess.Popen[str]:
    with log.open("w", encoding="utf-8") as stream:
        return subprocess.Popen(
            [sys.executable, "-c", SWEEP, str(cache), json.dumps(SCENARIOS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
        )


def kill(process: subprocess.Popen[str], at: float, monitored: MonitoredCache) -> bool:
    """Kill a sweep at a time; return true if it was running."""
    while time.monotonic() < at:
        monitored.verify()
    was_running = process.poll() is None
    process.kill()
    process.communicate()
    monitored.verify()
    return was_running


def test_killed_sweeps_leave_complete_entries_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = sojourn.run_many(SCENARIOS)
    names = [key(scenario) for scenario in SCENARIOS]
    generator = random.Random(SEED)
    kills = rounds = finished = 0
    within = 0.5
    while kills < KILLS:
        rounds += 1
        assert rounds <= 5 + 2 * KILLS, "sweeps finish before they are killed"
        monitored = MonitoredCache(tmp_path / f"cache{rounds}")
        logs = [tmp_path / f"log{rounds}.{number}" for number in (1, 2)]
        sweeps = [start_sweep(monitored.cache, file) for file in logs]
        for sweep in sweeps:
            assert sweep.stdout is not None
            assert sweep.stdout.readline() == "ready\n"
        for sweep in sweeps:
            assert sweep.stdin is not None
            sweep.stdin.write("go\n")
            sweep.stdin.flush()
        start = time.monotonic()
        moments = sorted(start + generator.uniform(0, within) for _ in sweeps)
        were_running = [kill(*pair, monitored) for pair in zip(sweeps, moments, strict=True)]
        kills += sum(were_running)
        # The other sweep met no damage and printed its progress only.
        for file in logs:
            text = file.read_text(encoding="utf-8")
            assert not re.search("again|Error|cannot", text), text
        finished += len(monitored.inodes)
        # Adapts to the speed of the machine, so that kills are spread over a sweep.
        within *= 0.8 if len(monitored.inodes) > len(names) / 2 else 1.2
        capsys.readouterr()
        results = sojourn.run_many(SCENARIOS, cache=monitored.cache)
        # Finished runs come from the cache; the others are run.
        monitored.verify()
        assert monitored.inodes.keys() == set(names)
        assert "again" not in capsys.readouterr().err
        for result, reference in zip(results, expected, strict=True):
            assert_frame_equal(result.flows, reference.flows)
    print(
        f"{kills} kills in {rounds} rounds, {finished} of {rounds * len(names)} runs had finished"
    )
    assert rounds < 3 or finished
