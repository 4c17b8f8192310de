"""Regressions on z by their normal equations, which are exact sums over any number of rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from meanmap.core.values import Value
from meanmap.linalg.cross_validation import best_shift
from meanmap.linalg.exact import Grid
from meanmap.stats.conditional.landmarks import Landmarks
from meanmap.stats.conditional.regression import MOST_FREEDOM, ROUNDING, SHIFTS, Basis

__all__ = ["Functions", "Overlap", "Regressions", "StreamedFit"]


@dataclass(frozen=True, eq=False, repr=False)
class Functions(Value):
    """The functions of z in a regression: 1, the columns of z, and smooth functions, rounded to a grid.

    Rounding makes sums over rows exact. Rounded values are still functions of z, so the hypothesis does not change.

    Attributes
    ----------
    landmarks : tuple of Landmarks
    straight : array (1 + d, r)
        The coefficients of the linear part of the landmarks' features in a sample.
    turn : array (r, s)
        The map from the rest of these features to the principal smooth functions of the sample.
    grid : Grid
    """

    landmarks: tuple[Landmarks, ...]
    straight: np.ndarray
    turn: np.ndarray
    grid: Grid

    @classmethod
    def of(cls, basis: Basis, z: np.ndarray) -> "Functions":
        """The functions of a basis, on the rows z for which it was computed."""
        linear = np.column_stack([np.ones(len(z)), z])
        features = np.concatenate([part(z) for part in basis.landmarks], axis=1)
        straight = np.linalg.lstsq(linear, features, rcond=None)[0]
        turn = basis.coordinates * np.sqrt(basis.values)
        found = cls(basis.landmarks, straight, turn, Grid(np.zeros(0), np.zeros(0)))
        values = found._values(z)
        return replace(found, grid=Grid.of(values, [1] * values.shape[1]))

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """The functions at some rows of z, (n, 1 + d + s)."""
        return self.grid.rounded(self._values(z))

    @cached_property
    def _steps(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The maps from kernel values, or from other features, and from the linear part, to the smooth functions."""
        none = np.zeros((1, len(self.straight) - 1))
        ends = np.cumsum([part(none).shape[1] for part in self.landmarks])[:-1]
        turns = np.split(self.turn, ends)
        own = [
            part.of_kernel(turn) if isinstance(part, Landmarks) else turn
            for part, turn in zip(self.landmarks, turns, strict=True)
        ]
        return own, self.straight @ self.turn

    def _values(self, z: np.ndarray) -> np.ndarray:
        linear, (own, straight) = np.column_stack([np.ones(len(z)), z]), self._steps
        smooth = -linear @ straight
        for part, step in zip(self.landmarks, own, strict=True):
            smooth += (part.gram(z) if isinstance(part, Landmarks) else part(z)) @ step
        return np.concatenate([linear, smooth], axis=1)

    @property
    def straight_ones(self) -> int:
        """The number of linear functions, 1 + d, which no regression shrinks."""
        return len(self.straight)


@dataclass(frozen=True, eq=False, repr=False)
class StreamedFit(Value):
    """A regression on functions of z.

    Attributes
    ----------
    functions : Functions
    turn : array (functions, q + r)
        The map from the functions to an orthonormal basis on the data.
    shrinkage : array (q + r,)
        The shrinkage of each direction, 1 for the linear ones.
    weights : array (q + r, targets)
        The coefficients.
    """

    functions: Functions
    turn: np.ndarray
    shrinkage: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls,
        functions: Functions,
        normal: np.ndarray,
        moments: np.ndarray,
        energy: float,
        n: int,
        undersmooth: float = 1.0,
    ) -> "StreamedFit":
        """The fit from sums over n rows: products of functions, of functions and targets, and squares of targets."""
        q = functions.straight_ones
        free = _orthonormal(normal[:q, :q], ROUNDING, 0.0)[0]
        # Gram–Schmidt in coordinates: the smooth functions minus their linear part.
        smooth = np.concatenate([-free @ (free.T @ normal[:q, q:]), np.eye(len(normal) - q)])
        bent, values = _orthonormal(smooth.T @ normal @ smooth, 1e-7, ROUNDING * np.trace(normal[q:, q:]))
        turn = np.zeros((len(normal), free.shape[1] + bent.shape[1]))
        turn[:q, : free.shape[1]], turn[:, free.shape[1] :] = free, smooth @ bent
        projected = turn.T @ moments
        rest = energy - np.sum(projected[: free.shape[1]] ** 2)
        strength = np.sum(projected[free.shape[1] :] ** 2, axis=1)
        shift = undersmooth * _best_shift(values, strength, rest, free.shape[1], n)
        shrinkage = np.concatenate([np.ones(free.shape[1]), values / (values + shift)])
        return cls(functions, turn, shrinkage, shrinkage[:, None] * projected)

    def basis(self, values: np.ndarray) -> np.ndarray:
        """The orthonormal functions at some rows, from the values of `functions` there."""
        return values @ self.turn

    def in_sample(self, basis: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Residuals of rows, from the values of `basis`."""
        return targets - basis @ self.weights

    def standardised(self, basis: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Residuals scaled up to the variance of the noise."""
        return self.in_sample(basis, targets) / np.sqrt(1 - np.minimum(basis**2 @ self.shrinkage, 0.99))[:, None]


@dataclass(frozen=True, eq=False, repr=False)
class Overlap(Value):
    """The variance ratio of two smoothers (see `variance_ratios`), up to a sum over rows.

    Attributes
    ----------
    shared : array (q + r, q' + r')
        Inner products of their bases.
    lost : pair of arrays
        The share of variance that each smoother removes along each direction of its basis.
    """

    shared: np.ndarray
    lost: tuple[np.ndarray, np.ndarray]

    def kept(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The product of the shares of each row's variance that both smoothers keep, (n,)."""
        return (1 - left**2 @ self.lost[0]) * (1 - right**2 @ self.lost[1])

    def ratio(self, kept: float, n: int) -> float:
        """The variance ratio, from the sum of `kept` over n rows."""
        first, second = self.lost
        return float((n - first.sum() - second.sum() + first @ self.shared**2 @ second) / kept)


@dataclass(frozen=True, eq=False, repr=False)
class Regressions(Value):
    """The regressions of both sides in one pass over rows: the distinct functions, and which side uses which.

    Attributes
    ----------
    functions : tuple of Functions
    which : pair of int or None
        The functions of each side; None for a side that has none.
    """

    functions: tuple[Functions, ...]
    which: tuple[int | None, int | None]

    @classmethod
    def of(cls, bases: Sequence[Basis | None], z: np.ndarray, known: dict[int, Functions]) -> "Regressions":
        """The regressions on the bases of both sides, which may be the same, and the rows of z behind the bases.

        The functions of each basis are `known`, by its id, or added there.
        """
        distinct = list({id(basis): basis for basis in bases if basis is not None}.values())
        left, right = (None if b is None else next(i for i, d in enumerate(distinct) if d is b) for b in bases)
        for basis in distinct:
            if id(basis) not in known:
                known[id(basis)] = Functions.of(basis, z)
        return cls(tuple(known[id(basis)] for basis in distinct), (left, right))

    @property
    def grids(self) -> list[Grid]:
        """The grids of the columns of all functions."""
        return [each.grid for each in self.functions]

    def fits(
        self, products: np.ndarray, targets: Sequence[int], n: int, undersmooth: float
    ) -> tuple[list[StreamedFit | None], Overlap | None]:
        """The fits and their overlap, from sums of products of functions followed by each side's targets."""
        sizes = [*(each.grid.size for each in self.functions), *targets]
        ends = np.cumsum(sizes)
        at = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        there = len(self.functions)
        fits: list[StreamedFit | None] = []
        for side, which in enumerate(self.which):
            if which is None:
                fits.append(None)
                continue
            own, wanted = at[which], at[there + side]
            energy = float(np.trace(products[wanted, wanted]))
            found = products[own, own], products[own, wanted], energy, n, undersmooth
            fits.append(StreamedFit.of(self.functions[which], *found))
        left, right = fits
        if left is None or right is None:
            return fits, None
        across = products[at[self.which[0]], at[self.which[1]]]  # pyright: ignore[reportArgumentType, reportCallIssue]
        lost = 1 - (1 - left.shrinkage) ** 2, 1 - (1 - right.shrinkage) ** 2
        return fits, Overlap(left.turn.T @ across @ right.turn, lost)


def _orthonormal(inner: np.ndarray, tolerance: float, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal combinations of functions with this matrix of inner products, and its eigenvalues."""
    values, vectors = np.linalg.eigh(inner)
    kept = values > max(tolerance * values.max(initial=0.0), rounding)
    return vectors[:, kept] / np.sqrt(values[kept]), values[kept]


def _best_shift(values: np.ndarray, energy: np.ndarray, rest: float, q: int, n: int) -> float:
    """The penalty with the lowest generalised cross-validation error."""
    return best_shift(SHIFTS * values.sum(), values, energy, rest, q, n, most=MOST_FREEDOM)[0]
