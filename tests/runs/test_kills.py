"""Sweeps that are killed while another shares their cache: nothing is lost, nothing is half there.

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


class Watched:
    """A cache of which every entry is looked at as soon as it is there."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.seen: dict[str, int] = {}

    def look(self) -> None:
        """Hold what is new to be whole, and all that was there to be the same."""
        entries = {
            entry.name: entry.inode()
            for entry in (os.scandir(self.cache) if self.cache.exists() else ())
            if not entry.name.startswith(".")
        }
        for name in entries.keys() - self.seen.keys():
            Result.read(self.cache / name).verify()
        assert {name: entries.get(name) for name in self.seen} == self.seen, "an entry was lost"
        self.seen = entries


def started(cache: Path, told: Path) -> subprocess.Popen[str]:
    with told.open("w", encoding="utf-8") as stream:
        return subprocess.Popen(
            [sys.executable, "-c", SWEEP, str(cache), json.dumps(SCENARIOS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
        )


def killed(process: subprocess.Popen[str], at: float, watched: Watched) -> bool:
    """Kill a sweep at a moment; tell whether it was at work then."""
    while time.monotonic() < at:
        watched.look()
    was_at_work = process.poll() is None
    process.kill()
    process.communicate()
    watched.look()
    return was_at_work


def test_two_sweeps_that_are_killed_lose_nothing_and_leave_nothing_half_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = sojourn.run_many(SCENARIOS)
    names = [key(scenario) for scenario in SCENARIOS]
    drawn = random.Random(SEED)
    kills = rounds = kept = 0
    within = 0.5
    while kills < KILLS:
        rounds += 1
        assert rounds <= 5 + 2 * KILLS, "sweeps are over before they are killed"
        watched = Watched(tmp_path / f"cache{rounds}")
        told = [tmp_path / f"told{rounds}.{one}" for one in (1, 2)]
        sweeps = [started(watched.cache, file) for file in told]
        for sweep in sweeps:
            assert sweep.stdout is not None
            assert sweep.stdout.readline() == "ready\n"
        for sweep in sweeps:
            assert sweep.stdin is not None
            sweep.stdin.write("go\n")
            sweep.stdin.flush()
        began = time.monotonic()
        moments = sorted(began + drawn.uniform(0, within) for _ in sweeps)
        at_work = [killed(*each, watched) for each in zip(sweeps, moments, strict=True)]
        kills += sum(at_work)
        # Others met nothing damaged, and said nothing but how far they are.
        for file in told:
            text = file.read_text(encoding="utf-8")
            assert not re.search("again|Error|cannot", text), text
        kept += len(watched.seen)
        # So that moments lie all over a sweep, however fast this machine is.
        within *= 0.8 if len(watched.seen) > len(names) / 2 else 1.2
        capsys.readouterr()
        results = sojourn.run_many(SCENARIOS, cache=watched.cache)
        # What was finished is taken from there, and the rest is run.
        watched.look()
        assert watched.seen.keys() == set(names)
        assert "again" not in capsys.readouterr().err
        for result, other in zip(results, expected, strict=True):
            assert_frame_equal(result.flows, other.flows)
    print(f"{kills} kills in {rounds} rounds, after {kept} of {rounds * len(names)} runs were kept")
    assert rounds < 3 or kept
