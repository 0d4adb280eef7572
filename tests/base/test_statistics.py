"""Percentiles by nearest rank, and quantiles of Student's t distribution."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sojourn.base.statistics import half_width, nearest_rank, t_quantile


@pytest.mark.parametrize("probability", [0.975, 0.95])
def test_quantiles_equal_those_of_scipy(probability: float) -> None:
    for degrees in range(1, 100):
        assert t_quantile(probability, degrees) == stats.t.ppf(probability, degrees)


def test_a_half_width_is_that_of_the_mean_or_around_a_centre() -> None:
    values = [1.0, 2.0, 4.0, 5.0]
    expected = stats.t.ppf(0.975, 3) * stats.sem(values)
    assert half_width(values) == pytest.approx(expected)
    assert half_width(values, confidence=0.9) < half_width(values)
    # The mean squared deviation from another centre is larger by the square of its distance.
    ratio = half_width(values, 4.0) / half_width(values)
    assert ratio == pytest.approx(((10 + 4 * 1.0**2) / 10) ** 0.5)
    assert math.isnan(half_width([1.0]))
    assert math.isnan(half_width([]))


@given(st.integers(1, 3000), st.integers(1, 100))
def test_a_percentile_is_the_least_value_that_a_share_do_not_exceed(count: int, cent: int) -> None:
    values = np.arange(count, 0, -1.0)
    assert nearest_rank(values, cent / 100) == max(-(-cent * count // 100), 1)
