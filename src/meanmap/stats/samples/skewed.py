"""Differences of means and the distribution of Welch's statistic, by permutations if numbers are skewed."""

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, stdtr, stdtrit

from meanmap.stats.samples.cells import Cells

__all__ = ["Law", "law_of_means", "means_of"]

# Without a difference the skewness of a difference of means is that of the numbers, times a factor that is zero for
# samples of one size. Beyond this value permutations replace the t distribution: at it, the .001 quantile of a normal
# distribution corresponds to a probability of about .002.
SKEWED = 0.2
# Skewness of the numbers is counted as far as it exceeds that of normal numbers by this many standard errors.
ERRORS = 2.0
# A quantile is the order statistic of this many draws, of at most MOST and at least LEAST permutations. With more rows
# in the smaller sample than UNITS, random units of equally many rows of one sample are permuted.
BEYOND, LEAST, MOST, UNITS = 10, 2000, 20_000, 1000


class Law(NamedTuple):
    """The distribution of the difference of two means over its standard error, without a difference of the samples:
    t with some degrees of freedom, or the sorted values of permutations, whose number may be limited by the rows.
    """

    freedom: float
    draws: np.ndarray | None = None
    least: float = 0.0

    def quantiles(self, level: float) -> tuple[float, float]:
        """The quantiles at level/2 and 1 − level/2; infinite if so few rows cannot exclude anything at this level."""
        if self.draws is None:
            half = float(stdtrit(self.freedom, 1 - level / 2))
            return -half, half
        if self.least > level / 2:
            return -np.inf, np.inf
        beyond = max(int(level / 2 * (len(self.draws) + 1)), 1) - 1
        return float(self.draws[beyond]), float(self.draws[-1 - beyond])

    def pvalue(self, value: float) -> float:
        """The two-sided p-value of an observed difference over its standard error."""
        if self.draws is None:
            return float(2 * stdtr(self.freedom, -abs(value)))
        n = len(self.draws)
        near = 1e-9 * max(abs(value), 1.0)
        below = int(np.searchsorted(self.draws, value + near, side="right"))
        above = n - int(np.searchsorted(self.draws, value - near, side="left"))
        return min(2 * (1 + min(below, above)) / (n + 1), 1.0)


def means_of(x: np.ndarray, y: np.ndarray, cells: Cells | None) -> tuple[float, float, float, float]:
    """Two means, the standard error of their difference, and its degrees of freedom, by Welch (1947) without cells."""
    if cells is not None:
        return cells.compared(np.concatenate([x, y]))
    shares = np.array([column.var(ddof=1) / len(column) for column in (x, y)])
    total = float(shares.sum())
    freedom = 1 / np.sum((shares / total) ** 2 / [len(x) - 1, len(y) - 1]) if total > 0 else np.inf
    return float(x.mean()), float(y.mean()), float(np.sqrt(total)), float(freedom)


def law_of_means(x: np.ndarray, y: np.ndarray, freedom: float, level: float) -> Law:
    """The distribution of Welch's statistic: t with these degrees of freedom, or for skewed numbers and samples of
    different sizes that of permutations, which is exact if the samples have the same distribution (Janssen 1997).

    Few values of a skewed column say little about its tail: the standard error is then too small where the mean is too
    small, and intervals by the t distribution exclude zero far too often.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> spent = np.exp(1.5 * rng.normal(size=500))
    >>> low, high = law_of_means(spent[:480], spent[480:], 19.0, 0.01).quantiles(0.01)
    >>> bool(low < -4), bool(high < 2.86)
    (True, True)
    >>> law_of_means(spent[:250], spent[250:], 400.0, 0.01).draws is None
    True
    """
    if not _is_skewed(x, y):
        return Law(freedom)
    few, many = sorted((x, y), key=len)
    generator = np.random.default_rng(0)
    size = -(-len(few) // UNITS)
    first, second = (_units(each, size, generator) for each in (few, many))
    pooled = np.concatenate([first, second], axis=1)
    least = float(np.exp(np.log(pooled.shape[1] + 1) + betaln(len(second[0]) + 1, len(first[0]) + 1)))
    number = int(np.clip(2 * BEYOND / level, LEAST, MOST))
    draws = _permuted(pooled, size, first.shape[1], number, generator)
    return Law(freedom, np.sort(draws if few is y else -draws), least)


def _is_skewed(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the difference of means of two samples of these numbers is skewed."""
    n, m = len(x), len(y)
    away = np.concatenate([x - x.mean(), y - y.mean()])
    variance = float(np.mean(away**2))
    if n == m or not variance > 0:
        return False
    skewness = abs(float(np.mean((away / np.sqrt(variance)) ** 3))) - ERRORS * np.sqrt(6 / (n + m))
    return skewness * abs(n - m) > SKEWED * np.sqrt(float(n) * m * (n + m))


def _units(column: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """The sums of numbers, and of their squares, of random units of equally many rows."""
    number = len(column) // size
    if size > 1:
        column = generator.permutation(column)[: number * size]
    parts = column.reshape(number, size)
    return np.stack([parts.sum(axis=1), (parts**2).sum(axis=1)])


def _permuted(pooled: np.ndarray, size: int, few: int, number: int, generator: np.random.Generator) -> np.ndarray:
    """The mean of a random part of `few` units minus that of all others over its standard error, many times."""
    every = pooled.shape[1]
    n, m, whole = size * few, size * (every - few), pooled.sum(axis=1)
    sums = np.empty((number, 2))
    for k in range(number):
        sums[k] = pooled[:, generator.choice(every, few, replace=False, shuffle=False)].sum(axis=1)
    variance = np.zeros(number)
    for part, rows in ((sums, n), (whole - sums, m)):
        squares = np.maximum(part[:, 1] - part[:, 0] ** 2 / rows, 0.0)
        variance += np.where(squares > 1e-12 * whole[1], squares, 0.0) / (rows * (rows - 1))
    by = sums[:, 0] / n - (whole[0] - sums[:, 0]) / m
    error = np.sqrt(variance)
    return np.divide(by, error, out=np.where(by == 0, 0.0, np.copysign(np.inf, by)), where=error > 0)
