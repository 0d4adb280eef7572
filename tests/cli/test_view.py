"""`sojourn view` writes a page of scenarios and results, and states what it cannot."""

from pathlib import Path

import pytest

from sojourn import cli
from sojourn.runs.results import Result
from sojourn.view import loading, page

LAB = """
transport = "dctcp"
topology = { kind = "dumbbell", senders = 2, receivers = 2 }
[workload]
kind = "poisson"
load = 0.4
flows = 20
sizes = { kind = "fixed", size = "20 KB" }
"""


@pytest.fixture(autouse=True)
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOJOURN_CACHE", str(tmp_path / "cache"))
    Path("lab.toml").write_text(LAB, encoding="utf-8")


def test_a_scenario_is_run_and_a_result_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["view", "lab.toml", "--no-open"]) == 0
    file = Path("results/view/lab.html")
    assert f"written to {file}" in capsys.readouterr().out
    assert "Content-Security-Policy" in file.read_text(encoding="utf-8")
    assert cli.invoke(["run", "lab.toml", "--out", "lab"]) == 0
    assert cli.invoke(["view", "lab", "--no-open", "--out", "pages/one.html"]) == 0
    assert Path("pages/one.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lab.toml", "--most", "0"], "--most 0: expected a positive number, or all"),
        (["lab.toml", "--vary", "transport=dctcp,swift,tcp"], "one run or two, not 3"),
        (["lab.toml", "lab.toml", "--vary", "load=0.1,0.2"], "--vary: needs one scenario file"),
        (["lab.toml", "--out", "."], "--out .: is a directory"),
        (["folder"], "folder: expected a folder that `sojourn run --out` wrote"),
        (["absent.toml"], "absent.toml"),
    ],
)
def test_mistakes_give_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    assert cli.invoke(["view", *arguments, "--no-open"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_flow_without_recording_is_run_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["run", "lab.toml", "--out", "lab"]) == 0
    assert cli.invoke(["view", "lab", "--flow", "99", "--no-open"]) == 2
    assert "lab: --flow 99: the run has flows 0 to" in capsys.readouterr().err
    assert cli.invoke(["view", "lab", "--flow", "3", "--no-open"]) == 0
    result = Result.read("lab")
    result.summary["source_hash"] = "another"
    result.write("other")
    assert cli.invoke(["view", "other", "--no-open"]) == 0
    assert cli.invoke(["view", "other", "--flow", "3", "--no-open"]) == 2
    assert "was written by another version of Sojourn" in capsys.readouterr().err


def test_the_page_repeats_the_arguments_of_its_command() -> None:
    name = Path("my lab.toml")
    name.write_text(LAB, encoding="utf-8")
    vary = "transport=dctcp,tcp"
    assert cli.invoke(["view", str(name), "--vary", vary, "--no-open", "--out", "page.html"]) == 0
    text = Path("page.html").read_text(encoding="utf-8")
    assert f"'my lab.toml' --vary {vary}" in text.replace("\\u0027", "'")


def test_runs_without_finished_flows_have_a_page() -> None:
    Path("none.toml").write_text(f'time_limit = "1 ps"\n{LAB}', encoding="utf-8")
    for _ in ("run", "read from the cache"):
        assert cli.invoke(["view", "none.toml", "--no-open"]) == 0
    two = ["view", "none.toml", "--vary", "transport=dctcp,tcp", "--no-open", "--out", "two.html"]
    assert cli.invoke(two) == 0


def test_two_files_have_the_environment_that_they_have_in_a_comparison() -> None:
    lossless = LAB.replace('"dctcp"', '"dcqcn"')
    Path("lossless.toml").write_text(lossless, encoding="utf-8")
    runs = loading.load([Path("lab.toml"), Path("lossless.toml")], [], [], {})
    varied = loading.load([Path("lab.toml")], ["transport=dctcp,dcqcn"], [], {})
    for run, other in zip(runs, varied, strict=True):
        assert run.result.summary["scenario"]["environment"] == "lossless_datacentre"
        assert run.result.flows.equals(other.result.flows)
    text = page.render(runs, source="lab.toml lossless.toml")
    assert text.count("environment: lossless_datacentre: packets of ") == 2
