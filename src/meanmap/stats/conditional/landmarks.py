"""Functions of z to regress on: kernels at landmarks, additive, joint, or in a metric learned from the targets."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from meanmap.kernels.geometry import pair_distances
from meanmap.kernels.medians import median
from meanmap.linalg.pivoted import pivoted_coordinates, pivoted_triangle

__all__ = [
    "Landmarks",
    "additive_landmarks",
    "joint_landmarks",
    "lighter",
    "median_distance",
    "rbf_landmarks",
    "spread",
]

# Landmarks are added until this share of the trace is left, which is negligible beside noise, or until there are this
# many, so that n r² operations stay cheap.
TRACE_TOLERANCE = 1e-3
MOST_LANDMARKS, MOST_ALONG_ONE_COLUMN = 150, 30
# The median of the 45,000 distances between this many rows is within about a percent of the median of all distances.
MOST_FOR_MEDIAN = 300


@dataclass(frozen=True)
class Landmarks:
    """The features L⁻¹ k(landmarks, z) of an RBF kernel with lengthscale 1 on the columns z M.

    Attributes
    ----------
    metric : array (d, d')
        M, which selects, scales and rotates columns.
    points : array (r, d')
        The landmarks, already in these columns.
    triangle : array (r, r)
        L, with L Lᵀ the Gram matrix of the landmarks.
    weight : float
        A factor of the features.
    """

    metric: np.ndarray
    points: np.ndarray
    triangle: np.ndarray
    weight: float = 1.0

    def wider(self, columns: int) -> "Landmarks":
        """These functions for rows with additional columns at the end, which are ignored."""
        behind = np.zeros((columns - len(self.metric), self.metric.shape[1]))
        return replace(self, metric=np.concatenate([self.metric, behind]))

    def gram(self, z: np.ndarray) -> np.ndarray:
        """k(z, landmarks), (n, r)."""
        return rbf(z @ self.metric, self.points)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """The features of z, (n, r)."""
        return self.weight * pivoted_coordinates(self.triangle, self.gram(z).T)

    def of_kernel(self, turn: np.ndarray) -> np.ndarray:
        """Combinations of the features (r, s) as combinations of k(z, landmarks), which saves solving for each row."""
        return self.weight * solve_triangular(self.triangle, turn, lower=True, trans=1, check_finite=False)


def rbf(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """exp(−|aᵢ − bⱼ|²/2)."""
    found = np.sum(a**2, axis=1)[:, None] + np.sum(b**2, axis=1)
    found -= 2 * a @ b.T
    np.maximum(found, 0, out=found)
    found *= -0.5
    return np.exp(found, out=found)


def rbf_landmarks(
    z: np.ndarray, metric: np.ndarray, tolerance: float = TRACE_TOLERANCE, most: int = MOST_LANDMARKS, weight: float = 1
) -> Landmarks:
    """Landmarks chosen among the rows of z, each the row worst represented so far; the order of rows has no effect."""
    points = z @ metric
    points = np.roll(points[np.lexsort(points.T)], len(points) // 2, axis=0)
    squares, doubled = np.sum(points**2, axis=1), 2 * points

    def column(i: int) -> np.ndarray:
        found = squares + squares[i]
        found -= doubled @ points[i]
        np.maximum(found, 0, out=found)
        found *= -0.5
        return np.exp(found, out=found)

    # At most half of the rows are landmarks: more functions could not be distinguished from noise.
    pivots, triangle = pivoted_triangle(np.ones(len(z)), column, tolerance, max(1, min(most, len(z) // 2)))
    return Landmarks(metric, points[pivots], triangle, weight)


def additive_landmarks(z: np.ndarray) -> tuple[Landmarks, ...]:
    """Features for a sum of smooth functions, one of each column that has more than two values."""
    bent = [j for j in range(z.shape[1]) if len(np.unique(z[:, j])) > 2]
    share = 1 / np.sqrt(max(1, len(bent)))
    return tuple(
        # The median distance in a normal column is 0.95 standard deviations, so the lengthscale is one standard
        # deviation.
        rbf_landmarks(z, _column(z, j, 0.95 / median_distance(z[:, [j]])), 1e-4, MOST_ALONG_ONE_COLUMN, share)
        for j in bent
    )


def joint_landmarks(z: np.ndarray, widths: float, weight: float = 1.0) -> tuple[Landmarks, ...]:
    """Features for a smooth function of all columns, with the lengthscale in median distances."""
    return (rbf_landmarks(z, np.eye(z.shape[1]) / (widths * median_distance(z)), weight=weight),)


def lighter(landmarks: tuple[Landmarks, ...], weight: float) -> tuple[Landmarks, ...]:
    """The landmarks with another weight."""
    return tuple(replace(part, weight=weight) for part in landmarks)


def median_distance(points: np.ndarray) -> float:
    """The median distance between at most 300 rows, evenly spaced; between distinct rows if ties make the median zero.

    It is 1 if all rows are equal, as the unit does not matter then.
    """
    some = spread(points, MOST_FOR_MEDIAN)
    middle = float(median(pair_distances(some))) if len(some) > 1 else 0.0
    if middle > 0:
        return middle
    distinct = spread(np.unique(points, axis=0), MOST_FOR_MEDIAN)
    return float(median(pair_distances(distinct))) if len(distinct) > 1 else 1.0


def spread(points: np.ndarray, most: int) -> np.ndarray:
    """At most this many rows, evenly spaced."""
    return points[:: -(-len(points) // most)]


def _column(z: np.ndarray, j: int, factor: float) -> np.ndarray:
    metric = np.zeros((z.shape[1], 1))
    metric[j] = factor
    return metric
