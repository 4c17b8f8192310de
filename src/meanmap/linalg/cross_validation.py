"""The choice of a ridge: the grid that is tried, and generalised cross-validation from moments alone."""

from typing import Any

import jax.numpy as jnp
import numpy as np

__all__ = ["RIDGES", "best_shift", "generalised", "relative_ridges"]


def relative_ridges(dtype: Any = float) -> np.ndarray:
    """The grid of ridges, relative to the mean eigenvalue; none is smaller than rounding in this dtype allows."""
    return np.geomspace(max(1e-8, 1e3 * float(jnp.finfo(dtype).eps)), 1.0, 25)


RIDGES = relative_ridges()


def best_shift(shifts: np.ndarray, *moments: Any, **settings: float) -> tuple[float, float]:
    """The shift with the smallest error of `generalised`, which receives the other arguments, and that error."""
    errors = generalised(shifts, *moments, **settings)
    at = int(errors.argmin())
    return float(shifts[at]), float(errors[at])


def generalised(
    shifts: np.ndarray,
    values: np.ndarray,
    energy: np.ndarray,
    rest: float,
    taken: int,
    n: int,
    charge: float = 1.0,
    most: float = np.inf,
) -> np.ndarray:
    """Generalised cross-validation, |y − ŷ|² / n / (1 − charge tr H / n)², for each shift of the eigenvalues.

    Golub, Heath & Wahba (1979); the charge: Kim & Gu (2004). `energy` is the part of |y|² along each eigenvector, and
    `rest` the part that the `taken` unpenalised functions leave unexplained. The error is infinite, because it cannot
    be estimated, for more than `most` degrees of freedom per row.
    """
    shrinkage = values / (values + shifts[:, None])
    squares = rest - energy.sum() + (1 - shrinkage) ** 2 @ energy
    freedom = charge * (taken + shrinkage.sum(axis=1)) / n
    return np.where(freedom < most, squares / n / (1 - np.minimum(freedom, most)) ** 2, np.inf)
