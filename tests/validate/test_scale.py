"""Comparison of folded networks with whole ones."""

import dataclasses

import polars as pl
import pytest

import sojourn
from sojourn import ScenarioError
from sojourn.analysis.claims import Comparison
from sojourn.analysis.convergence import p99s_within_run, within_run
from sojourn.runs.result_tables import flow_table
from sojourn.scenario.encoding import trace
from sojourn.validate import scale

CASE = scale.Case(
    "small",
    {
        "topology": {"kind": "leaf_spine", "leaves": 8},
        "workload": {
            **{"kind": "poisson", "load": 0.3, "flows": 4000},
            "sizes": {"kind": "fixed", "size": "20 KB"},
        },
        "transport": "dctcp",
    },
    {"kind": "sample", "hosts": 64, "samples": 2},
)


def test_a_fold_is_near_the_whole_and_another_load_is_not() -> None:
    seeds = [CASE.scenario | {"seed": seed} for seed in (1, 2)]
    truth = pl.DataFrame(scale.truth_of(CASE, sojourn.run_many(seeds)))
    answer = sojourn.run(CASE.scenario | {"fidelity": CASE.fidelity})
    rows = list(scale.compare(CASE, truth, [answer]))
    assert {row.size for row in rows} == {"all", "10 KB to 100 KB"}
    # The p99 of 4000 flows differs by a tenth between seeds, and two seeds have wide intervals.
    assert abs(rows[0].error) < scale.BOUNDS["mean"]
    assert rows[0].verdict != "not held"
    busier = sojourn.override(CASE.scenario, {"workload": {"load": 0.6}})
    answer = sojourn.run(busier | {"fidelity": CASE.fidelity})
    rows = list(scale.compare(CASE, truth, [answer]))
    assert rows[0].error > 2 * scale.BOUNDS["mean"]


def answer_with(slowdowns: list[float]) -> sojourn.Result:
    """Return the answer of samples whose flows all have the slowdown of their sample."""
    flows = [
        {"flow": flow, "sample": sample, "slowdown": slowdown, "start_s": float(flow)}
        for sample, slowdown in enumerate(slowdowns)
        for flow in range(1000)
    ]
    table = pl.DataFrame(flows).with_columns(
        size_bytes=20_000, outcome=pl.lit("finished"), ideal_fct_s=1.0
    )
    return sojourn.Result(table, pl.DataFrame(), {"simulated_s": 1e4, "scenario": {}})


def whole_with(means: list[float]) -> pl.DataFrame:
    """Return the truths of seeds with these slowdowns."""
    rows = [{"seed": seed, "mean": mean, "p99": mean} for seed, mean in enumerate(means)]
    return pl.DataFrame(rows).with_columns(size=pl.lit("all"), flows=1000)


def test_a_number_is_judged_by_its_interval_over_the_seeds_of_both_sides() -> None:
    near, far, scattered = [2.0, 2.02, 1.98], [3.0, 3.02, 2.98], [1.0, 2.0, 3.0]
    for whole, answer, expected in (
        (near, near, "held"),
        (near, far, "not held"),
        (scattered, near, "not judged"),
        (near, scattered, "not judged"),
    ):
        mean, p99 = scale.compare(CASE, whole_with(whole), [answer_with(answer)])
        assert (mean.verdict, p99.verdict) == (expected, expected), (whole, answer)


def test_answers_of_several_seeds_are_compared_by_their_means() -> None:
    answers = [answer_with([slowdown]) for slowdown in (1.98, 2.0, 2.02)]
    mean, p99 = scale.compare(CASE, whole_with([2.0, 1.98, 2.02]), answers)
    assert mean.predicted == pytest.approx(2.0)
    assert (mean.verdict, p99.verdict) == ("held", "held")
    # Of the answers, each without scatter of its own, one is the mean of the truths.
    assert mean.covered == pytest.approx(1 / 3)


def test_a_case_has_as_many_samples_or_answers_as_whole_runs() -> None:
    for case in scale.cases():
        questions = case.questions
        samples = questions[0]["fidelity"]["samples"]
        assert (samples if case.rung == "sample" else len(questions)) == len(case.seeds)
        assert len({question.get("seed", 1) for question in questions}) == len(questions)


def test_nine_in_ten_numbers_must_be_within_their_bounds() -> None:
    held, wrong, unsure = (
        scale.Row(
            *("c", "sample", "all", 5000, "mean", 1.0, 1.0, 0.9, 1.1, 1.0),
            ratio=Comparison("ratio", 1.0, 0.95, 1.05, low, high),
        )
        for low, high in ((0.99, 1.01), (1.06, 1.1), (1.0, 1.1))
    )
    unjudged = dataclasses.replace(wrong, ratio=None)
    assert scale.goals([held, unjudged]) == {("sample", "mean"): [held]}
    assert scale.verdict([held] * 9 + [wrong]) == "held"
    assert scale.verdict([held] * 8 + [wrong] * 2) == "not held"
    assert scale.verdict([held] * 8 + [unsure] * 2) == "not judged"
    assert scale.verdict([held] * 8 + [wrong, unsure]) == "not judged"


@pytest.mark.parametrize("samples", [2, 12])
def test_intervals_are_those_that_answers_show(samples: int) -> None:
    fidelity = {"kind": "sample", "hosts": 64, "samples": samples}
    answer = sojourn.run(CASE.scenario | {"fidelity": fidelity})
    flows = scale.slowdowns(CASE, answer)["all"]
    for name, shown in (("mean", within_run(answer)), ("p99", p99s_within_run(answer))):
        (row,) = shown.filter(metric=f"slowdown {name}").to_dicts()
        assert scale.interval(flows, name) == (row["low"], row["high"])
        assert row["low"] < row["value"] < row["high"]


def test_cases_have_current_truths() -> None:
    truths = scale.read_truths()
    for case in scale.cases():
        of_case = truths.filter(pl.col("case") == case.name)
        assert scale.current(truths, case).height == of_case.height > 0, case.name


def test_a_fold_of_the_skewed_network_has_its_hottest_links() -> None:
    case = next(case for case in scale.cases() if case.name.startswith("H1"))
    folded = sojourn.fold(case.questions[0], 256, sample=3)
    whole, part = (flow_table(trace(each)) for each in (case.scenario, folded.scenario))
    hottest = [
        (flows.group_by(pl.col("target") // 16).agg(pl.col("size_bytes").sum()))["size_bytes"].max()
        for flows in (whole, part)
    ]
    assert hottest[0] == hottest[1]


def test_an_unknown_case_is_refused() -> None:
    with pytest.raises(ScenarioError, match="--only N3: in the name of no case"):
        scale.choose(["N3"])
