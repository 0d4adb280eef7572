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


def test_intervals_of_few_correlation_times_are_wider() -> None:
    # A batch of 100 values is one correlation time: if the correlation of batches did not count,
    # the intervals would cover 75 %.
    noise = np.random.default_rng(6).normal(size=(400, 4000))
    samples = 10 + signal.lfilter([1.0], [1.0, -0.99], noise)[:, 3000:]
    assert covered(samples, 10) > 0.87


def test_the_interval_equals_students_interval_of_batch_means() -> None:
    # Batches of two around 1, 2, ..., 10: a standard deviation of 3.028; t(0.975, 9) = 2.262. Their
    # order has no positive correlation.
    order = (1, 10, 2, 9, 3, 8, 4, 7, 5, 6)
    values = np.array([mean + step for mean in order for step in (-0.5, 0.5)])
    reach = 2.262 * 3.028 / math.sqrt(10)
    expected = (5.5, 5.5 - reach, 5.5 + reach)
    assert convergence.batch_means(values) == pytest.approx(expected, abs=1e-3)
    # In order of size the correlation is 0.7, and corrected more than 0.9, the most that counts: a
    # factor of 19, and two degrees of freedom, the least.
    reach = 4.303 * 3.028 * math.sqrt(19 / 10)
    assert convergence.batch_means(np.sort(values))[2] == pytest.approx(5.5 + reach, abs=1e-2)


def test_samples_are_batches_whatever_happens_in_each_of_them() -> None:
    # Values grow in every sample, as while queues fill. The order of time makes this a correlation.
    random = np.random.default_rng(3)
    means = random.normal(10, 1, 8)
    values = means[:, None] + np.linspace(-5, 5, 200)
    samples = np.repeat(np.arange(8), 200)
    mean, low, high = convergence.batch_means(values.ravel(), samples=samples)
    expected = metrics.t_interval(means)
    assert (mean, low, high) == pytest.approx(expected)
    in_time = convergence.batch_means(values.T.ravel())
    assert in_time[2] - in_time[1] > 3 * (high - low)


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


def test_the_note_of_a_figure_does_not_count_samples_over_time() -> None:
    sure, unsure = ("a", 10, 1, 3), ("b", 10, 3, 3)
    series = pl.DataFrame({"scheme": ["a"], "value": [1.0], "high": [9.0]})
    table = pl.concat([series, over_seeds(sure)], how="diagonal_relaxed")
    assert convergence.note(table) is None
    note = convergence.note(pl.concat([table, over_seeds(unsure)], how="diagonal_relaxed"))
    assert note is not None
    assert note.startswith("not converged: 1 of 2 values")


def run_of(logs: metrics.Floats) -> Result:
    """Create a run with a load and these logarithms of slowdowns, in order of start."""
    result = make_result((1e-6 * np.exp(logs)).tolist(), simulated_s=1e9)
    return Result(result.flows, result.samples, result.summary | {"load": "load 0.8"})


def test_a_trend_is_the_ratio_of_the_second_half_to_the_first() -> None:
    # Batches of two around 1, ..., 5 and 1.5, ..., 5.5: both have a variance of 2.5, so that the
    # error of the difference is sqrt((2.5 + 2.5) / 5) = 1; t(0.975, 8) = 2.306.
    first = np.array([mean + step for mean in range(1, 6) for step in (-0.5, 0.5)])
    ratio = convergence.trend([run_of(np.concatenate([first, first + 0.5]))])
    assert np.log(ratio) == pytest.approx([0.5, 0.5 - 2.306, 0.5 + 2.306], abs=1e-3)
    seeds = [run_of(np.repeat([1.0, 1.0 + change], 20)) for change in (0.4, 0.5, 0.6)]
    # Over seeds: a standard error of 0.1 / sqrt(3); t(0.975, 2) = 4.303.
    reach = 4.303 * 0.1 / math.sqrt(3)
    expected = [0.5, 0.5 - reach, 0.5 + reach]
    assert np.log(convergence.trend(seeds)) == pytest.approx(expected, abs=1e-3)


def test_stationary_slowdowns_have_no_trend_and_growing_ones_do() -> None:
    # A correlated stationary process, and one that grows as a queue fills after an empty start.
    noise = np.random.default_rng(5).normal(0, 0.3, (300, 2000))
    logs = 1 + signal.lfilter([1.0], [1.0, -0.9], noise)
    found = [convergence.is_trend(convergence.trend([run_of(row)])) for row in logs]
    # The standard error of a share of 0.05 of 300 is 0.013.
    assert np.mean(found) < 0.09
    filling = 2 * (1 - np.exp(-np.arange(2000) / 700))
    found = [convergence.is_trend(convergence.trend([run_of(row + filling)])) for row in logs[:50]]
    assert np.mean(found) > 0.9


def test_few_flows_and_workloads_without_a_load_have_no_trend() -> None:
    assert all(map(math.isnan, convergence.trend([run_of(np.arange(19.0))])))
    growing = np.arange(100.0) / 10
    assert convergence.is_trend(convergence.trend([run_of(growing)]))
    without_load = run_of(growing)
    without_load.summary["load"] = ""
    assert not convergence.is_trend(convergence.trend([without_load]))
    with_jobs = run_of(growing)
    with_jobs.summary["jobs"] = [{"class": "ring"}]
    assert not convergence.is_trend(convergence.trend([with_jobs]))
    # Lower bounds of unfinished flows may be the reason of shorter times.
    falling = run_of(growing[::-1])
    assert convergence.is_trend(convergence.trend([falling]))
    outcome = pl.Series("outcome", ["finished"] * 99 + ["unfinished"])
    cut = Result(falling.flows.with_columns(outcome), falling.samples, falling.summary)
    assert not convergence.is_trend(convergence.trend([cut]))
    # A change of 5 % gives no warning, even if it is significant.
    slight = run_of(1 + 0.05 * (np.arange(100) >= 50) + np.tile([0, 1e-3], 50))
    low = convergence.trend([slight])[1]
    assert low > 1
    assert not convergence.is_trend(convergence.trend([slight]))


def test_flows_that_are_no_batches_of_a_steady_state_have_no_interval() -> None:
    result = make_result(np.random.default_rng(5).exponential(1e-3, 200).tolist())
    assert convergence.within_run(result)["low"].is_finite().all()
    starts = pl.Series([float(number // 20) for number in range(200)])
    for columns in ({"start_s": starts}, {"step": pl.Series([0.0, 1.0] * 100)}):
        flows = result.flows.with_columns(**columns)
        jobs = result.summary | {"jobs": [{"class": "job"}] if "step" in columns else []}
        table = convergence.within_run(Result(flows, result.samples, jobs))
        assert table["value"].is_finite().all()
        assert table["low"].is_nan().all()
