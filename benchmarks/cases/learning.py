"""Learning the lengthscale of a kernel: all modes over five draws of landmarks, and one evaluation of the objective."""

import numpy as np

from benchmarks.harness import Case
from meanmap import kernels, learn_kernel
from meanmap.learning import log_pseudolikelihood

LENGTHSCALE = 3.0


def clusters(n: int) -> np.ndarray:
    """n points of nine normals on a grid."""
    rng = np.random.default_rng(0)
    centres = 10.0 * np.stack(np.meshgrid(range(3), range(3)), axis=-1).reshape(-1, 2)
    return centres[rng.integers(9, size=n)] + rng.normal(size=(n, 2))


def ours(x: np.ndarray) -> float:
    """Every mode, and the highest."""
    return float(learn_kernel(x, rng=0).kernel.lengthscale)


def wide(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n points in ten columns, and 100 landmarks."""
    x = np.random.default_rng(0).normal(size=(n, 10))
    return x, x[:100]


def value(data: tuple[np.ndarray, np.ndarray]) -> float:
    """The objective at one lengthscale."""
    return log_pseudolikelihood(kernels.RBF(LENGTHSCALE), *data)


def value_by_hand(data: tuple[np.ndarray, np.ndarray]) -> float:
    """Eq. 15 of Flaxman et al. (2016), corrected, in NumPy."""
    x, z = data
    (n, d), m = x.shape, len(z)
    apart = (x[:, None] - z) / LENGTHSCALE
    values = np.exp(-np.sum(apart**2, axis=2) / 2)
    mean = values.mean(axis=0)
    prior = np.exp(-np.sum(((z[:, None] - z) / LENGTHSCALE) ** 2, axis=2) / 4)
    root = np.linalg.cholesky((np.sqrt(np.pi) * LENGTHSCALE) ** d * prior + np.eye(m) / n)
    misfit = np.sum(np.linalg.solve(root, mean) ** 2) + np.sum((values - mean) ** 2)
    slopes = values[:, :, None] * apart / LENGTHSCALE
    volumes = np.linalg.slogdet(np.swapaxes(slopes, 1, 2) @ slopes)[1] / 2
    constant = m * np.log(n) + m * n * np.log(2 * np.pi)
    return float(volumes.sum() - (2 * np.sum(np.log(np.diag(root))) + misfit + constant) / 2)


def relative(ours: float, theirs: float) -> float:
    """Beyond the rounding of sums of this size."""
    return abs(ours - theirs) / abs(theirs)


CASES = (
    Case(
        name="learned-kernel",
        title="All modes of the pseudolikelihood of n points in 2 dimensions, 5 draws of 5% landmarks, float64.",
        sizes=(400, 800),
        setup=clusters,
        ours=ours,
        peers={},
    ),
    Case(
        name="pseudolikelihood",
        title="One evaluation of the marginal pseudolikelihood, n points in 10 dimensions, 100 landmarks, float64.",
        sizes=(1000, 10_000),
        setup=wide,
        ours=value,
        peers={"NumPy by hand": value_by_hand},
        difference=relative,
    ),
)
