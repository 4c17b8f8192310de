"""Smooth regressions: the variances of their parts are estimated, and models are averaged by their evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from meanmap.bp.conditionals.smooth_parts import SmoothParts

__all__ = ["SmoothRegression"]

# Candidate variances of a part, relative to the noise variance, and the initial one of iterations.
VARIANCES, START = np.geomspace(1e-8, 1e6, 141), 0.05
# The most steps, and the change of the log variances at which they stop.
STEPS, AT_REST = 100, 3e-2
# Residual sums of squares are at least this share of the total, as rounding is not noise.
LEAST_LEFT = 1e-6
# A regression with a smaller share of the evidence is not averaged.
LEAST_SHARE = 0.02


@dataclass(frozen=True, eq=False)
class SmoothRegression:
    """A regression of targets (n, k) on a design: an unpenalised line, and parts with normal weights of one variance.

    Attributes
    ----------
    weights : array (p, k)
    inverse : array (p, p)
        Their covariance given the targets, for noise of variance one; zero for columns that it lacks.
    variances : array (p,)
        Prior variances of the weights, for noise of variance one; 0 for the line, which has no prior.
    evidence : float
        The log likelihood of the targets, averaged over variances, up to a constant of the line and the targets.
    """

    weights: np.ndarray
    inverse: np.ndarray
    variances: np.ndarray
    evidence: float = 0.0

    @classmethod
    def fit(cls, design: np.ndarray, parts: SmoothParts, targets: np.ndarray) -> "SmoothRegression":
        """Fit with all parts."""
        return _Sums.of(design, targets).regression(parts.sizes)

    @classmethod
    def averaged(
        cls, design: np.ndarray, parts: SmoothParts, targets: np.ndarray
    ) -> list[tuple[float, "SmoothRegression"]]:
        """Regressions with more and more parts, each with its share of the evidence: all have the same prior
        probability.
        """
        of_all, sizes = _Sums.of(design, targets), np.array(parts.sizes)
        found = []
        for kept in parts.models:
            columns = np.flatnonzero(np.repeat([True, *kept], sizes))
            one = of_all.among(columns).regression(sizes[np.array([True, *kept])].tolist())
            found.append(one._spread(columns, design.shape[1]))
        shares = np.exp([one.evidence - max(each.evidence for each in found) for one in found])
        shares = np.where(shares < LEAST_SHARE * shares.sum(), 0, shares)
        return [(float(share), one) for share, one in zip(shares / shares.sum(), found, strict=True) if share]

    def _spread(self, columns: np.ndarray, p: int) -> "SmoothRegression":
        """A regression on all p columns, with weights 0 for those that it lacks."""
        weights, inverse, variances = np.zeros((p, self.weights.shape[1])), np.zeros((p, p)), np.zeros(p)
        weights[columns], variances[columns] = self.weights, self.variances
        inverse[np.ix_(columns, columns)] = self.inverse
        return SmoothRegression(weights, inverse, variances, self.evidence)

    def freed(self, gram: np.ndarray, columns: np.ndarray, times: float) -> np.ndarray:
        """`inverse` if weights of some columns had prior variances that are this many times as large."""
        found, has = np.zeros_like(self.inverse), np.flatnonzero(np.diag(self.inverse) > 0)
        variances = np.where(columns, times, 1.0)[has] * self.variances[has]
        penalty = np.divide(1.0, variances, out=np.zeros_like(variances), where=variances > 0)
        found[np.ix_(has, has)] = np.linalg.inv(gram[np.ix_(has, has)] + np.diag(penalty))
        return found

    def __call__(self, design: np.ndarray) -> np.ndarray:
        """Predictions at rows of a design, (m, k)."""
        return design @ self.weights


@dataclass(frozen=True, eq=False)
class _Sums:
    """The sufficient statistics of n rows: products of columns (p, p), with targets (p, k), and of these (k,)."""

    gram: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    n: int

    @classmethod
    def of(cls, design: np.ndarray, targets: np.ndarray) -> "_Sums":
        return cls(design.T @ design, design.T @ targets, np.sum(targets**2, axis=0), len(design))

    def among(self, columns: np.ndarray) -> "_Sums":
        """The sums of some columns."""
        return _Sums(self.gram[np.ix_(columns, columns)], self.sums[columns], self.squares, self.n)

    def regression(self, sizes: Sequence[int]) -> SmoothRegression:
        """Log variances of parts are their means given the targets and the other parts. Before targets are seen,
        standard deviations have a half-Cauchy distribution on the scale of noise (Gelman 2006), which is integrated
        out.

        The evidence is that at these variances, over their density given the targets (Chib 1995), part by part.
        """
        blocks = [slice(first, last) for first, last in pairwise(np.cumsum(sizes).tolist())]
        ratios = np.full(len(blocks), START)
        found, told = self._told(sizes, blocks, ratios)
        for _ in range(STEPS):
            means = np.array([mean for mean, _ in told])
            if (np.abs(np.log(means / ratios)) < AT_REST).all():
                break
            ratios = means
            found, told = self._told(sizes, blocks, ratios)
        evidence = np.linalg.slogdet(found.inverse)[1] - np.dot(sizes[1:], np.log(ratios))
        evidence -= (self.n - sizes[0]) * np.mean(np.log(self._left(found)))
        return replace(found, evidence=0.5 * float(evidence) + sum(gain for _, gain in told))

    def _told(
        self, sizes: Sequence[int], blocks: Sequence[slice], ratios: np.ndarray
    ) -> tuple[SmoothRegression, list[tuple[float, float]]]:
        """The regression with these variances, and the posterior of each."""
        found = self._with(sizes, ratios)
        return found, [
            self._of_part(found, block, ratio, sizes[0]) for block, ratio in zip(blocks, ratios, strict=True)
        ]

    def _of_part(self, found: SmoothRegression, block: slice, ratio: float, line: int) -> tuple[float, float]:
        """For the variance of a part, given those of the others: its posterior geometric mean, and log prior density
        minus log posterior density.
        """
        precisions, turn = np.linalg.eigh(found.inverse[block, block])
        precisions = 1 / precisions
        squares = (precisions[:, None] * (turn.T @ found.weights[block])) ** 2
        own = np.maximum(precisions - 1 / ratio, 0)
        without = self._left(found) + (ratio / (1 + ratio * own)) @ squares
        tried = VARIANCES[:, None]
        left = np.maximum(without - (tried / (1 + tried * own)) @ squares, self._least)
        density = 0.5 * np.log(VARIANCES) - np.log1p(VARIANCES)
        density -= np.log(np.sum(np.exp(density)))
        given = density - 0.5 * (
            np.sum(np.log1p(tried * own), axis=1) + (self.n - line) * np.mean(np.log(left), axis=1)
        )
        given -= given.max()
        given -= np.log(np.sum(np.exp(given)))
        gain = np.interp(np.log(ratio), np.log(VARIANCES), density - given)
        return float(np.exp(np.exp(given) @ np.log(VARIANCES))), float(gain)

    @property
    def _least(self) -> np.ndarray:
        return np.maximum(LEAST_LEFT * self.squares, np.finfo(float).tiny)

    def _left(self, found: SmoothRegression) -> np.ndarray:
        """Sums of squares of the targets with weights integrated out, for noise of variance one."""
        return np.maximum(self.squares - np.sum(found.weights * self.sums, axis=0), self._least)

    def _with(self, sizes: Sequence[int], ratios: np.ndarray) -> SmoothRegression:
        """The regression with these variances of parts, relative to the noise variance."""
        variances = np.repeat([0.0, *ratios], sizes)
        penalty = np.divide(1.0, variances, out=np.zeros_like(variances), where=variances > 0)
        inverse = np.linalg.inv(self.gram + np.diag(penalty))
        return SmoothRegression(inverse @ self.sums, inverse, variances)
