"""Tests and intervals for the ratio of the standard deviations of two samples."""

import numpy as np
from scipy.special import ndtri, stdtrit

from meanmap.stats.result import Interval
from meanmap.stats.samples.cells import Cells
from meanmap.stats.samples.tails import inflated_spread

__all__ = ["LEAST_UNITS", "clear_ratio", "deviations_of"]

# A ratio whose logarithm is further from 0 overflows.
MOST = 700.0
# With fewer independent rows, clusters or pairs under a design, standard errors of variances are inaccurate. For equal
# standard deviations and normal numbers, .11 of 95% intervals exclude one with 10 units of each sample, and .06 with
# 40.
LEAST_UNITS = 40


def clear_ratio(
    first: np.ndarray, second: np.ndarray, level: float, cells: Cells | None = None
) -> tuple[Interval, float] | None:
    """The ratio of the second to the first standard deviation with an interval, and the log of the ratio in standard
    errors; None unless the interval excludes one.

    The standard error of the logarithm of a variance is from a jackknife (Miller 1968), and the quantile for the
    difference of two is Welch's (1947). If a standard deviation may be larger than observed, because few rows have
    reached the tails, the interval is extended accordingly. With cells, rows have the weights of the means, equal for a
    stratum in both samples, and the standard error is that of the means of squares.

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
    if cells is None:
        freedom = total**4 / (error**4 / (len(first) - 1) + other**4 / (len(second) - 1))
    else:
        (before, after), (total, freedom) = _within_cells(first, second, cells)
        if not 0 < total < np.inf:
            return None
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


def deviations_of(first: np.ndarray, second: np.ndarray, cells: Cells | None = None) -> tuple[float, float]:
    """The standard deviations of two samples, with the weights of their means if there are cells."""
    if cells is None:
        return float(np.std(first, ddof=1)), float(np.std(second, ddof=1))
    (before, after), _ = _within_cells(first, second, cells)
    return float(np.exp(before)), float(np.exp(after))


def _within_cells(first: np.ndarray, second: np.ndarray, cells: Cells) -> tuple[tuple[float, float], tuple[float, ...]]:
    """The logarithms of two standard deviations, the standard error of their difference, and its degrees of freedom,
    both as for a difference of means of squares.

    The mean square about the estimated mean is too small by the variance of that mean, which is added.
    """
    both, weights = np.concatenate([first, second]), np.abs(cells.weights[:, 0])
    squares, logs = np.zeros(len(both)), []
    for part in (slice(0, len(first)), slice(len(first), None)):
        away = np.zeros(len(both))
        away[part] = both[part] - weights[part] @ both[part]
        variance = float(weights @ away**2)
        if not variance > 0:
            return (0.0, 0.0), (np.inf, np.inf)
        squares[part] = (away[part] ** 2 / variance - 1) / 2
        logs.append(float(np.log(variance + cells.compared(away)[2] ** 2)) / 2)
    return (logs[0], logs[1]), cells.compared(squares)[2:]


def _says_no_more_than_a_share(column: np.ndarray) -> bool:
    """Whether there are at most two values, or more than half of the rows have the same value."""
    counts = np.unique(column, return_counts=True)[1]
    return len(counts) < 3 or 2 * int(counts.max()) > len(column)


def _log_deviation(column: np.ndarray) -> tuple[float, float]:
    """The logarithm of the standard deviation, and its standard error by a jackknife."""
    n = len(column)
    away, unit = _in_own_unit(column)
    squares = away**2
    # For all rows but one, the sum of squares about their own mean.
    without = squares.sum() - n / (n - 1) * squares
    if not without.min() > 1e-12 * squares.sum():
        return 0.0, np.inf
    whole = float(np.log(squares.sum() / (n - 1)))
    changes = (n - 1) * np.log(without / (n - 2))
    return float(np.log(unit)) + whole / 2, float(np.sqrt(changes.var(ddof=1) / n)) / 2


def _in_own_unit(column: np.ndarray) -> tuple[np.ndarray, float]:
    """Deviations from the mean divided by the largest, since squares of tiny numbers underflow; and the largest."""
    away = column - column.mean()
    unit = float(np.abs(away).max())
    return away / unit, unit
