"""Quantiles of Student's t distribution."""

import pytest
from scipy import stats

from sojourn.base.student import t_quantile


@pytest.mark.parametrize("probability", [0.975, 0.95])
def test_quantiles_equal_those_of_scipy(probability: float) -> None:
    for degrees in range(1, 100):
        assert t_quantile(probability, degrees) == stats.t.ppf(probability, degrees)
