"""The distributions of the paper's examples."""

import numpy as np

__all__ = ["grid_of_normals", "normal_and_laplace", "three_normals", "three_normals_embedding"]

CENTRES, SPREAD = np.array([-1.5, 0.0, 1.2]), 0.4


def three_normals(rng: np.random.Generator, n: int) -> np.ndarray:
    """A mixture of three normals, whose parameters the paper does not state (figure 1)."""
    return rng.choice(CENTRES, n) + SPREAD * rng.normal(size=n)


def three_normals_embedding(points: np.ndarray, lengthscale: float) -> np.ndarray:
    """Its mean embedding under an RBF kernel, ℓ/√(ℓ² + s²) exp(−(x − c)²/2(ℓ² + s²)) averaged over centres c."""
    variance = lengthscale**2 + SPREAD**2
    bumps = np.exp(-((points[:, None] - CENTRES) ** 2) / (2 * variance))
    return lengthscale / np.sqrt(variance) * bumps.mean(axis=1)


def grid_of_normals(
    rng: np.random.Generator, n: int, ratio: float, spacing: float = 10.0, balanced: bool = False
) -> np.ndarray:
    """Nine normals on a grid, covariances with eigenvalues (1, ratio) turned by 45 degrees; labels are independent, or
    `balanced`: as many of each.
    """
    centres = spacing * np.stack(np.meshgrid(range(3), range(3)), axis=-1).reshape(-1, 2)
    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    labels = np.arange(n) % 9 if balanced else rng.integers(9, size=n)
    return centres[labels] + (rng.normal(size=(n, 2)) * np.sqrt([1, ratio])) @ turn.T


def normal_and_laplace(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """N(0, 1) and Laplace(0, √0.5), of equal means and variances (figure 3)."""
    return rng.normal(size=n), rng.laplace(0.0, np.sqrt(0.5), size=n)
