"""Gram matrices and streamed row means."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.harness import Case
from meanmap import kernels

LENGTHSCALE = 2.0


def points(n: int, d: int = 10) -> np.ndarray:
    """n standard normal points in d dimensions."""
    return np.random.default_rng(0).normal(size=(n, d))


def gram_in_numpy(x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    """The RBF Gram matrix as one writes it with care: one product, then everything in place."""
    y = x if y is None else y
    gram = x @ y.T
    gram *= -2.0
    gram += np.sum(x * x, axis=1)[:, None]
    gram += np.sum(y * y, axis=1)
    np.maximum(gram, 0.0, out=gram)
    gram *= -0.5 / LENGTHSCALE**2
    return np.exp(gram, out=gram)


def row_means_in_blocks(x: np.ndarray, block: int = 1000) -> np.ndarray:
    """Row means of the Gram matrix without holding it all."""
    return np.concatenate([gram_in_numpy(x[i : i + block], x).mean(axis=1) for i in range(0, len(x), block)])


KERNEL = kernels.RBF(LENGTHSCALE)

CASES = (
    Case(
        name="gram",
        title="RBF Gram matrix of n points in 10 dimensions, NumPy in and out, float64.",
        sizes=(1000, 4000),
        setup=points,
        ours=KERNEL,
        peers={
            "NumPy by hand": gram_in_numpy,
            "scikit-learn": lambda x: rbf_kernel(x, gamma=0.5 / LENGTHSCALE**2),
        },
    ),
    Case(
        name="row-means",
        title="Means of the rows of an n × n RBF Gram matrix that is never stored, 10 dimensions, float64.",
        sizes=(2500, 10_000),
        setup=points,
        ours=lambda x: KERNEL.mean(x, x),
        peers={"NumPy in blocks of 1000": row_means_in_blocks},
    ),
)
