"""Whether the standard deviations of two samples differ, and by which ratio."""

import numpy as np
from scipy.special import ndtri, stdtrit

from meanmap.stats.result import Interval
from meanmap.stats.samples.tails import inflated_spread

__all__ = ["clear_ratio"]

# A ratio whose logarithm is further from 0 is no floating-point number.
MOST = 700.0


def clear_ratio(first: np.ndarray, second: np.ndarray, level: float) -> tuple[Interval, float] | None:
    """The standard deviation of the second sample over that of the first with an interval, and its logarithm in
    standard errors; None unless the interval excludes one.

    The logarithm of a variance has the standard error of a jackknife (Miller 1968), and the difference of two the
    t quantile of Welch (1947). Where the standard deviation may be larger than observed, for tails that few rows have
    reached, the interval is longer by that.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found, _ = clear_ratio(rng.normal(0, 2, 2000), rng.normal(0, 3, 1200), 0.05)
    >>> print(found)
    1.5 (1.43 to 1.58)
    """
    if any(map(_says_no_more_than_a_share, (first, second))):
        return None
    (before, error), (after, other) = map(_log_deviation, (first, second))
    total = float(np.hypot(error, other))
    if not 0 < total < np.inf:
        return None
    freedom = total**4 / (error**4 / (len(first) - 1) + other**4 / (len(second) - 1))
    by, half = after - before, float(stdtrit(freedom, 1 - level / 2)) * total
    if abs(by) <= half:
        return None
    beyond = [
        max(inflated_spread(_in_own_unit(column)[0]) - own, 0.0) * float(ndtri(1 - level / 2))
        for column, own in ((first, error), (second, other))
    ]
    low, high = by - half - beyond[0], by + half + beyond[1]
    return (
        None
        if low <= 0 <= high or max(-low, high) > MOST
        else (Interval(*(float(np.exp(end)) for end in (by, low, high))), by / total)
    )


def _says_no_more_than_a_share(column: np.ndarray) -> bool:
    """Whether there are two values or one, or more than half of the rows have the same."""
    counts = np.unique(column, return_counts=True)[1]
    return len(counts) < 3 or 2 * int(counts.max()) > len(column)


def _log_deviation(column: np.ndarray) -> tuple[float, float]:
    """The logarithm of the standard deviation, and its standard error by a jackknife."""
    n = len(column)
    away, unit = _in_own_unit(column)
    squares = away**2
    # Of all rows but one the sum of squares about their own mean.
    without = squares.sum() - n / (n - 1) * squares
    if not without.min() > 1e-12 * squares.sum():
        return 0.0, np.inf
    whole = float(np.log(squares.sum() / (n - 1)))
    changes = (n - 1) * np.log(without / (n - 2))
    return float(np.log(unit)) + whole / 2, float(np.sqrt(changes.var(ddof=1) / n)) / 2


def _in_own_unit(column: np.ndarray) -> tuple[np.ndarray, float]:
    """Distances from the mean over the largest of them, as squares of tiny numbers are zero; and that."""
    away = column - column.mean()
    unit = float(np.abs(away).max())
    return away / unit, unit
