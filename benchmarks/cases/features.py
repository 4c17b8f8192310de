"""Finite coordinates of a kernel, chosen from the data."""

import numpy as np

from benchmarks.harness import Case
from meanmap import features, kernels

LENGTHSCALE = 0.3
TOLERANCE = 1e-6


def figure_of_eight(n: int) -> np.ndarray:
    """n points around a closed curve in the plane, with noise."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.c_[np.cos(angle), np.sin(2 * angle)] + 0.1 * rng.normal(size=(n, 2))


def pivots_in_numpy(x: np.ndarray) -> np.ndarray:
    """The points that pivoted incomplete Cholesky chooses, one column at a time."""
    n = len(x)
    left = np.ones(n)
    rows = np.empty((512, n))
    pivots: list[int] = []
    while left.sum() > TOLERANCE * n:
        pivot = int(np.argmax(left))
        column = np.exp(-0.5 / LENGTHSCALE**2 * np.sum((x - x[pivot]) ** 2, axis=1))
        rank = len(pivots)
        column -= rows[:rank, pivot] @ rows[:rank]
        rows[rank] = column / np.sqrt(left[pivot])
        left = np.maximum(left - rows[rank] ** 2, 0.0)
        pivots.append(pivot)
    return x[pivots]


def pivots_of_ours(x: np.ndarray) -> np.ndarray:
    """The same from the library, which also returns the factor and its certificate."""
    return features.PivotedCholesky.fit(kernels.RBF(LENGTHSCALE), x, tolerance=TOLERANCE).pivots


def differing_pivots(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest distance between pivots of the same rank."""
    return float(np.abs(ours - theirs).max()) if ours.shape == theirs.shape else float("inf")


CASES = (
    Case(
        name="pivoted-cholesky",
        title="Pivoted incomplete Cholesky of the RBF Gram matrix of n points in 2 dimensions to a relative trace "
        "error of 1e-6 (about 230 columns), float64.",
        sizes=(5000, 20_000),
        setup=figure_of_eight,
        ours=pivots_of_ours,
        peers={"NumPy by hand": pivots_in_numpy},
        difference=differing_pivots,
    ),
)
