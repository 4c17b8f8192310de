"""A kind of variable: what was seen of it, its features, where its messages have values and its beliefs their mass."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from meanmap.bp.edges.samples import NodeSample
from meanmap.core.points import count, rows, spread_rows
from meanmap.core.types import Data
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel

__all__ = ["Variable", "atoms_of"]


@dataclass(frozen=True, eq=False)
class Variable:
    """One kind of variable, ready to learn operators.

    Attributes
    ----------
    sample : NodeSample
        All points that were seen, N.
    kernel : Kernel
        k, its lengthscale chosen.
    features : PivotedCholesky
        φ, of rank r.
    tensor : PivotedCholesky or None
        Features of k^q: their pivots are the landmarks. None where messages have values at all N points.
    points : points
        Where messages have values: landmarks, or all N points.
    atoms, masses : points, array
        Points and weights that stand for the marginal distribution: beliefs put their mass there.
    """

    sample: NodeSample
    kernel: Kernel
    features: PivotedCholesky
    tensor: PivotedCholesky | None
    points: Any
    atoms: Any
    masses: np.ndarray

    @classmethod
    def everywhere(cls, sample: NodeSample, kernel: Kernel, features: PivotedCholesky) -> "Variable":
        """With messages and beliefs at all points."""
        return cls(sample, kernel, features, None, sample.points, sample.points, np.ones(sample.count))

    @property
    def size(self) -> int:
        """L, the length of a message."""
        return count(self.points)

    def interpolation(self, xi: np.ndarray) -> np.ndarray:
        """V (n, L) from tensor features (n, L): a product of messages is V p at points, from its values p at landmarks.

        V = k^q(points, landmarks) k^q(landmarks, landmarks)⁻¹ = ξ(points) ξ(landmarks)⁻¹.
        """
        assert self.tensor is not None
        return scipy.linalg.solve_triangular(np.asarray(self.tensor.factor), xi.T, lower=True, trans=1).T


def atoms_of(points: Data, most: int) -> tuple[Any, np.ndarray]:
    """Distinct points with their counts where there are few; else quantiles of numbers, or evenly spread points."""
    if not isinstance(points, np.ndarray):
        chosen = spread_rows(count(points), most)
        return rows(points, chosen), np.ones(len(chosen))
    distinct, counts = np.unique(points, axis=0, return_counts=True)
    if len(distinct) <= most:
        return distinct, counts.astype(float)
    if points.shape[1:] == (1,):
        return np.quantile(points, (np.arange(most) + 0.5) / most, axis=0), np.ones(most)
    return points[spread_rows(len(points), most)], np.ones(most)
