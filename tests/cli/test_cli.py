"""Commands: output, files, warnings and errors."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from rich.console import Console

import sojourn
from conftest import EXPERIMENTS, IN_WINDOWS, SCENARIO_FILE, make_result
from sojourn import cli
from sojourn.bench import scenarios
from sojourn.cli import reference
from sojourn.runs import runner
from sojourn.show.result import by_size_table

HELP = Path(__file__).parent / "help.txt"
COMMANDS = (
    *("run", "compare", "explain", "plot", "view", "tune", "figure", "report", "parts", "schema"),
    *("examples", "new", "check", "trace", "fold", "import", "export", "validate", "real", "bench"),
)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(directory: Path) -> set[str]:
    return {str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()}


def test_a_run_writes_its_results_and_prints_a_summary(
    scenario_file: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["run", str(scenario_file), "--out", "out"]) == 0
    assert {"out/flows.parquet", "out/summary.json"} <= files(directory)
    printed = capsys.readouterr().out
    for expected in ("flow completion time", "slowdown", "p99", "left->right", "drops", "load:"):
        assert expected in printed
    assert re.search(r"realised load: 0\.\d+ of 10 Gbps \(payload and headers\) on left", printed)
    assert "by class" not in printed


def test_a_run_states_where_results_are_and_takes_a_seed_and_fields(
    scenario_file: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ["--seed", "7", "--set", "load=0.25", "--set", "transport=swift"]
    assert cli.invoke(["run", str(scenario_file), *changes, "--out", "out"]) == 0
    assert capsys.readouterr().out.endswith("\nwritten to out\n")
    scenario = sojourn.Result.read("out").summary["scenario"]
    assert (scenario["seed"], scenario["workload"]["load"]) == (7, 0.25)
    assert scenario["transport"]["kind"] == "swift"
    assert cli.invoke(["run", str(scenario_file)]) == 0
    last = "results are not stored; `--out DIR` writes flows and summary"
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_a_run_of_a_scheme_equals_that_of_the_comparison(directory: Path) -> None:
    schemes = "\n[schemes.a]\n[schemes.b]\ntransport = 'dcqcn'\nqueue.kind = 'drop_tail'\n"
    (directory / "two.toml").write_text(SCENARIO_FILE + schemes, encoding="utf-8")
    assert cli.invoke(["compare", "two.toml", "--out", "both"]) == 0
    folders = pl.read_csv("both/index.csv")["folder"].to_list()
    for scheme, folder in zip("ab", folders, strict=True):
        assert cli.invoke(["run", "two.toml", "--scheme", scheme, "--out", scheme]) == 0
        expected = sojourn.Result.read(Path("both") / folder)
        assert_frame_equal(sojourn.Result.read(scheme).flows, expected.flows)
        assert cli.invoke(["trace", "two.toml", "--scheme", scheme, "--out", "trace.csv"]) == 0
    assert cli.invoke(["check", "two.toml"]) == 0


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["run", "scenario.toml"], "interrupted"),
        (["compare", "scenario.toml", "--fresh"], "interrupted"),
        (["compare", "scenario.toml"], "interrupted; finished runs are in the cache"),
    ],
)
def test_an_interrupt_states_whether_runs_are_stored(
    command: list[str],
    expected: str,
    scenario_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    assert scenario_file.exists()
    monkeypatch.setattr(runner, "_collect", interrupt)
    assert cli.invoke(command) == 130
    assert capsys.readouterr().err == f"sojourn: {expected}\n"


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


def test_a_run_of_the_window_engine_prints_windows_and_threads(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "small.toml").write_text(
        """
        engine = "windows"
        transport = "dctcp"
        topology = { kind = "fat_tree", k = 8, delay = "1 us" }
        workload = { kind = "permutation", size = "100 KB" }
        """
    )
    for threads, expected in ((1, "1 thread"), (2, "2 threads")):
        assert cli.invoke(["run", "small.toml", "--threads", str(threads)]) == 0
        printed = capsys.readouterr().out
        assert re.search(rf"\nwindows of 1 µs, \d+ groups, {expected}\n", printed)
        assert ("per CPU-second" in printed) == (threads == 1)
    text = (directory / "small.toml").read_text().replace('"windows"', '"events"')
    (directory / "small.toml").write_text(text)
    assert cli.invoke(["run", "small.toml"]) == 0
    assert "windows of" not in capsys.readouterr().out


MIXED = """
time_limit = "50 ms"
transport = "tcp"
transports = { queries = "dctcp" }
topology = { kind = "star", hosts = 4, rate = "1 Gbps" }
[workload]
kind = "mixed"
[[workload.parts]]
kind = "poisson"
class = "backup"
load = 0.1
sizes = { kind = "fixed", size = "50 KB" }
[[workload.parts]]
kind = "poisson"
class = "queries"
load = 0.1
sizes = { kind = "fixed", size = "10 KB" }
"""


def test_results_are_printed_by_class(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "mixed.toml").write_text(MIXED, encoding="utf-8")
    assert cli.invoke(["run", "mixed.toml"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"by class\s+class +flows .*FCT mean.*slowdown p99", printed)
    assert re.search(r"\n +backup +\d+ .*\n +queries +\d+ ", printed)
    assert printed.count("load: 0.1 of") == 2
    assert cli.invoke(["compare", "mixed.toml", "--vary", "rate=1 Gbps,2 Gbps", "--tables"]) == 0
    printed = capsys.readouterr().out
    # All flows are small, so a table of small flows would repeat the table of all.
    assert re.findall(r"(?m)^(?:size|class): .*\b", printed) == [
        "size: all",
        "class: backup",
        "class: queries",
    ]
    table = pl.read_csv("results/compare/mixed/comparison.csv")
    assert table.columns[:4] == ["rate", "size", "class", "metric"]
    backups = table.filter(pl.col("class") == "backup")
    assert backups["size"].unique().to_list() == ["all"]
    flows = {
        name: table.filter(pl.col("size") == "all", pl.col("class") == name, metric="flows")
        for name in ("all", "backup", "queries")
    }
    parts = flows["backup"]["value"] + flows["queries"]["value"]
    assert parts.to_list() == flows["all"]["value"].to_list()


def test_terminated_flows_have_a_column() -> None:
    result = make_result([1e-6, None, None], terminated=[2])
    console = Console(record=True, width=200, file=io.StringIO())
    console.print(by_size_table(result, "slowdown", "{:.2f}".format, "slowdown"))
    printed = console.export_text()
    assert re.search(r"flows +unfinished +terminated", printed)
    assert re.search(r"all +2 +1 +1 ", printed)


def test_a_comparison_is_printed_and_plotted(
    scenario_file: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vary = ["--vary", "transport=dctcp,dcqcn", "--vary", "load=0.2,0.6"]
    arguments = ["compare", str(scenario_file), *vary, "--seeds", "3", "--out", "out"]
    assert cli.invoke(arguments) == 0
    assert {"out/comparison.csv", "out/comparison.svg", "out/comparison.png"} <= files(directory)
    printed = capsys.readouterr().out
    assert "±" in printed
    assert printed.count("dcqcn") >= 2


@pytest.mark.parametrize("command", [["compare"], ["explain", "--alone"]])
def test_parameters_that_a_variation_drops_are_named_once(
    command: list[str],
    scenario_file: Path,
    directory: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = 'transport = { kind = "dctcp", gain = 0.1 }'
    text = SCENARIO_FILE.replace('transport = "dctcp"', own)
    scenario_file.write_text(text, encoding="utf-8")
    vary = ["--vary", "transport=dctcp,tcp", "--out", "out"]
    assert cli.invoke([command[0], str(scenario_file), *command[1:], *vary]) == 0
    printed = capsys.readouterr().out
    line = (
        "warning: transport: parameters of dctcp that the scenario sets are dropped for tcp: gain; "
        "dctcp keeps them\n"
    )
    assert printed.count(line) == printed.count("dropped") == 1


def test_means_that_have_not_converged_give_one_warning_each(
    scenario_file: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heavy = 'sizes = { kind = "pareto", mean = "30 KB", shape = 1.1 }'
    heavy = SCENARIO_FILE.replace('sizes = { kind = "fixed", size = "20 KB" }', heavy)
    scenario_file.write_text(heavy, encoding="utf-8")
    assert cli.invoke(["run", str(scenario_file)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    line = r"warning: mean completion time not converged: [\d.]+ µs ± \d+ % \(ten batches"
    assert len(re.findall(line, printed)) == 1
    vary = ["--vary", "load=0.1,0.2", "--out", "out"]
    assert cli.invoke(["compare", str(scenario_file), *vary]) == 0
    printed = capsys.readouterr().out
    assert "one run each, means ± 95 % confidence by ten batches" in printed
    assert len(re.findall(line + ".*median", printed)) == 1
    assert cli.invoke(["compare", str(scenario_file), *vary, "--seeds", "3"]) == 0
    printed = capsys.readouterr().out
    assert len(re.findall(r"completion time not converged.*\(3 seeds.*--median", printed)) == 1


def test_the_option_median_reports_medians_over_seeds(
    scenario_file: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compare", str(scenario_file), "--vary", "load=0.2", "--seeds", "6"]
    assert cli.invoke([*arguments, "--out", "means"]) == 0
    assert "\nmeans over seeds ± 95 % confidence;" in capsys.readouterr().out
    assert cli.invoke([*arguments, "--median", "--out", "medians"]) == 0
    printed = capsys.readouterr().out
    assert "\nmedians over seeds ± 95 % confidence, by order statistics" in printed
    means, medians = (
        pl.read_csv(directory / name / "comparison.csv").filter(size="all", metric="FCT mean")
        for name in ("means", "medians")
    )
    assert means["value"][0] != medians["value"][0]
    # The bounds of six values are the smallest and the largest.
    assert medians["low"][0] < medians["value"][0] < medians["high"][0]


def test_medians_of_few_seeds_and_percentiles_of_few_flows_have_a_dash(
    scenario_file: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = SCENARIO_FILE.replace("flows = 200", "flows = 40")
    scenario_file.write_text(few, encoding="utf-8")
    assert cli.invoke(["run", str(scenario_file)]) == 0
    printed = capsys.readouterr().out
    assert "-: too few flows for a percentile (least: 100 for p99)" in printed
    assert re.search(r"^ *all +40 +0 +[\d.]+ µs +[\d.]+ µs +[\d.]+ µs +- *$", printed, re.MULTILINE)
    arguments = ["compare", str(scenario_file), "--vary", "load=0.2", "--seeds", "5", "--median"]
    assert cli.invoke([*arguments, "--out", "medians"]) == 0
    printed = capsys.readouterr().out
    assert "\nmedians over seeds; too few seeds for an interval (least: 6);" in printed
    assert "±" not in printed
    assert "-: too few flows for a percentile (least: 100 for p99)" in printed
    table = pl.read_csv(directory / "medians" / "comparison.csv").filter(size="all")
    assert table.filter(metric="FCT p99")["value"].is_nan().all()
    assert table.filter(metric="FCT mean")["low"].is_nan().all()


def test_a_variation_may_have_the_name_of_a_column(
    scenario_file: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compare", str(scenario_file), "--vary", "size=10 KB,20 KB", "--out", "out"]
    assert cli.invoke(arguments) == 0
    assert pl.read_csv(directory / "out" / "comparison.csv").columns[:2] == [
        "workload.sizes.size",
        "size",
    ]


@pytest.mark.parametrize(
    ("vary", "labels"),
    [
        ("initial_ssthresh=none,20", ["none", "20"]),
        ('queue=none,{kind="drop_tail"}', ["none", '{"kind": "drop_tail"}']),
        ("gain=1,0.5", ["1.0", "0.5"]),
        ("name=[/red],[bold]x", ["[/red]", "[bold]x"]),
    ],
)
def test_values_of_any_kind_can_be_compared(
    vary: str, labels: list[str], scenario_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["compare", str(scenario_file), "--vary", vary, "--out", "[out]"]) == 0
    table = pl.read_csv("[out]/comparison.csv", infer_schema=False, glob=False)
    assert table[table.columns[0]].unique(maintain_order=True).to_list() == labels
    printed = capsys.readouterr().out
    assert all(label in printed for label in labels)


def test_names_are_not_markup_and_paths_are_not_patterns(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "odd.toml").write_text(MIXED.replace('"backup"', '"[/red]"'), encoding="utf-8")
    assert cli.invoke(["run", "odd.toml", "--out", "a[1]*"]) == 0
    assert "[/red]" in capsys.readouterr().out
    assert sojourn.Result.read("a[1]*").flows.height > 0


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


def test_met_deadlines_are_printed(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "hurried.toml").write_text(
        """
        transport = "dctcp"
        topology = { kind = "star", hosts = 2 }
        [workload]
        kind = "flows"
        flows = [
            { source = 0, target = 1, size = "10 KB", deadline = "1 s" },
            { source = 0, target = 1, size = "1 MB", deadline = "1 us" },
            { source = 0, target = 1, size = "1 MB" },
        ]
        """
    )
    assert cli.invoke(["run", "hurried.toml", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert "deadlines: 50.00 % of flows with a deadline met it" in printed
    assert "terminated" not in printed
    assert cli.invoke(["compare", "hurried.toml", "--vary", "gain=0.1,0.2", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert "deadlines met" in printed
    assert "50.0 %" in printed


def test_unusual_parameters_give_a_warning(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "wild.toml").write_text(
        """
        time_limit = "2 s"
        topology = { kind = "link", rate = "10 Mbps", delay = "5 ms" }
        transport = "rcp"
        router = { kind = "rcp", alpha = 1.0, beta = 0.9 }
        workload = { kind = "flows", flows = [{ source = 0, target = 1, size = "10 KB" }] }
        """
    )
    for command in (["run"], ["compare", "--vary", "time_limit=2 s,3 s"]):
        assert cli.invoke([*command, "wild.toml", "--out", "out"]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert printed.count("warning: router: alpha = 1, beta = 0.9 is outside the region") == 1


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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pfc", r"switch\.pause +Pause frames \(PFC"),
        ("Hadoop", r'empirical\.table = "\w*hadoop" +Name of a published distribution'),
        ("web search", r'empirical\.table = "web_search" '),
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
        (["run", "scenario.toml", "--set", "load=0.1,0.2"], "--set load=0.1,0.2: expected NAME="),
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
