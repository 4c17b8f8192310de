"""Laws of one number that are mixtures over nodes: quantiles of Normals, and Normals in place of points."""

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.core.bisection import bisect

__all__ = ["Normals", "around_points"]

_HALVINGS = 60
# The standard deviation of what takes the place of a point, in that of the points on its side of the mean.
_SMOOTH = 0.5


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
