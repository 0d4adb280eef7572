"""The options `--fidelity` and `--precision`."""

import json
from pathlib import Path

import polars as pl
import pytest

from sojourn import cli
from sojourn.view import loading

SCENARIO = """\
transport = "dctcp"
topology = { kind = "leaf_spine", leaves = 12 }
fidelity = { kind = "sample", hosts = 64 }

[workload]
kind = "poisson"
load = 0.4
flows = 3000
sizes = { kind = "fixed", size = "20 KB" }
"""


@pytest.fixture(name="path")
def scenario_path(directory: Path) -> str:
    (directory / "big.toml").write_text(SCENARIO, encoding="utf-8")
    return "big.toml"


def test_samples_are_added_up_to_a_precision(
    path: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["run", path, "--precision", "15%", "--out", "out"]) == 0
    assert "± 15 % required" in capsys.readouterr().out
    summary = json.loads((directory / "out/summary.json").read_text(encoding="utf-8"))
    # The other parameters are those of the file.
    assert summary["fidelity"]["kept"] == 64
    assert summary["scenario"]["fidelity"]["precision"] == 0.15


def test_a_comparison_has_one_line_on_its_precision(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--vary", "transport=dctcp,swift", "--precision", "20%"]
    assert cli.invoke(["compare", path, *options]) == 0
    assert capsys.readouterr().out.count("precision: p99 of ") == 1


@pytest.mark.parametrize("command", ["run", "compare", "tune"])
def test_errors_of_options_name_the_option(
    command: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    search = ["--parameter", "transport.gain=0.1:1", "--minimise", "mean fct"]
    base = [command, path, *(search if command == "tune" else [])]
    base += ["--vary", "transport=dctcp,swift"] if command == "compare" else []
    assert cli.invoke([*base, "--fidelity", "smple"]) == 2
    assert capsys.readouterr().err == (
        f"sojourn: {path}: --fidelity smple: expected one of packets, sample, flows, auto; "
        "did you mean `sample`?\n"
    )


@pytest.mark.parametrize("as_files", [True, False], ids=["files", "schemes"])
def test_options_apply_to_schemes_with_a_fidelity_of_their_own(
    as_files: bool, path: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swift = SCENARIO.replace("dctcp", "swift")
    (directory / "swift.toml").write_text(swift, encoding="utf-8")
    schemes = '[schemes.big]\n[schemes.swift]\ntransport = "swift"\nfidelity.hosts = 72\n'
    (directory / "both.toml").write_text(SCENARIO + schemes, encoding="utf-8")
    paths = [path, "swift.toml"] if as_files else ["both.toml"]
    options = ["--flows", "--out", "out"]
    assert cli.invoke(["compare", *paths, *options, "--precision", "20%"]) == 0
    assert "± 20 % required" in capsys.readouterr().out
    assert "sample" in pl.read_parquet(directory / "out/flows.parquet").columns
    assert cli.invoke(["compare", *paths, *options, "--fidelity", "packets"]) == 0
    assert "sample" not in pl.read_parquet(directory / "out/flows.parquet").columns
    varied = ["--vary", "load=0.3,0.4", "--fidelity", "packets"]
    assert cli.invoke(["compare", *paths, *varied]) == 0


def test_flows_of_different_fidelities_and_of_large_seeds_are_in_one_table(
    directory: Path,
) -> None:
    (directory / "large.toml").write_text(f"seed = {2**31 - 1}\n{SCENARIO}", encoding="utf-8")
    varied = ["--vary", "fidelity=packets,sample", "--seeds", "2"]
    assert cli.invoke(["compare", "large.toml", *varied, "--flows", "--out", "out"]) == 0
    flows = pl.read_parquet(directory / "out/flows.parquet")
    assert flows["seed"].unique().sort().to_list() == [2**31 - 1, 2**31]
    of_packets = flows["fidelity"] == "packets"
    assert flows.filter(of_packets)["sample"].count() == 0
    assert flows.filter(~of_packets)["sample"].null_count() == 0


def test_a_chosen_fidelity_is_printed_and_stored(
    path: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["run", path, "--fidelity", "auto", "--out", "out"]) == 0
    assert "fidelity: auto chose packets: about " in capsys.readouterr().out
    summary = json.loads((directory / "out/summary.json").read_text(encoding="utf-8"))
    assert summary["fidelity"]["reason"].startswith("auto chose packets")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "--fidelity", "packets", "--precision", "5%"],
            "--precision: is for samples; add `--fidelity sample`",
        ),
        (["run", "--precision", "0%"], "--precision: must be a percentage above 0 %"),
        (["run", "--fidelity", "atuo"], "did you mean `auto`"),
        (
            ["tune", "--fidelity", "auto", "--parameter", "gain=0.1:1", "--minimise", "mean fct"],
            "fidelity: the trials of a search need the same one of packets, sample, flows",
        ),
        (
            ["compare", "--fidelity", "flows", "--vary", "fidelity=packets,sample"],
            "--fidelity: `fidelity` is varied, too; give one of the two",
        ),
    ],
)
def test_errors_are_of_the_option_or_the_field(
    path: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke([arguments[0], path, *arguments[1:]]) != 0
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (["plot"], "choose `--what cdf`, not queue, throughput"),
        (["explain"], "a breakdown needs `sample`"),
        (["view", "--no-open"], "use `sample`, or show a folder of `sojourn run --out`"),
    ],
)
def test_commands_that_need_packets_state_what_suits_a_fluid(
    command: list[str], remedy: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SCENARIO.replace('"sample", hosts = 64', '"flows", hosts = 64')
    (directory / "fluid.toml").write_text(text, encoding="utf-8")
    assert cli.invoke([command[0], "fluid.toml", *command[1:]]) == 2
    assert capsys.readouterr().err == (
        f"sojourn: fluid.toml: fidelity: `flows` predicts completion times only; {remedy}\n"
    )


def test_the_page_of_a_fluid_states_why_it_has_no_causes() -> None:
    assert loading.refusal({"fidelity": "flows"}) == (
        "`flows` predicts completion times only; a cause needs `sample`"
    )
