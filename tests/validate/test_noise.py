"""Noise of repeats."""

import random
import statistics

import polars as pl
import pytest

from sojourn.validate.noise import over_runs, prediction


def test_one_more_run_is_within_the_noise_in_19_of_20_cases() -> None:
    draw = random.Random(1).gauss
    covered = 0
    for _ in range(2000):
        runs = [draw(100, 7) for _ in range(5)]
        covered += abs(draw(100, 7) - statistics.mean(runs)) <= prediction(runs)
    assert 0.93 < covered / 2000 < 0.97


def test_one_run_and_equal_runs_have_no_noise() -> None:
    assert prediction([3.0]) == prediction([3.0, None]) == prediction([3.0, 3.0]) == 0


def test_statistics_are_means_over_runs() -> None:
    runs = [pl.DataFrame({"low": [1], "p99": [number]}) for number in (1.0, 2.0, 3.0)]
    row = over_runs(runs, ["p99"]).to_dicts()[0]
    # 97.5 % quantile for two degrees of freedom: 4.3027.
    assert row == {"low": 1, "p99": 2.0, "p99_noise": pytest.approx(4.3027 * (4 / 3) ** 0.5, 1e-4)}
