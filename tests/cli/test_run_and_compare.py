"""Commands `run` and `compare`: output, files and warnings."""

import io
import re
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from rich.console import Console

import sojourn
from conftest import SCENARIO_FILE, files, make_result
from sojourn import cli
from sojourn.__main__ import main as sojourn_main
from sojourn.runs import runner
from sojourn.show.result import by_size_table

pytestmark = pytest.mark.usefixtures("directory")


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


def test_a_run_of_long_lived_flows_prints_throughputs_and_no_completion_times(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = "flows = [{ source = 0, target = 2 }, { source = 1, target = 2 }]"
    scenario = (
        'topology = { kind = "star", hosts = 3 }\ntransport = "dctcp"\ntime_limit = "1 ms"\n'
        f'workload = {{ kind = "flows", {flows} }}\n'
    )
    (directory / "long.toml").write_text(scenario, encoding="utf-8")
    assert cli.invoke(["run", "long.toml"]) == 0
    printed = capsys.readouterr().out
    assert "long-lived flows" in printed
    assert "flow completion time" not in printed


def test_long_lived_flows_do_not_count_with_the_unfinished(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = '{ source = 0, target = 2 }, { source = 1, target = 2, size = "1 GB" }'
    scenario = (
        'topology = { kind = "star", hosts = 3 }\ntransport = "dctcp"\ntime_limit = "1 ms"\n'
        f'workload = {{ kind = "flows", flows = [{flows}] }}\n'
    )
    (directory / "both.toml").write_text(scenario, encoding="utf-8")
    assert cli.invoke(["run", "both.toml"]) == 0
    assert "unfinished: 1 of 1 flows did not finish" in capsys.readouterr().out


def test_a_run_prints_lower_bounds_of_a_job_and_its_messages_that_did_not_start(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collective = '{ kind = "collective", algorithm = "ring", ranks = 4, size = "4 MB" }'
    scenario = (
        'topology = { kind = "star", hosts = 4, rate = "100 Gbps" }\ntransport = "dctcp"\n'
        f'time_limit = "20 ms"\nconvergence = "0 ps"\nworkload = {collective}\n'
        'failures = [{ link = "host3->switch", fails = "200 us" }]\n'
    )
    (directory / "job.toml").write_text(scenario, encoding="utf-8")
    assert cli.invoke(["run", "job.toml"]) == 0
    printed = capsys.readouterr().out
    assert cli.invoke(["compare", "job.toml"]) == 0
    bounds = re.search(r"collective +job +(≥ 20 ms) +(≥ [\d.]+) ", capsys.readouterr().out)
    job = re.search(r"collective .*?(\d+) +(\d+) +(≥ 20 ms) +\S+ µs +(≥ [\d.]+) ", printed)
    total = re.search(r"unfinished: (\d+) of .*; (\d+) messages of jobs did not start", printed)
    assert bounds
    assert job
    assert total
    assert job.groups() == (*total.groups(), *bounds.groups())


def test_jobs_are_measured_from_their_start_whatever_the_warm_up(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collective = '{ kind = "collective", algorithm = "ring", ranks = 4, size = "1 MB" }'
    scenario = (
        'topology = { kind = "star", hosts = 4 }\ntransport = "dctcp"\n'
        f'warm_up = "1 ms"\nworkload = {collective}\n'
    )
    (directory / "job.toml").write_text(scenario, encoding="utf-8")
    assert cli.invoke(["run", "job.toml"]) == 0
    assert "1 ms are excluded; jobs are measured from their start" in capsys.readouterr().out
    assert cli.invoke(["compare", "job.toml"]) == 0
    assert "durations of jobs" in capsys.readouterr().out


def test_a_run_states_where_results_are_and_takes_a_seed_and_fields(
    scenario_file: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ["--seed", "7", "--set", "load=0.25", "--set", "transport=swift"]
    assert cli.invoke(["run", str(scenario_file), *changes, "--out", "out"]) == 0
    assert capsys.readouterr().out.endswith("\nwritten to out\n")
    scenario = sojourn.Result.read("out").summary["scenario"]
    assert (scenario["seed"], scenario["workload"]["load"]) == (7, 0.25)
    assert scenario["transport"]["kind"] == "swift"
    assert cli.invoke(["run", str(scenario_file), "--set", "environment=internet"]) == 0
    assert "\nenvironment: internet: " in capsys.readouterr().out
    assert cli.invoke(["run", str(scenario_file), "--set", "topology.delay=1 ms"]) == 0
    reason = "\nenvironment: internet (automatic: base RTT of 1 ms or more): "
    assert reason in capsys.readouterr().out
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


class Interrupting:
    """A module whose import is interrupted."""

    def __getattr__(self, name: str) -> object:
        raise KeyboardInterrupt


def test_an_interrupt_while_commands_are_imported_gives_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sojourn.cli", Interrupting())
    with pytest.raises(SystemExit, match="130"):
        sojourn_main()
    assert capsys.readouterr().err == "sojourn: interrupted\n"


def test_only_links_with_queues_have_a_note_on_their_length(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "small.toml").write_text(
        """
        topology = "link"
        workload = { kind = "poisson", load = 0.5, sizes = { kind = "fixed", size = "20 KB" } }
        """
    )
    for change, is_stated in (("transport=tcp", True), ("model=processor_sharing", False)):
        assert cli.invoke(["run", "small.toml", "--set", change]) == 0
        output = capsys.readouterr().out
        assert "the last arrival" in output
        assert ("queue max: of the whole run" in output) == is_stated


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
        assert re.search(rf"\nengine: \d+ groups of nodes, lookahead 1 µs, {expected}\n", printed)
        assert ("per CPU-second" in printed) == (threads == 1)
    text = (directory / "small.toml").read_text().replace('"windows"', '"events"')
    (directory / "small.toml").write_text(text)
    assert cli.invoke(["run", "small.toml"]) == 0
    assert "engine:" not in capsys.readouterr().out


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


def test_counts_that_include_the_warm_up_are_named(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
        time_limit = "20 ms"
        topology = { kind = "link", rate = "1 Gbps", delay = "1 ms" }
        transport = "dctcp"
        workload = { kind = "long_lived" }
        """
    (directory / "all.toml").write_text(text)
    (directory / "part.toml").write_text(f'warm_up = "10 ms"\n{text}')
    for command in (["run"], ["compare", "--vary", "transport=dctcp,tcp"]):
        for name, is_noted in (("all.toml", False), ("part.toml", True)):
            assert cli.invoke([*command, name, "--out", "out"]) == 0
            printed = " ".join(capsys.readouterr().out.split())
            of_run = "timeouts (warm-up included)" in printed
            of_compare = "warm-up included: drops," in printed and "queue max" in printed
            assert (of_run if command == ["run"] else of_compare) == is_noted


def test_a_warm_up_after_the_last_start_gives_one_warning(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "late.toml").write_text(
        """
        time_limit = "20 ms"
        warm_up = "10 ms"
        topology = { kind = "link", rate = "1 Gbps", delay = "1 ms" }
        transport = "dctcp"
        workload = { kind = "flows", flows = [{ source = 0, target = 1, size = "10 KB" }] }
        """
    )
    line = "warning: warm_up: no flow counts, since all start in the first 10 ms; the last starts"
    for command in (["run"], ["compare", "--vary", "transport=dctcp,tcp"]):
        assert cli.invoke([*command, "late.toml", "--out", "out"]) == 0
        assert " ".join(capsys.readouterr().out.split()).count(line) == 1
    for fields in ("warm_up=0 s", "workload.flows.0.start=15 ms"):
        assert cli.invoke(["run", "late.toml", "--set", fields]) == 0
        assert "warning: warm_up" not in capsys.readouterr().out
