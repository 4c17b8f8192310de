"""Regressions for likelihoods: a straight line, and a kernel part where it improves predictions."""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from meanmap.bp.beliefs.gain import clearly_better
from meanmap.bp.edges.coordinates import MOST_FEATURES, TOLERANCE, rescaled, transformed, with_values
from meanmap.bp.edges.samples import NodeSample
from meanmap.core.held import holds_floats
from meanmap.core.points import count, in_columns, rows, slices, spread_rows
from meanmap.core.types import Data, Points
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.learning.fit import Choice
from meanmap.linalg.rotated import Rotated

__all__ = ["MOST_ROWS", "Regression", "Regressor"]

# A kernel's part is learned from up to this many pairs: one function of two variables needs no more.
MOST_ROWS = 4000
# Multiples of the median distance among which lengthscales are chosen.
LENGTHSCALES = Choice((0.25, 0.5, 1.0, 2.0))
# The least value of 1 − leverage.
LEAST = 1e-3
# Directions of standardised columns smaller than this share of the largest are dropped. The nonlinear part of a kernel
# is rounding if it is below the square of this share.
ROUNDING = 1e-8
# The kernel's part is added up over this many rows at once.
ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, eq=False)
class Regression:
    """x ↦ a + b·x + φ(x)ᵀ w by least squares: w with a ridge, and a line without where x is a number or vector.

    All likelihoods share the error of the regression, so the kernel part, with the smallest leave-one-out error, is
    kept only if its error is below that of the line by more than two standard errors. Leave-one-out residuals are
    exact, but for the choice of features. The line is that of all rows, w is learned from `MOST_ROWS` of them.
    """

    sample: NodeSample
    line: np.ndarray
    features: PivotedCholesky | None
    weights: np.ndarray | None

    @classmethod
    def fit(cls, sample: NodeSample, targets: np.ndarray) -> tuple["Regression", np.ndarray]:
        """The regression, and its leave-one-out residuals at (up to `MOST_ROWS` of) the points."""
        return Regressor.on(sample).fit(targets)

    def __call__(self, points: Data) -> np.ndarray:
        """The regression at points that were read, (n, d)."""
        straight = _design(points) @ self.line
        if self.features is None or self.weights is None:
            return straight
        return straight + transformed(self.features, points) @ self.weights


@dataclass(frozen=True, eq=False)
class Regressor:
    """The common part of regressions of any targets on the same points: linear parts, features, and their
    decompositions.

    Attributes
    ----------
    sample : NodeSample
        Up to `MOST_ROWS` of the points.
    every : points
        All of them.
    chosen : array
        The indices of the sample among these.
    whole, some : line
        Through all points, and through those of the sample.
    """

    sample: NodeSample
    every: Any
    chosen: np.ndarray
    whole: "_Line"
    some: "_Line"
    bases: dict[float, "_Basis | None"] = field(default_factory=dict)

    @classmethod
    def on(cls, sample: NodeSample) -> "Regressor":
        """The points of a sample."""
        chosen, whole = spread_rows(sample.count, MOST_ROWS), _Line.of(sample.points)
        points = rows(sample.points, chosen)
        some = whole if len(chosen) == sample.count else _Line.of(points)
        return cls(replace(sample, points=points), sample.points, chosen, whole, some)

    def by(self, kernel: Kernel) -> "Regressor":
        """That of the same points with another kernel."""
        return replace(self, sample=replace(self.sample, kernel=kernel), bases={})

    def of_some(self) -> "Regressor":
        """That of the chosen points alone, with the same features."""
        points = self.sample.points
        return replace(self, every=points, chosen=np.arange(count(points)), whole=self.some)

    def fit(self, targets: np.ndarray) -> tuple[Regression, np.ndarray]:
        """The regression of targets (n, q) at all points, and its leave-one-out residuals at those of the sample."""
        points, whole, some = self.sample.points, self.whole, self.some
        values = targets[self.chosen]
        straight = values - _design(points) @ some.fit(values)
        left = some.left_out(values, straight)
        scale = np.maximum(values.std(axis=0), np.finfo(float).tiny)

        @cache
        def left_out(basis: "_Basis | None") -> np.ndarray:
            return np.array([np.inf]) if basis is None else basis.rotated.leave_one_out(straight / scale)

        choice = LENGTHSCALES.kept(self.sample.searched)
        basis = choice.fit(self._basis, left_out)[2]
        if basis is not None:
            best = basis.rotated.shifts[np.argmin(left_out(basis))]
            weights, taken = basis.rotated.regression(straight, best)
            curved = some.left_out(values, straight - basis.beyond @ weights, taken)
            gain = np.sum((left / scale) ** 2 - (curved / scale) ** 2, axis=1)
            if clearly_better(gain):
                if whole is some:
                    line = some.fit(values - basis.phi @ weights)
                    return Regression(self.sample, line, basis.features, weights), curved
                parts = [rows(self.every, part) for part in slices(len(targets), ROWS_AT_ONCE)]
                bent = np.concatenate([transformed(basis.features, part) @ weights for part in parts])
                found = Regression(self.sample, whole.fit(targets - bent), basis.features, weights)
                return found, whole.left_out(values, values - self.fitted(found), taken, self.chosen)
        found = Regression(self.sample, whole.fit(targets), None, None)
        return found, left if whole is some else whole.left_out(values, values - found(points), 0.0, self.chosen)

    def fitted(self, regression: Regression) -> np.ndarray:
        """A regression of this at the points of the sample, without their features being computed again."""
        straight = _design(self.sample.points) @ regression.line
        for basis in self.bases.values():
            if basis is not None and basis.features is regression.features:
                return straight + basis.phi @ regression.weights
        return straight

    def _basis(self, multiple: float) -> "_Basis | None":
        if multiple not in self.bases:
            points = self.sample.points
            features, phi = with_values(rescaled(self.sample, multiple), points, TOLERANCE, MOST_FEATURES)
            beyond = self.some.beyond(phi)  # the nonlinear part of the features, since the linear part is not shrunk
            nothing = np.sum(beyond**2) < ROUNDING**2 * np.sum(phi**2)
            made = None if nothing else _Basis(features, phi, beyond, Rotated.of(beyond, self.some.leverages))
            self.bases[multiple] = made
        return self.bases[multiple]


@dataclass(frozen=True, eq=False)
class _Basis:
    """Features at one lengthscale, with their values at points, and the part of these that is not linear."""

    features: PivotedCholesky
    phi: np.ndarray
    beyond: np.ndarray
    rotated: Rotated


@dataclass(frozen=True, eq=False)
class _Line:
    """Least squares on ones and the columns of numbers, each about its mean and in its standard deviation, by singular
    values: indicators of all labels add up to the ones, and what adds up counts once.
    """

    basis: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, points: Points) -> "_Line":
        columns = _design(points)[:, 1:]
        mean, scale = columns.mean(axis=0), columns.std(axis=0)
        scale = np.where(scale > ROUNDING * np.abs(mean), scale, np.inf)
        n = len(columns)
        left, values, right = np.linalg.svd((columns - mean) / scale, full_matrices=False)
        kept = values > ROUNDING * values.max(initial=0.0)
        basis = np.concatenate([np.full((n, 1), n**-0.5), left[:, kept]], axis=1)
        return cls(basis, right[kept].T / values[kept], mean, scale)

    def fit(self, targets: np.ndarray) -> np.ndarray:
        """The line of least squares: a constant, and the coefficient of each column, (1 + d, q)."""
        slopes = (self.weights @ (self.basis[:, 1:].T @ targets)) / self.scale[:, None]
        return np.concatenate([targets.mean(axis=0) - self.mean[None] @ slopes, slopes])

    @property
    def leverages(self) -> np.ndarray:
        """The leverage of each row, (n,)."""
        return np.sum(self.basis**2, axis=1)

    def beyond(self, features: np.ndarray) -> np.ndarray:
        """The part of features that is not linear."""
        return features - self.basis @ (self.basis.T @ features)

    def left_out(
        self, values: np.ndarray, residuals: np.ndarray, taken: object = 0.0, chosen: Any = slice(None)
    ) -> np.ndarray:
        """Leave-one-out residuals; `taken` is the leverage of each row in the features.

        A row that alone has a label determines the line there: without it only the mean of the others is known.
        """
        free = 1 - self.leverages[chosen]
        n = len(self.basis)
        alone = (values - values.mean(axis=0)) * n / max(n - 1, 1)
        found = residuals / np.maximum(free - taken, LEAST)[:, None]
        return np.where((free < ROUNDING)[:, None], alone, found)


def _design(points: Points) -> np.ndarray:
    """Ones, and the columns of numbers or vectors."""
    ones = np.ones((count(points), 1))
    is_vector = in_columns(points) and holds_floats(points)
    return np.concatenate([ones, points], axis=1) if is_vector else ones
