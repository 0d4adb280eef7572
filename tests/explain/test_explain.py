"""Tests of `sojourn explain`: tables, sentences, pictures and chains."""

import itertools
import math
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import sojourn
from conftest import BREAKDOWN
from sojourn import (
    accounts,
    cli,
    metrics,
    over_seeds,
    pairs,
    sweep,
)
from sojourn.analysis.breakdown import PARTS, TOTAL
from sojourn.compare import comparison, paired_tables
from sojourn.compare import plot as comparison_plot
from sojourn.explain import tables
from sojourn.show import intervals, plot
from sojourn.show.parts import breakdown_tables, legend, significant_metrics


def test_a_comparison_contains_parts_of_times_and_of_differences(
    breakdowns: list[sojourn.Run],
) -> None:
    varied = {"transport": ["dctcp", "timely"]}
    base = {name: value for name, value in BREAKDOWN.items() if name != "account"}
    table, compared = comparison.compare(base, varied, seeds=4, account=True)
    usual = comparison.without_parts(table)
    assert usual.equals(comparison.compare(base, varied, seeds=4)[0])
    means = accounts.by_size(breakdowns)
    assert comparison.parts_of(table, comparison.FCT_PARTS).select(means.columns).equals(means)
    slowdowns = comparison.parts_of(table, comparison.SLOWDOWN_PARTS)
    (of_all,) = slowdowns.filter(transport="dctcp", metric=TOTAL, size="all")["value"]
    all_flows = {"transport": "dctcp", "size": "all", "class": "all"}
    assert of_all == pytest.approx(metrics.at(usual, metric="slowdown mean", **all_flows))
    parts = slowdowns.filter(pl.col("metric").is_in(PARTS), transport="dctcp", size="all")
    assert parts["value"].sum() == pytest.approx(of_all)
    paired = pairs.ratios(compared, by="transport")
    differences = accounts.differences(compared, "transport")
    lines = paired_tables.sentences(paired, "transport", differences)
    assert len(lines) == 1
    shares = {name: metrics.at(differences, size="100 KB to 10 MB", metric=name) for name in PARTS}
    most = max(shares, key=lambda name: shares[name])
    total = metrics.at(differences, size="100 KB to 10 MB", metric=TOTAL)
    assert total > 0
    share = 100 * shares[most] / total
    assert f"and {share:.0f} % of the increase is {accounts.LABELS[most]}" in lines[0]


def flow_of_class(name: str, source: int, size: str) -> dict[str, object]:
    return {"source": source, "target": 3 + source, "size": size, "class": name}


TWO_CLASSES = BREAKDOWN | {
    "workload": {
        "kind": "flows",
        "flows": [
            *(flow_of_class("backup", source, "1 MB") for source in range(3)),
            *(flow_of_class("query", source, "10 KB") for source in range(3)),
        ],
    }
}


@pytest.fixture(scope="module")
def classes() -> list[sojourn.Run]:
    """DCTCP and TIMELY on the same flows of two classes, each class with one size."""
    kinds = ("dctcp", "timely")
    labelled = [({"transport": kind}, TWO_CLASSES | {"transport": kind}) for kind in kinds]
    return sweep(over_seeds(labelled, 1))


def rows_of(table: pl.DataFrame, **labels: str) -> pl.DataFrame:
    return table.filter(**labels).drop("size", "class")


def test_rows_of_a_class_equal_rows_of_the_size_of_its_flows(
    breakdowns: list[sojourn.Run], classes: list[sojourn.Run]
) -> None:
    by_size = accounts.by_size(classes, metrics.BUCKETS)
    for table, of_sizes in (
        (accounts.by_size(classes), by_size),
        (
            accounts.differences(classes, "transport"),
            accounts.differences(classes, "transport", buckets=metrics.BUCKETS),
        ),
    ):
        assert table.filter(pl.col("class") == "all").drop("class").equals(of_sizes)
        for name, size in (("backup", "100 KB to 10 MB"), ("query", "≤ 100 KB")):
            class_rows = rows_of(table, **{"class": name})
            assert class_rows.height > len(PARTS)
            assert class_rows.equals(rows_of(table, size=size))
    for run in classes:
        flows = accounts.divided(run.result).filter(pl.col("class") == "query")
        labels = {"transport": run.labels["transport"], "class": "query", "metric": accounts.OTHERS}
        assert metrics.at(accounts.by_size(classes), **labels) == pytest.approx(
            flows[accounts.OTHERS].mean()
        )
    assert "class" not in by_size.columns, "no bucket is of a class"
    assert "class" not in accounts.by_size(breakdowns).columns, "of one class"
    assert "class" not in accounts.differences(breakdowns, "transport").columns


def test_sentences_about_classes_equal_sentences_about_sizes(classes: list[sojourn.Run]) -> None:
    lines = tables.sentences(classes, ["transport"])
    assert len(lines) == 8, "two schemes, two sizes, two classes"
    assert lines[2] == lines[1].replace("of 100 KB to 10 MB", "of class backup")
    assert lines[3] == lines[0].replace("up to 100 KB", "of class query")
    # Classes do not change the sentence of a comparison about all flows.
    paired = pairs.ratios(classes, by="transport", buckets=[metrics.ALL])
    paired = paired.with_columns(low=2.0, high=3.0)
    with_classes, without = (
        paired_tables.sentences(
            paired, "transport", accounts.differences(classes, "transport", **options)
        )
        for options in ({}, {"buckets": metrics.BUCKETS})
    )
    assert with_classes == without
    assert "% of the increase is pacing" in without[0]


def test_a_comparison_with_breakdowns_has_tables_and_bars_for_classes(
    classes: list[sojourn.Run], tmp_path: Path
) -> None:
    table, _ = comparison.compare(TWO_CLASSES, {"transport": ["dctcp", "timely"]}, account=True)
    parts = comparison.parts_of(table, comparison.FCT_PARTS)
    means = accounts.by_size(classes)
    assert parts.select(means.columns).equals(means)
    titles = [
        rows.title
        for rows in breakdown_tables(parts, ["transport"], intervals.format_duration, "parts, ")
    ]
    assert titles == [
        "parts, size: all",
        "parts, size: ≤ 100 KB",
        "parts, size: 100 KB to 10 MB",
        "parts, class: backup",
        "parts, class: query",
    ]
    comparison_plot.draw(table, tmp_path / "both")
    drawn = (tmp_path / "both.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {name} -->" in drawn for name in ("100 KB to 10 MB", "backup", "query"))
    assert "comparison.csv has all" not in drawn


@pytest.mark.parametrize(
    ("most", "bars", "note"),
    [
        (5, 4, "2 of 4 sizes and classes; comparison.csv has all"),
        (1, 1, "1 of 2 combinations, 1 of 4 sizes and classes; comparison.csv has all"),
    ],
)
def test_bars_that_are_not_drawn_are_stated_in_the_picture(
    most: int, bars: int, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _ = comparison.compare(TWO_CLASSES, {"transport": ["dctcp", "timely"]}, account=True)
    monkeypatch.setattr(comparison_plot, "MAX_BARS", most)
    comparison_plot.draw(table, tmp_path / "some")
    drawn = (tmp_path / "some.svg").read_text(encoding="utf-8")
    assert f"<!-- {note} -->" in drawn
    # The legend of the other panels names each scheme once.
    assert drawn.count("<!-- dctcp -->") + drawn.count("<!-- timely -->") - 2 == bars


def test_long_names_of_schemes_do_not_overlap_beside_their_bars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures: list[Any] = []
    monkeypatch.setattr(plot, "save", lambda picture, *_: pictures.append(picture))
    names = [f"a scheme with lossless flow control, priorities, and a gain of {n}" for n in "123"]
    base = {**TWO_CLASSES, "schemes": {name: {} for name in [*names, "short"]}}
    table, _ = comparison.compare(base, account=True)
    comparison_plot.draw(table, tmp_path / "long")
    canvas: Any = FigureCanvasAgg(pictures[0])
    canvas.draw()
    boxes = [label.get_window_extent() for label in pictures[0].axes[-1].get_yticklabels()]
    assert len(boxes) == 4 * (len(names) + 1)
    assert not any(first.overlaps(second) for first, second in itertools.pairwise(boxes))


def largest_part(parts: dict[str, float], **ratio: float) -> str:
    """Return the words of a comparison about a difference with these parts."""
    labels = {"transport": "swift", "size": "≤ 100 KB"}
    rows = [{**labels, "metric": name, "value": value} for name, value in parts.items()]
    row = {**labels, "class": "all", "seeds": 3, "value": 0.7, "low": 0.6, "high": 0.8} | ratio
    return paired_tables.Parts(["transport"], pl.DataFrame(rows)).largest(row)


def test_the_sentence_of_a_difference_names_its_largest_part() -> None:
    saved = {TOTAL: -10.0, accounts.OTHERS: -8.0, accounts.PACE: -2.0}
    assert largest_part(saved) == ", and 80 % of the reduction is cross-traffic queueing"
    lost = {TOTAL: 10.0, accounts.OTHERS: -2.0, accounts.PACE: 12.0}
    expected = ", and 120 % of the increase is pacing (offset by 20 % cross-traffic queueing)"
    assert largest_part(lost) == expected
    times = ": pacing +12 s, cross-traffic queueing \N{MINUS SIGN}2 s"
    assert largest_part(lost, low=math.nan, high=math.nan) == times, "no interval"
    most = {TOTAL: 1.0, accounts.OTHERS: -6.0, accounts.PACE: 7.0}
    changes = ": pacing +7 s, cross-traffic queueing \N{MINUS SIGN}6 s"
    assert largest_part(most) == changes
    timers = {TOTAL: -1.0, accounts.TIME_OUTS: 6.0, accounts.CREDIT: -7.0}
    # Names of parts may be plural, so that no verb follows them.
    changes = ": credit \N{MINUS SIGN}7 s, loss timers +6 s"
    assert largest_part(timers, low=math.nan, high=math.nan) == changes
    assert not largest_part(saved, low=0.6, high=1.1), "not a significant difference"
    assert not largest_part(saved, value=0.991, low=0.985, high=0.997), "a small difference"


def test_the_sentence_names_the_largest_part_of_the_excess(breakdowns: list[sojourn.Run]) -> None:
    lines = tables.sentences(breakdowns, ["transport"])
    assert len(lines) == 4, "two schemes, two sizes"
    mean = metrics.measure(breakdowns, slowdown=metrics.slowdown("mean", metrics.BUCKETS[1]))
    dctcp = metrics.at(metrics.across_seeds(mean), transport="dctcp", metric="slowdown")
    assert lines[0].startswith(f"dctcp: flows up to 100 KB have a mean slowdown of {dctcp:#.3g}; ")
    assert "of the excess is cross-traffic queueing (" in lines[0]
    assert lines[0].endswith("% of it in switches of the forward path")


ALONE = """
transport = "dctcp"
topology = { kind = "dumbbell", senders = 1, receivers = 1 }
workload = { kind = "flows", flows = [{ source = 0, target = 1, size = "SIZE" }] }
"""
"""Scenario of one flow in an idle network."""


@pytest.mark.parametrize("size", ["1 MB", "20 KB"])
def test_a_flow_near_its_ideal_fct_has_no_cause(
    size: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("alone.toml").write_text(ALONE.replace("SIZE", size), encoding="utf-8")
    assert cli.invoke(["explain", "alone.toml"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"have a mean slowdown of 1\.0\d, near the ideal FCT\n", printed)
    assert "of the excess" not in printed
    assert printed.count("near the ideal FCT") == 2, "the sentence, and the row of the flow"


def test_explain_states_how_many_flows_did_not_finish(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = "{ source = 0, target = 1, size = '20 KB' }, { source = 0, target = 1, size = '9 GB' }"
    text = re.sub(r"\[\{.*\}\]", f"[{two}]", ALONE)
    Path("cut.toml").write_text(f'time_limit = "1 ms"{text}', encoding="utf-8")
    vary = ["explain", "cut.toml", "--vary", "transport=dctcp,tcp", "--seeds", "2"]
    assert cli.invoke(vary) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "without flows that did not finish: dctcp 2 of 4, tcp 2 of 4" in lines
    assert "tcp: flows above 10 MB: 0 of 2 finished" in lines
    assert not any("finished flows only" in line for line in lines)
    Path("cut.toml").write_text(text.replace("9 GB", "99 KB"), encoding="utf-8")
    cut = sojourn.read("cut.toml") | {"account": True}
    runs = sweep(sojourn.expand(cut, {"time_limit": ["50 us", "1 ms"]}))
    short, full = tables.sentences(runs, ["time_limit"])
    expected = (
        r"50 us: flows up to 100 KB have a mean slowdown of \S+ \(finished flows only: 1 of 2\)"
    )
    assert re.match(expected, short)
    assert full.startswith("1 ms: flows up to 100 KB have a mean slowdown of ")
    assert "finished" not in full


@pytest.mark.parametrize(
    ("seeds", "note"),
    [
        ("1", "times: means of one run each, without an interval"),
        ("2", "times: means over seeds; too few seeds for an interval (least: 3)"),
        ("3", "times: means over seeds ± 95 % confidence"),
    ],
)
def test_tables_state_what_their_intervals_are(
    seeds: str, note: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("alone.toml").write_text(ALONE.replace("SIZE", "20 KB"), encoding="utf-8")
    assert cli.invoke(["explain", "alone.toml", "--tables", "--seeds", seeds]) == 0
    assert note in capsys.readouterr().out.splitlines()


def test_durations_are_printed_with_half_widths() -> None:
    row = {"value": 1.5e-3, "high": 1.75e-3}
    assert intervals.format_duration(row) == "1.5 ms ± 250 µs"
    assert intervals.format_duration(row | {"high": float("nan")}) == "1.5 ms"
    assert (
        intervals.format_duration({"value": 0.0, "high": 0.0})
        == intervals.format_duration({"value": None})
        == "-"
    )


def test_parts_below_one_per_cent_in_all_rows_are_omitted() -> None:
    def row(size: str, metric: str, value: float) -> dict[str, object]:
        return {"size": size, "metric": metric, "value": value, "low": 0.0, "high": 0.0}

    large = [row("large", TOTAL, 1000.0), row("large", accounts.PACE, 1000.0)]
    small = [row("small", TOTAL, 1.0), row("small", accounts.PACE, 0.5)]
    small += [row("small", accounts.TURN, 0.5), row("small", accounts.OTHERS, 0.009)]
    assert significant_metrics(pl.DataFrame([*large, *small])) == [
        *(TOTAL, accounts.PACE, accounts.TURN),
    ]


def test_the_legend_names_the_parts_that_tables_omit() -> None:
    def row(metric: str, value: float) -> dict[str, object]:
        return {"size": "all", "metric": metric, "value": value, "low": 0.0, "high": 0.0}

    table = pl.DataFrame([row(TOTAL, 1.0), row(accounts.PACE, 0.995), row(accounts.TURN, 0.005)])
    *_, last = legend(table)
    assert last == "omitted, below 1 % everywhere: NIC wait"
    assert len(legend(table.filter(pl.col("metric") != accounts.TURN))) == 1


def test_a_comparison_with_breakdowns_is_printed_written_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    given = ["compare", "one.toml", "--vary", "transport=dctcp,timely", "--out", "out"]
    assert cli.invoke([*given, "--account", "--against", "timely"]) == 0
    printed = capsys.readouterr().out
    assert "FCT breakdown, size: all" in printed
    assert "difference from timely, size: all" in printed
    table = pl.read_csv("out/comparison.csv")
    assert {f"FCT: {name}" for name in PARTS} < set(table["metric"])
    assert set(pl.read_csv("out/differences.csv")["transport"]) == {"dctcp"}
    assert "cross-traffic queueing" in Path("out/comparison.svg").read_text(encoding="utf-8")
    assert cli.invoke(given) == 0
    assert "FCT breakdown" not in capsys.readouterr().out


def test_explain_writes_tables_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    assert cli.invoke(["explain", "one.toml"]) == 0
    assert "flows with the largest excess" in capsys.readouterr().out
    vary = ["explain", "one.toml", "--vary", "transport=dctcp,tcp", "--out", "both"]
    assert cli.invoke(vary) == 0
    assert "difference from dctcp, on the same flows" in capsys.readouterr().out
    names = {file.name for file in Path("both").iterdir()}
    assert names == {"account.csv", "account.svg", "account.png", "differences.csv"}
    assert cli.invoke(["explain", "one.toml", "--vary", "transport=dctcp", "--out", "alone"]) == 0
    assert "difference from" not in capsys.readouterr().out
    assert not Path("alone/differences.csv").exists()
    assert cli.invoke(["explain", "one.toml", "--flow", "3"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "window-limited RTTs" in printed
    assert "last packet" in printed
    assert "written to results/explain/one: chain.csv, chain.svg, chain.png" in printed
    several = ["explain", "one.toml", "--flow", "3", "--vary", "transport=dctcp,tcp"]
    assert cli.invoke([*several, "--out", "each"]) == 0
    chains = pl.read_csv(Path("each") / "chain.csv")
    assert set(chains["chain"]) == {"dctcp: flow 3", "tcp: flow 3"}
    assert cli.invoke([*several, "--seeds", "2"]) == 2
    assert "--seeds: must be 1 with --flow, not 2" in capsys.readouterr().err
    Path("seven.toml").write_text("seed = 7\n" + Path("one.toml").read_text())
    assert cli.invoke(["explain", "seven.toml", "--flow", "3"]) == 0
    assert "flow 3, seed 7: FCT" in capsys.readouterr().out
    assert cli.invoke(["explain", "one.toml", "--flow", "999"]) == 2
    assert "--flow 999: the run has flows 0 to" in capsys.readouterr().err


def test_the_breakdown_and_the_chain_of_a_flow_keep_each_others_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")

    def explain(*arguments: str) -> set[str]:
        assert cli.invoke(["explain", "one.toml", "--out", "out", *arguments]) == 0
        return {file.name for file in Path("out").iterdir()}

    breakdown = {f"account.{suffix}" for suffix in ("csv", "svg", "png")}
    chain = {f"chain.{suffix}" for suffix in ("csv", "svg", "png")}
    schemes = ["--vary", "transport=dctcp,tcp"]
    every = breakdown | chain | {"differences.csv", "unloaded.csv"}
    assert explain(*schemes, "--alone") == every - chain
    before = {name: (Path("out") / name).read_bytes() for name in every - chain}
    assert explain("--flow", "3") == every
    assert {name: (Path("out") / name).read_bytes() for name in every - chain} == before
    # Stale files of the same question are removed: those of other schemes and of flows alone.
    assert explain() == breakdown | chain
    assert explain("--flow", "3", "--alone") == breakdown | chain | {"unloaded.csv"}


def test_a_chain_without_a_breakdown_has_the_table_of_flows_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    command = ["explain", "one.toml", "--out", "out", "--flow", "3"]
    assert cli.invoke([*command, "--alone"]) == 0
    assert Path("out/unloaded.csv").exists()
    assert cli.invoke(command) == 0
    assert not Path("out/unloaded.csv").exists()


def test_explain_compares_ideals_and_transports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    vary = ["--vary", "model=packet,processor_sharing,alone", "--out", "out"]
    assert cli.invoke(["explain", "one.toml", *vary]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "100 % of the excess is sharing (waits while the ideal serves other flows)" in printed
    assert "alone: flows up to 100 KB have a mean slowdown of 1.00" in printed
    assert cli.invoke(["compare", "one.toml", *vary, "--account"]) == 0
    assert "sharing +" in capsys.readouterr().out
    text = explain_example().replace('transport = "dctcp"', 'model = "srpt"')
    Path("ideal.toml").write_text(text, encoding="utf-8")
    assert cli.invoke(["explain", "ideal.toml"]) == 0
    assert "flows with the largest excess" in capsys.readouterr().out
    assert cli.invoke(["explain", "ideal.toml", "--flow", "3"]) == 2
    assert "--flow 3: an ideal" in capsys.readouterr().err


def test_explain_without_finished_flows_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    network = explain_example().partition("[workload]")[0]
    flows = '[workload]\nkind = "permutation"\nsize = "10 MB"\n'
    Path("short.toml").write_text(f'time_limit = "1 ms"{network}{flows}', encoding="utf-8")
    assert cli.invoke(["explain", "short.toml"]) == 2
    expected = (
        "sojourn: short.toml: no flow has finished, so that no completion time can be broken down\n"
    )
    assert capsys.readouterr().err == expected
    compared = ["compare", "short.toml", "--vary", "transport=dctcp,timely", "--account"]
    assert cli.invoke(compared) == 0
    assert "FCT breakdown" not in capsys.readouterr().out
    # The same holds before any flow has started.
    Path("none.toml").write_text(f'time_limit = "1 ps"{explain_example()}', encoding="utf-8")
    assert cli.invoke(["compare", "none.toml", "--vary", "transport=dctcp,tcp"]) == 0


def test_explain_draws_the_schemes_of_which_flows_have_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flows = '[{source = "sender0", target = "receiver0", size = "20 KB"}]'
    Path("cut.toml").write_text(
        f'transport = "tcp"\nworkload = {{kind = "flows", flows = {flows}}}\n'
        'topology = {kind = "dumbbell", senders = 1, receivers = 1}\n'
    )
    assert cli.invoke(["explain", "cut.toml", "--vary", "time_limit=30 us,1 ms"]) == 0
    assert Path("results/explain/cut/account.svg").is_file()


def test_explain_prints_and_draws_parts_of_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    network = explain_example().partition("[workload]")[0]
    calls = """[workload]
kind = "rpc"
request = { kind = "fixed", size = "64 KB" }
response = { kind = "fixed", size = "1 KB" }
service = "2 ms"
pattern = { outstanding = 1, calls = 20 }
"""
    Path("calls.toml").write_text(network + calls, encoding="utf-8")
    assert cli.invoke(["explain", "calls.toml", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert "calls: rpc" in printed
    assert "% the server" in printed
    assert "calls.csv, calls.svg, calls.png" in printed
    assert "server 2 ms" in Path("out/calls.svg").read_text(encoding="utf-8")
    assert Path("out/calls.png").exists()
    server = pl.read_csv("out/calls.csv").filter(leg="server", metric=TOTAL)
    assert server["value"].to_list() == pytest.approx([2e-3])


def explain_example() -> str:
    return """
transport = "dctcp"
[topology]
kind = "dumbbell"
senders = 2
receivers = 2
rate = "1 Gbps"
delay = "1 us"
[workload]
kind = "poisson"
load = 0.5
flows = 50
sizes = { kind = "uniform", min = "1 B", max = "200 KB" }
"""


def test_explain_begins_with_its_conclusion_and_names_candidates_for_chains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    vary = ["--vary", "transport=dctcp,tcp"]
    assert cli.invoke(["explain", "one.toml", *vary, "--seeds", "2"]) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0].startswith("dctcp: flows up to 100 KB have a mean slowdown of ")
    assert lines.count("mean FCT by cause") == 1
    assert "cross-traffic queueing: queueing in ports behind packets of other flows" in lines
    title = "flows with the largest excess over the ideal FCT (seed 1)"
    start = lines.index(title)
    assert lines[start + 2].split() == [
        "transport",
        "flow",
        "class",
        "size",
        "FCT",
        "slowdown",
        "main",
        "cause",
    ]
    rows = [line.split() for line in lines[start + 4 : start + 14]]
    assert [row[0] for row in rows] == ["dctcp"] * 5 + ["tcp"] * 5
    base = sojourn.read("one.toml") | {"account": True}
    flows = accounts.divided(sojourn.run(base | {"seed": 1}))
    slowest = flows.sort(pl.col("fct_s") - pl.col("ideal_fct_s"), descending=True).head(5)
    assert [int(row[1]) for row in rows[:5]] == slowest["flow"].to_list()
    assert cli.invoke(["explain", "one.toml", *vary, "--flow", rows[0][1]]) == 0
    capsys.readouterr()
    assert cli.invoke(["explain", "one.toml", *vary, "--tables"]) == 0
    assert "size: ≤ 100 KB" in capsys.readouterr().out
