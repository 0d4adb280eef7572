"""Tests of `sojourn tune`: output, files, and runs that are killed."""

import itertools
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import sojourn
from sojourn import cli

pytest.importorskip("optuna", reason="the extra `tune` is not installed")


CONTROLLER = '''
import sojourn

class Fixed(sojourn.Controller):
    packets: int = 2
    """Packets in flight."""

    def on_start(self, path):
        self.window = self.packets * path.payload_bytes

    def allowance(self):
        return self.window
'''


def test_the_command_tunes_a_controller_in_python_and_writes_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fixed.py").write_text(CONTROLLER, encoding="utf-8")
    file, out = tmp_path / "own.toml", tmp_path / "out" / "deep"
    file.write_text(
        "# Example.\n"
        'transport = "fixed.py:Fixed" # mine\n'
        "[topology]\nkind = 'dumbbell'\nsenders = 2\n"
        "[workload]\nkind = 'poisson'\nload = 0.2\nflows = 20\n"
        "sizes = { kind = 'fixed', size = '50 KB' }\n",
        encoding="utf-8",
    )
    command = ["tune", str(file), "--parameter", "transport.packets=1:64:log", "--trials", "4"]
    command += ["--minimise", "mean fct", "--subject-to", "drops <= 1000", "--out", str(out)]
    assert cli.invoke([*command, "--seeds", "1"]) == 0
    printed = capsys.readouterr()
    assert "own.toml: 4 of 4 trials, mean fct " in printed.err
    row = pl.read_parquet(out / "trials.parquet").sort("mean fct").row(0, named=True)
    packets = int(row["transport.packets"])
    assert packets > 2
    assert re.search(rf"trial {row['trial']} on 5 fresh seeds: mean fct .*; better\)", printed.out)
    best = (out / "best.toml").read_text(encoding="utf-8")
    assert best.startswith("# Example.\n")
    scenario = sojourn.read(out / "best.toml")
    assert scenario["transport"]["parameters"] == {"packets": packets}
    assert sojourn.run(scenario).flows["fct_s"].null_count() == 0
    for name in ("tune.svg", "tune.png"):
        assert (out / name).stat().st_size > 1000


def test_a_part_of_a_mixed_workload_is_tuned_and_written(tmp_path: Path) -> None:
    file, out = tmp_path / "mixed.toml", tmp_path / "out"
    text = (
        "transport = 'dctcp'\ntopology = { kind = 'star', hosts = 4 }\n"
        "[workload]\nkind = 'mixed'\n"
        "[[workload.parts]] # background\nkind = 'permutation'\nsize = '50 KB'\n"
        "[[workload.parts]]\nkind = 'incast'\nfan_in = 2\nsize = '50 KB' # each\n"
        "interval = '1 ms'\nevents = 3\n"
    )
    file.write_text(text, encoding="utf-8")
    command = ["tune", str(file), "--parameter", "workload.incast.size=5 KB,50 KB"]
    command += ["--minimise", "mean fct of class incast", "--trials", "6", "--out", str(out)]
    assert cli.invoke([*command, "--seeds", "1", "--at-once", "100000"]) == 0
    assert pl.read_parquet(out / "trials.parquet")["workload.parts.1.size"][0] == "50 KB"
    best = (out / "best.toml").read_text(encoding="utf-8")
    # Comments and the format of other values remain.
    assert best == text.replace("size = '50 KB' # each", 'size = "5 KB" # each')


def test_one_of_several_schemes_is_tuned_and_written(tmp_path: Path) -> None:
    file, out = tmp_path / "two.toml", tmp_path / "out"
    text = (
        "transport = 'dctcp'\ntopology = { kind = 'star', hosts = 3 }\n"
        "[workload] # all to one\nkind = 'incast'\nfan_in = 2\nsize = '90 KB'\n"
        "interval = '1 ms'\nevents = 3\n"
    )
    schemes = "[schemes.deep]\n[schemes.pfc]\nswitch.pause = {}\ntransport = 'timely'\n"
    file.write_text(text + schemes, encoding="utf-8")
    command = ["tune", str(file), "--parameter", "workload.size=5 KB,6 KB", "--trials", "3"]
    command += ["--minimise", "mean fct", "--seeds", "1", "--out", str(out)]
    assert cli.invoke(command) == 2
    assert cli.invoke([*command, "--scheme", "pfc"]) == 0
    best = (out / "best.toml").read_text(encoding="utf-8")
    assert "# all to one" in best
    read = sojourn.read(out / "best.toml")
    assert "schemes" not in read
    assert read["transport"] == "timely"
    assert read["workload"]["size"] in {"5 KB", "6 KB"}
    assert read["environment"] == "lossless_datacentre"


def test_a_killed_command_resumes(
    scenario_file: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["tune", str(scenario_file), "--parameter", "topology.rate=1 Gbps:100 Gbps:log"]
    arguments += [
        "--minimise",
        "mean fct",
        "--trials",
        "16",
        "--seeds",
        "1",
        "--at-once",
        "2",
        "--out",
    ]
    killed, reference = scenario_file.parent / "killed", scenario_file.parent / "reference"
    journal = killed / "trials.journal"
    command = [sys.executable, "-m", "sojourn", *arguments, str(killed)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if journal.exists() and journal.read_bytes().count(b"\n") > 4:
            process.kill()
        time.sleep(0.01)
    assert process.wait() == -signal.SIGKILL, "the search finished before it was killed"
    before = len(list(cache.glob("*/summary.json")))
    assert cli.invoke([*arguments, str(killed)]) == 0
    assert "of 16 trials" in capsys.readouterr().err
    after = len(list(cache.glob("*/summary.json")))
    assert cli.invoke([*arguments, str(reference)]) == 0
    # The uninterrupted search finds all of its runs in the cache.
    assert 0 < before < after == len(list(cache.glob("*/summary.json")))
    resumed, expected = (pl.read_parquet(out / "trials.parquet") for out in (killed, reference))
    assert resumed.equals(expected)


def test_the_command_prints_a_pareto_front(
    scenario_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["tune", str(scenario_file), "--parameter", "topology.rate=1 Gbps:100 Gbps:log"]
    command += ["--parameter", "transport.reliability.timestamps=true,false"]
    command += ["--minimise", "mean fct", "--maximise", "utilisation", "--trials", "21"]
    assert cli.invoke([*command, "--seeds", "1", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    table = pl.read_parquet(out / "trials.parquet")
    assert table.height == 21
    fastest = table.sort("mean fct")["trial"][0]
    busiest = table.sort("utilisation")["trial"][-1]
    names = {file.name for file in out.glob("best-*.toml")}
    for number in {fastest, busiest} - {0}:
        assert f"trial {number} on 5 fresh seeds: mean fct" in printed
        assert f"best-{number}.toml" in names
    numbers = [int(number) for number in re.findall(r"^trial (\d+) on", printed, re.MULTILINE)]
    times = dict(zip(table["trial"], table["mean fct"], strict=True))
    assert all(times[first] <= times[second] for first, second in itertools.pairwise(numbers))
