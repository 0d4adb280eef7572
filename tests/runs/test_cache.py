"""The cache: what is damaged is run again, and never believed."""

import contextlib
import importlib
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import sojourn
from conftest import SCENARIO
from sojourn import Result, ScenarioError, cli
from sojourn.runs.cache import store
from sojourn.runs.runner import key

SAMPLED = SCENARIO | {"samples": {"interval": "10 us", "queues": ["left->right"]}}
OTHER = SCENARIO | {"seed": 2}

Damage = Callable[[Path], Any]


def cut(name: str, share: float) -> Damage:
    def damage(entry: Path) -> None:
        content = (entry / name).read_bytes()
        (entry / name).write_bytes(content[: int(share * len(content))])

    return damage


def replaced(name: str, content: bytes) -> Damage:
    return lambda entry: (entry / name).write_bytes(content)


def edited(name: str, old: bytes, new: bytes) -> Damage:
    def damage(entry: Path) -> None:
        content = (entry / name).read_bytes()
        assert old in content
        (entry / name).write_bytes(content.replace(old, new))

    return damage


def flipped(name: str) -> Damage:
    """Damage what only a look at the whole file can tell."""

    def damage(entry: Path) -> None:
        content = bytearray((entry / name).read_bytes())
        content[len(content) // 3] ^= 1
        (entry / name).write_bytes(content)

    return damage


def of_another_run(entry: Path) -> None:
    other = sojourn.run(OTHER, cache=entry.parent)
    assert other.summary["seed"] == 2
    shutil.rmtree(entry)
    shutil.copytree(entry.parent / key(OTHER), entry)


def a_pipe(entry: Path) -> None:
    (entry / "summary.json").unlink()
    os.mkfifo(entry / "summary.json")


def a_file(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.write_text("no folder")


@pytest.mark.parametrize(
    "damage",
    [
        cut("summary.json", 0),
        cut("summary.json", 0.5),
        replaced("summary.json", bytes(range(256))),
        replaced("summary.json", b"[]"),
        replaced("summary.json", b'{"links": 3}'),
        edited("summary.json", b'"finished": 200', b'"finished": 199'),
        cut("flows.parquet", 0),
        cut("flows.parquet", 0.5),
        replaced("flows.parquet", b"PAR1PAR1"),
        flipped("flows.parquet"),
        cut("samples.parquet", 0.5),
        flipped("samples.parquet"),
        lambda entry: (entry / "samples.parquet").unlink(),
        lambda entry: (entry / "flows.parquet").unlink(),
        lambda entry: (entry / "SHA256SUMS").unlink(),
        replaced("SHA256SUMS", b"\xff\0"),
        lambda entry: [file.unlink() for file in entry.iterdir()],
        of_another_run,
        a_pipe,
        a_file,
    ],
)
def test_what_is_damaged_is_run_again_with_one_line_and_replaced(
    damage: Damage, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = sojourn.run(SAMPLED, cache=cache)
    flows, samples = first.flows, first.samples
    damage(cache / key(SAMPLED))
    second = sojourn.run(SAMPLED, cache=cache)
    assert_frame_equal(second.flows, flows)
    assert_frame_equal(second.samples, samples)
    assert second.summary["counts"] == first.summary["counts"]
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(cache) in told
    assert "running it again" in told
    assert_frame_equal(Result.read(cache / key(SAMPLED)).flows, flows)
    third = sojourn.run(SAMPLED, cache=cache)
    assert third.summary == Result.read(cache / key(SAMPLED)).summary
    assert_frame_equal(third.samples, samples)
    assert capsys.readouterr().err == ""
    assert not list(cache.glob(".draft-*"))


def test_of_many_that_are_damaged_one_line_tells(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = [SCENARIO | {"seed": seed} for seed in range(1, 5)]
    sojourn.run_many(scenarios, cache=cache)
    for file in cache.glob("*/summary.json"):
        file.write_bytes(b"")
    sojourn.run_many(scenarios, cache=cache)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "(and 3 other results)" in told


def test_a_result_read_by_hand_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    sojourn.run(SCENARIO).write(tmp_path / "out")
    flipped("flows.parquet")(tmp_path / "out")
    with pytest.raises(ScenarioError, match=r"flows\.parquet: does not match its SHA-256 sum"):
        Result.read(tmp_path / "out").flows  # noqa: B018
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        Result.read(tmp_path / "nowhere")


def test_results_can_be_verified_without_us(tmp_path: Path) -> None:
    sojourn.run(SAMPLED).write(tmp_path / "out")
    lines = (tmp_path / "out" / "SHA256SUMS").read_text().splitlines()
    assert [line[64:] for line in lines] == [
        "  flows.parquet",
        "  samples.parquet",
        "  summary.json",
    ]


def test_results_written_over_others_leave_nothing_of_them(tmp_path: Path) -> None:
    sojourn.run(SAMPLED).write(tmp_path / "out")
    sojourn.run(SCENARIO).write(tmp_path / "out")
    assert Result.read(tmp_path / "out").samples.is_empty()
    assert not (tmp_path / "out" / "samples.parquet").exists()


def test_drafts_that_were_abandoned_are_cleared_away_and_others_left(cache: Path) -> None:
    for name, age_h in ((".draft-old", 25), (".draft-new", 1)):
        (cache / name).mkdir(parents=True)
        (cache / name / "flows.parquet").touch()
        then = time.time() - 3600 * age_h
        os.utime(cache / name, (then, then))
    sojourn.run(SCENARIO, cache=cache)
    assert [entry.name for entry in cache.glob(".draft-*")] == [".draft-new"]


def test_two_sweeps_that_mend_one_cache_do_not_disturb_each_other(cache: Path) -> None:
    scenarios = [SCENARIO | {"seed": seed} for seed in range(1, 9)]
    sojourn.run_many(scenarios, cache=cache)
    entries = sorted(cache.glob("[!.]*"))
    for entry in entries:
        (entry / "summary.json").write_bytes(b"")
    script = f"import pathlib, sojourn; cache = pathlib.Path({str(cache)!r})\n"
    script += f"sojourn.run_many({scenarios}, cache=cache)"
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    assert sorted(cache.glob("[!.]*")) == entries
    for entry in entries:
        Result.read(entry).verify()


def test_what_another_has_just_mended_is_not_put_aside(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sojourn.run(SCENARIO, cache=cache)
    (entry,) = cache.glob("[!.]*")
    good = sojourn.run(SCENARIO, cache=None)

    def mend(begin: threading.Barrier) -> None:
        begin.wait()
        # It ends with what was mended being read, whoever mended it.
        store(entry, good, lambda *_: good).verify()

    # Between any two steps there is time for what another does.
    rename = Path.rename

    def hesitate(self: Path, target: Path) -> Path:
        time.sleep(random.uniform(0, 0.004))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", hesitate)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            (entry / "summary.json").write_bytes(b"")
            begin = threading.Barrier(8)
            for mended in [pool.submit(mend, begin) for _ in range(8)]:
                mended.result()


def test_a_cache_that_is_a_file_is_refused_before_anything_runs(
    tmp_path: Path,
    scenario_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for place in (scenario_file, scenario_file / "below"):
        monkeypatch.setenv("SOJOURN_CACHE", str(place))
        monkeypatch.chdir(tmp_path)
        assert cli.invoke(["compare", str(scenario_file), "--vary", "load=0.2"]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert f"{place}: cannot be used as cache: " in told


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond a few bytes."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["compare", "--vary", "load=0.2"], "cannot be written: "),
        (["run", "--out", "out"], "out: cannot be written: "),
        (["trace", "--out", "flows.csv"], "flows.csv: "),
    ],
)
def test_a_disk_that_is_full_is_told_in_one_line(  # noqa: PLR0913, PLR0917
    given: list[str],
    expected: str,
    scenario_file: Path,
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(scenario_file.parent)
    with full_disk():
        assert cli.invoke([given[0], str(scenario_file), *given[1:]]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert expected in told
    assert not list(cache.glob("*"))


SEARCH = ["--parameter", "gain=0.1:1", "--minimise", "mean fct", "--trials", "1"]

FIGURE = ["figure", "d1", "--scale", "smoke", "--out"]

WRITERS = [
    (["run", "scenario.toml", "--out", "out"], "out"),
    (["compare", "scenario.toml", "--vary", "load=0.2", "--out", "out"], "out"),
    (["explain", "scenario.toml", "--out", "out"], "out"),
    (["tune", "scenario.toml", *SEARCH, "--out", "out"], "out"),
    ([*FIGURE, "out"], "out"),
    (["report", "--figures", "made", "--out", "page.html"], "page.html"),
    (["validate", "yaps", "--only", "ws.omniscient", "--out", "out"], "out"),
    (["trace", "scenario.toml", "--out", "flows.csv"], "flows.csv"),
    (["examples", "dctcp_dumbbell"], "dctcp_dumbbell.toml"),
    (["new", "first.toml"], "first.toml"),
    (["schema", "--out", "schema.json"], "schema.json"),
]
"""Commands that write, and what they name if they cannot."""


@pytest.mark.parametrize(("given", "place"), WRITERS)
def test_what_a_full_disk_does_not_take_is_named(
    given: list[str],
    place: str,
    scenario_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(scenario_file.parent)
    if given[0] in {
        "compare",
        "explain",
        "tune",
        "figure",
        "validate",
    }:  # write into the cache first
        assert cli.invoke([*given[:-1], "before"]) == 0
    elif given[0] == "report":
        assert cli.invoke([*FIGURE, "made"]) == 0
    capsys.readouterr()
    with full_disk():
        assert cli.invoke(given) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith(f"sojourn: {place}")
    assert "File too large" in told


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nothing be written into a folder; root is another user meanwhile."""
    was, nobody = os.getresuid(), 65534
    folder.chmod(0o555)
    if os.geteuid() == 0:
        os.setresuid(nobody, nobody, 0)
    try:
        yield
    finally:
        os.setresuid(*was)
        folder.chmod(0o755)


@pytest.mark.parametrize(("given", "place"), WRITERS)
def test_a_read_only_folder_is_told_in_one_line_before_anything_runs(
    given: list[str],
    place: str,
    scenario_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # By names from here, for not all users see all folders above.
    monkeypatch.chdir(scenario_file.parent)
    monkeypatch.setenv("SOJOURN_CACHE", "cache")
    if given[0] == "report":
        assert cli.invoke([*FIGURE, "made"]) == 0
        capsys.readouterr()
    module = importlib.import_module("sojourn.runs.runner")
    monkeypatch.setattr(module, "simulate", lambda *_, **__: pytest.fail("something ran"))
    with read_only(scenario_file.parent):
        assert cli.invoke(given) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith((f"sojourn: {place}", "sojourn: cache: cannot be used as cache"))
    assert "Permission denied" in told or "is not a writable directory" in told


def test_output_that_goes_to_a_full_disk_ends_with_a_line() -> None:
    command = [sys.executable, "-c", "from sojourn import cli; cli.main()", "schema"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "sojourn: No space left on device\n")


def test_a_folder_for_results_that_cannot_be_is_refused_before_anything_runs(
    scenario_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("sojourn.runs.runner")
    monkeypatch.setattr(module, "simulate", lambda *_, **__: pytest.fail("something ran"))
    for out in (scenario_file, scenario_file / "below"):
        assert cli.invoke(["run", str(scenario_file), "--out", str(out)]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert told.startswith(f"sojourn: {out}: ")
