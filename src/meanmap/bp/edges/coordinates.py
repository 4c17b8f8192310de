"""Coordinates of a variable: pivots of its kernel, at one of the candidate lengthscales."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.bp.edges.jumps import smooth_and_jumps
from meanmap.bp.edges.samples import NodeSample
from meanmap.core.domains import holds_vectors
from meanmap.core.door import Door
from meanmap.core.points import any_sparse, count, dense, rows, spread_rows
from meanmap.core.types import Data, Points
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel, Sum
from meanmap.kernels.geometry import squared_distances
from meanmap.kernels.gram import diagonal_array, gram_matrix
from meanmap.kernels.stationary import RBF
from meanmap.learning.density_ratio import LeftOut
from meanmap.linalg.pivoted import PivotedCholesky as Factor
from meanmap.linalg.pivoted import pivoted_cholesky_whole, pivoted_coordinates

__all__ = [
    "MOST_FEATURES",
    "MOST_RANK",
    "TOLERANCE",
    "Coordinates",
    "CoordinatesByScale",
    "coordinates",
    "rescaled",
    "transformed",
    "with_values",
]

# The truncation error of a kernel, far below any ridge that would be chosen.
TOLERANCE = 1e-8
# Choices among lengthscales are made with this many features.
MOST_FEATURES = 300
# Pivots are chosen among this many evenly spread points; what they leave out is then measured on all points.
PIVOT_ROWS = 4000
# The most coordinates of a variable, if they and its points are few; otherwise `MOST_FEATURES`.
MOST_RANK = 1000
MOST_NUMBERS = 5_000_000
# Values at up to this many points are kept from edge to edge: the middle of a star has hundreds.
FEW_POINTS = 1000


def coordinates(kernel: Kernel, points: Data, tolerance: float, most: int | None = None) -> PivotedCholesky:
    """Pivoted Cholesky features of a kernel on up to `PIVOT_ROWS` of the points: its columns are found one by one."""
    chosen = rows(points, spread_rows(count(points), PIVOT_ROWS))
    with Door() as door:
        return _dense(PivotedCholesky.of_points(kernel, chosen, door, tolerance, most))


def with_values(kernel: Kernel, points: Data, tolerance: float, most: int) -> tuple[PivotedCholesky, np.ndarray]:
    """`coordinates`, and their values (n, r) at the points, which are rows of the factor where all were looked at."""
    if count(points) > PIVOT_ROWS:
        found = coordinates(kernel, points, tolerance, most)
        return found, transformed(found, points)
    with Door() as door:
        found, values = PivotedCholesky.with_values(kernel, points, door, tolerance, most)
    return _dense(found), values


def _dense(features: PivotedCholesky) -> PivotedCholesky:
    """The features with dense pivots, except for counts of substrings, which have 2⁶² columns."""
    if any_sparse(features.pivots) and holds_vectors(features.kernel.domain):
        return replace(features, pivots=dense(features.pivots))
    return features


def rescaled(sample: NodeSample, multiple: float) -> Kernel:
    """A sample's kernel with its lengthscale multiplied, unless the user gave the kernel."""
    if not sample.searched or multiple == 1.0:
        return sample.kernel
    smooth, jumps = smooth_and_jumps(sample.kernel)
    found = RBF(np.asarray(smooth.lengthscale) * multiple)  # pyright: ignore[reportAttributeAccessIssue]
    return Sum((found, *jumps)) if jumps else found


def transformed(features: PivotedCholesky, points: Points) -> np.ndarray:
    """φ of points that were read, (n, r): on the host, where no new rank has to be compiled."""
    cross = gram_matrix(features.kernel, features.pivots, points)
    cross[int(features.rank) :] = 0.0
    return pivoted_coordinates(np.asarray(features.factor), cross)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """φ(x) = L⁻¹ k(pivots, x), with its values (N, r) at the points of a node; `left_out` is the share of the kernel's
    trace at these points that is not in them.
    """

    kernel: Kernel
    pivots: Any
    triangle: np.ndarray
    values: np.ndarray
    multiple: float
    left_out: float = 0.0

    @classmethod
    def of(
        cls, features: PivotedCholesky, points: Data, multiple: float, values: np.ndarray | None = None
    ) -> "Coordinates":
        """Pivots of a kernel, with their values at all points of a node, where these are known already."""
        values = transformed(features, points) if values is None else values
        with Door() as door:
            whole = float(np.sum(diagonal_array(features.kernel, points, door)))
        left = max(1 - float(np.sum(values**2)) / whole, 0.0)
        return cls(features.kernel, features.pivots, np.asarray(features.factor), values, multiple, left)

    def at(self, points: Points) -> np.ndarray:
        """φ of points that were read, (m, r)."""
        return pivoted_coordinates(self.triangle, gram_matrix(self.kernel, self.pivots, points))

    def on(self, points: Points) -> "Coordinates":
        """These coordinates, holding their values at other points."""
        return replace(self, values=self.at(points))


@dataclass(frozen=True, eq=False)
class _Factored:
    """Few points whose Gram matrix was factored on the host: for hundreds of variables with sixty rows each,
    calling compiled programs would take longer than everything else.
    """

    sample: NodeSample
    multiple: float
    low: Factor

    @property
    def size(self) -> int:
        """r, how many columns there are."""
        return self.low.rank

    @property
    def complete(self) -> bool:
        """Whether more columns would add nothing."""
        return self.low.stopped == "tolerance"

    def coordinates(self) -> Coordinates:
        """The coordinates with their values at all points, which are the rows of the factor."""
        low, kernel = self.low, rescaled(self.sample, self.multiple)
        left = float(low.trace_errors[-1] / low.trace_errors[0])
        pivots = rows(self.sample.points, low.pivots)
        return Coordinates(kernel, pivots, low.pivot_factor, low.factor, self.multiple, left)


def _complete(features: "PivotedCholesky | _Factored") -> bool:
    return features.complete if isinstance(features, _Factored) else features.report.converged


class CoordinatesByScale:
    """Coordinates of one node at several lengthscales, each computed once.

    Choices between lengthscales are made with `MOST_FEATURES` of them, on a few rows.

    Parameters
    ----------
    sample : NodeSample
    rank : int, optional
        The most coordinates; by default as many as leave out a hundred-millionth, up to `MOST_RANK`.
    """

    def __init__(self, sample: NodeSample, rank: int | None = None):
        self.sample = sample
        self.rank = int(np.clip(MOST_NUMBERS // sample.count, MOST_FEATURES, MOST_RANK)) if rank is None else rank
        self.features: dict[tuple[float, int], PivotedCholesky | _Factored] = {}
        self.values: dict[tuple[float, int], np.ndarray] = {}
        self.squared: np.ndarray | None = None
        self.decomposed: dict[tuple[float, int, int], LeftOut] = {}
        self.known: dict[float, Coordinates] = {}

    def some(self, multiple: float, chosen: np.ndarray, most: int) -> np.ndarray:
        """Values (m, r) of at most this many coordinates at some rows."""
        features = self._features(multiple, most)
        if isinstance(features, _Factored):
            return features.low.factor[chosen]
        if self.sample.count > FEW_POINTS:
            return transformed(features, rows(self.sample.points, chosen))
        at = self._multiple(multiple), features.size
        if at not in self.values:
            self.values[at] = transformed(features, self.sample.points)
        return self.values[at][chosen]

    def left_out(self, multiple: float, chosen: np.ndarray, most: int, folds: int | None = None) -> LeftOut:
        """Values at some rows, decomposed without each fold; kept where these are all rows in order, as in both
        directions of an edge and round the middle of a star.
        """
        fresh = LeftOut(self.some(multiple, chosen, most), folds)
        if len(chosen) != self.sample.count or (chosen[1:] - chosen[:-1] != 1).any():
            return fresh
        at = self._multiple(multiple), fresh.features.shape[1], fresh.folds
        return self.decomposed.setdefault(at, fresh)

    def at(self, multiple: float) -> Coordinates:
        """Coordinates for a multiple of the median distance, or for the kernel of the user unchanged."""
        multiple = self._multiple(multiple)
        if multiple not in self.known:
            features = self._features(multiple, self.rank)
            if isinstance(features, _Factored):
                self.known[multiple] = features.coordinates()
            else:
                known = self.values.get((multiple, features.size))
                self.known[multiple] = Coordinates.of(features, self.sample.points, multiple, known)
        return self.known[multiple]

    def wider(self, multiple: float) -> bool:
        """Whether there are more coordinates than choices between lengthscales are made with."""
        few = self._features(multiple, MOST_FEATURES)
        return self.rank > MOST_FEATURES and few.size == MOST_FEATURES and not _complete(few)

    def _multiple(self, multiple: float) -> float:
        return multiple if self.sample.searched else 1.0

    def _features(self, multiple: float, most: int) -> "PivotedCholesky | _Factored":
        multiple, most = self._multiple(multiple), min(most, self.rank)
        few = self.features.get((multiple, MOST_FEATURES))
        if few is not None and _complete(few):
            return few
        if (multiple, most) not in self.features:
            if self.sample.searched and self.sample.count <= FEW_POINTS and not any_sparse(self.sample.points):
                low = pivoted_cholesky_whole(self._gram(multiple), tolerance=TOLERANCE, max_rank=most)
                found = _Factored(self.sample, multiple, low)
            else:
                found = coordinates(rescaled(self.sample, multiple), self.sample.points, TOLERANCE, most)
            self.features[multiple, most] = found
        return self.features[multiple, most]

    def _gram(self, multiple: float) -> np.ndarray:
        """exp(−d² / 2 ℓ²) of all points, with distances computed once: hundreds of variables of sixty rows would
        otherwise spend half of their time on calling compiled programs.
        """
        smooth, jumps = smooth_and_jumps(self.sample.kernel)
        points = np.asarray(self.sample.points)
        if self.squared is None:
            scaled = points / np.asarray(smooth.lengthscale)  # pyright: ignore[reportAttributeAccessIssue]
            self.squared = np.asarray(squared_distances(scaled, scaled))
        found = np.exp(-0.5 / multiple**2 * self.squared)
        return sum((np.asarray(each.gram(points, points)) for each in jumps), found)
