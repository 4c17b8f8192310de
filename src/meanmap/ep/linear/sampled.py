"""Weighted draws of five and more components, from proposals that are fitted to the draws before."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import erf, erfc, erfcinv, erfinv, gammaincinv, gammaln, logsumexp, ndtr, ndtri, stdtrit

from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.lattice import Place
from meanmap.ep.linear.problem import Height, Problem
from meanmap.ep.linear.sites import Settled
from meanmap.ep.linear.surface import SplitNormal

__all__ = ["RADIUS", "Kernels", "Sides", "affordable_draws", "design", "evenly_chosen", "sampled"]

# A central composite design at this radius, times the root of the dimension, as in INLA; with corners up to this many
# dimensions, and beyond with points on axes only.
RADIUS, _CORNERS = 1.1, 6
# The size of a model up to which components are integrated by draws, how many equally weighted draws are enough, the
# most draws, and the most numbers over all draws; each for normal responses with nested factors, with others, and for
# other responses. The size is the number of rows, or for nested factors that of the sums over groups: 25 million of
# these are computed in a second.
_SIZE, _ENOUGH = (300_000, 20_000, 5000), (16_000.0, 4000.0, 800.0)
_DRAWS, _NUMBERS = (32_000, 8000, 2000), (200_000_000, 30_000_000, 1_000_000)
# Draws of the first round; later rounds double all draws, up to a number whose densities fit into memory.
_FIRST, _LAST, _LEAST = 250, 8000, 600
# The most kernels of a proposal, their degrees of freedom, and the share of the first proposal in all later ones.
_KERNELS, _NU, _FLOOR = 500, 6.0, 0.1
# Standard deviations above which probabilities are computed by their leading terms.
_FAR = 30.0


@dataclass(frozen=True, eq=False)
class Tamed:
    """Coordinates y in place of log standard deviations, in which half Normals with these scales are Normals.

    The log of a standard deviation that may be 0 has a long tail, and two that replace each other two such arms.
    """

    columns: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray, phis: np.ndarray, shares: np.ndarray) -> "Tamed":
        """With the root mean squares of weighted points."""
        return cls(columns, np.sqrt(shares @ np.exp(2 * phis[:, columns])))

    def out(self, phis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y of points (n, d), and log |dy / dφ|."""
        y, ratios = phis.copy(), np.exp(phis[:, self.columns]) / self.scales
        half = np.minimum(ratios, _FAR) / 2**0.5
        found = np.where(ratios < 1, ndtri(erf(half)), -ndtri(erfc(half)))
        # Beyond numbers of 64 bits P(|z| > r) = P(z > y) by the leading terms.
        found = np.where(ratios < _FAR, found, np.sqrt(np.maximum(ratios**2 - 2 * np.log(2), 0)))
        y[:, self.columns] = found
        return y, (np.log(2 * ratios) + found**2 / 2 - ratios**2 / 2).sum(1)

    def back(self, y: np.ndarray) -> np.ndarray:
        """Points of y."""
        phis, own = y.copy(), y[:, self.columns]
        near = np.minimum(own, _FAR)
        ratios = 2**0.5 * np.where(own < 0.5, erfinv(ndtr(near)), erfcinv(ndtr(-near)))
        ratios = np.where(own < _FAR, ratios, np.sqrt(own**2 + 2 * np.log(2)))
        phis[:, self.columns] = np.log(np.maximum(ratios, 1e-300) * self.scales)
        return phis


@dataclass(frozen=True, eq=False)
class Kernels:
    """Student distributions about some of the weighted draws before: they follow bent distributions.

    Attributes
    ----------
    chart : Tamed
    centres : (kernels, d) array
    root : (d, d) array
        Of the scale of each kernel.
    """

    chart: Tamed
    centres: np.ndarray
    root: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray, phis: np.ndarray, shares: np.ndarray) -> "Kernels":
        """About draws that are chosen by their shares; the width is Silverman's for Normals."""
        chart = Tamed.of(columns, phis, shares)
        points, size = chart.out(phis)[0], phis.shape[1]
        chosen = evenly_chosen(shares, min(_KERNELS, len(points)))
        width = (4 / ((size + 2) * len(chosen))) ** (1 / (size + 4))
        away = points - shares @ points
        covariance = (away * shares[:, None]).T @ away
        # Few draws may lie in a plane.
        covariance += 1e-6 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        return cls(chart, points[chosen], width * np.linalg.cholesky(covariance))

    def places(self, uniform: np.ndarray) -> np.ndarray:
        """Points φ from uniform numbers (n, d + 2)."""
        noise = ndtri(uniform[:, 2:]) / np.sqrt(2 * gammaincinv(_NU / 2, uniform[:, 1:2]) / _NU)
        return self.chart.back(self.centres[(uniform[:, 0] * len(self.centres)).astype(int)] + noise @ self.root.T)

    def log_density(self, phis: np.ndarray) -> np.ndarray:
        """Of points (n, d)."""
        (points, logs), size = self.chart.out(phis), len(self.root)
        own, others = (np.linalg.solve(self.root, each.T).T for each in (points, self.centres))
        square = np.maximum((own**2).sum(1)[:, None] + (others**2).sum(1) - 2 * own @ others.T, 0.0)
        constant = gammaln((_NU + size) / 2) - gammaln(_NU / 2) - size / 2 * np.log(_NU * np.pi)
        found = logsumexp(-(_NU + size) / 2 * np.log1p(square / _NU), axis=1) - np.log(len(others))
        return logs + found + constant - np.log(np.diag(self.root)).sum()


@dataclass(frozen=True, eq=False)
class Sides:
    """Independent Student variables along axes with the scale of a split Normal on each side of its middle."""

    split: SplitNormal

    def places(self, uniform: np.ndarray) -> np.ndarray:
        """Points from uniform numbers (n, d + 2)."""
        below, above = self.split.sides.T
        even, share = uniform[:, 2:], below / (below + above)
        down, up = even / (2 * share), 0.5 + (even - share) / (2 * (1 - share))
        low, high = (stdtrit(_NU, each) for each in (np.minimum(down, 0.5), np.maximum(up, 0.5)))
        return self.split.middle + np.where(even < share, below * low, above * high) @ self.split.axes.T

    def log_density(self, points: np.ndarray) -> np.ndarray:
        """Of points (n, d)."""
        axes, (below, above) = self.split.axes, self.split.sides.T
        away = np.linalg.solve(axes, (points - self.split.middle).T).T
        square = (away / np.where(away < 0, below, above)) ** 2
        constant = gammaln((_NU + 1) / 2) - gammaln(_NU / 2) - np.log(_NU * np.pi) / 2
        logs = constant - (_NU + 1) / 2 * np.log1p(square / _NU) - np.log((below + above) / 2)
        return logs.sum(1) - np.linalg.slogdet(axes)[1]


def evenly_chosen(shares: np.ndarray, count: int) -> np.ndarray:
    """`count` points, each as often as its share says, up to one."""
    reached = np.cumsum(shares) / shares.sum()
    return np.minimum(np.searchsorted(reached, (np.arange(count) + 0.5) / count), len(shares) - 1)


def affordable_draws(problem: Problem) -> bool:
    """Whether components are integrated by draws, not by the design alone."""
    return problem.size <= _SIZE[_kind(problem)]


def _kind(problem: Problem) -> int:
    return 2 if not problem.family.exact else int(problem.stack is None)


def sampled(
    problem: Problem, chart: Coordinates, first: SplitNormal, laid: dict[tuple[int, ...], Place]
) -> dict[tuple[int, ...], Place]:
    """Draws with the logs of their weights (in axes of `first`), in rounds until they are worth enough equal ones.

    The weights of a round are those of its own proposal, because the density of kernels is too high at their centres;
    rounds count as the equal draws that they are worth.
    """
    size, kind = len(first.middle), _kind(problem)
    most = int(np.clip(_NUMBERS[kind] // problem.size, _LEAST, _DRAWS[kind]))
    # The same numbers for all models, so that nothing depends on chance.
    uniform, volume = np.random.default_rng(0).random((most, size + 2)), float(np.linalg.slogdet(first.axes)[1])
    known, starts = np.array([psi for psi, _, _ in laid.values()]), [height.settled for *_, height in laid.values()]
    phis, heights, logs, worth = np.zeros((0, size)), list[Height](), np.zeros(0), 0.0
    columns, sides, kernels = problem.components.logs_of_sds, Sides(first), None
    while worth < _ENOUGH[kind] and len(phis) < most:
        count = min(max(_FIRST, len(phis)), most - len(phis), _LAST)
        new = uniform[len(phis) : len(phis) + count]
        places = chart.joined(sides.places(new))
        if kernels is not None:
            places = np.where((np.arange(count) < _FLOOR * count)[:, None], places, kernels.places(new))
        psi = chart.split(places)
        near = _nearest(first, psi, known) if kind == 2 else np.zeros(count, int)
        found = problem.heights(places, [starts[at] for at in near], sloped=False)
        own = sides.log_density(psi)
        if kernels is not None:
            floor, rest = np.log(_FLOOR), np.log1p(-_FLOOR) + chart.log_volume
            own = np.logaddexp(floor + own, rest + kernels.log_density(places))
        here = _worth(np.array([height.value for height in found]) - own)
        logs = np.concatenate([logs + np.log(max(worth, 1e-300)), np.log(here) - own - np.log(count)])
        worth += here
        logs -= np.log(worth)
        phis, heights = np.concatenate([phis, places]), heights + found
        values = np.array([height.value for height in heights]) + logs
        shares = np.exp(values - values.max())
        kernels = Kernels.of(columns, phis, shares / shares.sum())
    problem.worth = worth
    psis = chart.split(phis)
    return {(at,): place for at, place in enumerate(zip(psis, (logs - volume).tolist(), heights, strict=True))}


def _worth(logs: np.ndarray) -> float:
    """The effective number of draws with these logarithms of weights."""
    weights = np.exp(logs - logs.max())
    return float(weights.sum() ** 2 / (weights @ weights))


def _nearest(first: SplitNormal, points: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The known point next to each point, in axes."""
    own, others = (np.linalg.solve(first.axes, each.T).T for each in (points, known))
    return ((own[:, None] - others) ** 2).sum(2).argmin(1)


def design(
    problem: Problem, chart: Coordinates, mode: np.ndarray, axes: np.ndarray, best: Settled | None
) -> dict[tuple[int, ...], Place]:
    """The centre, points on axes and corners; exact for the mass and covariance of a Normal."""
    size = len(mode)
    radius = RADIUS * np.sqrt(size)
    points = [sign * radius * np.eye(size)[at] for at in range(size) for sign in (-1.0, 1.0)]
    if size <= _CORNERS:
        points += [RADIUS * np.array(corner) for corner in product((-1.0, 1.0), repeat=size)]
    log_all = size * np.log(2 * np.pi) / 2
    weights = [np.log(1 - RADIUS**-2)] + [radius**2 / 2 - np.log(len(points)) - 2 * np.log(RADIUS)] * len(points)
    places = mode + np.array([np.zeros(size), *points]) @ axes.T
    heights = problem.heights_at(chart, places, [best] * len(places))
    return {
        (at,): (psi, log_all + weight, height)
        for at, (psi, weight, height) in enumerate(zip(places, weights, heights, strict=True))
    }
