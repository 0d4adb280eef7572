"""Examples to copy, the first scenario and the first controller."""

import re
import tomllib
from pathlib import Path

import pytest

import sojourn
from sojourn import cli
from sojourn.base import paths
from sojourn.base.units import parse_time
from sojourn.runs.result_tables import flow_table
from sojourn.scenario import encoding, examples

pytestmark = pytest.mark.usefixtures("directory")


def test_examples_are_listed_with_their_descriptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["examples"]) == 0
    printed = capsys.readouterr().out
    for name in examples.all_examples():
        assert re.search(rf"^{name} +\S.*\.$", printed, re.MULTILINE)
    assert re.search(r"dctcp_dumbbell +Web search traffic under DCTCP on a dumbbell: a", printed)
    # A sentence of several lines is printed completely.
    assert "half of the flows are small, one in ten is large." in printed


def test_an_example_is_copied_and_runs(directory: Path) -> None:
    assert cli.invoke(["examples", "srpt_ideal"]) == 0
    assert [file.name for file in directory.iterdir()] == ["srpt_ideal.toml"]
    assert cli.invoke(["run", "srpt_ideal.toml"]) == 0


@pytest.mark.parametrize("name", examples.examples())
def test_an_example_is_copied_with_the_files_that_it_names(name: str, directory: Path) -> None:
    (directory / "other").mkdir()
    assert cli.invoke(["examples", name, "--out", "other/mine.toml"]) == 0
    assert cli.invoke(["check", "other/mine.toml"]) == 0
    assert sojourn.read("other/mine.toml") == sojourn.read(paths.EXAMPLES / f"{name}.toml")


def test_several_examples_are_copied_by_one_command(directory: Path) -> None:
    names = ["dctcp_dumbbell", "srpt_ideal"]
    assert cli.invoke(["examples", *names]) == 0
    assert sorted(file.stem for file in directory.iterdir()) == names
    assert cli.invoke(["examples", *names, "--out", "x.toml"]) == 2


def test_every_file_that_ships_can_be_copied(directory: Path) -> None:
    copied = set()
    for number, name in enumerate(examples.all_examples()):
        folder = directory / str(number)
        folder.mkdir()
        copied |= {file.relative_to(folder) for file in examples.copy_example(name, folder)}
    shipped = {file for file in paths.EXAMPLES.rglob("*") if file.is_file()}
    assert copied == {
        file.relative_to(paths.EXAMPLES) for file in shipped if "__pycache__" not in file.parts
    }


@pytest.mark.parametrize("name", ["train", "train.py", "learning/train", "learning/train.py"])
def test_an_example_has_a_name_with_and_without_suffix(name: str, directory: Path) -> None:
    assert cli.invoke(["examples", name]) == 0
    files = {str(file.relative_to(directory)) for file in directory.rglob("*.*")}
    assert files == {"learning/train.py", "learning/learnt.py", "learnt_controller.toml"}
    # Its scenario is complete.
    assert cli.invoke(["check", "learnt_controller.toml"]) == 0


def test_names_of_examples_are_unique_and_files_in_common_are_kept(directory: Path) -> None:
    files = examples.all_examples().values()
    assert len({file.stem for file in files}) == len(files)
    assert cli.invoke(["examples", "own_controller.toml"]) == 0
    assert cli.invoke(["examples", "learnt_controller"]) == 0
    (directory / "own_controller.toml").unlink()
    assert cli.invoke(["examples", "own_controller"]) == 0
    (directory / "folder").mkdir()
    assert cli.invoke(["examples", "first_hour", "--out", "folder"]) == 0
    assert (directory / "folder" / "first_hour.ipynb").is_file()


@pytest.mark.parametrize("existing", ["replayed_trace.toml", "two_sites.csv"])
def test_a_copy_overwrites_nothing_and_copies_all_files_or_none(
    existing: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / existing).write_text("mine", encoding="utf-8")
    assert cli.invoke(["examples", "replayed_trace"]) == 2
    output = capsys.readouterr().err
    assert output == (
        f"sojourn: {existing}: exists already, nothing was written; choose another name\n"
    )
    assert [file.name for file in directory.iterdir()] == [existing]
    assert (directory / existing).read_text(encoding="utf-8") == "mine"


def test_several_examples_are_copied_into_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("copies").mkdir()
    assert cli.invoke(["examples", "rcp_link", "cellular", "--out", "copies"]) == 0
    names = {file.name for file in Path("copies").iterdir()}
    assert names == {"rcp_link.toml", "cellular.toml", "cellular.txt"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["examples", "dctcp_dumbell"], "did you mean `dctcp_dumbbell`?"),
        (["examples", "trains"], "did you mean `train`?"),
        (["examples", "train", "--out", "t.py"], "needs ../learnt_controller.toml; name a folder"),
        (["examples", "--out", "x.toml"], "--out: needs the name of an example"),
        (["examples", "rcp_link", "cellular", "--out", "x"], "several examples need an existing"),
        (["examples", "rcp_link", "--out", "none/x.toml"], "none/x.toml: No such file"),
        (["new", "none/x.toml"], "none/x.toml: No such file"),
        (["new", "."], ".: exists already"),
    ],
)
def test_errors_of_copying_are_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str], directory: Path
) -> None:
    assert cli.invoke(arguments) == 2
    output = capsys.readouterr().err
    assert output.count("\n") == 1
    assert expected in output
    assert not list(directory.iterdir())


def test_a_first_scenario_is_written_once_and_runs(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["new"]) == 0
    assert "`sojourn run scenario.toml`" in capsys.readouterr().out
    written = (directory / "scenario.toml").read_text(encoding="utf-8")
    assert "#     sojourn run scenario.toml\n" in written
    assert cli.invoke(["run", "scenario.toml"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"\n +all +1,000 +0 ", printed), "all flows finish"
    assert cli.invoke(["new"]) == 2
    assert "scenario.toml: exists already" in capsys.readouterr().err
    assert (directory / "scenario.toml").read_text(encoding="utf-8") == written


FIRST = examples.FIRST.read_text(encoding="utf-8")
CHOICES = re.findall(r"^#(\w+ = .*)$", FIRST, re.MULTILINE)


def test_the_first_scenario_contains_alternatives() -> None:
    assert len(CHOICES) >= 5


@pytest.mark.parametrize("choice", CHOICES)
def test_every_alternative_in_the_first_scenario_is_valid(choice: str) -> None:
    (key,) = tomllib.loads(choice)
    # As its comments describe: uncomment the alternative, and comment the line that it replaces.
    text = re.sub(rf"^{key} = ", f"#{key} = ", FIRST, flags=re.MULTILINE)
    scenario = tomllib.loads(text.replace(f"#{choice}\n", f"{choice}\n"))
    chosen = scenario if key in scenario else scenario["workload"]
    assert chosen[key] == tomllib.loads(choice)[key]
    sojourn.check(scenario)


def test_every_command_in_the_first_scenario_works(directory: Path) -> None:
    shortened = FIRST.replace("flows = 1000", "flows = 20")
    (directory / "FILE.toml").write_text(shortened, encoding="utf-8")
    commands = re.findall(r"(?:`|^#     )sojourn (.+?)(?:`|$)", FIRST, re.MULTILINE)
    assert {command.split()[0] for command in commands} == {"run", "compare", "parts", "check"}
    for command in commands:
        assert cli.invoke(command.replace("DIR", "out").split()) == 0


def test_the_time_limit_of_the_first_scenario_is_after_all_starts_at_the_loads_it_names() -> None:
    base = tomllib.loads(FIRST)
    (load, *_) = re.findall(r"load=([\d.]+),", FIRST)
    for seed in (1, 2, 3):
        scenario = sojourn.override(base, {"workload.load": float(load), "seed": seed})
        starts = flow_table(encoding.trace(scenario))["start_s"].to_list()
        assert len(starts) == 1000
        assert max(starts) < 0.9 * parse_time(base["time_limit"])


def test_the_first_controller_is_a_transport(
    capsys: pytest.CaptureFixture[str], directory: Path
) -> None:
    assert cli.invoke(["new"]) == cli.invoke(["new", "mine.py"]) == 0
    output = capsys.readouterr().out.splitlines()[-1]
    assert output == (
        "written: mine.py; now `sojourn compare SCENARIO --vary transport=dctcp,mine.py:Gentle`"
    )
    changes = {"transport": "mine.py:Gentle"}
    assert sojourn.check(sojourn.read("scenario.toml") | changes)["transport"]["kind"] == "python"
