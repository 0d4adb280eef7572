"""Commands: help, errors, and those without a file of their own."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

import sojourn
from conftest import EXPERIMENTS, IN_WINDOWS, SCENARIO_FILE, files
from sojourn import cli
from sojourn.bench import scenarios
from sojourn.cli import reference

pytestmark = pytest.mark.usefixtures("directory")


HELP = Path(__file__).parent / "help.txt"


COMMANDS = (
    *("run", "compare", "explain", "plot", "view", "tune", "figure", "report", "parts", "schema"),
    *("examples", "new", "check", "trace", "fold", "import", "export", "validate", "real", "bench"),
)


def test_a_trace_does_not_overwrite_a_file_of_the_scenario(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = "1000,0.5\n2000,1\n"
    (directory / "sizes.csv").write_text(sizes, encoding="utf-8")
    text = SCENARIO_FILE.replace('"fixed", size = "20 KB"', '"empirical", file = "sizes.csv"')
    (directory / "own.toml").write_text(text, encoding="utf-8")
    assert cli.invoke(["trace", "own.toml", "--out", "sizes.csv"]) == 2
    expected = "--out sizes.csv: is an input of the scenario; choose another file"
    assert expected in capsys.readouterr().err
    assert (directory / "sizes.csv").read_text(encoding="utf-8") == sizes
    assert cli.invoke(["trace", "own.toml", "--out", "flows.csv"]) == 0
    assert capsys.readouterr().out == "written to flows.csv\n"


def test_characters_outside_of_the_terminal_encoding_are_escaped(
    scenario_file: Path, directory: Path
) -> None:
    out = os.fsdecode(b"out\xff")
    command = [sys.executable, "-m", "sojourn", "run", str(scenario_file), "--out", out]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=ascii_only)
    assert (process.returncode, process.stderr) == (0, "")
    assert "written to out\\udcff" in process.stdout
    assert (directory / out / "flows.parquet").exists()


def test_a_figure_and_its_report_are_written(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(EXPERIMENTS.parent)
    out = str(directory / "figures")
    assert cli.invoke(["figure", "t1", "--scale", "smoke", "--out", out]) == 0
    printed = capsys.readouterr().out
    assert re.match(
        r"t1   Mean slowdown against load: 2 held, 1 not held, 1 not judged \(", printed
    )
    assert "✓ held" in printed
    assert "\nclaims of the sources: 1 held, 1 not held, 0 not judged\n" in printed
    assert "  mean  " not in printed
    again = ["figure", "t1", "--scale", "smoke", "--out", out, "--tables"]
    assert cli.invoke(again) == 0
    assert re.search(r"0\.8 +mean +(≥ )?\d", capsys.readouterr().out)
    assert cli.invoke(["report", "--figures", out]) == 0
    assert "figures/report.html" in files(directory)


def test_a_trace_is_csv_with_times_in_picoseconds(
    scenario_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["trace", str(scenario_file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "start_s,source,target,size_bytes,class,deadline_s"
    assert len(lines) == 201
    starts = [line.split(",")[0] for line in lines[1:]]
    assert all(len(start.partition(".")[2]) == 12 for start in starts)
    assert starts == sorted(starts, key=float)


def test_replaying_a_trace_gives_the_same_flows(
    scenario_file: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["trace", str(scenario_file), "--out", "flows.csv"]) == 0
    assert capsys.readouterr().out == "written to flows.csv\n"
    original = sojourn.read(scenario_file)
    replay = original | {"workload": {"kind": "trace", "file": "flows.csv"}}
    assert_frame_equal(sojourn.run(replay).flows, sojourn.run(original).flows)


def test_a_check_prints_all_defaults(
    scenario_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["check", str(scenario_file)]) == 0
    assert json.loads(capsys.readouterr().out)["transport"]["kind"] == "dctcp"


def test_queues_in_force_are_printed_for_each_rate(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SCENARIO_FILE.replace("[topology]", "[topology]\nbottleneck_rate = '40 Gbps'")
    (directory / "two.toml").write_text(
        f"environment = 'paper'\n{text}"
        "\n[schemes.limited]\nqueue.kind = 'drop_tail'\nqueue.capacity = '1 MB'\n"
        "host_queue = 'drop_tail'\nreliability.delayed_ack = '40 ms'\n"
        "\n[schemes.marking]\nswitch.shared_buffer = '9 MB'\nswitch.pause = {}\n",
        encoding="utf-8",
    )
    marks = "threshold 97.5 KB at 10 Gb/s, 390 KB at 40 Gb/s, no limit of its own"
    assert cli.invoke(["check", "two.toml"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "limited: queues: switches: drop_tail, capacity 1 MB; hosts: drop_tail, no limit of its"
        " own",
        "limited: buffers: no shared buffer, no pause frames",
        "limited: hosts: service fifo; ACKs delayed by up to 40 ms",
        f"marking: queues: switches: ecn_threshold, {marks}; hosts: ecn_threshold, threshold"
        " 97.5 KB at 10 Gb/s, no limit of its own",
        "marking: buffers: shared buffer of 9 MB with pause frames",
        "marking: hosts: service fifo; an ACK for every data packet",
    ]
    assert cli.invoke(["run", "two.toml", "--scheme", "marking"]) == 0
    assert any(marks in line for line in capsys.readouterr().out.splitlines()), "one line"


def test_components_are_listed_in_one_line_each_with_their_meaning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.invoke(["parts"]) == 0
    printed = capsys.readouterr().out
    for family, members in sojourn.parts().items():
        assert re.search(rf"(?m)^ *{family}( |$)", printed)
        for part in members:
            assert re.search(rf"(?m)^ *{part['name']} +\S.*\S.{{5}}", printed), part["name"]


@pytest.mark.parametrize("name", ["dctcp", "DCTCP", "fat-tree", "Leaf Spine", "BBRv3", "WFQ"])
def test_a_component_is_found_by_any_spelling(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["parts", *name.split()]) == 0
    printed = capsys.readouterr().out
    assert re.match(r"(transport|topology|queue): \w+\n", printed)
    assert "meaning and source" in printed


def test_values_have_their_meanings_below_the_parameters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.invoke(["parts", "powertcp"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"\n  form +paper +As published: .*\n(.*\n)*? +simulator +As in the", printed)
    assert cli.invoke(["parts", "routing"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r" conga +Flowlets on the least congested of all paths", printed)
    # An environment has the meaning of its own value only.
    assert cli.invoke(["parts", "lossless_datacentre"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"\n  powertcp\.form +simulator +As in the authors' simulator", printed)
    assert "As published: an ACK" not in printed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pfc", r"switch\.pause +Pause frames \(PFC"),
        ("Hadoop", r'empirical\.table = "\w*hadoop" +\S'),
        ("web search", r"empirical\.table +web_search +Web search, in bytes"),
        ("rail_aligned", r"collective\.placement +rail_aligned +By position at their switch"),
        ("polarisation", r'routing = "ecmp_equal_seeds" +Like `ecmp`, with the same hash seed'),
        ("RDMA", r"transport: dcqcn +DCQCN: rate control"),
        ("longest delay", r"dumbbell\.longest_delay "),
        ("warm up", r"(?m)^ *warm_up "),
    ],
)
def test_words_are_searched_in_names_meanings_and_values(
    words: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["parts", words]) == 0
    assert re.search(expected, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("load = 0.5", "laod = 0.5", "scenario.toml: workload.laod: unknown field"),
        ("load = 0.5", "load = 0", "scenario.toml: workload.load: must be"),
        ("load = 0.5", "load =", "scenario.toml:7: not TOML"),
        ('"dctcp"', '"dctpc"', "did you mean `dctcp`?"),
        ("flows = 200", 'file = "none.csv"', "scenario.toml: workload.file: cannot read"),
    ],
)
@pytest.mark.parametrize("command", ["run", "compare", "check", "trace"])
def test_an_invalid_scenario_gives_a_one_line_error_and_no_files(  # noqa: PLR0913, PLR0917
    command: str,
    old: str,
    new: str,
    expected: str,
    directory: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert old in SCENARIO_FILE
    (directory / "scenario.toml").write_text(SCENARIO_FILE.replace(old, new), encoding="utf-8")
    options = {"run": ["--out", "out"], "compare": ["--vary", "load=0.2,0.4", "--out", "out"]}
    assert cli.invoke([command, "scenario.toml", *options.get(command, [])]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert output.err.startswith("sojourn: scenario.toml")
    assert expected in output.err
    assert files(directory) == {"scenario.toml"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "none.toml"], "none.toml: cannot be read: No such file"),
        (["run"], "Missing argument"),
        (["rnu"], "No such command"),
        (["run", "scenario.toml", "--away", "x"], "No such option"),
        (["run", "scenario.toml", "--out", "scenario.toml"], "scenario.toml: is not a directory"),
        (["compare", "scenario.toml", "--vary", "load"], "expected NAME=VALUE"),
        (["compare", "scenario.toml", "--vary", "seed=1,2"], "`--seeds N` runs N seeds"),
        (["compare", "scenario.toml", "--vary", "laod=1"], "did you mean `workload.load`?"),
        (["compare", "scenario.toml", "--vary", "load=2,x"], "workload.load"),
        (
            ["compare", "scenario.toml", "--vary", "load=0.2,0.4", "--seeds", "99999999"],
            "199999998 runs: at most 100000",
        ),
        (["compare", "scenario.toml", "--vary", f"{3000 * 'a.'}a=1"], "a.a: unknown field"),
        (
            ["compare", "scenario.toml", "--vary", "load=0.1:0.5"],
            "needs a step, as in 0.1:0.5:STEP",
        ),
        (["compare", "scenario.toml", "--vary", "transport=tcp,tcp"], "duplicate value `tcp`"),
        (["compare"], "Missing argument"),
        (
            ["run", "scenario.toml", "--set", "load=0.1,0.2"],
            "--set load=0.1,0.2: expected one value",
        ),
        (["run", "scenario.toml", "--set", "laod=0.1"], "did you mean `workload.load`?"),
        (["run", "scenario.toml", "--scheme", "a"], "the scenario has no table `schemes`"),
        (["trace", "scenario.toml", "--out", "scenario.toml"], "is an input of the scenario"),
        (["run", "x" * 300], "File name too long"),
        (["run", "\x1b[31m"], "�[31m: cannot be read: No such file"),
        (["run", "scenario.toml", "--out", "scenario.toml/x"], "x: cannot be created: "),
        (["run", "scenario.toml", "--threads", "1000000"], "less than or equal to 1024"),
        (["parts", "dctpc"], "did you mean `dctcp`?"),
        (["figure", "all", "--scale", "quik"], "did you mean `quick`?"),
        (["report", "--figures", "none"], "contains no figures"),
        (
            ["run", "scenario.toml", "--threads", "0"],
            "--threads': Input should be greater than or equal to 1",
        ),
        (["bench", "W0"], "expected one of W1, W2, W3, W4, W5-TCP, W5-RCP, W6, W7, W8, W9"),
    ],
)
def test_an_invalid_command_gives_a_one_line_error_and_no_files(
    arguments: list[str],
    expected: str,
    scenario_file: Path,
    directory: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.invoke(arguments) == 2
    output = capsys.readouterr()
    assert output.err.count("\n") == 1
    assert output.err.startswith("sojourn: ")
    assert expected in output.err
    assert files(directory) == {scenario_file.name}


def test_the_help_is_unchanged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for arguments in ([], *([command] for command in COMMANDS)):
        assert cli.invoke([*arguments, "--help"]) == 0
    text = capsys.readouterr().out
    if os.environ.get("UPDATE_SNAPSHOTS"):
        HELP.write_text(text, encoding="utf-8")
    assert text == HELP.read_text(encoding="utf-8"), "update with UPDATE_SNAPSHOTS=1 pytest"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_help_fits_80_columns_and_has_an_example(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.invoke([*command.split(), "-h"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.endswith("...") and not line.startswith("Usage")]
    if command:
        (example,) = re.findall(r"(?m)^  Example: `sojourn (.*)`$", "\n".join(lines))
        name, *arguments = shlex.split(example)
        assert name == command
        # Raises an error for an unknown option.
        reference.commands()[command].make_context(name, arguments)


def test_the_page_of_commands_has_every_command_and_option() -> None:
    page = reference.commands_page()
    assert re.findall(r"(?m)^## (.*)$", page) == list(COMMANDS)
    assert (
        "| `--vary NAME=V1,V2` | Parameter and its values, or FIRST:LAST:STEP; may be repeated."
        in page
    )
    assert "```sh\nsojourn run scenario.toml --out out\n```" in page


def test_a_closed_pipe_is_not_an_error(scenario_file: Path) -> None:
    command = f"{sys.executable} -m sojourn trace {scenario_file} | head -1"
    piped = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert piped.stderr == ""


def test_a_benchmark_measures_in_a_new_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["bench", "W1", "--repeats", "1", "--json"]) == 0
    (measured,) = json.loads(capsys.readouterr().out)
    assert measured["name"] == "W1"
    assert measured["packet_hops_per_cpu_second"] > 0
    assert measured["peak_memory_bytes"] >= measured["memory_before_bytes"] > 0
    assert measured["ns_per_packet_hop"] * measured["packet_hops_per_cpu_second"] == pytest.approx(
        1e9
    )
    assert measured["events_per_packet_hop"] > 0
    assert measured["engine"] in ("events", "windows")


def test_a_benchmark_compares_several_threads_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(scenarios.SCENARIOS, "W0", IN_WINDOWS | {"name": "W0: a small one"})
    arguments = ["bench", "W0", "--repeats", "1", "--threads", "2"]
    assert cli.invoke([*arguments, "--json"]) == 0
    (measured,) = json.loads(capsys.readouterr().out)
    assert (measured["engine"], measured["threads"]) == ("windows", 2)
    assert measured["cpu_seconds"] > 0
    assert measured["speed_up"] * measured["wall_seconds"] == pytest.approx(
        measured["wall_seconds_on_one_thread"]
    )
    assert cli.invoke(arguments) == 0
    assert re.search(r"speed-up.*\n.*\n +W0 +windows +2 ", capsys.readouterr().out)
    assert cli.invoke(arguments[:-2]) == 0
    assert re.search(r"ns / hop.*\n.*\n +W0 +windows +\d", capsys.readouterr().out)
