"""Learning the lengthscale of a kernel: all modes over five draws of landmarks, and one evaluation of the objective."""

import numpy as np

from benchmarks.harness import Case
from meanmap import kernels, learn_kernel
from meanmap.learning import log_pseudolikelihood


def clusters(n: int) -> np.ndarray:
    """n points of nine normals on a grid."""
    rng = np.random.default_rng(0)
    centres = 10.0 * np.stack(np.meshgrid(range(3), range(3)), axis=-1).reshape(-1, 2)
    return centres[rng.integers(9, size=n)] + rng.normal(size=(n, 2))


def ours(x: np.ndarray) -> float:
    """Every mode, and the highest."""
    return float(learn_kernel(x, rng=0).kernel.lengthscale)


def by_hand(x: np.ndarray) -> float:
    """The same grid and draws in NumPy, without refining the modes."""
    rng = np.random.default_rng(0)
    m = min(200, round(len(x) / 200) * 10)
    marks = [x[rng.choice(len(x), m, replace=False)] for _ in range(5)]
    scales = np.geomspace(0.05, 100, 48)
    totals = [np.mean([numpy_objective(x, z, scale) for z in marks]) for scale in scales]
    return float(scales[np.argmax(totals)])


def numpy_objective(x: np.ndarray, z: np.ndarray, scale: float) -> float:
    """Eq. 15 of Flaxman et al. (2016), corrected, τ² = 1."""
    n, m = len(x), len(z)
    apart = (x[:, None] - z) / scale
    values = np.exp(-np.sum(apart**2, axis=2) / 2)
    mean = values.mean(axis=0)
    prior = np.pi * scale**2 * np.exp(-np.sum(((z[:, None] - z) / scale) ** 2, axis=2) / 4) + np.eye(m) / n
    root = np.linalg.cholesky(prior)
    half = np.linalg.solve(root, mean)
    slopes = values[:, :, None] * apart
    volumes = np.linalg.slogdet(np.swapaxes(slopes, 1, 2) @ slopes)[1] / 2 - 2 * np.log(scale)
    spread = np.sum((values - mean) ** 2)
    return float(volumes.sum() - (2 * np.log(np.diag(root)).sum() + half @ half + spread) / 2)


def wide(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n points in ten columns, and 100 landmarks."""
    x = np.random.default_rng(0).normal(size=(n, 10))
    return x, x[:100]


def value(data: tuple[np.ndarray, np.ndarray]) -> float:
    """The objective at one lengthscale."""
    return log_pseudolikelihood(kernels.RBF(3.0), *data)


def value_by_hand(data: tuple[np.ndarray, np.ndarray]) -> float:
    """The volumes and the values in NumPy."""
    x, z = data
    apart = (x[:, None] - z) / 3.0
    values = np.exp(-np.sum(apart**2, axis=2) / 2)
    slopes = values[:, :, None] * apart
    return float(np.linalg.slogdet(np.swapaxes(slopes, 1, 2) @ slopes)[1].sum() + np.var(values, axis=0).sum())


CASES = (
    Case(
        name="learned-kernel",
        title="All modes of the pseudolikelihood of n points in 2 dimensions, 5 draws of 5% landmarks, float64.",
        sizes=(400, 800, 1600),
        setup=clusters,
        ours=ours,
        peers={"NumPy by hand": by_hand},
    ),
    Case(
        name="pseudolikelihood",
        title="One evaluation of the marginal pseudolikelihood, n points in 10 dimensions, 100 landmarks, float64.",
        sizes=(1000, 4000, 10_000),
        setup=wide,
        ours=value,
        peers={"NumPy by hand": value_by_hand},
    ),
)
