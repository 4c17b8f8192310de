"""The conditional test on streamed rows: three passes over any number of rows, each an exact sum of integers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.core.points import count
from meanmap.core.values import Value
from meanmap.features.states.feature_map import TILE, blocks
from meanmap.linalg.exact import ExactSums, Grid, correlations
from meanmap.stats.conditional.landmarks import Landmarks, median_distance, rbf_landmarks, spread
from meanmap.stats.conditional.residuals import UNDERSMOOTH, Residuals
from meanmap.stats.conditional.statistics import LOCAL
from meanmap.stats.conditional.streams import Functions, Overlap, Regressions, StreamedFit

__all__ = ["PASSES", "Passes", "Streamed"]

# The passes are for first regressions, second regressions, and products.
PASSES = 3
# The numbers of principal features of each side and of functions of z by which dependence may vary, which with a
# constant give 8 × 8 × 5 products per row.
SIDE_FEATURES, LOCAL_FUNCTIONS = 8, 4


@dataclass(frozen=True, eq=False, repr=False)
class Side(Value):
    """Principal features of one side: of the residuals of its numbers, in units of `scales`, and of its labels."""

    scales: np.ndarray
    landmarks: Landmarks
    centre: np.ndarray
    turn: np.ndarray

    @classmethod
    def of(cls, pilot: Residuals) -> "Side":
        """The features chosen from the residuals of a few rows."""
        assert pilot.landmarks is not None
        raw = pilot.landmarks(pilot.columns)
        centre = raw.mean(axis=0)
        turn = np.linalg.eigh((raw - centre).T @ (raw - centre))[1][:, ::-1][:, :SIDE_FEATURES]
        return cls(pilot.scales, pilot.landmarks, centre, turn)

    def __call__(self, residuals: np.ndarray, indicators: np.ndarray) -> np.ndarray:
        """Features of rows from residuals of their numbers, (n, r)."""
        columns = np.concatenate([residuals / self.scales, indicators], axis=1)
        weights, middle = self._steps
        return self.landmarks.gram(columns) @ weights - middle

    @cached_property
    def _steps(self) -> tuple[np.ndarray, np.ndarray]:
        """The map from kernel values to features, and what these are centred by."""
        return self.landmarks.of_kernel(self.turn), self.centre @ self.turn


@dataclass(frozen=True, eq=False, repr=False)
class Local(Value):
    """A constant and the principal functions of the kernel on z."""

    landmarks: Landmarks
    turn: np.ndarray

    @classmethod
    def of(cls, z: np.ndarray, single: int) -> "Local":
        """The functions chosen from a few rows of z, using the first `single` columns only."""
        sample = spread(z, 1000)
        if np.ptp(sample, axis=0).max() == 0:  # no rare value is among these rows
            sample = spread(np.unique(z, axis=0), 1000)
        some = sample[:, :single]
        features = rbf_landmarks(some, np.eye(single) / median_distance(some)).wider(z.shape[1])
        values = features(sample)
        return cls(features, np.linalg.eigh(values.T @ values)[1][:, ::-1][:, :LOCAL_FUNCTIONS])

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Values at rows of z, (n, 1 + functions)."""
        values = self.landmarks.gram(z) @ self._step
        return np.column_stack([np.full(len(values), np.sqrt(1 - LOCAL)), values])

    @cached_property
    def _step(self) -> np.ndarray:
        """The map from kernel values to the functions."""
        return np.sqrt(LOCAL) * self.landmarks.of_kernel(self.turn)


@dataclass(frozen=True)
class Streamed:
    """The results of all passes: |Σ wᵢ|²/n, the matrix Σ wᵢ wᵢᵀ/n, the variance ratio, and the degrees of freedom."""

    statistic: float
    covariance: np.ndarray
    ratio: float
    freedom: float


@dataclass(frozen=True, eq=False, repr=False)
class Passes(Value):
    """The sums of a pass over rows, and the results of earlier passes.

    The first pass regresses the numbers of both sides on functions of z. The second regresses features of their
    residuals. The third sums the products wᵢ = uᵢ ⊗ vᵢ ⊗ ζ(zᵢ) of the remaining residuals u and v. Points are three
    pairs: numbers and indicators of x, of y and of z. Functions of z, numbers and features are rounded as they are
    computed, so that the next pass uses the residuals of exactly the values to which the regressions were fitted.
    Products are split into two parts: if they were rounded once, their mean would be wrong for variables with few
    values.

    Attributes
    ----------
    sides : pair of Side
    local : Local
    share : float
        The part of the features on which both regressions act.
    sample : tuple
        Points of at most some thousand rows, which determine the grids for rounding.
    first, second : Regressions
    grids : tuple of Grid
        The grids of the columns of each pass so far.
    fits : tuple of pairs of StreamedFit
        Fits of the earlier passes.
    overlaps : tuple of Overlap or None
    twice : float
        The variance ratio of the first regressions, 0 without these.
    correlations : array or None
        The correlations of the products in the sample.
    """

    sides: tuple[Side, Side]
    local: Local
    share: float
    sample: Any
    first: Regressions
    second: Regressions
    grids: tuple[Grid, ...] = ()
    fits: tuple[tuple[StreamedFit | None, StreamedFit | None], ...] = ()
    overlaps: tuple[Overlap | None, ...] = ()
    twice: float = 0.0
    correlations: Any = None

    @classmethod
    def of(cls, left: Residuals, right: Residuals, given: Any, sample: Any) -> "Passes":
        """The passes chosen from the residuals and z of a few rows, with grids from the points of more rows."""
        z, known = given.columns, {}
        first, second = (
            Regressions.of(bases, z, known)
            for bases in (
                [None if side.first is None else side.first.basis for side in (left, right)],
                [side.second.basis for side in (left, right)],
            )
        )
        passes = cls(
            (Side.of(left), Side.of(right)), Local.of(z, given.single), left.share * right.share, sample, first, second
        )
        numbers = np.concatenate([sample[0][0], sample[1][0]], axis=1)
        return replace(passes, grids=(_beside([*first.grids, Grid.of(numbers, [1] * numbers.shape[1])]),))

    @property
    def left(self) -> int:
        """The number of remaining passes, including this one."""
        return PASSES - len(self.fits)

    @property
    def grid(self) -> Grid:
        """The grid of the columns of this pass."""
        return self.grids[-1]

    def sums(self, parts: Iterable[Any]) -> ExactSums:
        """The contribution of some rows to this pass."""
        total = ExactSums.none(self.grid, self.left > 1)
        for block, n in _blocks(parts):
            total = total.add(self._rows(block)[:n])
        return total

    def after(self, sums: ExactSums) -> "Passes":
        """The next pass, prepared with the sums over all rows in this one."""
        if sums.grid != self.grid:
            raise ParameterError("the state is of another plan or pass: give the one that this plan's state() made.")
        if self.left == 1:
            raise ParameterError("no pass is left: call result(state).")
        moments = sums.moments()
        regressions, undersmooth = (self.first, UNDERSMOOTH) if self.left == PASSES else (self.second, 1.0)
        products = moments.about(np.zeros(self.grid.size)).products
        fits, overlap = regressions.fits(products, self._targets(), moments.n, undersmooth)
        twice = self.twice
        if self.left == 2 and self.overlaps[0] is not None:
            twice = self.overlaps[0].ratio(moments.n * float(moments.mean[-1]), moments.n)
        found = replace(self, fits=(*self.fits, (fits[0], fits[1])), overlaps=(*self.overlaps, overlap), twice=twice)
        rows = np.concatenate([found._raw(block)[:n] for block, n in _blocks([self.sample])])
        if found.left == 2:
            # The functions of z keep their grids.
            size = sum(each.size for each in self.second.grids)
            grid = _beside([*self.second.grids, Grid.of(rows[:, size:], [1] * (rows.shape[1] - size))])
            return replace(found, grids=(*self.grids, grid))
        coarse = Grid.of(rows, [1] * rows.shape[1])
        rest = rows - coarse.rounded(rows)
        grid = _beside([coarse, Grid.of(rest, [1] * rest.shape[1])])
        return replace(found, grids=(*self.grids, grid), correlations=correlations(rows[:, :-1]))

    def result(self, sums: ExactSums) -> Streamed:
        """The result from the sums over all rows in the last pass."""
        if self.left > 1:
            raise ParameterError(
                f"{self.left} passes are left: continue with plan = plan.after(state), and sum all rows again."
            )
        if sums.grid != self.grid:
            raise ParameterError("the state is of another plan or pass: give the one that this plan's state() made.")
        n, size = sums.n, self.grid.size // 2
        mean = sums.mean[:size] + sums.mean[size:]
        products, kept = mean[:-1], n * float(mean[-1])
        spread = np.sqrt(np.maximum(_variances(sums)[: size - 1], 0.0))
        covariance = spread[:, None] * self.correlations * spread + np.outer(products, products)
        overlap = self.overlaps[1]
        assert overlap is not None
        once = overlap.ratio(kept, n)
        ratio = once + self.share * max(0.0, self.twice - once) if self.overlaps[0] is not None else once
        freedom = max(float(fit.shrinkage.sum()) for pair in self.fits for fit in pair if fit is not None)
        return Streamed(n * float(products @ products), covariance, ratio, freedom)

    def _targets(self) -> list[int]:
        """The number of targets of each side's regressions in this pass."""
        if self.left == PASSES:
            return [self.sample[side][0].shape[1] for side in (0, 1)]
        return [side.turn.shape[1] for side in self.sides]

    def _rows(self, points: object) -> np.ndarray:
        """The columns of this pass; those of the last pass are split into two parts."""
        raw = self._raw(points)
        if self.left > 1:
            return raw
        held = Grid(self.grid.origin[: raw.shape[1]], self.grid.unit[: raw.shape[1]]).rounded(raw)
        return np.concatenate([held, raw - held], axis=1)

    def _raw(self, points: Any) -> np.ndarray:
        z = np.concatenate(points[2], axis=1)
        numbers, known = self._numbers(points), {}

        def at_rows(functions: Functions) -> np.ndarray:
            """Functions of z, once for all regressions."""
            if id(functions) not in known:
                known[id(functions)] = functions(z)
            return known[id(functions)]

        if not self.fits:
            return np.concatenate([*map(at_rows, self.first.functions), *numbers], axis=1)
        bases = [None if fit is None else fit.basis(at_rows(fit.functions)) for fit in self.fits[0]]
        residuals = [
            own if fit is None or basis is None else fit.standardised(basis, own)
            for own, fit, basis in zip(numbers, self.fits[0], bases, strict=True)
        ]
        features = [side(each, part[1]) for side, each, part in zip(self.sides, residuals, points[:2], strict=True)]
        if self.left == 2:
            twice = np.ones(count(z)) if self.overlaps[0] is None else self.overlaps[0].kept(bases[0], bases[1])  # pyright: ignore[reportArgumentType]
            return np.concatenate([*map(at_rows, self.second.functions), *features, twice[:, None]], axis=1)
        features = self._rounded_features(features)
        bases = [fit.basis(at_rows(fit.functions)) for fit in self.fits[1] if fit is not None]
        u, v = (
            fit.in_sample(basis, own)
            for fit, basis, own in zip(self.fits[1], bases, features, strict=True)
            if fit is not None
        )
        overlap = self.overlaps[1]
        assert overlap is not None
        pairs = (u[:, :, None] * v[:, None, :]).reshape(len(u), -1)
        products = (pairs[:, :, None] * self.local(z)[:, None, :]).reshape(len(u), -1)
        return np.concatenate([products, overlap.kept(*bases)[:, None]], axis=1)

    def _numbers(self, points: Any) -> list[np.ndarray]:
        """The numbers of both sides, rounded as in the first pass."""
        if not self.grids:
            return [points[side][0] for side in (0, 1)]
        return _apart(self.grids[0], [points[side][0] for side in (0, 1)], 0)

    def _rounded_features(self, features: list[np.ndarray]) -> list[np.ndarray]:
        """Features of both sides, rounded as in the second pass."""
        return _apart(self.grids[1], features, 1)


def _blocks(parts: Iterable[Any]) -> Iterator[tuple[Any, int]]:
    """Blocks of so few rows that their functions of z fit into a core's cache."""
    return blocks(parts, np.dtype(np.float64), TILE)


def _apart(grid: Grid, parts: list[np.ndarray], behind: int) -> list[np.ndarray]:
    """Parts rounded by the last columns of a grid, before the `behind` final ones."""
    start = grid.size - behind - sum(part.shape[1] for part in parts)
    found = []
    for part in parts:
        at = slice(start, start + part.shape[1])
        start = at.stop
        found.append(Grid(grid.origin[at], grid.unit[at]).rounded(part))
    return found


def _beside(grids: list[Grid]) -> Grid:
    """The grid of all columns of several grids."""
    return Grid(np.concatenate([each.origin for each in grids]), np.concatenate([each.unit for each in grids]))


def _variances(sums: ExactSums) -> np.ndarray:
    """The variances of columns whose squares were summed."""
    moments = sums.moments(np.eye(sums.grid.size))
    return moments.covariance(lost=0).diagonal()
