"""Completion of command lines, by the protocol that shells speak and in a real bash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import EXPERIMENTS
from sojourn import cli
from sojourn.cli import completion
from sojourn.figures import discovery
from sojourn.figures.figure import SCALES

SOJOURN = Path(sys.executable).with_name("sojourn")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


WANTED = [
    ("sojourn comp", ["compare"]),
    ("sojourn examples dctcp", ["dctcp_dumbbell"]),
    ("sojourn figure a1", ["a1"]),
    ("sojourn figure pf", ["pfabric13"]),
    ("sojourn figure a1 pf", ["pfabric13"]),
    ("sojourn figure a1 --scale q", ["quick"]),
    ("sojourn figure a1 --sc", ["--scale"]),
    ("sojourn parts ecn", ["ecn_threshold"]),
    ("sojourn validate n", ["ns2"]),
    ("sojourn bench W5-", ["W5-TCP", "W5-RCP"]),
    ("sojourn bench W1 W5-T", ["W5-TCP"]),
    ("sojourn figure nothing", []),
]


@pytest.mark.parametrize(("line", "wanted"), WANTED)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_was_begun_is_completed(
    shell: str,
    line: str,
    wanted: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_SOJOURN_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert cli.invoke([]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    if shell == "zsh":
        given = told.out.partition("((")[2].rpartition("))")[0].splitlines()
        names = [entry.split('"')[1] for entry in given]
        assert wanted or told.out == "_files\n", "the shell goes on with files"
    else:
        names = [entry.split("\t")[0] for entry in told.out.splitlines() if entry]
    assert sorted(names) == sorted(wanted)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_by_the_script_that_is_installed(directory: Path) -> None:
    script = """
        eval "$("$1" --show-completion bash)"
        COMP_WORDS=(sojourn figure a1); COMP_CWORD=2
        _sojourn_completion "$1"
        echo "${COMPREPLY[*]}"
        complete -p sojourn
    """
    # Which shell it is, is told: the parent of this one is Python.
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = ["bash", "--norc", "-c", script, "bash", str(SOJOURN)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    # Where nothing is named, as for a scenario's file, bash goes on with files: `-o default`.
    assert done.stdout.splitlines() == [
        "a1",
        "complete -o default -F _sojourn_completion sojourn",
    ]


def test_the_names_of_figures_are_known_without_loading_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(EXPERIMENTS.parent)
    figures = discovery.discover()
    papers = {figure.paper.key for figure in figures.values()}
    assert set(completion.figures()) == {*figures, *papers, "all"}
    assert "t1" in figures, "a user's own beside the published ones"


def test_scales_are_those_of_figures() -> None:
    assert completion.scales() == list(SCALES)
