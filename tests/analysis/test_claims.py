"""Tests of claims, of their confidence intervals, and of sections of runs."""

import math

import numpy as np
import polars as pl
import pytest

from sojourn import (
    Result,
    Run,
    Verdict,
    all_at_least,
    all_at_most,
    at_least,
    at_most,
    between,
    equals,
    every,
    metrics,
    not_judged,
)
from sojourn.analysis.claims import Comparison, finding, with_intervals
from sojourn.analysis.metrics import NotInABatch
from sojourn.analysis.sectioning import sections
from sojourn.base.statistics import BATCHES

UNKNOWN = float("nan")


def test_the_verdict_of_several_claims_is_the_worst() -> None:
    good, bad = finding(True, "good"), finding(False, "bad")
    assert every([good, bad, not_judged("?")]).word == "not held"
    assert every([good, bad, not_judged("?")]).sentence == "bad"
    assert every([good, not_judged("?")]).word == "not judged"
    assert every([good, good]).sentence == "good; good"
    assert every([]).word == at_least(UNKNOWN, 1, "ratio").word == "not judged"
    assert equals(3, 3, "nodes").held
    assert equals(3, 4, "nodes").sentence == "nodes: 3, expected 4"


def test_a_sentence_contains_the_comparisons_with_least_margin() -> None:
    values = {name: float(name) for name in "1234"}
    assert all_at_most(values, 4).sentence == "the nearest of 4: 4 is 4, expected at most 4"
    broken = all_at_least(values, 5)
    assert broken.sentence.startswith("1 is 1, expected at least 5; 2 is 2")
    assert broken.sentence.endswith("; and 1 more")
    assert all_at_least(values | {"?": UNKNOWN}, 1).sentence == "? is nan, expected at least 1"


def judged(values: list[float], bound: float = 1.0) -> Comparison:
    """Judge that a mean is at least `bound`, with every value as a section."""
    overall = at_least(float(np.mean(values)), bound, "the mean")
    (part,) = with_intervals(overall, [at_least(value, bound, "") for value in values]).parts
    assert isinstance(part, Comparison)
    return part


def test_an_undecided_comparison_recommends_a_number_of_seeds() -> None:
    values = [0.5, 3.0, 2.0, 1.5, 2.5, 1.0, 2.0, 2.5]
    few = judged(values, bound=1.5)
    assert few.held is None
    assert few.sentence.endswith(f"; {few.more:.2g} times as many seeds or flows would decide")
    assert judged(values * math.ceil(few.more), bound=1.5).held
    assert judged(values * int(few.more / 2), bound=1.5).held is None
    on_the_bound = judged(values, bound=float(np.mean(values)))
    assert on_the_bound.sentence.endswith("; undecided even with 100 times as many seeds or flows")
    assert "times as many" not in judged(values, bound=0.1).sentence


def test_the_interval_of_a_mean_equals_students_interval() -> None:
    values = [-1.0, 2.0, 3.5]
    part = judged(values)
    assert (part.value, part.low, part.high) == pytest.approx(metrics.t_interval(values))


def test_a_claim_is_judged_only_if_its_interval_is_on_one_side_of_the_bound() -> None:
    assert judged([1.2, 1.3, 1.25]).held is True
    assert judged([0.7, 0.8, 0.75]).held is False
    undecided = judged([0.5, 2.0, 1.1])
    assert undecided.held is None
    assert "the mean is 1.2 (" in undecided.sentence
    assert judged([2.0, 2.0]).interval == (2.0, 2.0), "equal for all seeds"
    assert between(2, 1, 3, "it").held
    assert between(2, 1, 1.5, "it").sentence == "it is 2, expected 1 to 1.5"
    assert between(2, 1, 1.5, "it").held is False


def test_the_interval_of_a_ratio_is_the_inverse_of_that_of_the_inverse_ratio() -> None:
    pairs = [(3.0, 1.0), (2.0, 1.5), (9.0, 2.0)]

    def ratio(first: float, second: float) -> Verdict:
        return at_least(first / second, 2, "")

    sums = [sum(side) for side in zip(*pairs, strict=True)]
    (direct,) = with_intervals(ratio(*sums), [ratio(*pair) for pair in pairs]).parts
    inverses = [at_most(second / first, 1 / 2, "") for first, second in pairs]
    (inverse,) = with_intervals(at_most(sums[1] / sums[0], 1 / 2, ""), inverses).parts
    assert isinstance(direct, Comparison)
    assert isinstance(inverse, Comparison)
    assert (direct.low, direct.high) == pytest.approx((1 / inverse.high, 1 / inverse.low))
    assert direct.held == inverse.held


@pytest.mark.parametrize("seeds", [3, 10])
def test_intervals_have_their_nominal_coverage(seeds: int) -> None:
    """Test the interval of a ratio of means of skewed values in 400 trials."""
    random = np.random.default_rng(1)
    coverage = 0
    for _ in range(400):
        # A seed scales both means alike, so that only pairs reveal the ratio of 2.
        scale = random.lognormal(0, 0.5, seeds)
        first, second = (mean * scale * random.lognormal(0, 0.2, seeds) for mean in (2.0, 1.0))
        overall = at_least(first.mean() / second.mean(), 1, "")
        each = [at_least(a / b, 1, "") for a, b in zip(first, second, strict=True)]
        (part,) = with_intervals(overall, each).parts
        assert isinstance(part, Comparison)
        coverage += part.low <= 2 <= part.high
    assert 0.92 <= coverage / 400 <= 0.98


def test_a_comparison_without_comparable_sections_is_not_judged() -> None:
    overall = at_least(2, 1, "it")
    double, unknown = every([overall, overall]), at_least(UNKNOWN, 1, "it")
    for unusable in ([], [overall], [double] * 3, [unknown] * 3):
        verdict = with_intervals(overall, unusable)
        assert verdict.word == "not judged"
        assert "one run gives no confidence interval" in verdict.sentence
    assert with_intervals(finding(True, "exact"), []).held


def run(seed: int, flows: int) -> Run:
    numbers = np.arange(flows)
    # Flows start in descending order of their numbers.
    table = pl.DataFrame({"flow": numbers, "start_s": 1.0 - numbers / flows})
    summary = {"seed": seed, "scenario": {}, "simulated_s": 1.0, "counts": {"drops": 3}}
    return Run({"scheme": "one", "seed": seed}, Result(table, table, summary))


def test_a_section_contains_all_runs_of_one_seed() -> None:
    by_seed = sections([run(1, 3), run(2, 3), run(1, 3)])
    assert [[run.labels["seed"] for run in section] for section in by_seed] == [[1, 1], [2]]


def test_seeds_with_the_same_runs_are_one_seed() -> None:
    assert len(sections([run(1, 205), run(2, 205)])) == BATCHES
    assert sections([run(1, 99), run(2, 99)]) == []
    assert len(sections([run(1, 205), run(2, 205), run(3, 99)])) == 3


def test_a_single_seed_is_divided_into_batches_of_consecutive_flows() -> None:
    batches = sections([run(1, 205), run(1, 205)])
    assert len(batches) == BATCHES
    results = [batch[1].result for batch in batches]
    assert [part.flows["flow"].max() for part in results[:2]] == [204, 184]
    assert sum(part.flows.height for part in results) == 205
    assert results[0].summary["simulated_s"] == 1
    for read in (lambda: results[0].samples, lambda: results[0].summary["counts"]):
        with pytest.raises(NotInABatch):
            read()
    measured = metrics.measure(batches[0], drops=metrics.count("drops"))
    assert all(math.isnan(value) for value in measured["value"])
    assert sections([run(1, 99)]) == sections([]) == []
