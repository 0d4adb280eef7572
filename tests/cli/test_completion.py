"""Shell completion: by the protocol of each shell, and in bash."""

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
from sojourn.figures.figure import SEEDS

SOJOURN = Path(sys.executable).with_name("sojourn")

pytestmark = pytest.mark.usefixtures("directory")


COMPLETIONS = [
    ("sojourn comp", ["compare"]),
    ("sojourn examples dctcp_d", ["dctcp_dumbbell"]),
    ("sojourn figure a2", ["a2"]),
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


@pytest.mark.parametrize(("line", "expected"), COMPLETIONS)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_command_lines_are_completed(
    shell: str,
    line: str,
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_SOJOURN_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert cli.invoke([]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    if shell == "zsh":
        entries = output.out.partition("((")[2].rpartition("))")[0].splitlines()
        names = [entry.split('"')[1] for entry in entries]
        assert expected or output.out == "_files\n", "the shell completes files"
    else:
        names = [entry.split("\t")[0] for entry in output.out.splitlines() if entry]
    assert sorted(names) == sorted(expected)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_installed_script(directory: Path) -> None:
    script = """
        eval "$("$1" --show-completion bash)"
        COMP_WORDS=(sojourn figure a2); COMP_CWORD=2
        _sojourn_completion "$1"
        echo "${COMPREPLY[*]}"
        complete -p sojourn
    """
    # Shell detection would find Python, the parent of this process.
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = ["bash", "--norc", "-c", script, "bash", str(SOJOURN)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert process.stderr == ""
    # Without a completion, as for a scenario file, bash completes files: `-o default`.
    assert process.stdout.splitlines() == [
        "a2",
        "complete -o default -F _sojourn_completion sojourn",
    ]


def test_names_of_figures_are_found_without_importing_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(EXPERIMENTS.parent)
    figures = discovery.discover()
    papers = {figure.paper.key for figure in figures.values()}
    assert set(completion.figures()) == {*figures, *papers, "all"}
    assert "t1" in figures, "includes the user's figures"


def test_scales_are_the_scales_of_figures() -> None:
    assert completion.scales() == list(SEEDS)
