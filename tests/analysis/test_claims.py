"""Claims, the intervals that sections give them, and what a section is."""

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
from sojourn.analysis.claims import Comparison, said, with_intervals
from sojourn.analysis.convergence import BATCHES
from sojourn.analysis.metrics import NotInABatch
from sojourn.analysis.sectioning import sections

UNKNOWN = float("nan")


def test_verdicts_together_are_the_worst_of_them() -> None:
    good, bad = said(True, "good"), said(False, "bad")
    assert every([good, bad, not_judged("?")]).word == "not held"
    assert every([good, bad, not_judged("?")]).sentence == "bad"
    assert every([good, not_judged("?")]).word == "not judged"
    assert every([good, good]).sentence == "good; good"
    assert every([]).word == at_least(UNKNOWN, 1, "ratio").word == "not judged"
    assert equals(3, 3, "nodes").held
    assert equals(3, 4, "nodes").sentence == "nodes: 3, 4 wanted"


def test_of_many_that_hold_the_nearest_is_told_and_of_others_the_farthest_off() -> None:
    values = {name: float(name) for name in "1234"}
    assert all_at_most(values, 4).sentence == "the nearest of 4: 4 is 4, at most 4 wanted"
    broken = all_at_least(values, 5)
    assert broken.sentence.startswith("1 is 1, at least 5 wanted; 2 is 2")
    assert broken.sentence.endswith("; and 1 more")
    assert all_at_least(values | {"?": UNKNOWN}, 1).sentence == "? is nan, at least 1 wanted"


def judged(values: list[float], wanted: float = 1.0) -> Comparison:
    """Judge that a mean is at least so much, with every value a section."""
    whole = at_least(float(np.mean(values)), wanted, "the mean")
    (part,) = with_intervals(whole, [at_least(value, wanted, "") for value in values]).parts
    assert isinstance(part, Comparison)
    return part


def test_what_is_not_judged_says_how_much_more_would_tell() -> None:
    values = [0.5, 3.0, 2.0, 1.5, 2.5, 1.0, 2.0, 2.5]
    few = judged(values, wanted=1.5)
    assert few.held is None
    assert few.sentence.endswith(f"; {few.more:.2g} times as many seeds or flows would tell")
    assert judged(values * math.ceil(few.more), wanted=1.5).held
    assert judged(values * int(few.more / 2), wanted=1.5).held is None
    on_the_bound = judged(values, wanted=float(np.mean(values)))
    assert on_the_bound.sentence.endswith(
        "; no number of seeds or flows that is worth it would tell"
    )
    assert "would tell" not in judged(values, wanted=0.1).sentence


def test_the_interval_of_a_mean_is_students() -> None:
    values = [-1.0, 2.0, 3.5]
    part = judged(values)
    assert (part.value, part.low, part.high) == pytest.approx(metrics.t_interval(values))


def test_a_claim_is_judged_only_where_its_interval_is_on_one_side() -> None:
    assert judged([1.2, 1.3, 1.25]).held is True
    assert judged([0.7, 0.8, 0.75]).held is False
    unsure = judged([0.5, 2.0, 1.1])
    assert unsure.held is None
    assert "the mean is 1.2 (" in unsure.sentence
    assert judged([2.0, 2.0]).interval == (2.0, 2.0), "the same whatever the seed"
    assert between(2, 1, 3, "it").held
    assert between(2, 1, 1.5, "it").sentence == "it is 2, 1 to 1.5 wanted"
    assert between(2, 1, 1.5, "it").held is False


def test_a_ratio_is_as_sure_as_its_inverse() -> None:
    pairs = [(3.0, 1.0), (2.0, 1.5), (9.0, 2.0)]

    def ratio(ours: float, theirs: float) -> Verdict:
        return at_least(ours / theirs, 2, "")

    sums = [sum(side) for side in zip(*pairs, strict=True)]
    (one,) = with_intervals(ratio(*sums), [ratio(*pair) for pair in pairs]).parts
    inverse = [at_most(theirs / ours, 1 / 2, "") for ours, theirs in pairs]
    (other,) = with_intervals(at_most(sums[1] / sums[0], 1 / 2, ""), inverse).parts
    assert isinstance(one, Comparison)
    assert isinstance(other, Comparison)
    assert (one.low, one.high) == pytest.approx((1 / other.high, 1 / other.low))
    assert one.held == other.held


@pytest.mark.parametrize("seeds", [3, 10])
def test_intervals_cover_as_often_as_they_say(seeds: int) -> None:
    """The ratio of two means of skewed values, in 400 trials."""
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        # A seed slows both alike: only within pairs is the ratio of 2 seen at all.
        slow = random.lognormal(0, 0.5, seeds)
        ours, theirs = (mean * slow * random.lognormal(0, 0.2, seeds) for mean in (2.0, 1.0))
        whole = at_least(ours.mean() / theirs.mean(), 1, "")
        each = [at_least(a / b, 1, "") for a, b in zip(ours, theirs, strict=True)]
        (part,) = with_intervals(whole, each).parts
        assert isinstance(part, Comparison)
        covered += part.low <= 2 <= part.high
    assert 0.92 <= covered / 400 <= 0.98


def test_without_sections_that_compare_alike_nothing_is_judged() -> None:
    whole = at_least(2, 1, "it")
    for none in ([], [whole], [every([whole, whole])] * 3, [at_least(UNKNOWN, 1, "it")] * 3):
        alone = with_intervals(whole, none)
        assert alone.word == "not judged"
        assert "one run does not tell" in alone.sentence
    assert with_intervals(said(True, "exact"), []).held


def run(seed: int, flows: int) -> Run:
    numbers = np.arange(flows)
    # By start the other way around.
    table = pl.DataFrame({"flow": numbers, "start_s": 1.0 - numbers / flows})
    summary = {"seed": seed, "scenario": {}, "simulated_s": 1.0, "counts": {"drops": 3}}
    return Run({"scheme": "one", "seed": seed}, Result(table, table, summary))


def test_a_section_is_a_seed() -> None:
    found = sections([run(1, 3), run(2, 3), run(1, 3)])
    assert [[one.labels["seed"] for one in section] for section in found] == [[1, 1], [2]]


def test_a_single_seed_is_cut_into_batches_of_flows_that_started_together() -> None:
    batches = sections([run(1, 205), run(1, 205)])
    assert len(batches) == BATCHES
    found = [batch[1].result for batch in batches]
    assert [part.flows["flow"].max() for part in found[:2]] == [204, 184]
    assert sum(part.flows.height for part in found) == 205
    assert found[0].summary["simulated_s"] == 1
    for asked in (lambda: found[0].samples, lambda: found[0].summary["counts"]):
        with pytest.raises(NotInABatch):
            asked()
    measured = metrics.measure(batches[0], drops=metrics.count("drops"))
    assert all(math.isnan(value) for value in measured["value"])
    assert sections([run(1, 99)]) == sections([]) == []
