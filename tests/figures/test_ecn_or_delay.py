"""Tests of the figures of ECN or Delay: numbers that agree with the source."""

import importlib

import polars as pl


def test_numbers_with_a_bound_in_their_interval_are_undecided() -> None:
    a10 = importlib.import_module("sojourn.experiments.ecn_or_delay_conext16.a10_beta")
    published = a10.figure.published()
    intervals = {
        a10.OVER_DCQCN: (0.99, 1.01),
        a10.MEDIAN: (0.6, 0.9),
        a10.P90: (0.3, 0.5),
        a10.MEAN_QUEUE: (1.4, 1.6),
        a10.MAXIMUM_QUEUE: (0.9, 1.1),
    }
    rows = []
    for metric, loads in a10.NUMBERS.items():
        for load in loads:
            number = a10.published_number(published, a10.TIMELY, metric, load)
            low, high = (number * bound for bound in intervals[metric])
            labels = {"scheme": a10.TIMELY, "metric": metric, "load": load}
            rows.append(labels | {"value": (low + high) / 2, "low": low, "high": high})
    outcomes = a10.Outcomes.of(pl.DataFrame(rows), a10.TIMELY)
    assert outcomes == a10.Outcomes(agree=4, disagree=3, undecided=4)
