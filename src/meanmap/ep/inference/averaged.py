"""Models of normal unknowns, linear factors and a few unknown precisions: solved at many values of these, and averaged.

Given the precisions everything is Gaussian. Their own posterior is computed, up to rounding, on a lattice in their
logarithms: the trapezium rule is accurate to many digits for smooth functions that fall on all sides.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from meanmap.core.language import with_and
from meanmap.ep.factor import Factor
from meanmap.ep.factors.gaussian import Dot, Sum
from meanmap.ep.factors.precision import GaussianPrecision
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.block import Block, NotMeasured, System
from meanmap.ep.inference.solved import Solution, beliefs_of, covariances_of, log_density, rows_of
from meanmap.ep.variables import Variable
from meanmap.families import Family, Gamma, MultivariateNormal, Normal

__all__ = ["averaged"]

# This many unknown precisions at most, numbers in dense rows, points, and multiplications; there are no fewer points.
_PRECISIONS, _NUMBERS, _POINTS, _WORK, _LEAST = 3, 10_000_000, 20_000, 2e10, 30
# Rows that are reduced to a triangle, and numbers that are factored, at once.
_ROWS, _TOGETHER = 16_384, 4_000_000
# Points are this many standard deviations of a normal density apart, or, if that is less, units of a logarithm: the
# error of the trapezium rule is then about 1e-7. Points below exp(-25) of the highest are left out.
_APART, _CAP, _DEPTH = 0.8, 0.6, 25.0
# The mode is looked for so far from the prior's mean, in logarithms, and on ever finer grids.
_FAR, _FINER = 60, 0.3 ** np.arange(1, 14)

# Standard deviations that differ by more than this share get a note.
_ROUGH = 0.1


def averaged(model: FactorGraph) -> Solution | None:
    """The solution; None if the model has other parts, or would take too long."""
    precisions = [v for v in model.variables.values() if v.family is Gamma]
    normal = {name: v for name, v in model.variables.items() if v.family in (Normal, MultivariateNormal)}
    noisy = [factor for factor in model.factors if isinstance(factor, GaussianPrecision)]
    if not normal or not noisy or len(normal) + len(precisions) < len(model.variables):
        return None
    if any(v.prior is None for v in precisions) or sum(v.plate or 1 for v in precisions) > _PRECISIONS:
        return None
    if not all(isinstance(factor, Dot | Sum | GaussianPrecision) for factor in model.factors):
        return None
    if all(factor.constant for factor in noisy):
        return None  # Conjugate: messages are exact.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        try:
            return _averaged(model, normal, precisions)
        except (NotMeasured, np.linalg.LinAlgError):
            return None


def _averaged(model: FactorGraph, normal: dict[str, Variable], precisions: list[Variable]) -> Solution:
    problem = _Problem.of(model, normal, precisions)
    middle = problem.mode()
    steps = problem.steps(middle)
    points, heights = problem.lattice(middle, steps)
    shares = np.exp(heights - heights.max())
    volume = np.log(steps).sum()
    evidence = heights.max() + np.log(shares.sum()) + volume + problem.constant(model, normal, precisions, middle)
    shares /= shares.sum()
    gammas = problem.of_precisions(precisions, points, shares)
    beliefs = problem.of_normals(points, shares) | gammas
    if not (np.isfinite(evidence) and all(np.all(belief.is_proper()) for belief in beliefs.values())):
        raise NotMeasured
    return Solution(
        {name: beliefs[name] for name in model.variables},
        float(evidence),
        _not_gamma(gammas, precisions, points, shares),
        problem.system.repeated,
    )


@dataclass
class _Problem:
    """Rows times what nothing defines differ from known numbers by normal noise: of known precision, in the first
    triangle, and of each unknown one in a triangle of its own. The last column of a triangle is what is known.
    """

    block: Block
    system: System
    triangles: np.ndarray  # (1 + unknown precisions, free + 1, free + 1)
    counts: np.ndarray  # of rows, by precision
    known: np.ndarray  # of rows among them whose noise is known
    squares: np.ndarray  # of that noise
    shapes: np.ndarray
    rates: np.ndarray

    @classmethod
    def of(cls, model: FactorGraph, normal: dict[str, Variable], precisions: list[Variable]) -> "_Problem":
        """Reduce all rows to triangles, of a size that does not depend on how many they are."""
        total, places = sum(v.plate or 1 for v in precisions), _places(precisions)
        block = Block.of(normal, _given(model, precisions, np.ones(total)))
        system = block.system({})
        size = len(system.free)
        if not block.is_exact or system.rows.shape[0] * size > _NUMBERS or _LEAST * _work(size, total) > _WORK:
            raise NotMeasured
        counts, known, squares, labels = *np.zeros((3, total)), []
        for factor in model.factors:
            if isinstance(factor, GaussianPrecision):
                mean, x, precision = factor.arguments
                of = np.broadcast_to(places[precision.name].start + precision.index, (factor.plate or 1,))
                counts += np.bincount(of, minlength=total)
                if factor.constant:
                    known += np.bincount(of, minlength=total)
                    off = np.broadcast_to(np.ravel(x.values - mean.values), of.shape)
                    squares += np.bincount(of, off**2, minlength=total)
                else:
                    labels.append(of)
            elif isinstance(factor, Sum) and factor.has_noise:
                labels.append(np.full(factor.plate or 1, -1))
        rows, numbers = rows_of(block, system)
        fixed = len(numbers) - len(system.known)
        label = np.concatenate([np.full(fixed, -1), *labels])
        if not np.isfinite(numbers).all():
            raise NotMeasured
        triangles = np.stack([_triangle(rows[label == at], numbers[label == at]) for at in range(-1, total)])
        priors = [(v.prior, v.plate or 1) for v in precisions]
        shapes = np.concatenate([np.broadcast_to(prior.shape_parameter, plate) for prior, plate in priors])
        rates = np.concatenate([np.broadcast_to(prior.rate, plate) for prior, plate in priors])
        return cls(block, system, triangles, counts, known, squares, shapes, rates)

    @property
    def free(self) -> int:
        return self.triangles.shape[-1] - 1

    def roots(self, points: np.ndarray) -> Iterator[np.ndarray]:
        """For some points at a time the triangle of all rows, divided by the standard deviations of their noise."""
        parts, width = self.triangles.shape[:2]
        together = max(_TOGETHER // (parts * width * width), 1)
        for start in range(0, len(points), together):
            some = points[start : start + together]
            scales = np.concatenate([np.ones((len(some), 1)), np.exp(some / 2)], axis=1)
            stacked = (scales[:, :, None, None] * self.triangles).reshape(len(some), parts * width, width)
            finite = np.isfinite(stacked).all(axis=(1, 2), keepdims=True)
            yield np.asarray(np.linalg.qr(np.where(finite, stacked, 0.0), mode="r"))

    def heights(self, points: np.ndarray) -> np.ndarray:
        """The log density of data and logarithms of precisions, but for a constant; (points, precisions) in."""
        found = []
        for roots in self.roots(points):
            pivots = np.abs(np.diagonal(roots, axis1=1, axis2=2))
            found.append(-np.log(pivots[:, :-1]).sum(1) - pivots[:, -1] ** 2 / 2)
        own = (self.shapes + self.counts / 2) * points - (self.rates + self.squares / 2) * np.exp(points)
        total = np.concatenate(found) + own.sum(1)
        return np.where(np.isfinite(total), total, -np.inf)

    def mode(self) -> np.ndarray:
        """Where the posterior of the logarithms is highest, coordinate by coordinate on finer and finer grids."""
        at = np.log(self.shapes / self.rates)
        for _ in range(2):
            at = self._best(at, np.arange(-_FAR, _FAR + 1.0))
        for step in _FINER:
            at = self._best(at, step * np.arange(-5, 6))
        return at

    def _best(self, at: np.ndarray, moves: np.ndarray) -> np.ndarray:
        for axis in range(len(at)):
            tried = np.repeat(at[None], len(moves), axis=0)
            tried[:, axis] += moves
            heights = self.heights(tried)
            if not np.isfinite(heights.max()):
                raise NotMeasured
            at = tried[int(heights.argmax())]
        return at

    def steps(self, mode: np.ndarray) -> np.ndarray:
        """How far apart points are along each axis, by the distance at which the density has fallen by exp(1/2)."""
        tried = 2.0 ** np.arange(-24, 1)
        top, steps = self.heights(mode[None])[0], np.full(len(mode), _CAP)
        for axis in range(len(mode)):
            moved = np.repeat(mode[None], 2 * len(tried), axis=0)
            moved[:, axis] += np.concatenate([tried, -tried])
            fallen = top - self.heights(moved).reshape(2, -1).max(0)
            within = tried[fallen <= 0.5]
            steps[axis] = min(_CAP, _APART * within.max(initial=tried[0]))
        return steps

    def lattice(self, mode: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All points that are not negligible, found from the mode outwards, with their heights."""
        size = len(mode)
        most = int(min(_POINTS, _WORK / _work(self.free, size)))
        beside = np.concatenate([np.eye(size, dtype=int), -np.eye(size, dtype=int)])
        found: dict[tuple[int, ...], float] = {}
        edge, top = [(0,) * size], -np.inf
        while edge:
            if len(found) + len(edge) > most:
                raise NotMeasured
            heights = self.heights(mode + steps * np.array(edge))
            found |= dict(zip(edge, heights.tolist(), strict=True))
            top = max(top, heights.max())
            high = np.array(edge)[heights > top - _DEPTH]
            around = {tuple(place) for place in (high[:, None] + beside).reshape(-1, size).tolist()}
            edge = sorted(around - found.keys())
        return mode + steps * np.array(list(found)), np.array(list(found.values()))

    def of_normals(self, points: np.ndarray, shares: np.ndarray) -> dict[str, Family]:
        """The mean and covariance of a mixture with one Gaussian for each point."""
        kept = shares > 1e-15 * shares.max()
        points, shares = points[kept], shares[kept] / shares[kept].sum()
        means, within, start = np.zeros((len(points), self.free)), np.zeros((self.free, self.free)), 0
        for roots in self.roots(points):
            root, last = roots[:, :-1, :-1], roots[:, :-1, -1]
            inverse = np.linalg.inv(root)
            some = slice(start, start := start + len(root))
            means[some] = np.einsum("kij,kj->ki", inverse, last)
            within += np.einsum("k,kij,klj->il", shares[some], inverse, inverse, optimize=True)
        mean = shares @ means
        off = means - mean
        covariance = within + (off * shares[:, None]).T @ off
        if not np.isfinite(covariance).all():
            raise NotMeasured
        middle = self.system.spread @ mean + self.system.offset
        return beliefs_of(
            self.block, self.system, middle, lambda spread, length: covariances_of(spread, covariance, length)
        )

    def of_precisions(self, precisions: list[Variable], points: np.ndarray, shares: np.ndarray) -> dict[str, Family]:
        """Gammas with the mean and the mean logarithm of each precision."""
        logs, means = shares @ points, shares @ np.exp(points)
        places = _places(precisions)
        return {
            v.name: Gamma.from_moments(*(each[places[v.name]].reshape(v.shape) for each in (logs, means)))
            for v in precisions
        }

    def constant(
        self, model: FactorGraph, normal: dict[str, Variable], precisions: list[Variable], at: np.ndarray
    ) -> float:
        """What heights leave out: the evidence at one point, computed from the densities, less the height there."""
        from scipy.special import gammaln

        block = Block.of(normal, _given(model, precisions, np.exp(at)))
        root = next(self.roots(at[None]))[0]
        middle = self.system.spread @ np.linalg.solve(root[:-1, :-1], root[:-1, -1]) + self.system.offset
        density = log_density(block, middle) - self.system.log_volume
        given = density + root[-1, -1] ** 2 / 2 - (self.counts - self.known) @ at / 2
        priors = (self.shapes * np.log(self.rates) - gammaln(self.shapes)).sum()
        return float(given + priors + (self.free - self.known.sum()) / 2 * np.log(2 * np.pi))


def _not_gamma(gammas: dict[str, Family], precisions: list[Variable], points: np.ndarray, shares: np.ndarray) -> str:
    """A note that names precisions whose standard deviations are not those of their beliefs; else empty."""
    values = np.exp(points)
    true = np.sqrt(shares @ (values - shares @ values) ** 2)
    wrong = []
    for name, places in _places(precisions).items():
        own, exact = np.ravel(np.asarray(gammas[name].sd())), true[places]
        off = np.abs(np.log(own / exact))
        at = int(off.argmax())
        if off[at] > np.log1p(_ROUGH):
            wrong.append(f"the standard deviation of {name!r} is {exact[at]:.3g}, where the belief has {own[at]:.3g}")
    if not wrong:
        return ""
    return f"the posterior of a precision is not close to a Gamma: means are right, but {with_and(wrong)}"


def _places(precisions: list[Variable]) -> dict[str, slice]:
    """Where the members of each precision are among all."""
    ends = np.cumsum([0, *(v.plate or 1 for v in precisions)]).tolist()
    return {v.name: slice(*between) for v, between in zip(precisions, pairwise(ends), strict=True)}


def _work(free: int, precisions: int) -> float:
    """Multiplications at one point."""
    return 2.0 * (1 + precisions) * (free + 1) ** 3


def _given(model: FactorGraph, precisions: list[Variable], values: np.ndarray) -> tuple[Factor, ...]:
    """The factors of normal unknowns, with these values in place of precisions."""
    by_name = {name: values[places] for name, places in _places(precisions).items()}
    return tuple(_with_precision(factor, by_name) for factor in model.factors if not _conjugate(factor))


def _with_precision(factor: Factor, precisions: dict[str, np.ndarray]) -> Factor:
    if not isinstance(factor, GaussianPrecision):
        return factor
    mean, x, precision = factor.arguments
    values = np.broadcast_to(precisions[precision.name][precision.index], (factor.plate or 1,))
    terms = [argument.values if argument.known else argument for argument in (mean, x)]
    return Sum(terms[0], out=terms[1], precision=values if factor.plate else values[0], name=factor.name)


def _conjugate(factor: Factor) -> bool:
    """Whether a factor says something about a precision alone."""
    return isinstance(factor, GaussianPrecision) and factor.constant


def _triangle(rows: Any, known: np.ndarray) -> np.ndarray:
    """As many rows as columns, with the known numbers as the last one, that leave all sums of squares as they are."""
    width = rows.shape[1] + 1
    found = np.zeros((width, width))
    for start in range(0, rows.shape[0], _ROWS):
        some = slice(start, start + _ROWS)
        found = np.linalg.qr(np.vstack([found, np.column_stack([rows[some].toarray(), known[some]])]), mode="r")
    return np.asarray(found)
