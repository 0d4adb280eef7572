"""Percentiles by nearest rank, and Student's t distribution and its intervals."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

BATCHES = 10
"""Batches of one run's flows: few, so that each is long compared to the correlation of FCTs."""

MOST_CORRELATED = 0.9
"""Largest correlation of neighbouring batches that widens an interval."""

LEAST_FREEDOM = 2
"""Least degrees of freedom of the interval of correlated batches.

With one, the mean half width doubles, and the coverage is the same (docs/design/statistics.md).
"""

QUANTILES_975 = (
    12.706204736174694,
    4.302652729749462,
    3.1824463052837078,
    2.7764451051977934,
    2.5705818356363146,
    2.4469118511449786,
    2.364624251592784,
    2.306004135204166,
    2.262157162798205,
    2.228138851986274,
    2.200985160091639,
    2.1788128296672284,
    2.1603686564627913,
    2.144786687917804,
    2.131449545559776,
    2.1199052992212546,
    2.1098155778333156,
    2.1009220402410382,
    2.0930240544083087,
    2.085963447265864,
    2.0796138447276795,
    2.0738730679040254,
    2.0686576104190486,
    2.0638985616280245,
    2.0595385527532972,
    2.0555294386428735,
    2.0518305164802846,
    2.0484071417952454,
    2.045229642132703,
    2.0422724563012378,
)
"""97.5 % quantiles for 1 to 30 degrees of freedom, as computed by SciPy.

The table saves most commands the import of SciPy, which takes a second.
"""


def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution with `degrees` degrees of freedom."""
    if probability == (1 + 0.95) / 2 and 1 <= degrees <= len(QUANTILES_975):
        return QUANTILES_975[degrees - 1]
    from scipy.special import stdtrit  # noqa: PLC0415 - see above

    return float(stdtrit(degrees, probability))


def half_width(
    values: Sequence[float] | npt.NDArray[np.float64],
    centre: float | None = None,
    confidence: float = 0.95,
    factor: float = 1.0,
) -> float:
    """Return the half width of Student's interval of the mean of values; NaN for a single one.

    The variance of the mean grows by `factor`, an `inflation`, and the degrees of freedom fall by
    it, but not below `LEAST_FREEDOM`.

    With a `centre`, the interval is that of a statistic of a run, such as a percentile, and the
    values are those of batches: their deviations are from the centre, not from their mean.
    """
    data = np.asarray(values, dtype=np.float64)
    if len(data) < 2:
        return math.nan
    deviations = data - (data.mean() if centre is None else centre)
    error = math.sqrt(float((deviations**2).sum()) / (len(data) - 1)) / math.sqrt(len(data))
    freedom = len(data) - 1
    freedom = max(round(freedom / factor), min(LEAST_FREEDOM, freedom))
    return t_quantile((1 + confidence) / 2, freedom) * error * math.sqrt(factor)


def inflation(means: npt.NDArray[np.float64]) -> float:
    """Return the factor by which the correlation of batch means increases the variance of the mean.

    With a correlation r of neighbours that falls by r with each further batch it is (1 + r) / (1 -
    r). Of n batches the estimate of r is too small by about (1 + 3r) / n (M. Kendall, Note on Bias
    in the Estimation of Autocorrelation, Biometrika 41, 1954), which is added. A negative
    correlation has no effect, and one above `MOST_CORRELATED` counts as that.
    """
    deviations = means - means.mean()
    squares = float((deviations**2).sum())
    if not squares > 0:
        return 1.0
    estimate = float((deviations[1:] * deviations[:-1]).sum()) / squares
    correlation = estimate + (1 + 3 * estimate) / len(means)
    correlation = min(max(correlation, 0.0), MOST_CORRELATED)
    return (1 + correlation) / (1 - correlation)


def rank_of(share: float, count: int) -> int:
    """Return the rank, from 1, of the least of `count` values that a `share` do not exceed."""
    # Products such as 0.07 * 100 are above the whole number that they stand for.
    return max(math.ceil(share * count - 1e-9), 1)


def of_rank(values: npt.NDArray[np.float64], rank: int) -> float:
    """Return the value that sorting would put at a rank, from 1, in less time."""
    return float(np.partition(values, rank - 1)[rank - 1])


def nearest_rank(values: npt.NDArray[np.float64], share: float) -> float:
    """Return the least value that a `share` of the values do not exceed: a percentile."""
    return of_rank(values, rank_of(share, len(values)))
