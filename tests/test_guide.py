"""Guide: commands of the tutorial and the front page run in order; controllers are valid."""

import re
import shlex
from pathlib import Path

import pytest

from sojourn import cli
from sojourn.base import paths
from sojourn.scenario import controller_files, examples

ROOT = paths.checkout() or Path()
TUTORIAL = ROOT / "docs" / "tutorial.md"
FLOWS = "flows = 1000"


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_commands_of_the_tutorial_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = TUTORIAL.read_text(encoding="utf-8")
    (controller,), (lab,) = blocks(text, "python"), blocks(text, "toml")
    assert controller == examples.FIRST_CONTROLLER.read_text(encoding="utf-8")
    Path("lab.toml").write_text(lab.replace('"20 ms"', '"2 ms"'))
    for command in "".join(blocks(text, "sh")).splitlines():
        if "gentle.py" in command:
            Path("gentle.py").write_text(controller)
        assert cli.invoke(shlex.split(command)[1:]) == 0, command
        if command == "sojourn new":
            first = Path("scenario.toml").read_text()
            assert FLOWS in first
            Path("scenario.toml").write_text(first.replace(FLOWS, "flows = 15"))
    assert "Gentle's flows" in capsys.readouterr().out


def test_the_commands_of_the_front_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    install, commands = blocks(text, "sh")
    assert "pip install" in install
    for command in commands.splitlines():
        assert cli.invoke(shlex.split(command)[1:]) == 0, command
        if command == "sojourn new":
            first = Path("scenario.toml").read_text()
            Path("scenario.toml").write_text(first.replace(FLOWS, "flows = 15"))
    assert Path("results/plot/scenario/cdf.svg").exists()


def test_the_recipe_of_the_contributing_guide_is_a_controller() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    entry = controller_files.part("halving.py:Halving", blocks(text, "python")[0])
    assert [parameter["name"] for parameter in entry["parameters"]] == ["factor"]
