"""Mixtures over nodes: their quantiles, and mixtures of Normals that replace point masses."""

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.core.bisection import crossing
from meanmap.core.intervals import ends
from meanmap.ep.linear.surface import even_points

__all__ = ["GRID", "Normals", "Shaped", "Smooth", "around_points", "levels_of", "quantiles"]

# Up to which probability quantiles are found.
_WITHIN = 1e-10
# Numbers whose distribution functions are computed at once.
_PIECE = 200_000
# Where non-normal distributions are tabulated, in standard deviations.
GRID = np.linspace(-8.0, 8.0, 257)
# A sum is treated as Normal unless a skewed term has at least this share of its standard deviation.
_LOST = 0.25
# The standard deviation of the Normal that replaces a point, relative to that of the points on the same side of the
# mean.
_SMOOTH = 0.5
# The number of points that replace all nodes, and the smallest number for each.
_POINTS, _LEAST = 20_000, 32


class Normals:
    """Mixtures of Normals, one in each row of means and sds (n, nodes), with shares of the nodes."""

    def __init__(self, means: np.ndarray, sds: np.ndarray, shares: np.ndarray):
        self.means, self.sds, self.shares = means, np.maximum(sds, np.finfo(float).tiny), shares

    def below(self, z: np.ndarray) -> np.ndarray:
        """The standardised distribution functions, (n, nodes)."""
        return ndtr(z)

    @property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each."""
        mean = self.means @ self.shares
        return mean, np.sqrt((self.sds**2 + (self.means - mean[:, None]) ** 2) @ self.shares)

    def taken(self, rows: slice) -> "Normals":
        """Some of them."""
        return Normals(self.means[rows], self.sds[rows], self.shares)

    def quantiles(self, p: float) -> np.ndarray:
        """The quantiles of p of each."""
        step, count = max(1, _PIECE // len(self.shares)), len(self.means)
        pieces = [self.taken(slice(at, at + step)) for at in range(0, count, step)]
        return np.concatenate([np.zeros(0), *(piece._quantiles(p) for piece in pieces)])

    def _quantiles(self, p: float) -> np.ndarray:
        least, most = self._reach(p)
        low, high = (self.means + least * self.sds).min(1), (self.means + most * self.sds).max(1)

        def beyond(x: np.ndarray) -> np.ndarray:
            return self.below((x[:, None] - self.means) / self.sds) @ self.shares - p

        return crossing(beyond, low, high, _WITHIN)

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the equal-tailed interval."""
        low, high = ends(level)
        return self.quantiles(low), self.quantiles(high)

    def _reach(self, p: float) -> tuple[np.ndarray, np.ndarray]:
        """Between which each part has its quantile of p, in its standard deviations."""
        return ndtri(p), ndtri(p)


class Shaped(Normals):
    """Mixtures of distributions, some of which are not normal.

    `functions` are standardised distribution functions at `GRID`, (bent, nodes, grid), of the mixtures listed in
    `bent`; `by_runs` lists those computed by runs with their values held, and `by_draws` those of draws of all effects.
    """

    def __init__(
        self,
        means: np.ndarray,
        sds: np.ndarray,
        shares: np.ndarray,
        bent: np.ndarray,
        functions: np.ndarray,
        by_runs: tuple[int, ...] = (),
        by_draws: tuple[int, ...] = (),
    ):
        super().__init__(means, sds, shares)
        self.bent, self.functions, self.by_runs, self.by_draws = bent, functions, by_runs, by_draws

    def below(self, z: np.ndarray) -> np.ndarray:
        """The standardised distribution functions, (n, nodes)."""
        found = ndtr(z)
        place = np.clip((z[self.bent] - GRID[0]) / (GRID[1] - GRID[0]), 0, len(GRID) - 1)
        left = np.minimum(place.astype(int), len(GRID) - 2)[..., None]
        low, high = (np.take_along_axis(self.functions, left + k, axis=2)[..., 0] for k in (0, 1))
        found[self.bent] = low + (place - left[..., 0]) * (high - low)
        return found

    def taken(self, rows: slice) -> "Shaped":
        """Some of them."""
        there = (self.bent >= rows.start) & (self.bent < rows.stop)
        bent = self.bent[there] - rows.start
        return Shaped(self.means[rows], self.sds[rows], self.shares, bent, self.functions[there])

    def replaced(self, chosen: np.ndarray, draws: np.ndarray) -> "Shaped":
        """With the distributions of equally weighted draws (chosen, nodes, draws) for some."""
        means, sds = self.means.copy(), self.sds.copy()
        means[chosen], sds[chosen] = draws.mean(2), draws.std(2)
        places = np.sort((draws - means[chosen][:, :, None]) / sds[chosen][:, :, None], axis=2)
        even = (np.arange(draws.shape[2]) + 0.5) / draws.shape[2]
        found = [[np.interp(GRID, each, even, 0.0, 1.0) for each in own] for own in places]
        left = ~np.isin(self.bent, chosen)
        bent = np.concatenate([self.bent[left], chosen])
        functions = np.concatenate([self.functions[left], np.array(found)])
        runs, drawn = (tuple(at for at in self.by_runs if at not in chosen), tuple(chosen.tolist()))
        return Shaped(means, sds, self.shares, bent, functions, runs, drawn)

    def at_node(self, node: int) -> "Shaped":
        """The distributions given a node."""
        here = slice(node, node + 1)
        functions = self.functions[:, here]
        return Shaped(
            self.means[:, here], self.sds[:, here], np.ones(1), self.bent, functions, self.by_runs, self.by_draws
        )

    def widened(self, variances: np.ndarray) -> "Shaped":
        """The distributions after adding independent Normals of these variances (n, nodes)."""
        sds, functions = np.sqrt(self.sds**2 + variances), self.functions.copy()
        steps = np.linspace(-8.0, 8.0, 81)
        weights = ndtr(steps + 0.1) - ndtr(steps - 0.1)
        for at, one in enumerate(self.bent):
            for node in np.flatnonzero(variances[one]):
                here, noise = self.sds[one, node] / sds[one, node], np.sqrt(variances[one, node]) / sds[one, node]
                if here < _LOST:
                    functions[at, node] = ndtr(GRID)
                else:
                    places = (GRID[:, None] - noise * steps) / here
                    functions[at, node] = np.interp(places, GRID, self.functions[at, node], 0.0, 1.0) @ weights
        return Shaped(self.means, sds, self.shares, self.bent, functions)

    def values(self, z: np.ndarray, node: int) -> np.ndarray:
        """Values (n, z) at a node, for standard Normal z."""
        places = np.tile(z, (len(self.means), 1))
        for at, function in zip(self.bent, self.functions[:, node], strict=True):
            # Rounding keeps the function below 1, or makes it 1 before the end.
            end = GRID[int(np.argmax(function >= function[-1]))]
            places[at] = np.minimum(np.interp(ndtr(z), function, GRID), end)
        return self.means[:, node, None] + self.sds[:, node, None] * places

    def from_normal(self, node: int, z: np.ndarray) -> np.ndarray:
        """Draws (draws, n) at a node with these shapes, from standard Normal ones."""
        z = z.copy()
        for at, function in zip(self.bent, self.functions[:, node], strict=True):
            z[:, at] = np.interp(ndtr(z[:, at]), function, GRID)
        return self.means[:, node] + self.sds[:, node] * z

    def _reach(self, p: float) -> tuple[np.ndarray, np.ndarray]:
        """Between which each part has its quantile of p, in its standard deviations."""
        low, high = (np.full(self.means.shape, ndtri(p)) for _ in range(2))
        at = (self.functions < p).sum(2)
        low[self.bent], high[self.bent] = GRID[np.maximum(at - 1, 0)], GRID[np.minimum(at, len(GRID) - 1)]
        return low, high


def around_points(points: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and sds of Normals in place of points (nodes, d): the same mean and variances, column by column.

    Points below the mean are replaced by Normals that are as wide as those points lie, and likewise above: a standard
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
    """A smooth distribution in place of weighted points (nodes, d): `around_points` along their principal axes.

    A small difference of poorly identified coordinates may be well identified; it stays small.
    """

    def __init__(self, points: np.ndarray, shares: np.ndarray):
        self.middle, self.shares = shares @ points, shares
        away = points - self.middle
        self.axes = np.linalg.eigh((away * shares[:, None]).T @ away)[1]
        self.means, self.sds = around_points(away @ self.axes, shares)

    def draws(self, taken: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Draws about the nodes, `taken` about each, one node after the other."""
        noise = generator.normal(size=(int(taken.sum()), len(self.middle)))
        return self.middle + (np.repeat(self.means, taken, 0) + np.repeat(self.sds, taken, 0) * noise) @ self.axes.T

    def many(self) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, d) with shares, always the same."""
        nodes, size = self.means.shape
        count = max(_LEAST, _POINTS // nodes)
        # A few points are not even in many dimensions: those of one node make up for those of others.
        even = even_points(nodes * count, size).reshape(nodes, count, size)
        found = self.means[:, None] + self.sds[:, None] * ndtri(even)
        return self.middle + found.reshape(-1, size) @ self.axes.T, np.repeat(self.shares / count, count)


def quantiles(values: np.ndarray, shares: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Of points with shares."""
    order = np.argsort(values)
    return np.interp(p, np.cumsum(shares[order]) - shares[order] / 2, values[order])


def levels_of(values: np.ndarray, points: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The probability below each value, of points with shares."""
    order = np.argsort(points)
    return np.interp(values, points[order], np.cumsum(shares[order]) - shares[order] / 2)
