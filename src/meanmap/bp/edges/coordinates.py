"""Coordinates of a variable: pivots of its kernel, at one of the lengthscales among which is chosen."""

from dataclasses import replace

import numpy as np

from meanmap.bp.edges.samples import NodeSample
from meanmap.core.domains import Real
from meanmap.core.door import Door
from meanmap.core.points import any_sparse, count, dense, rows, spread_rows
from meanmap.core.types import Data, Points
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.stationary import RBF
from meanmap.linalg.pivoted import pivoted_coordinates

__all__ = ["MOST_FEATURES", "TOLERANCE", "coordinates", "rescaled", "transformed"]

# What is left out of a kernel is far below any ridge that would be chosen.
TOLERANCE = 1e-8
# Choices among lengthscales are made with so many features.
MOST_FEATURES = 300
# Pivots are chosen among so many evenly spread points; what they leave out is then measured on all points.
PIVOT_ROWS = 4000


def coordinates(kernel: Kernel, points: Data, tolerance: float, most: int | None = None) -> PivotedCholesky:
    """Pivoted Cholesky features of a kernel on up to `PIVOT_ROWS` of the points: its columns are found one by one."""
    chosen = rows(points, spread_rows(count(points), PIVOT_ROWS))
    with Door() as door:
        found = PivotedCholesky.of_points(kernel, chosen, door, tolerance, most)
    if any_sparse(found.pivots) and isinstance(
        kernel.domain, Real
    ):  # counts of texts have 2⁶² columns: they stay sparse
        return replace(found, pivots=dense(found.pivots))
    return found


def rescaled(sample: NodeSample, multiple: float) -> Kernel:
    """A sample's kernel with its lengthscale multiplied, where it is ours to choose."""
    if not sample.searched or multiple == 1.0:
        return sample.kernel
    return RBF(np.asarray(sample.kernel.lengthscale) * multiple)  # pyright: ignore[reportAttributeAccessIssue]


def transformed(features: PivotedCholesky, points: Points) -> np.ndarray:
    """φ of points that were read, (n, r): on the host, where no new rank has to be compiled."""
    cross = gram_matrix(features.kernel, features.pivots, points)
    cross[int(features.rank) :] = 0.0
    return pivoted_coordinates(np.asarray(features.factor), cross)
