"""Tests of paired ratios on the same flows, their intervals, and unfinished flows."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import signal

import sojourn
from conftest import SCENARIO, make_result
from sojourn import Run, ScenarioError, accounts, cli, metrics, pairs
from sojourn.compare import paired_tables

WHOLE = (metrics.ALL,)


def runs_of(**schemes: Sequence[Sequence[float | None]]) -> list[Run]:
    """Create runs from the completion times of each scheme and seed."""
    made = []
    for scheme, seeds in schemes.items():
        for seed, fcts in enumerate(seeds):
            result = make_result(fcts, simulated_s=10.0)
            # The source makes runs of equal times with other seeds other runs.
            ends = pl.lit(seed).alias("source"), pl.lit(100).alias("target")
            flows = result.flows.with_columns(*ends)
            same = sojourn.Result(flows, result.samples, result.summary)
            made.append(Run({"scheme": scheme, "seed": seed}, same))
    return made


def mean_row(table: pl.DataFrame, metric: str = "FCT mean") -> dict[str, float]:
    return table.filter(pl.col("metric") == metric).row(0, named=True)


def test_identical_schemes_have_a_ratio_of_exactly_one_without_an_interval() -> None:
    values = np.random.default_rng(1).exponential(1.0, (4, 100)).tolist()
    for seeds in (values, values[:1]):
        table = pairs.ratios(runs_of(one=seeds, other=seeds), buckets=WHOLE)
        rows = table.filter(pl.col("low").is_not_nan())
        # A percentile has no interval from one seed.
        assert rows.height == (4 if len(seeds) > 1 else 3)
        assert rows["value"].to_list() == [1.0] * rows.height
        assert (rows["low"] == rows["high"]).all()
        assert (rows["high"] == 1.0).all()


def test_twice_the_link_rate_halves_ideal_fcts() -> None:
    # Without delay the ideal FCT is bytes over rate, so its ratio is that of the rates.
    trace = "start_s,source,target,size_bytes\n" + "".join(
        f"{number * 0.1},0,1,{1000 * (number + 1)}\n" for number in range(40)
    )
    base = {
        "topology": {"kind": "dumbbell", "delay": "0 s"},
        "workload": {"kind": "trace", "file": {"name": "lone.csv", "text": trace}},
        "model": "alone",
        "transport": "dctcp",
    }
    made = [
        Run({"rate": rate, "seed": 1}, sojourn.run(sojourn.override(base, {"topology.rate": rate})))
        for rate in ("10 Gbps", "20 Gbps")
    ]
    table = pairs.ratios(made, by="rate", buckets=WHOLE)
    assert table["same_flows"].all()
    assert table["pairs"].to_list() == [40] * 4
    for metric in ("FCT mean", "flow by flow"):
        assert mean_row(table, metric)["value"] == pytest.approx(0.5, rel=1e-3)
    row = mean_row(table)
    assert row["low"] == pytest.approx(row["high"], rel=1e-2)


def test_swapped_schemes_have_the_inverse_ratio_and_interval() -> None:
    values = np.random.default_rng(2).exponential(1.0, (2, 5, 100)).tolist()
    made = runs_of(one=values[0], other=values[1])
    table = pairs.ratios(made, buckets=WHOLE)
    swapped = pairs.ratios(made, against="other", buckets=WHOLE)
    assert (1 / swapped["value"]).to_list() == pytest.approx(table["value"].to_list())
    assert (1 / swapped["high"]).to_list() == pytest.approx(table["low"].to_list())


def test_paired_intervals_are_narrower_than_intervals_of_each_scheme() -> None:
    # Seeds scale both schemes by about e; the ratio is 0.9.
    random = np.random.default_rng(3)
    baseline = random.exponential(1.0, (6, 50)) * random.lognormal(0, 1, (6, 1))
    scheme = 0.9 * baseline * random.lognormal(0, 0.02, (6, 50))
    row = mean_row(pairs.ratios(runs_of(b=baseline.tolist(), a=scheme.tolist()), buckets=WHOLE))
    assert row["low"] < 0.9 < row["high"] < 1
    _, low, high = metrics.t_interval(baseline.mean(axis=1))
    assert low < scheme.mean() < high


def test_intervals_over_seeds_have_their_nominal_coverage() -> None:
    random = np.random.default_rng(4)
    scheme, baseline = random.lognormal(0, 0.5, (2, 2000, 5, 1)) * random.exponential(
        1.0, (2, 2000, 5, 40)
    )
    logs = np.log(scheme.mean(axis=2) / baseline.mean(axis=2))
    bounds = [pairs.interval(row)[1:] for row in logs]
    assert np.mean([low <= 1 <= high for low, high in bounds]) == pytest.approx(0.95, abs=0.015)


def test_intervals_within_a_run_have_their_coverage_with_correlated_flows() -> None:
    # Times are products of congestion, correlated over twenty flows, and a term of each flow.
    random, covered = np.random.default_rng(5), []
    truth = 0.8
    for _ in range(300):
        steps = random.normal(0, 0.2, (3, 3000))
        waves = signal.lfilter([1.0], [1.0, -0.9], steps)
        common = np.exp(waves[0]) * random.pareto(2.5, 3000)
        scheme, baseline = truth * common * np.exp(waves[1]), common * np.exp(waves[2])
        _, low, high = pairs.interval_within(scheme, baseline)
        covered.append(low <= truth <= high)
    assert np.mean(covered) > 0.9


def test_flows_that_finish_under_one_scheme_only_are_counted_with_a_warning() -> None:
    baseline = [[1.0] * 20 + [None, None, 1.0]] * 3
    scheme = [[0.5] * 20 + [None, 0.5, None]] * 3
    table = pairs.ratios(runs_of(dctcp=baseline, swift=scheme), buckets=WHOLE)
    row = mean_row(table)
    assert row["pairs"] == 60
    counts = [row[name] for name in ("unfinished", "unfinished_against", "unfinished_both")]
    assert counts == [3, 3, 3]
    assert row["value"] == pytest.approx(0.5)
    # Unfinished flows have waited for almost the ten seconds of the run.
    waiting = [10 - 0.001 * number for number in (20, 21, 22)]
    expected = (10 + 0.5 + waiting[0] + waiting[2]) / (21 + waiting[0] + waiting[1])
    assert row["with_unfinished"] == pytest.approx(expected)
    (warning,) = paired_tables.warnings(table, "scheme")
    assert warning.startswith("warning: 6 of 69 flows finished under only one of swift and dctcp")


def test_the_warning_about_flows_missing_under_one_scheme_gives_a_bound() -> None:
    done, waiting = [[1.0] * 200] * 2, [[1.0] * 199 + [None]] * 2
    for scheme, baseline, bound in ((waiting, done, "at least"), (done, waiting, "at most")):
        table = pairs.ratios(runs_of(one=baseline, other=scheme), buckets=WHOLE)
        assert mean_row(table)["value"] == 1.0
        assert f"the ratio is {bound}" in paired_tables.warnings(table, "scheme")[0]
        scheme_name = "other" if bound == "at least" else "one"
        (sentence,) = paired_tables.sentences(table, "scheme")
        without = f", without 2 of 400 flows, unfinished under {scheme_name} ({bound} "
        assert without in sentence
    both = pairs.ratios(runs_of(one=waiting, other=waiting), buckets=WHOLE)
    assert mean_row(both)["unfinished_both"] == 2
    assert paired_tables.warnings(both, "scheme") == []
    assert "unfinished" not in paired_tables.sentences(both, "scheme")[0]


def test_a_ratio_without_many_flows_unfinished_under_both_schemes_is_marked() -> None:
    waiting = [[1.0] * 20 + [None] * 5] * 3
    table = pairs.ratios(runs_of(one=waiting, other=waiting), buckets=WHOLE)
    (sentence,) = paired_tables.sentences(table, "scheme")
    assert ", without 15 of 75 flows, unfinished under other or one (" in sentence
    assert paired_tables.marked(mean_row(table)).endswith(" *")
    assert "*: without unfinished flows" in "".join(paired_tables.notes(table, "scheme"))
    finished = pairs.ratios(runs_of(one=[[1.0]], other=[[2.0]]), buckets=WHOLE)
    assert paired_tables.marked(mean_row(finished)) == "2.00"
    assert len(paired_tables.notes(finished, "scheme")) == 1


def test_waiting_times_count_in_seeds_without_a_flow_that_finished_under_both() -> None:
    made = runs_of(one=[[1.0, 1.0], [1.0, 1.0], [1.0]], other=[[2.0, None], [None, None], [None]])
    row = mean_row(pairs.ratios(made))
    # Unfinished flows have waited for almost the ten seconds of the run.
    ratios = [(2 + 9.999) / 2, (10 + 9.999) / 2, 10]
    assert row["with_unfinished"] == pytest.approx(math.prod(ratios) ** (1 / 3))
    assert (row["value"], row["seeds"]) == (2.0, 1)


def test_terminated_flows_are_not_unfinished_and_have_no_bound() -> None:
    one, other = runs_of(one=[[1.0] * 20], other=[[2.0] * 14 + [None] * 6])
    gave_up = pl.when(pl.col("flow") >= 16).then(pl.lit("terminated")).otherwise("outcome")
    flows = other.result.flows.with_columns(gave_up.alias("outcome"))
    result = sojourn.Result(flows, other.result.samples, other.result.summary)
    table = pairs.ratios([one, Run(other.labels, result)], buckets=WHOLE)
    assert [mean_row(table)[name] for name in ("unfinished", "terminated")] == [2, 4]
    (sentence,) = paired_tables.sentences(table, "scheme")
    assert ", without 2 of 20 flows, unfinished under other (at least " in sentence
    assert sentence.endswith(" with their waiting times), and 4 terminated")
    flows = flows.filter(pl.col("outcome") != "unfinished")
    result = sojourn.Result(flows, other.result.samples, other.result.summary)
    table = pairs.ratios([one, Run(other.labels, result)], buckets=WHOLE)
    (sentence,) = paired_tables.sentences(table, "scheme")
    assert sentence.endswith(", without 4 of 18 flows, terminated")
    (warning,) = paired_tables.warnings(table, "scheme")
    assert warning == "warning: 4 of 18 flows were terminated under other or one and are excluded"
    assert "*: without terminated flows" in "".join(paired_tables.notes(table, "scheme"))
    (printed,) = paired_tables.tables(table)
    assert printed.rows[0][2:4] == ("-", "4")


def test_without_a_flow_that_finished_under_both_schemes_there_is_no_ratio() -> None:
    table = pairs.ratios(runs_of(one=[[1.0, None]], other=[[None, 1.0]]))
    (sentence,) = paired_tables.sentences(table, "scheme")
    assert sentence == "other's flows up to 100 KB have no ratio: none finished under both schemes"
    (warning,) = paired_tables.warnings(table, "scheme")
    assert warning.startswith("warning: 2 of 2 flows finished under only one of other and one")
    assert warning.endswith("no flow finished under both; worst of 2")


def test_flows_that_no_scheme_finishes_have_no_ratio_and_are_stated() -> None:
    table = pairs.ratios(runs_of(one=[[None, None]], other=[[None, None]]))
    (sentence,) = paired_tables.sentences(table, "scheme")
    assert sentence == "other's flows up to 100 KB have no ratio: none finished under both schemes"
    assert mean_row(table)["unfinished_both"] == 2


def test_every_transport_has_the_same_flows() -> None:
    base = sojourn.override(SCENARIO, {"workload.flows": 30, "time_limit": "20 ms"})
    transports = ["dctcp", "timely", "tcp", "pcp", "pfabric", "xcp"]
    runs = [
        Run({**labels, "seed": 1}, sojourn.run(scenario))
        for labels, scenario in sojourn.expand(base, {"transport": transports})
    ]
    table = pairs.ratios(runs, by="transport", buckets=WHOLE)
    assert set(table["transport"]) == {"timely", "tcp", "pcp", "pfabric", "xcp"}
    assert table["same_flows"].all()


def test_calls_are_paired_by_seed_only_with_a_note() -> None:
    base = sojourn.read(Path(__file__).parents[2] / "examples" / "rpc_closed_loop.toml")
    labelled = [
        ({"transport": kind}, sojourn.override(base, {"transport": kind}))
        for kind in ("dctcp", "timely")
    ]
    runs = sojourn.sweep(sojourn.over_seeds(labelled, 2))
    table = pairs.ratios(runs, by="transport", buckets=WHOLE)
    assert not table["same_flows"].any()
    assert math.isnan(mean_row(table, "flow by flow")["value"])
    means = [metrics.fct("mean")(run.result).value for run in runs]
    expected = math.sqrt(means[2] / means[0] * means[3] / means[1])
    assert mean_row(table)["value"] == pytest.approx(expected)
    assert "paired by seed, not flow by flow" in paired_tables.notes(table, "transport")[1]
    one_seed = pairs.ratios(
        [run for run in runs if run.labels["seed"] == runs[0].labels["seed"]],
        by="transport",
        buckets=WHOLE,
    )
    assert one_seed["low"].is_nan().all()


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("transport=dctcp,timely", "expected one of dctcp, timely; did you mean `dctcp`?"),
        ("transport=dctpc", "no other scheme to compare; vary more values"),
    ],
)
def test_an_unknown_baseline_is_an_error_before_any_run(
    scenario_file: Path, cache: Path, vary: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compare", str(scenario_file), "--vary", vary, "--against", "dctpc"]
    assert cli.invoke(arguments) == 2
    assert capsys.readouterr().err == f"sojourn: {scenario_file}: --against dctpc: {message}\n"
    assert not cache.exists()
    with pytest.raises(ScenarioError, match="--against nonesuch"):
        pairs.ratios(runs_of(a=[[1.0]], b=[[1.0]]), against="nonesuch")


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        ((0.0421, 0.034, 0.052), "0.042 [0.034, 0.052]"),
        ((0.33, 0.26, 0.42), "0.33 [0.26, 0.42]"),
        ((7.04, 5.2, 9.3), "7.0 [5.2, 9.3]"),
        ((1.007, 1.0065, 1.0075), "1.007 [1.006, 1.008]"),
        ((0.0421, math.nan, math.nan), "0.042"),
    ],
)
def test_a_ratio_has_two_significant_digits(ratio: tuple[float, ...], text: str) -> None:
    row = dict(zip(("value", "low", "high"), ratio, strict=True))
    assert paired_tables.with_interval(row) == text


def test_a_comparison_prints_and_writes_ratios(
    scenario_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    parts = 'transport=dctcp,timely,{kind="dctcp",gain=0.5}'
    arguments = ["compare", str(scenario_file), "--vary", parts, "--vary", "load=0.2,0.5"]
    arguments += ["--seeds", "3", "--against", "timely", "--tables", "--out", str(out)]
    assert cli.invoke(arguments) == 0
    printed = capsys.readouterr().out
    # All flows are small, so the table of small flows is omitted.
    assert re.findall(r"ratio to timely, .*\b", printed) == ["ratio to timely, size: all"]
    table = pl.read_csv(out / "pairs.csv")
    assert tuple(table.columns) == ("transport", "load", *pairs.COLUMNS)
    row = mean_row(table.filter(size="≤ 100 KB", load=0.2))
    numbers = "{value:.{0}f} of timely's time ({low:.{0}f} to {high:.{0}f}"
    sentences = [numbers.format(digits, **row) for digits in range(1, 7)]
    starts = "load=0.2: dctcp's flows up to 100 KB take "
    assert any(starts + sentence in printed for sentence in sentences)
    for name in ("pairs.svg", "pairs.png"):
        assert (out / name).stat().st_size > 1000


def test_a_ratio_of_percentiles_needs_flows_beyond_them() -> None:
    # 99 flows have no p99, and two seeds no interval.
    values = np.random.default_rng(1).exponential(1.0, (2, 99)).tolist()
    table = pairs.ratios(runs_of(one=values, other=values), buckets=WHOLE)
    assert math.isnan(mean_row(table, "FCT p99")["value"])
    assert mean_row(table)["value"] == 1.0
    assert math.isnan(mean_row(table)["low"])
    note = "two seeds: too few for an interval (least: 3)"
    assert note in paired_tables.notes(table, "scheme")[0]


@pytest.mark.parametrize(
    ("vary", "values", "one_sided"),
    [
        ("workload.flows", (100, 300), 200),
        ("time_limit", ("100 ms", "1 s"), None),
        ("warm_up", ("0 s", "100 ms"), None),
    ],
)
def test_flows_of_one_run_only_are_not_unfinished(
    vary: str, values: tuple[object, object], one_sided: int | None
) -> None:
    base = sojourn.override(SCENARIO, {"workload.flows": 300, "topology.rate": "100 Mbps"})
    base |= {"model": "processor_sharing"}
    made = [
        Run({vary: str(value), "seed": 1}, sojourn.run(sojourn.override(base, {vary: value})))
        for value in values
    ]
    table = pairs.ratios(made, by=vary, buckets=WHOLE)
    row = mean_row(table)
    sizes = [metrics.judged(run.result).height for run in made]
    if one_sided is None:
        one_sided = abs(sizes[0] - sizes[1])
    assert one_sided > 10
    assert row["one_sided"] == one_sided
    truly = sum((metrics.judged(run.result)["outcome"] == "unfinished").sum() for run in made)
    names = ("unfinished", "unfinished_against", "unfinished_both")
    assert sum(row[name] for name in names) == truly < 10
    assert row["pairs"] == min(sizes) - truly
    (sentence,) = paired_tables.sentences(table, vary)
    assert f"of {one_sided + min(sizes):,} flows" not in sentence
    notes = "\n".join(paired_tables.notes(table, vary))
    assert f"up to {one_sided} flows are measured in only one of two runs" in notes


def test_measured_flows_without_common_numbers_are_paired_by_seed() -> None:
    # The warm-up of the high load starts more flows than the whole run of the low one.
    sizes = {"kind": "fixed", "size": "20 KB"}
    base = SCENARIO | {
        "warm_up": "10 ms",
        "workload": {"kind": "poisson", "load": 0.05, "stop": "20 ms", "sizes": sizes},
        "account": True,
    }
    low, high = (sojourn.override(base, {"workload.load": load}) for load in (0.05, 0.8))
    made = [
        Run({"load": load, "seed": 1}, sojourn.run(scenario))
        for load, scenario in ((0.05, low), (0.8, high))
    ]
    flows = [metrics.judged(run.result) for run in made]
    assert max(flows[0]["flow"]) < min(flows[1]["flow"])
    means = [side["fct_s"].to_numpy().mean() for side in flows]
    row = mean_row(pairs.ratios(made, by="load", buckets=WHOLE))
    assert row["value"] == pytest.approx(means[1] / means[0])
    assert (row["same_flows"], row["one_sided"]) == (False, 0)
    difference = accounts.differences(made, "load").filter(size="all", metric="all")
    assert difference["value"].item() == pytest.approx(means[1] - means[0])
    assert not difference["same_flows"].item()
