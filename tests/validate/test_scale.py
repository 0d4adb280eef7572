"""Comparison of folded networks with whole ones."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest

import sojourn
from sojourn import ScenarioError
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
    rows = list(scale.compare(CASE, truth, answer))
    assert {row.size for row in rows} == {"all", "10 KB to 100 KB"}
    # The p99 of 4000 flows differs by a tenth between seeds.
    assert rows[0].is_within
    busier = sojourn.override(CASE.scenario, {"workload": {"load": 0.6}})
    rows = list(scale.compare(CASE, truth, sojourn.run(busier | {"fidelity": CASE.fidelity})))
    assert not rows[0].is_within


def test_nine_in_ten_numbers_must_be_within_their_bounds() -> None:
    row = scale.Row("c", "sample", "all", 5000, "mean", 1.0, 1.04, 0.9, 1.1, bound=0.05)
    wrong = dataclasses.replace(row, predicted=1.06)
    unjudged = dataclasses.replace(wrong, flows=500, bound=None)
    assert scale.verdicts([row] * 9 + [wrong, unjudged]) == {"sample": True}
    assert scale.verdicts([row] * 8 + [wrong] * 2) == {"sample": False}


def test_an_interval_has_the_width_of_the_scatter_of_batches() -> None:
    values = np.random.default_rng(1).normal(10, 1, 10_000)
    low, high = scale.interval(values, "mean")
    assert low < 10 < high
    assert (high - low) / 2 == pytest.approx(2.26 / math.sqrt(10_000), rel=0.6)


def test_cases_have_current_truths() -> None:
    truths = scale.read_truths()
    for case in scale.cases():
        of_case = truths.filter(pl.col("case") == case.name)
        assert scale.current(truths, case).height == of_case.height > 0, case.name


def test_the_skewed_network_folds() -> None:
    case = next(case for case in scale.cases() if case.name.startswith("H1"))
    folded = sojourn.fold(case.scenario, 256, sample=3)
    for whole, part in folded.utilisations.values():
        assert part == pytest.approx(whole, rel=0.1)


def test_an_unknown_case_is_refused() -> None:
    with pytest.raises(ScenarioError, match="--only N3: in the name of no case"):
        scale.choose(["N3"])
