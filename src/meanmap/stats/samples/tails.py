"""A bound on a column's standard deviation, which may be larger than observed if few rows have reached its tails."""

import numpy as np
from scipy.special import gammaln, ndtr, stdtr

__all__ = ["inflated_spread"]

# The tail is the tenth of the rows (SHARE) that is farthest from the median. With few rows its share is larger: it has
# up to MANY rows, or up to a share of QUARTER for distributions of excesses. It has at most MOST rows; with fewer than
# LEAST it is not estimated.
SHARE, MANY, QUARTER, LEAST, MOST = 0.1, 100, 0.25, 5, 200
# Shapes of tails have equal prior weights. A shape is one over the degrees of freedom of a t distribution: from a half
# on the standard deviation is infinite. Widths are in units of the median distance and of the mean excess.
SHAPES, WIDTHS = np.linspace(0, 1, 41), np.geomspace(1 / 6, 6, 37)
PARETO, PARETO_WIDTHS = np.linspace(-0.5, 1.5, 41), np.geomspace(0.25, 3.0, 25)
# The confidence in the largest standard deviation, and its normal quantile. With .975 a fifth of samples of 60 normal
# rows, and nearly all of 30, would not determine whether there is a standard deviation; with .9 it is 3% and 40%.
CERTAIN, QUANTILE = 0.9, 1.2815515655446004
# The median distance from the median of a standard normal distribution, and degrees of freedom of a t distribution that
# is practically normal.
MEDIAN, NORMAL = 0.6744897501960817, 1e6


def inflated_spread(numbers: np.ndarray) -> float:
    """The 90% quantile of the ratio of the true standard deviation to that of these numbers, minus 1, divided by 1.28.

    If the log standard deviation were normal, this would be its standard error. It is infinite if tails are so heavy
    that the numbers do not determine whether there is a standard deviation. Two models of the distances from the median
    are fitted. In the first they have a t distribution, and rows outside of the tail are only counted. In the second,
    distances in the tail exceed its threshold by a generalised Pareto distribution (Pickands 1975). Shapes and widths
    of both are weighted by their likelihood, and the smaller of the two quantiles is used. The t distributions
    recognise normal tails from few rows, and the Pareto distributions recognise a skewed distribution without heavy
    tails. If most numbers in the tail are repeated, they are on a scale with a known end, and the result is zero.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> inflated_spread(rng.normal(size=500)) < 0.1, inflated_spread(np.exp(1.5 * rng.normal(size=500)))
    (True, inf)
    """
    far, n = np.abs(numbers - np.median(numbers)), len(numbers)
    most = min(max(int(SHARE * n), min(MANY, n - 1)), MOST)
    if most < LEAST:
        return 0.0
    far = np.concatenate([[np.median(far)], np.sort(np.partition(far, n - most - 1)[n - most - 1 :])])
    middle, ordered = far[0], far[1:]
    total = float(np.sum((numbers - numbers.mean()) ** 2))
    least = np.inf
    for law, k in ((_student, most), (_pareto, min(max(int(SHARE * n), min(MANY, int(QUARTER * n))), most))):
        threshold, tail = ordered[-k - 1], ordered[-k:]
        if 2 * len(np.unique(tail)) < k or threshold == tail[-1]:
            return 0.0
        squares = law(n, threshold, tail, middle)
        least = min(least, max((total + squares - float(np.sum(tail**2))) / total, 1.0))
        if least == 1:
            break
    return float(np.sqrt(least) - 1) / QUANTILE


def _student(n: int, threshold: float, tail: np.ndarray, middle: float) -> float:
    """The quantile of the sum of squares in the tail under t distributions; rows outside of it are only counted."""
    free = np.where(SHAPES > 0, 1 / np.maximum(SHAPES, 1e-9), NORMAL)[:, None]
    widths = WIDTHS * (middle / MEDIAN if middle > 0 else tail.mean())
    begins = threshold / widths
    constant = gammaln((free + 1) / 2) - gammaln(free / 2) - 0.5 * np.log(free) - np.log(widths)
    logs = np.log1p((tail / widths[:, None]) ** 2 / free[..., None]).sum(axis=-1)
    inside = np.log(np.maximum(1 - 2 * stdtr(free, -begins), 1e-300))
    likelihood = len(tail) * constant - (free + 1) / 2 * logs + (n - len(tail)) * inside
    with np.errstate(invalid="ignore", divide="ignore"):
        # t² is ν (1 + t²/ν) − ν, and (1 + t²/ν) times the density with ν degrees of freedom is that with ν − 2 up to
        # scale.
        narrower = stdtr(free - 2, -begins * np.sqrt((free - 2) / free))
        squares = free * ((free - 1) / (free - 2) * narrower - stdtr(free, -begins))
    normal = ndtr(-begins) + begins * np.exp(-(begins**2) / 2) / np.sqrt(2 * np.pi)
    squares = np.where(free == NORMAL, normal, np.where(free > 2, squares, np.inf))
    return _largest(likelihood, 2 * n * widths**2 * squares)


def _pareto(n: int, threshold: float, tail: np.ndarray, middle: float) -> float:
    """The quantile of the sum of squares in the tail under generalised Pareto distributions of excesses."""
    excess = tail - threshold
    widths, y = PARETO_WIDTHS, excess / excess.mean()
    shapes = np.where(PARETO == 0, 1e-9, PARETO)[:, None]
    inside = 1 + shapes[..., None] * y / widths[:, None]
    logs = np.log(np.maximum(inside, 1e-300)).sum(axis=-1)
    likelihood = np.where(inside.min(axis=-1) > 0, -len(tail) * np.log(widths) - (1 + 1 / shapes) * logs, -np.inf)
    # E (threshold + excess)² of each distribution replaces the mean square of the tail.
    first = widths / np.maximum(1 - shapes, 1e-9)
    second = 2 * widths**2 / np.maximum((1 - shapes) * (1 - 2 * shapes), 1e-9)
    square = threshold**2 + 2 * threshold * excess.mean() * first + excess.mean() ** 2 * second
    return _largest(likelihood, len(tail) * np.where(shapes < 0.5, square, np.inf))


def _largest(likelihood: np.ndarray, squares: np.ndarray) -> float:
    """The quantile of the sums of squares of several distributions, weighted by likelihood."""
    weight = np.exp(likelihood - likelihood.max())
    order = np.argsort(squares, axis=None)
    reached = np.cumsum(weight.ravel()[order]) / weight.sum()
    return float(squares.ravel()[order][np.searchsorted(reached, CERTAIN)])
