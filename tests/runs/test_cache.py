"""Cache: damaged entries are run again, and full or read-only disks give one-line errors."""

import contextlib
import ctypes
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
    """Return a damage that only a checksum of the complete file detects."""

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
def test_a_damaged_entry_is_run_again_with_a_warning_and_replaced(
    damage: Damage, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = sojourn.run(SAMPLED, cache=cache)
    flows, samples = first.flows, first.samples
    damage(cache / key(SAMPLED))
    second = sojourn.run(SAMPLED, cache=cache)
    assert_frame_equal(second.flows, flows)
    assert_frame_equal(second.samples, samples)
    assert second.summary["counts"] == first.summary["counts"]
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert str(cache) in errors
    assert "running it again" in errors
    assert_frame_equal(Result.read(cache / key(SAMPLED)).flows, flows)
    third = sojourn.run(SAMPLED, cache=cache)
    assert third.summary == Result.read(cache / key(SAMPLED)).summary
    assert_frame_equal(third.samples, samples)
    assert capsys.readouterr().err == ""
    assert not list(cache.glob(".draft-*"))


def test_several_damaged_entries_give_one_warning(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = [SCENARIO | {"seed": seed} for seed in range(1, 5)]
    sojourn.run_many(scenarios, cache=cache)
    for file in cache.glob("*/summary.json"):
        file.write_bytes(b"")
    sojourn.run_many(scenarios, cache=cache)
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "(and 3 other results)" in errors


def test_reading_a_damaged_result_is_an_error(tmp_path: Path) -> None:
    sojourn.run(SCENARIO).write(tmp_path / "out")
    flipped("flows.parquet")(tmp_path / "out")
    with pytest.raises(ScenarioError, match=r"flows\.parquet: does not match its SHA-256 sum"):
        Result.read(tmp_path / "out").flows  # noqa: B018
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        Result.read(tmp_path / "nowhere")


def test_results_contain_sums_for_sha256sum(tmp_path: Path) -> None:
    sojourn.run(SAMPLED).write(tmp_path / "out")
    lines = (tmp_path / "out" / "SHA256SUMS").read_text().splitlines()
    assert [line[64:] for line in lines] == [
        "  flows.parquet",
        "  samples.parquet",
        "  links.parquet",
        "  summary.json",
    ]


def test_writing_a_result_removes_the_files_of_the_previous_one(tmp_path: Path) -> None:
    sojourn.run(SAMPLED).write(tmp_path / "out")
    sojourn.run(SCENARIO).write(tmp_path / "out")
    assert Result.read(tmp_path / "out").samples.is_empty()
    assert not (tmp_path / "out" / "samples.parquet").exists()


def test_only_abandoned_drafts_are_deleted(cache: Path) -> None:
    for name, age_h in ((".draft-old", 25), (".draft-new", 1)):
        (cache / name).mkdir(parents=True)
        (cache / name / "flows.parquet").touch()
        modified = time.time() - 3600 * age_h
        os.utime(cache / name, (modified, modified))
    sojourn.run(SCENARIO, cache=cache)
    assert [entry.name for entry in cache.glob(".draft-*")] == [".draft-new"]


def test_two_sweeps_repair_one_cache_concurrently(cache: Path) -> None:
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
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    assert sorted(cache.glob("[!.]*")) == entries
    for entry in entries:
        Result.read(entry).verify()


def test_an_entry_that_another_thread_has_replaced_stays(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sojourn.run(SCENARIO, cache=cache)
    (entry,) = cache.glob("[!.]*")
    good = sojourn.run(SCENARIO, cache=None)

    def repair(begin: threading.Barrier) -> None:
        begin.wait()
        # The returned entry is valid, whichever thread wrote it.
        store(entry, good, lambda *_: good).verify()

    # A random delay before each rename lets other threads act in between.
    rename = Path.rename

    def delayed_rename(self: Path, target: Path) -> Path:
        time.sleep(random.uniform(0, 0.004))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", delayed_rename)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            (entry / "summary.json").write_bytes(b"")
            begin = threading.Barrier(8)
            for future in [pool.submit(repair, begin) for _ in range(8)]:
                future.result()


def test_a_file_in_place_of_the_cache_is_rejected_before_any_run(
    tmp_path: Path,
    scenario_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for place in (scenario_file, scenario_file / "below"):
        monkeypatch.setenv("SOJOURN_CACHE", str(place))
        monkeypatch.chdir(tmp_path)
        assert cli.invoke(["compare", str(scenario_file), "--vary", "load=0.2"]) == 2
        errors = capsys.readouterr().err
        assert errors.count("\n") == 1
        assert f"{place}: cannot be used as cache: " in errors


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Limit the size of files to 100 bytes."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard_limit, hard_limit))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["compare", "--vary", "load=0.2"], "cannot be written: "),
        (["run", "--out", "out"], "out: cannot be written: "),
        (["trace", "--out", "flows.csv"], "flows.csv: "),
    ],
)
def test_a_full_disk_gives_a_one_line_error(  # noqa: PLR0913, PLR0917
    arguments: list[str],
    expected: str,
    scenario_file: Path,
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(scenario_file.parent)
    with full_disk():
        assert cli.invoke([arguments[0], str(scenario_file), *arguments[1:]]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert expected in errors
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
"""Commands that write files, and the path that their errors name."""


@pytest.mark.parametrize(("arguments", "place"), WRITERS)
def test_errors_of_a_full_disk_name_the_file(
    arguments: list[str],
    place: str,
    scenario_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(scenario_file.parent)
    if arguments[0] in {
        "compare",
        "explain",
        "tune",
        "figure",
        "validate",
    }:  # Fill the cache first.
        assert cli.invoke([*arguments[:-1], "before"]) == 0
    elif arguments[0] == "report":
        assert cli.invoke([*FIGURE, "made"]) == 0
    capsys.readouterr()
    with full_disk():
        assert cli.invoke(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert errors.startswith(f"sojourn: {place}")
    assert "File too large" in errors


CAP_DAC_OVERRIDE = 1 << 1
"""Capability of root to ignore the permissions of files (linux/capability.h)."""

PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP = 28, 1 << 2
"""Option of prctl, and the bit with which `access` looks at effective capabilities of root."""


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only, also for root, which loses `CAP_DAC_OVERRIDE` for the time."""
    folder.chmod(0o555)
    with contextlib.ExitStack() as stack:
        stack.callback(folder.chmod, 0o755)
        if os.geteuid() == 0:
            libc = ctypes.CDLL(None)
            version_3 = (ctypes.c_uint32 * 2)(0x20080522, 0)
            # Effective, permitted and inheritable capabilities, twice 32 of each.
            before, reduced = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
            assert libc.capget(version_3, before) == libc.capget(version_3, reduced) == 0
            reduced[0] &= ~CAP_DAC_OVERRIDE
            stack.callback(libc.prctl, PR_SET_SECUREBITS, 0)
            stack.callback(libc.capset, version_3, before)
            assert libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0
            assert libc.capset(version_3, reduced) == 0
        yield


@pytest.mark.parametrize(("arguments", "place"), WRITERS)
def test_a_read_only_folder_is_rejected_before_any_run(
    arguments: list[str],
    place: str,
    scenario_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(scenario_file.parent)
    monkeypatch.setenv("SOJOURN_CACHE", "cache")
    if arguments[0] == "report":
        assert cli.invoke([*FIGURE, "made"]) == 0
        capsys.readouterr()
    module = importlib.import_module("sojourn.runs.runner")
    monkeypatch.setattr(module, "simulate", lambda *_, **__: pytest.fail("a run was started"))
    with read_only(scenario_file.parent):
        assert cli.invoke(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert errors.startswith((f"sojourn: {place}", "sojourn: cache: cannot be used as cache"))
    assert "Permission denied" in errors or "is not a writable directory" in errors


def test_standard_output_on_a_full_disk_gives_a_one_line_error() -> None:
    command = [sys.executable, "-c", "from sojourn import cli; cli.main()", "schema"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        process = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (process.returncode, process.stderr) == (2, "sojourn: No space left on device\n")


def test_an_invalid_folder_for_results_is_rejected_before_any_run(
    scenario_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("sojourn.runs.runner")
    monkeypatch.setattr(module, "simulate", lambda *_, **__: pytest.fail("a run was started"))
    for out in (scenario_file, scenario_file / "below"):
        assert cli.invoke(["run", str(scenario_file), "--out", str(out)]) == 2
        errors = capsys.readouterr().err
        assert errors.count("\n") == 1
        assert errors.startswith(f"sojourn: {out}: ")
