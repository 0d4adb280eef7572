"""Tests of convergence: intervals of one run's means, and warnings about wide intervals."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from conftest import make_result
from sojourn import convergence, metrics
from sojourn.runs.results import Result

VALUES = st.lists(st.floats(0.1, 100), min_size=20, max_size=60)


def unsure_means(fcts: metrics.Floats) -> list[str]:
    """Return the means that are not converged in a run with these completion times."""
    table = convergence.within_run(make_result(fcts.tolist(), simulated_s=1e9))
    return convergence.unsure(table)["metric"].to_list()


def covered(samples: metrics.Floats, truth: float) -> float:
    """Return the share of rows whose interval contains the true mean."""
    intervals = [convergence.batch_means(row) for row in samples]
    return float(np.mean([low <= truth <= high for _, low, high in intervals]))


def test_intervals_of_independent_values_have_their_nominal_coverage() -> None:
    samples = np.random.default_rng(1).exponential(2.0, (1000, 500))
    # The standard error of a share of 0.95 of 1000 is 0.007.
    assert covered(samples, 2.0) == pytest.approx(0.95, abs=0.02)


def test_batch_means_have_their_coverage_with_correlated_values() -> None:
    # x[n] = 0.9 x[n - 1] + e[n]: the variance of the mean is 19 times that of independent values.
    noise = np.random.default_rng(2).normal(size=(400, 5000))
    samples = 10 + signal.lfilter([1.0], [1.0, -0.9], noise)
    assert covered(samples, 10) > 0.9
    naive = [metrics.t_interval(row) for row in samples]
    assert np.mean([low <= 10 <= high for _, low, high in naive]) < 0.5


def test_the_interval_equals_students_interval_of_batch_means() -> None:
    # Batches of two around 1, 2, ..., 10: a standard deviation of 3.028; t(0.975, 9) = 2.262.
    values = np.array([mean + step for mean in range(1, 11) for step in (-0.5, 0.5)])
    reach = 2.262 * 3.028 / math.sqrt(10)
    expected = (5.5, 5.5 - reach, 5.5 + reach)
    assert convergence.batch_means(values) == pytest.approx(expected, abs=1e-3)


@given(VALUES, st.floats(0.5, 2))
def test_an_interval_contains_the_mean_and_scales_with_the_unit(
    given_values: list[float], unit: float
) -> None:
    values = np.array(given_values)
    mean, low, high = convergence.batch_means(values)
    assert mean == pytest.approx(values.mean())
    assert high - mean == pytest.approx(mean - low)
    assert high >= mean
    assert convergence.batch_means(values * unit) == pytest.approx(
        (mean * unit, low * unit, high * unit), abs=1e-9
    )


@pytest.mark.parametrize("count", [0, 1, 19])
def test_too_few_values_have_no_bounds(count: int) -> None:
    mean, low, high = convergence.batch_means(np.full(count, 3.0))
    assert mean == 3 if count else math.isnan(mean)
    assert math.isnan(low)
    assert math.isnan(high)
    assert unsure_means(np.full(count, 3.0)) == []


def test_means_of_a_heavy_tail_are_not_converged_unlike_exponential_ones() -> None:
    random = np.random.default_rng(3)
    assert unsure_means(1 + random.pareto(1.25, 3000)) == list(convergence.MEANS)
    assert unsure_means(random.exponential(5.0, 3000)) == []
    # A half-width of 10 % of the mean needs about 23^2 exponential values.
    assert unsure_means(random.exponential(5.0, 100)) == list(convergence.MEANS)


def test_batches_are_by_start_and_unfinished_flows_count_with_their_bounds() -> None:
    fcts = np.random.default_rng(4).exponential(1e-3, 200).tolist()
    result = make_result(fcts)
    shuffled = Result(
        result.flows.sample(fraction=1, shuffle=True, seed=1), result.samples, result.summary
    )
    assert convergence.within_run(shuffled).equals(convergence.within_run(result))
    assert not convergence.within_run(result)["at_least"].any()
    unfinished = convergence.within_run(make_result([*fcts, None]))
    assert unfinished["at_least"].all()
    # The unfinished flow started at 0.2 s of 1 s.
    assert metrics.at(unfinished, metric="FCT mean") == pytest.approx((sum(fcts) + 0.8) / 201)


def over_seeds(*rows: tuple[str, float, float, int]) -> pl.DataFrame:
    """Create a table from schemes, values, half-widths of intervals, and numbers of seeds."""
    return pl.DataFrame(
        [
            {"scheme": name, "value": value, "low": value - reach, "high": value + reach}
            | {"seeds": seeds}
            for name, value, reach, seeds in rows
        ]
    )


def test_intervals_over_seeds_may_be_wider_than_those_of_one_run() -> None:
    table = over_seeds(
        ("one run", 10, 1.1, 1),
        ("sure run", 10, 0.9, 1),
        ("seeds", -10, 2.6, 3),
        ("sure seeds", 10, 2.4, 3),
        ("alone", 10, math.nan, 1),
        ("nothing", 0, 1, 3),
    )
    rows = convergence.unsure(table)
    assert rows["scheme"].to_list() == ["seeds", "one run"]
    assert rows["reach"].to_list() == pytest.approx([0.26, 0.11])


def test_the_note_of_a_figure_names_its_widest_interval() -> None:
    sure, worse, worst = ("a", 10, 1, 3), ("b", 10, 3, 3), ("c", 10, 7.2, 3)
    assert convergence.note(over_seeds(sure, worse, worst)) == (
        "not converged: 2 of 3 values have a confidence interval wider than ± 25 %; "
        "the widest is ± 72 % over 3 seeds (c)"
    )
    assert convergence.note(over_seeds(sure)) is None
    assert convergence.note(pl.DataFrame({"time_s": [1.0], "value": [2.0]})) is None
