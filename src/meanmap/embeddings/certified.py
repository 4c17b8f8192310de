"""The norm of an element on many points, approximated from a few of them with an error bound."""

import numpy as np

from meanmap.core.door import Door
from meanmap.core.points import any_sparse, count, rows
from meanmap.core.types import Points
from meanmap.features.base import transform_in_chunks
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import diagonal_array

__all__ = ["MANY", "squared_norm"]

# With fewer points than this, all pairs are summed, in about a second.
MANY = 20_000
# Pivots are chosen among at most this many points, and at most this many pivots are chosen.
AMONG, MOST_PIVOTS = 20_000, 400
# The relative error of the squared norm; if the bound is larger, all pairs are summed.
CERTIFIED = 1e-8


def squared_norm(kernel: Kernel, points: Points, weights: np.ndarray, door: Door) -> float | None:
    """‖Σᵢ wᵢ k(xᵢ, ·)‖² to eight digits, or None if the kernel is too rough for that.

    With P the projection on the span of the pivots, ‖f‖² = ‖Pf‖² + ‖(1 − P)f‖², and by the triangle inequality ‖(1 −
    P)f‖ ≤ Σᵢ |wᵢ| √rᵢ, where rᵢ = k(xᵢ, xᵢ) − |φ(xᵢ)|² is the residual of each point. Cost O(n r²) for r pivots,
    instead of O(n²).
    """
    n = count(points)
    if any_sparse(points):
        return None
    spread = rows(points, np.linspace(0, n - 1, min(n, AMONG)).astype(int))
    features = PivotedCholesky.of_points(kernel, spread, door, tolerance=1e-14, max_rank=MOST_PIVOTS)
    if features.relative_error > CERTIFIED:
        return None
    diagonal = np.asarray(diagonal_array(kernel, points, door))
    total, missed, start = np.zeros(features.size), 0.0, 0
    for phi in transform_in_chunks(features, points):
        part = slice(start, start + len(phi))
        total += weights[part] @ phi
        missed += float(np.abs(weights[part]) @ np.sqrt(np.maximum(diagonal[part] - np.sum(phi**2, axis=1), 0.0)))
        start = part.stop
    value = float(total @ total)
    return value if missed**2 <= CERTIFIED * value else None
