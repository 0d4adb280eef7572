"""Noise of repeats: how far one run of a random or chaotic system is from others by chance.

The reference is one run. If it is a run of the same system, it is within this distance of the mean
of the repeats with 95 % confidence (prediction interval of one more run, Student's t).
"""

import statistics
from collections.abc import Sequence

import polars as pl

from sojourn.base.statistics import t_quantile

CONFIDENCE = 0.95


def prediction(numbers: Sequence[float | None]) -> float:
    """Return the half width of the prediction interval of one more run; 0 for fewer than two."""
    values = [number for number in numbers if number is not None]
    if len(values) < 2:
        return 0.0
    quantile = t_quantile((1 + CONFIDENCE) / 2, len(values) - 1)
    return float(quantile * statistics.stdev(values) * (1 + 1 / len(values)) ** 0.5)


def over_runs(tables: Sequence[pl.DataFrame], statistics_of: Sequence[str]) -> pl.DataFrame:
    """Return the means over runs of the columns of equal tables, one table for each run.

    Each column of `statistics_of` gets another, with the suffix `_noise`: its `prediction`.
    """
    means = [
        pl.mean_horizontal(*(table[name] for table in tables)).alias(name)
        for name in tables[0].columns
        if name in statistics_of
    ]
    noises = [
        pl.Series(
            f"{name}_noise",
            [prediction(row) for row in zip(*(table[name] for table in tables), strict=True)],
            pl.Float64,
        )
        for name in statistics_of
    ]
    return tables[0].with_columns(*means, *noises)
