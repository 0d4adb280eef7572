"""Command `compare`: schemes, files of results, and flows that differ between schemes."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer

import sojourn
from conftest import SCENARIO, SCENARIO_FILE
from sojourn import ScenarioError, cli, metrics, pairs
from sojourn.compare import comparison, paired_tables
from sojourn.show import console
from sojourn.show import plot as pictures

MIXED = """
time_limit = "50 ms"
transport = "dctcp"
topology = { kind = "star", hosts = 5, rate = "1 Gbps" }
[workload]
kind = "mixed"
[[workload.parts]]
kind = "poisson"
class = "web"
load = 0.2
flows = 60
sizes = { kind = "fixed", size = "10 KB" }
[[workload.parts]]
kind = "incast"
fan_in = 3
size = "10 KB"
interval = "1 ms"
events = 5
"""

LONG_LIVED = """
time_limit = "1 s"
transport = "cubic"
topology = { kind = "dumbbell", senders = 2, receivers = 2, rate = "50 Mbps", delay = "5 ms" }
workload = { kind = "long_lived", class = "bulk" }
"""

RING = """
transport = "dctcp"
topology = { kind = "star", hosts = 4 }
workload = { kind = "collective", algorithm = "ring", ranks = 4, size = "400 KB" }
"""

CALLS = """
transport = "dctcp"
topology = { kind = "dumbbell", senders = 3, receivers = 3 }
host.rate_tolerance = 0.0 # all callers make their part of the calls in the same time
[workload]
kind = "rpc"
request = { kind = "fixed", size = "64 KB" }
response = { kind = "fixed", size = "1 KB" }
pattern = { outstanding = 1, calls = 40 }
"""

SCHEMES = """
[schemes.dctcp]
[schemes.pfc]
transport = "dcqcn"
switch.shared_buffer = "12 MB"
switch.pause = {}
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mixed.toml").write_text(MIXED, encoding="utf-8")
    (tmp_path / "a.toml").write_text(SCENARIO_FILE, encoding="utf-8")
    (tmp_path / "b.toml").write_text(SCENARIO_FILE.replace("dctcp", "swift"), encoding="utf-8")
    (tmp_path / "schemes.toml").write_text(SCENARIO_FILE + SCHEMES, encoding="utf-8")
    return tmp_path


def schemes_of(file: str) -> list[str]:
    return pl.read_csv(file)["scheme"].unique(maintain_order=True).to_list()


def test_schemes_of_a_file_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["compare", "schemes.toml", "--seeds", "2", "--against", "pfc"]) == 0
    assert schemes_of("results/compare/schemes/comparison.csv") == ["dctcp", "pfc"]
    printed = capsys.readouterr().out
    assert "dctcp's flows up to 100 KB take" in printed
    assert "of pfc's time" in printed
    assert "ratios to pfc on the same flows" in printed
    assert cli.invoke(["explain", "schemes.toml"]) == 0
    assert schemes_of("results/explain/schemes/account.csv") == ["dctcp", "pfc"]
    capsys.readouterr()
    assert cli.invoke(["compare", "schemes.toml", "--against", "pcf"]) == 2
    assert "--against pcf: expected one of dctcp, pfc" in capsys.readouterr().err


def test_schemes_are_combined_with_variations() -> None:
    assert cli.invoke(["compare", "schemes.toml", "--vary", "load=0.1:0.3:0.2"]) == 0
    table = pl.read_csv("results/compare/schemes/comparison.csv")
    assert table.columns[:2] == ["scheme", "load"]
    assert table.select("scheme", "load").unique(maintain_order=True).rows() == [
        (scheme, load) for scheme in ("dctcp", "pfc") for load in (0.1, 0.3)
    ]


def test_several_scenarios_are_schemes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["compare", "a.toml", "b.toml"]) == 0
    assert schemes_of("results/compare/a_b/comparison.csv") == ["a", "b"]
    assert pl.read_csv("results/compare/a_b/pairs.csv")["same_flows"].all()
    assert "b's flows up to 100 KB take" in capsys.readouterr().out
    Path("c.toml").write_text(SCENARIO_FILE.replace("load = 0.5", "load = 0.2"), encoding="utf-8")
    assert cli.invoke(["compare", "a.toml", "c.toml"]) == 0
    printed = capsys.readouterr().out
    assert "schemes differ in workload.load (a 0.5, c 0.2)" in printed
    assert "note: some flows of c differ from those of a (other workloads)" in printed
    assert cli.invoke(["compare", "a.toml", "a.toml"]) == 2
    assert capsys.readouterr().err == "sojourn: a.toml: is given twice\n"


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("compare", "use --vary NAME=VALUE"),
        ("explain", "use --vary NAME=VALUE"),
        ("check", "change the scenario's file"),
    ],
)
def test_commands_without_settings_name_what_to_use_instead(
    command: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke([command, "a.toml", "--set", "load=0.2"]) == 2
    assert capsys.readouterr().err == f"sojourn: no such option: --set; {instead}\n"


def test_a_scenario_alone_is_one_scheme() -> None:
    assert cli.invoke(["compare", "a.toml", "--seeds", "2"]) == 0
    table = pl.read_csv("results/compare/a/comparison.csv")
    assert table.columns[0] == "scheme"
    assert set(table["seeds"]) == {2}


def test_a_comparison_in_python_needs_no_variations() -> None:
    alone = sojourn.comparison(SCENARIO | {"name": "mine"}, seeds=2)
    assert alone.table["scheme"].unique().to_list() == ["mine"]
    schemes = SCENARIO | {"schemes": {"one": {}, "other": {"transport": "swift"}}}
    compared = sojourn.comparison(schemes, seeds=2)
    assert compared.by == "scheme"
    assert "other's flows" in str(compared)


def test_parts_of_a_mixed_workload_are_varied() -> None:
    assert cli.invoke(["compare", "mixed.toml", "--vary", "workload.incast.size=5 KB,50 KB"]) == 0
    table = pl.read_csv("results/compare/mixed/comparison.csv")
    incast = table.filter(pl.col("class") == "incast", metric="FCT mean")["value"].to_list()
    assert incast[1] > 2 * incast[0]


def test_equal_numbers_of_other_flows_are_not_pairs() -> None:
    # With another load the numbers of the incast's flows shift, so none is the flow of its number.
    base = sojourn.read("mixed.toml")
    runs = sojourn.sweep(
        sojourn.over_seeds(sojourn.expand(base, {"workload.web.load": [0.2, 0.5]}), 1)
    )
    table = pairs.ratios(runs, by="workload.web.load")
    incast = table.filter(pl.col("class") == "incast")
    assert not incast["same_flows"].any()
    assert set(incast["unfinished"]) == set(incast["unfinished_against"]) == {0}
    assert set(incast["pairs"]) == {15}
    assert paired_tables.warnings(table, "workload.web.load") == []


def test_the_index_leads_to_every_run_and_flows_have_labels() -> None:
    vary = ["--vary", "transport=dctcp,swift", "--seeds", "2", "--flows", "--out", "a[1]"]
    assert cli.invoke(["compare", "a.toml", *vary]) == 0
    index = pl.read_csv(Path("a[1]/index.csv").read_bytes())
    assert index.select("transport", "seed").rows() == [
        (transport, seed) for transport in ("dctcp", "swift") for seed in (1, 2)
    ]
    parts = [
        sojourn.Result.read(Path("a[1]") / row["folder"]).flows.select(
            pl.lit(row["transport"]).alias("transport"),
            pl.lit(row["seed"], pl.Int32).alias("seed"),
            pl.all(),
        )
        for row in index.to_dicts()
    ]
    flows = pl.read_parquet(Path("a[1]/flows.parquet").read_bytes())
    assert flows.equals(pl.concat(parts))
    assert cli.invoke(["compare", "a.toml", "--fresh", "--flows", "--out", "fresh"]) == 0
    assert pl.read_csv("fresh/index.csv")["folder"].null_count() == 1
    assert pl.read_parquet("fresh/flows.parquet")["scheme"].unique().to_list() == ["a"]


def test_labels_with_names_of_columns_have_their_full_path() -> None:
    flows = "[{ source = 0, target = 1, size = '9 KB' }]"
    Path("two.toml").write_text(
        f"transport = 'tcp'\ntopology = {{ kind = 'star', hosts = 3 }}\n"
        f"workload = {{ kind = 'flows', flows = {flows} }}\n",
        encoding="utf-8",
    )
    assert cli.invoke(["compare", "two.toml", "--vary", "target=1,2", "--flows"]) == 0
    table = pl.read_parquet("results/compare/two/flows.parquet")
    assert table.columns[0] == "workload.flows.0.target"
    assert table["target"].to_list() == [1, 2]


def test_files_of_an_earlier_question_are_removed() -> None:
    out = Path("results/compare/a")
    vary = ["--vary", "transport=dctcp,swift", "--account", "--flows"]
    assert cli.invoke(["compare", "a.toml", *vary]) == 0
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    assert (out / "flows.parquet").exists()
    assert cli.invoke(["compare", "a.toml"]) == 0
    names = {file.name for file in out.iterdir()}
    assert names == {
        "notes.txt",
        "index.csv",
        *(f"comparison.{end}" for end in ("csv", "svg", "png")),
    }
    out = Path("results/explain/a")
    assert cli.invoke(["explain", "a.toml", "--vary", "transport=dctcp,swift", "--alone"]) == 0
    assert {"differences.csv", "unloaded.csv"} <= {file.name for file in out.iterdir()}
    assert cli.invoke(["explain", "a.toml"]) == 0
    names = {f"account.{end}" for end in ("csv", "svg", "png")}
    assert {file.name for file in out.iterdir()} == names


def test_the_flows_of_a_run_are_neither_overwritten_nor_removed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.invoke(["run", "a.toml", "--out", "out"]) == 0
    for _ in range(2):
        assert cli.invoke(["compare", "a.toml", "--out", "out"]) == 0
    sojourn.Result.read("out").verify()
    capsys.readouterr()
    assert cli.invoke(["compare", "a.toml", "--flows", "--out", "out"]) == 2
    assert "out: flows.parquet is that of a run" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["compare a.toml b.toml", "explain a.toml --alone"])
def test_files_are_written_before_a_closed_pipe_ends_the_output(command: str) -> None:
    program = f"{sys.executable} -m sojourn {command} --out out"
    # The pipe is closed at once, and the output is longer than its buffer would have to be.
    subprocess.run(
        f"{program} | true", shell=True, check=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    )
    names = {file.name for file in Path("out").iterdir()}
    assert names >= ({"pairs.csv", "index.csv"} if "compare" in command else {"unloaded.csv"})


def test_a_comparison_begins_with_its_conclusion_and_ends_with_warnings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.invoke(["compare", "mixed.toml", "--vary", "transport=dctcp,timely"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("timely's flows up to 100 KB take")
    assert lines[1].startswith("timely's flows of class incast take")
    assert lines[2].startswith("timely's flows of class web take")
    assert lines[3].startswith("completion times and slowdowns")
    heads = [line.split()[:3] for line in lines if "FCT mean" in line]
    assert heads == [["size", "or", "class"]], "one table with values"
    rows = [line.split()[:2] for line in lines if line.strip().startswith(("incast", "web"))]
    assert rows == [[name, kind] for name in ("incast", "web") for kind in ("dctcp", "timely")]
    warnings = [line.startswith("warning: ") for line in lines]
    assert warnings == sorted(warnings)
    assert any(warnings)
    assert (
        cli.invoke(["compare", "mixed.toml", "--vary", "transport=dctcp,timely", "--tables"]) == 0
    )
    titles = ["size: all", "class: incast", "class: web", "ratio to dctcp, class: incast"]
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in titles if line in printed] == titles


def test_two_seeds_have_no_interval_and_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["compare", "a.toml", "b.toml", "--seeds", "2"]) == 0
    printed = capsys.readouterr().out
    assert "±" not in printed
    assert "(no interval: it needs 3 seeds)" in printed
    assert "two seeds: too few for an interval (least: 3)" in printed
    assert "means over seeds; too few seeds for an interval (least: 3)" in printed
    assert pl.read_csv("results/compare/a_b/pairs.csv")["low"].is_nan().all()


def test_a_comparison_of_many_points_has_a_table_of_all_flows_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.invoke(["compare", "mixed.toml", "--vary", "workload.web.load=0.1:0.4:0.01"]) == 0
    printed = capsys.readouterr().out
    assert "incast  " not in printed
    assert len(printed.splitlines()) < 120, "a sentence for 20 loads, two rows for each"


@pytest.mark.parametrize("width", [40, 60, 80, 130])
def test_tables_fit_the_width_and_never_cut_the_name_of_a_scheme(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console.console, "width", width)
    name = "patched_timely"
    arguments = ["--vary", f"transport=dctcp,{name}", "--seeds", "3", "--tables", "--account"]
    for command in (["compare", "mixed.toml", *arguments], ["run", "mixed.toml"]):
        assert cli.invoke(command) == 0
        printed = capsys.readouterr().out
        # Sentences of a pipe are one line each.
        table = [line for line in printed.splitlines() if line.startswith((" ", "size"))]
        assert max(map(len, table)) <= width
        assert "…" not in printed
    assert cli.invoke(["compare", "mixed.toml", *arguments]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" ")]
    assert sum(name in line.split() for line in rows) >= 8


def test_long_lived_flows_are_compared_by_throughput(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bulk.toml").write_text(LONG_LIVED, encoding="utf-8")
    assert cli.invoke(["run", "bulk.toml"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"long-lived flows\s+class +flows +throughput +Jain index\s", printed)
    assert re.search(r"\n +bulk +2 +[\d.]+ Mb/s +[\d.]+ *\n", printed)
    assert "flow completion time" not in printed
    assert cli.invoke(["compare", "bulk.toml", "--vary", "transport=cubic,bbr3"]) == 0
    printed = capsys.readouterr().out
    assert re.match(r"bbr3's long-lived flows get [\d.]+ of cubic's throughput", printed)
    assert re.search(r"\n +bulk +bbr3 +[\d.]+ Mb/s +[\d.]+ *\n", printed)
    pair = pl.read_csv("results/compare/bulk/pairs.csv").filter(pl.col("class") == "bulk")
    table = pl.read_csv("results/compare/bulk/comparison.csv")
    values = table.filter(pl.col("class") == "bulk", metric="throughput")["value"]
    assert pair["value"].to_list() == pytest.approx([values[1] / values[0]])
    drawn = Path("results/compare/bulk/comparison.svg")
    assert "throughput" in drawn.read_text(encoding="utf-8")
    measure = ["--plot", "throughput of class bulk", "--vary", "transport=cubic,bbr3"]
    assert cli.invoke(["compare", "bulk.toml", *measure]) == 0
    assert "throughput of class bulk (Mb/s)" in drawn.read_text(encoding="utf-8")


def test_long_lived_flows_of_several_classes_have_shares(
    capsys: pytest.CaptureFixture[str],
) -> None:
    classes = LONG_LIVED.replace("workload =", "transports = { late = 'bbr3' }\n#")
    parts = """
    [workload]
    kind = "mixed"
    parts = [
        { kind = "long_lived", class = "early", flows = 1 },
        { kind = "long_lived", class = "late", flows = 1 },
        { kind = "poisson", load = 0.1, flows = 30, sizes = { kind = "fixed", size = "9 KB" } },
    ]
    """
    Path("both.toml").write_text(classes + parts, encoding="utf-8")
    vary = ["--vary", "transport=cubic,tcp"]
    assert cli.invoke(["compare", "both.toml", *vary, "--seeds", "3"]) == 0
    printed = capsys.readouterr().out
    for name in ("class early", "class late"):
        assert f"tcp's long-lived flows of {name} get" in printed
    assert re.search(r"\n +class +transport +throughput +share +Jain index *\n", printed)
    table = pl.read_csv("results/compare/both/comparison.csv").filter(metric="share")
    assert table["class"].unique(maintain_order=True).to_list() == ["all", "early", "late"]
    of_cubic = table.filter(transport="cubic")["value"].to_list()
    assert sum(of_cubic[1:]) == pytest.approx(1)


def test_jobs_are_compared_by_duration(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ring.toml").write_text(RING, encoding="utf-8")
    measures = ["--plot", "mean duration", "--plot", "max duration of class collective"]
    vary = ["--vary", "transport=dctcp,constant_rate", "--tables", *measures]
    assert cli.invoke(["compare", "ring.toml", *vary]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("constant_rate's job collective takes ")
    assert re.search(r"durations of jobs\s+job +transport +duration +over bound +ratio\s", printed)
    table = pl.read_csv("results/compare/ring/comparison.csv").filter(metric="duration")
    runs = [
        sojourn.run(sojourn.read("ring.toml") | {"transport": each})
        for each in ("dctcp", "constant_rate")
    ]
    lasted = [run.flows.select((pl.col("start_s") + pl.col("fct_s")).max()).item() for run in runs]
    assert table["value"].to_list() == pytest.approx(lasted)
    (pair,) = pl.read_csv("results/compare/ring/pairs.csv").filter(metric="duration").to_dicts()
    assert pair["value"] == pytest.approx(lasted[1] / lasted[0])
    assert (pair["class"], pair["pairs"], pair["unfinished"]) == ("collective", 1, 0)
    drawn = Path("results/compare/ring/comparison.svg").read_text(encoding="utf-8")
    assert "mean duration" in drawn
    assert "max duration of class collective" in drawn


def test_an_unfinished_job_has_a_lower_bound_and_no_ratio(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("ring.toml").write_text('time_limit = "100 us"' + RING, encoding="utf-8")
    assert cli.invoke(["compare", "ring.toml", "--vary", "transport=dctcp,swift"]) == 0
    assert re.search(r"collective +swift +≥ 100 µs +≥ [\d.]+ +-", capsys.readouterr().out)
    (pair,) = pl.read_csv("results/compare/ring/pairs.csv").filter(metric="duration").to_dicts()
    assert (pair["pairs"], pair["unfinished"], pair["unfinished_against"]) == (0, 1, 1)


def test_calls_are_compared_by_latency(capsys: pytest.CaptureFixture[str]) -> None:
    Path("calls.toml").write_text(CALLS, encoding="utf-8")
    assert cli.invoke(["run", "calls.toml"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"latency\s+calls of kind +calls +unanswered +mean", printed)
    assert re.search(r"\n +rpc +40 +0 +[\d.]+ µs", printed)
    assert cli.invoke(["compare", "calls.toml", "--vary", "transport=dctcp,constant_rate"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("constant_rate's rpc calls take ")
    assert re.search(r"latencies of calls\s+calls of kind +transport +calls +latency mean", printed)
    table = pl.read_csv("results/compare/calls/comparison.csv")
    means = table.filter(metric="latency mean")["value"].to_list()
    latency = sojourn.run(sojourn.read("calls.toml")).flows["latency_s"].mean()
    assert means[0] == pytest.approx(latency)
    pair = pl.read_csv("results/compare/calls/pairs.csv").filter(metric="latency mean")
    assert pair["value"].to_list() == pytest.approx([means[1] / means[0]])


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("p99 fct of class incats", "unknown class `incats`; did you mean `incast`?"),
        ("throughput of class incats", "unknown class `incats`; did you mean `incast`?"),
        ("drops of host0->switch", "drops are counted in the whole run; remove `of host0->switch`"),
        ("mean duration", "the run has no jobs; give a workload of kind `collective`"),
    ],
)
def test_a_measure_of_what_the_runs_lack_is_an_error(
    measure: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["compare", "mixed.toml", "--plot", measure]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"sojourn: mixed.toml: --plot {measure}: {message}")
    assert printed.err.count("\n") == 1
    assert not printed.out
    assert not Path("results").exists()


def test_counters_of_each_scheme_are_printed_and_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue = 'queue = { kind = "drop_tail", capacity = "9 KB" }\n'
    text = queue + SCENARIO_FILE
    Path("a.toml").write_text(text, encoding="utf-8")
    arguments = ["--vary", "transport=dctcp,tcp", "--seeds", "2", "--flows"]
    assert cli.invoke(["compare", "a.toml", *arguments]) == 0
    counters = [name for name in comparison.COUNTERS if name not in metrics.RARE_COUNTS]
    heads = ["transport", *counters]
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    row = lines.index(" ".join(heads)) + 2
    assert [line.split()[0] for line in lines[row : row + 2]] == ["dctcp", "tcp"]
    table = pl.read_csv("results/compare/a/comparison.csv").filter(transport="tcp", size="all")
    index = pl.read_csv("results/compare/a/index.csv").filter(transport="tcp")
    results = [sojourn.Result.read(Path("results/compare/a") / each) for each in index["folder"]]
    drops = [result.summary["counts"]["drops"] for result in results]
    assert sum(drops) > 0
    assert table.filter(metric="drops")["value"].to_list() == [sum(drops) / 2]
    largest = [metrics.largest_queue()(result).value for result in results]
    assert table.filter(metric="queue max")["value"].to_list() == [sum(largest) / 2]


def test_an_ideal_has_no_counters(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["compare", "a.toml", "--vary", "model=srpt,processor_sharing"]) == 0
    printed = capsys.readouterr().out
    assert "drops" not in printed
    assert "utilisation" in printed


def test_percentiles_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["compare", "a.toml", "b.toml", "--percentiles", "99,p50,75.5"]) == 0
    printed = capsys.readouterr().out
    names = ["FCT mean", "FCT p50", "FCT p75.5", "FCT p99", "slowdown mean", "slowdown p99"]
    assert re.search(" +".join(names), printed)
    table = pl.read_csv("results/compare/a_b/comparison.csv")
    assert set(names) <= set(table["metric"])
    assert cli.invoke(["compare", "a.toml", "--percentiles", "90"]) == 0
    assert "FCT p90" in capsys.readouterr().out
    assert cli.invoke(["run", "a.toml", "--percentiles", "75"]) == 0
    assert re.search(r"size +flows +unfinished +mean +p75 *\n", capsys.readouterr().out)
    for wrong in ("100", "0", "x", "50,,99"):
        assert cli.invoke(["compare", "a.toml", "--percentiles", wrong]) == 2
        expected = "expected numbers above 0 and below 100, such as 50,99,99.9"
        assert expected in capsys.readouterr().err


def test_a_comparison_without_a_common_finished_flow_has_no_ratio_and_no_picture_of_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("slow.toml").write_text(
        "transport = 'dctcp'\ntime_limit = '2 ms'\ntopology = { kind = 'star', hosts = 3 }\n"
        "workload = { kind = 'flows', flows = [{ source = 0, target = 1, size = '1 MB' }] }\n",
        encoding="utf-8",
    )
    rates = ["10 Gbps", "1 Gbps"]
    vary = ["--vary", f"rate={','.join(rates)}"]
    assert cli.invoke(["compare", "slow.toml", *vary, "--out", "out"]) == 0
    assert "no flow finished under both" in capsys.readouterr().out
    assert not Path("out/pairs.svg").exists()
    compared = sojourn.comparison("slow.toml", {"rate": rates})
    assert compared._repr_html_().count("<svg") == 1


@pytest.mark.parametrize("time_limit", ["4 ms", "40 ms"])
def test_a_breakdown_states_how_many_flows_of_each_scheme_it_covers(
    time_limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["20 KB", "1 MB"]
    flows = [f"{{ source = 0, target = 1, size = '{size}' }}" for size in sizes]
    Path("two.toml").write_text(
        f"transport = 'dctcp'\ntime_limit = '{time_limit}'\n"
        "topology = { kind = 'star', hosts = 3 }\n"
        f"workload = {{ kind = 'flows', flows = [{', '.join(flows)}] }}\n",
        encoding="utf-8",
    )
    vary = ["--vary", "rate=10 Gbps,1 Gbps"]
    assert cli.invoke(["compare", "two.toml", *vary, "--account", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    drawn = Path("out/comparison.svg").read_text(encoding="utf-8")
    line = "FCT breakdown of finished flows only (10 Gbps: 2 of 2; 1 Gbps: 1 of 2)\n"
    assert (line in printed) == (time_limit == "4 ms")
    assert ("mean slowdown of finished flows (1: ideal FCT)" in drawn) == (time_limit == "4 ms")
    assert ("of finished flows" in printed) == (time_limit == "4 ms")


@pytest.mark.parametrize("variations", [{}, {"load": [0.2, 0.3]}, {"routing": ["ecmp"]}])
def test_a_scheme_looks_the_same_in_all_pictures_of_a_comparison(
    variations: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: dict[str, dict[str, str]] = {}

    def keep(picture: Any, stem: Path, _: Any) -> list[Path]:
        axes = picture.axes[0]
        handles, names = axes.get_legend_handles_labels()
        colours = [
            to_hex(each[0].get_facecolor() if isinstance(each, BarContainer) else each.get_color())
            for each in handles
        ]
        names = [name.removesuffix(", ecmp") for name in names]
        looks[stem.name] = dict(zip(names, colours, strict=True))
        return []

    monkeypatch.setattr(pictures, "save", keep)
    # HPCC and Swift have the same look of their own, and so have DCTCP and Homa.
    schemes = ["dctcp", "homa", "hpcc", "swift"]
    flags = [f"{name}={','.join(map(str, values))}" for name, values in variations.items()]
    vary = [f"transport={','.join(schemes)}", *flags]
    assert cli.invoke(["compare", "a.toml", *(f"--vary={each}" for each in vary)]) == 0
    assert list(looks["comparison"]) == schemes
    assert len(set(looks["comparison"].values())) == len(schemes)
    assert looks["pairs"] == {name: looks["comparison"][name] for name in schemes[1:]}


def test_flows_that_no_scheme_finished_have_no_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    flows = [f"{{ source = 0, target = 1, size = '{size}' }}" for size in ("1 KB", "1 GB")]
    Path("two.toml").write_text(
        f"transport = 'tcp'\ntime_limit = '1 ms'\ntopology = {{ kind = 'star', hosts = 3 }}\n"
        f"workload = {{ kind = 'flows', flows = [{', '.join(flows)}] }}\n",
        encoding="utf-8",
    )
    assert cli.invoke(["compare", "two.toml", "--vary", "transport=tcp,dctcp"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    large = [row for row in rows if row[:3] == [">", "10", "MB"]]
    assert [(row[3], row[-1]) for row in large] == [("tcp", "baseline"), ("dctcp", "-")]


@pytest.mark.parametrize(
    ("variations", "options", "message"),
    [
        ({}, {"seeds": 0}, "seeds: must be at least 1, not 0"),
        ({}, {"seeds": -1}, "seeds: must be at least 1, not -1"),
        ({"transport": []}, {}, "transport: no values to vary; give at least one"),
        ({}, {"sees": 1}, "sees: unknown option; did you mean `seeds`? (allowed: seeds, buckets,"),
    ],
)
def test_an_invalid_option_in_python_gives_a_one_line_error(
    variations: dict[str, list[str]], options: dict[str, int], message: str
) -> None:
    with pytest.raises(ScenarioError) as error:
        sojourn.comparison(SCENARIO, variations, **options)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
