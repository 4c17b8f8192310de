"""The posterior of the components between nodes: from heights at those of a lattice, or, for five and more components,
from weighted draws or a design.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

__all__ = ["Drawn", "SplitNormal", "Surface", "even_points"]

# Steps between nodes are 1 in half spacings: nodes within this distance of a point have a say in its height.
_RADIUS = 2.0
# The number of points in all cells of nodes, and that in each cell next to these.
_POINTS, _LEAST = 60_000, 24
# The least and greatest standard deviation of one side of an axis, in those by the curvature at the mode.
_NARROW, _WIDE = 0.25, 4.0
# Of nodes that lie farther below the top, in log probability, the height alone counts: where the log density is steep,
# it is no parabola.
_FAR = 14.0
# How much the curvature at the mode counts in a direction in which a node has no neighbour.
_PRIOR = 0.1


@dataclass(frozen=True, eq=False)
class Surface:
    """Heights of a log density at nodes that are all even or all odd multiples of half a spacing.

    Attributes
    ----------
    nodes : (n, d) array of int
    steps : (steps, d) array of int
        From a node to its neighbours; with each its opposite.
    heights : (n,) array
    slopes : (n, d) array
        By steps of 1.
    curvature : number
        Of minus the log density at the mode, in all directions.
    middle, axes : (d,) and (d, d) arrays
        From nodes to coordinates: middle + axes · node.
    """

    nodes: np.ndarray
    steps: np.ndarray
    heights: np.ndarray
    slopes: np.ndarray
    curvature: float
    middle: np.ndarray
    axes: np.ndarray

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates (points, d) with shares, always the same: evenly in the cells of nodes and of their neighbours.

        Every node has an expansion to second order, and a point the mean of those of the nodes near it, whose third
        orders cancel.
        """
        points, logs, curvatures = [], [], self._curvatures()
        for cells, count in ((self.nodes, max(_LEAST, _POINTS // len(self.nodes))), (self._neighbours(), _LEAST)):
            within = _evenly(count, cells.shape[1])
            points.append((cells[:, None] + within).reshape(-1, cells.shape[1]))
            logs.append(self._in_cells(cells, within, curvatures) - np.log(count))
        log_shares = np.concatenate(logs)
        shares = np.exp(log_shares - log_shares.max())
        return self.middle + np.concatenate(points) @ self.axes.T, shares / shares.sum()

    @property
    def elsewhere(self) -> float:
        """How much of the probability the heights between nodes put into other cells than the nodes have it in."""
        curvatures, within = self._curvatures(), _evenly(_LEAST, self.nodes.shape[1])
        logs = [self._in_cells(cells, within, curvatures) for cells in (self.nodes, self._neighbours())]
        top = max(each.max() for each in logs)
        own, beside = (np.exp(each - top).reshape(-1, _LEAST).sum(1) for each in logs)
        at_nodes, total = np.exp(self.heights - self.heights.max()), own.sum() + beside.sum()
        return float((np.abs(own / total - at_nodes / at_nodes.sum()).sum() + beside.sum() / total) / 2)

    def _in_cells(self, cells: np.ndarray, within: np.ndarray, curvatures: np.ndarray) -> np.ndarray:
        """Heights at these places of each cell."""
        total = sums = np.zeros((len(cells), len(within)))
        top = self.heights.max()
        known = self.heights >= top - _FAR
        slopes, curvatures = self.slopes * known[:, None], curvatures * known[:, None, None]
        for step in np.concatenate([np.zeros((1, cells.shape[1]), int), self.steps]):
            at = self._places(cells + step)
            away = within - step
            near = np.maximum(1 - (away**2).sum(1) / _RADIUS**2, 0.0) ** 3 * (at >= 0)[:, None]
            bent = np.einsum("nab,ma,mb->nm", curvatures[at], away, away, optimize=True)
            sums = sums + near * np.minimum(self.heights[at, None] + slopes[at] @ away.T - bent / 2, top)
            total = total + near
        # A point in a cell without a node may be beyond the reach of all nodes: nothing is there.
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(total > 0, sums / total, -np.inf).ravel()

    def _curvatures(self) -> np.ndarray:
        """Minus the second derivatives at each node, (n, d, d), from its neighbours; none is negative.

        In a direction with neighbours on both sides four times what the value is beyond the slope, less what the slope
        changes, has no third and no fourth order; in one with a neighbour on one side six, and two, has no third.
        """
        size = self.nodes.shape[1]
        upper = np.triu_indices(size)
        twice = np.where(upper[0] == upper[1], 1.0, 2.0)
        opposite = [int(np.flatnonzero((self.steps == -step).all(1))[0]) for step in self.steps]
        beside = np.stack([self._places(self.nodes + step) for step in self.steps], axis=1)
        there = beside >= 0
        both = there & there[:, opposite]
        along = self.slopes @ self.steps.T
        beyond = self.heights[beside] - self.heights[:, None] - along
        turned = np.einsum("nsa,sa->ns", self.slopes[beside], self.steps) - along
        seconds = np.where(both, 4 * beyond - turned, 6 * beyond - 2 * turned)
        lengths = (self.steps**2).sum(1)
        weights = np.where(there, 1.0, np.where(there[:, opposite], 0.0, _PRIOR)) / lengths**2
        wanted = np.where(there, -seconds, self.curvature * lengths)
        columns = self.steps[:, upper[0]] * self.steps[:, upper[1]] * twice
        gram = np.einsum("ns,sa,sb->nab", weights, columns, columns)
        solved = np.linalg.solve(gram, ((weights * wanted) @ columns)[..., None])[..., 0]
        found = np.empty((len(self.nodes), size, size))
        found[:, upper[0], upper[1]] = found[:, upper[1], upper[0]] = solved
        # Far below the top, where differences over a step say little, heights would rise without bound.
        values, vectors = np.linalg.eigh(found)
        return np.einsum("nab,nb,ncb->nac", vectors, np.maximum(values, 0.0), vectors)

    def _neighbours(self) -> np.ndarray:
        """Places beside nodes that are none."""
        around = np.unique((self.nodes[:, None] + self.steps).reshape(-1, self.nodes.shape[1]), axis=0)
        return around[self._places(around) < 0]

    def _places(self, nodes: np.ndarray) -> np.ndarray:
        """Which nodes these are, −1 for none."""
        reach = int(np.abs(self.nodes).max()) + 4
        powers = (2 * reach + 1) ** np.arange(self.nodes.shape[1])
        own, asked = (self.nodes + reach) @ powers, (nodes + reach) @ powers
        order = np.argsort(own)
        at = order[np.minimum(np.searchsorted(own[order], asked), len(own) - 1)]
        return np.where(own[at] == asked, at, -1)


@dataclass(frozen=True, eq=False)
class SplitNormal:
    """Independent split Normals along axes: each side has its own standard deviation, from the height at one point.

    Attributes
    ----------
    radius : number
        The distance of these points from the middle, in axes.
    drops : (d, 2) array
        How far the log density falls from the middle to the points below and above on each axis.
    middle, axes : (d,) and (d, d) arrays
    """

    radius: float
    drops: np.ndarray
    middle: np.ndarray
    axes: np.ndarray

    @property
    def sides(self) -> np.ndarray:
        """Standard deviations (d, 2) below and above, in axes."""
        return np.clip(self.radius / np.sqrt(2 * np.maximum(self.drops, 1e-9)), _NARROW, _WIDE)

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates (points, d) with shares, always the same."""
        return self.some(_POINTS)[0], np.full(_POINTS, 1 / _POINTS)

    def some(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """`count` points, (count, d), always the same, and log densities there up to a constant."""
        below, above = self.sides.T
        even, share = even_points(count, len(self.middle)), below / (below + above)
        down, up = even / (2 * share), 0.5 + (even - share) / (2 * (1 - share))
        places = np.where(even < share, ndtri(np.minimum(down, 0.5)), ndtri(np.maximum(up, 0.5)))
        sides = np.where(even < share, below, above)
        return self.middle + (places * sides) @ self.axes.T, -(places**2).sum(1) / 2


@dataclass(frozen=True, eq=False)
class Drawn:
    """Weighted draws (n, d) with their shares."""

    psi: np.ndarray
    shares: np.ndarray

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates (n, d) with shares."""
        return self.psi, self.shares


def even_points(count: int, size: int) -> np.ndarray:
    """Points (count, size) that fill the unit cube evenly."""
    # Multiples of powers of the root of x^(d + 1) = x + 1 (Roberts 2018).
    base = 1.5
    for _ in range(40):
        base = (1 + base) ** (1 / (size + 1))
    return (np.arange(1, count + 1)[:, None] * base ** -np.arange(1.0, size + 1) + 0.5) % 1


def _evenly(count: int, size: int) -> np.ndarray:
    """Points (count, size) nearer to 0 than to other nodes of the lattice, evenly."""
    points = 2 * even_points(count, size) - 1
    if size == 1:
        return points
    # Half of a cube of even multiples is as large as a cell; what is nearer to another node is moved by it.
    points[:, -1] /= 2
    odd = 2 * np.round((points - 1) / 2) + 1
    whole = 2 * np.round(points / 2)
    nearest = np.where(((points - odd) ** 2).sum(1) < ((points - whole) ** 2).sum(1), odd.T, whole.T).T
    return points - nearest
