"""Products of columns of z, which kernels of few rows hardly follow, and how far residuals still go with them."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.stats.conditional.leftover import Agreement, bent_columns
from meanmap.stats.conditional.regression import Fit

__all__ = ["Together", "agreement"]

# Of so many columns at most, and one product for so many rows.
MOST_COLUMNS, ROWS_FOR_A_PRODUCT = 8, 5
# Standard deviations from the mean beyond which values count as at their end.
END = 4.0
# Less of the length of a product than this is rounding: the regression has it.
NEW = 1e-4


@dataclass(frozen=True)
class Together:
    """Products of two or three different columns of z, each in standard deviations from its mean.

    Attributes
    ----------
    centre, scale : array (d,)
    chosen : tuple of tuple of int
        The columns of each product.

    Examples
    --------
    >>> z = np.array([[1.0, 1.0], [2.0, -1.0], [3.0, 1.0], [4.0, -1.0]])
    >>> Together(np.zeros(2), np.ones(2), ((0, 1),))(z).ravel().tolist()
    [1.0, -2.0, 3.0, -4.0]
    """

    centre: np.ndarray
    scale: np.ndarray
    chosen: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, z: np.ndarray) -> "Together | None":
        """Of the columns of z that have more than two values; None where there are too few, or too many."""
        bent = bent_columns(z)
        chosen = tuple(each for size in (2, 3) for each in combinations(bent, size))
        if not chosen or len(bent) > MOST_COLUMNS or len(chosen) * ROWS_FOR_A_PRODUCT > len(z):
            return None
        scale = z.std(axis=0)
        return cls(z.mean(axis=0), np.where(scale > 0, scale, 1.0), chosen)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """One column a product, (n, products), all of them together as long as one smooth function."""
        standard = np.clip((z[:, : len(self.scale)] - self.centre) / self.scale, -END, END)
        products = np.stack([standard[:, list(each)].prod(axis=1) for each in self.chosen], axis=1)
        return products / np.sqrt(len(self.chosen))

    def wider(self, columns: int) -> "Together":
        """Products as they are, since none takes columns that come behind."""
        return self


def agreement(residuals: np.ndarray, fit: Fit, products: np.ndarray) -> Agreement:
    """How far the residuals of a fit go with each of some functions of z, of either sign, in any of their columns.

    The score is the normal quantile of the p-value of their covariance, whose variance is that of noise left by the
    same fit.
    """
    left = fit.in_sample(products)
    lengths, n = np.sum(left**2, axis=0), len(residuals)
    noise = np.sum(residuals**2, axis=0) / max(n - fit.freedom, 1.0)
    new = lengths > NEW**2 * np.sum(products**2, axis=0)
    scaled = np.sqrt(np.where(new, lengths, np.inf)[:, None] * np.where(noise > 0, noise, np.inf))
    most = np.max(np.abs(products.T @ residuals) / scaled, axis=1)
    chance = np.clip(2 * residuals.shape[1] * ndtr(-most), np.finfo(float).tiny, 1.0)
    return Agreement(-ndtri(chance), most**2 / n, np.minimum((most + 2) ** 2 / n, 1.0))
