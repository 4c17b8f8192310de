"""Laws that are mixtures over nodes: quantiles of Normals, and Normals in place of points."""

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.core.bisection import bisect

__all__ = ["Normals", "Smooth", "around_points", "quantiles"]

_HALVINGS = 60
# The standard deviation of what takes the place of a point, in that of the points on its side of the mean.
_SMOOTH = 0.5
# Points in place of all points, and in place of each at the least.
_POINTS, _LEAST = 20_000, 32


class Normals:
    """Mixtures of Normals, one in each row of means and sds (n, nodes), with shares of the nodes."""

    def __init__(self, means: np.ndarray, sds: np.ndarray, shares: np.ndarray):
        self.means, self.sds, self.shares = means, np.maximum(sds, np.finfo(float).tiny), shares

    @property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each."""
        mean = self.means @ self.shares
        return mean, np.sqrt((self.sds**2 + (self.means - mean[:, None]) ** 2) @ self.shares)

    def quantiles(self, p: float) -> np.ndarray:
        """Below which each has the probability p."""
        reach = ndtri(p) * self.sds
        low, high = (self.means + reach).min(1), (self.means + reach).max(1)

        def short(x: np.ndarray) -> np.ndarray:
            return ndtr((x[:, None] - self.means) / self.sds) @ self.shares < p

        below, above = bisect(short, low, high, _HALVINGS)
        return (below + above) / 2

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Its ends, with the same probability outside of each."""
        return self.quantiles((1 - level) / 2), self.quantiles((1 + level) / 2)


def around_points(points: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and sds of Normals in place of points (nodes, d): the same mean and variances, column by column.

    Points below the mean give way to Normals that are as wide as those points lie, and likewise above: a standard
    deviation that may be 0 has a log with a long tail below and none above.
    """
    middle = shares @ points
    away = points - middle
    above = away > 0
    sides = []
    for side in (~above, above):
        mass = np.maximum(shares @ side, np.finfo(float).tiny)
        sides.append(np.sqrt(shares @ np.where(side, away**2, 0.0) / mass))
    shrink = np.sqrt(1 + _SMOOTH**2)
    return middle + away / shrink, np.where(above, sides[1], sides[0]) * _SMOOTH / shrink


class Smooth:
    """A law that is smooth, in place of points (nodes, d) with shares: `around_points` along their principal axes.

    What the data tell well may be a small difference of coordinates that they tell badly; it stays small.
    """

    def __init__(self, points: np.ndarray, shares: np.ndarray):
        self.middle, self.shares = shares @ points, shares
        away = points - self.middle
        self.axes = np.linalg.eigh((away * shares[:, None]).T @ away)[1]
        self.means, self.sds = around_points(away @ self.axes, shares)

    def draws(self, taken: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """So many about each node, one node after the other."""
        noise = generator.normal(size=(int(taken.sum()), len(self.middle)))
        return self.middle + (np.repeat(self.means, taken, 0) + np.repeat(self.sds, taken, 0) * noise) @ self.axes.T

    def many(self) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, d) with shares, always the same."""
        count, size = max(_LEAST, _POINTS // len(self.means)), len(self.middle)
        # Multiples of powers of the root of x^(d + 1) = x + 1 fill a cube evenly (Roberts 2018).
        base = 1.5
        for _ in range(40):
            base = (1 + base) ** (1 / (size + 1))
        even = (np.arange(1, count + 1)[:, None] * base ** -np.arange(1.0, size + 1) + 0.5) % 1
        found = self.means[:, None] + self.sds[:, None] * ndtri(even)
        return self.middle + found.reshape(-1, size) @ self.axes.T, np.repeat(self.shares / count, count)


def quantiles(values: np.ndarray, shares: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Of points with shares."""
    order = np.argsort(values)
    return np.interp(p, np.cumsum(shares[order]) - shares[order] / 2, values[order])
