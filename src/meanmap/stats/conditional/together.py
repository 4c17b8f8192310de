"""Products of columns of z, which kernels hardly fit with few rows, and their correlation with residuals."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.core.tables.order import tied_ranks
from meanmap.stats.conditional.leftover import Agreement, bent_columns
from meanmap.stats.conditional.regression import Fit

__all__ = ["Together", "Waves", "agreement"]

# Products are formed of at most this many columns, and at most one product for this many rows.
MOST_COLUMNS, ROWS_FOR_A_PRODUCT = 8, 5
# Values are clipped at this many standard deviations from the mean.
END = 4.0
# If a regression leaves a smaller share of a product's norm, this is rounding error: the regression contains the
# product.
NEW = 1e-4
# The largest number of half periods of a cosine over the ranks of a column: three have four extremes, like the rows of
# a chessboard with four squares a side.
FREQUENCIES = 3
TINY = np.finfo(float).tiny


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
        """Products of the columns of z that have more than two values; None if there are too few or too many."""
        bent = bent_columns(z)
        chosen = tuple(each for size in (2, 3) for each in combinations(bent, size))
        if not chosen or len(bent) > MOST_COLUMNS or len(chosen) * ROWS_FOR_A_PRODUCT > len(z):
            return None
        scale = z.std(axis=0)
        return cls(z.mean(axis=0), np.where(scale > 0, scale, 1.0), chosen)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """The products at rows of z, (n, products), scaled so that they weigh as much as one smooth function."""
        standard = np.clip((z[:, : len(self.scale)] - self.centre) / self.scale, -END, END)
        products = np.stack([standard[:, list(each)].prod(axis=1) for each in self.chosen], axis=1)
        return products / np.sqrt(len(self.chosen))

    def wider(self, columns: int) -> "Together":
        """Products unchanged, since none uses additional columns at the end."""
        return self


@dataclass(frozen=True)
class Waves:
    """Functions of pairs of columns of z: products of cosines of ranks, which detect steps, signs and chessboards.

    They are only used for checks: residuals that are correlated with functions of a pair are regressed on all smooth
    functions of this pair.

    Attributes
    ----------
    pairs : tuple of (int, int)
        The columns.
    products : tuple of array (n, k)
        Up to nine functions of each pair; a column with two values has one.

    Examples
    --------
    >>> z = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0], [4.0, 0.0], [5.0, 0.0]])
    >>> Waves.of(z).pairs, Waves.of(z).products[0].shape
    (((0, 1),), (5, 3))
    """

    pairs: tuple[tuple[int, int], ...]
    products: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, z: np.ndarray) -> "Waves | None":
        """Functions of the columns of z that are not constant; None if there are too few or too many."""
        several = [j for j in range(z.shape[1]) if np.ptp(z[:, j]) > 0]
        if not 2 <= len(several) <= MOST_COLUMNS:
            return None
        alone = {j: _cosines(z[:, j]) for j in several}
        pairs = tuple(combinations(several, 2))
        products = tuple((alone[i][:, :, None] * alone[j][:, None, :]).reshape(len(z), -1) for i, j in pairs)
        return cls(pairs, products)

    def agreement(self, residuals: np.ndarray, fit: Fit) -> Agreement:
        """The largest correlation of residuals with the functions of each pair."""
        found = [agreement(residuals, fit, products) for products in self.products]
        chance = [np.clip(each.score.size * ndtr(-each.score.max()), TINY, 1.0) for each in found]
        most = [(each.share.max(), each.most.max()) for each in found]
        return Agreement(-ndtri(np.array(chance)), *np.array(most).T)


def _cosines(column: np.ndarray) -> np.ndarray:
    """Cosines of the ranks, (n, k); tied values share their mean rank."""
    place = tied_ranks(column) / len(column)
    number = min(FREQUENCIES, len(np.unique(column)) - 1)
    return np.cos(np.pi * place[:, None] * np.arange(1, number + 1))


def agreement(residuals: np.ndarray, fit: Fit, products: np.ndarray) -> Agreement:
    """The largest absolute correlation of the residuals of a fit, over their columns, with each of some functions of z.

    The score is the normal quantile of the p-value of their covariance, whose variance is that of noise after the same
    fit. The fit shrinks a function p to (1 − H) p, and the part of the residuals along p likewise. The score does not
    show how small this part is, but its share of the residuals' variance does.
    """
    left = fit.in_sample(products)
    lengths, n = np.sum(left**2, axis=0), len(residuals)
    noise = np.sum(residuals**2, axis=0) / max(n - fit.freedom, 1.0)
    new = lengths > NEW**2 * np.sum(products**2, axis=0)
    lengths = np.where(new, lengths, np.inf)
    sizes = np.where(noise > 0, noise, np.inf)
    most = np.max(np.abs(products.T @ residuals) / np.sqrt(lengths[:, None] * sizes), axis=1)
    chance = np.clip(2 * residuals.shape[1] * ndtr(-most), TINY, 1.0)
    twice = np.sqrt(np.sum(fit.in_sample(left) ** 2, axis=0))
    along = np.abs(left.T @ residuals) / np.sqrt(sizes)
    shares, largest = (np.max(size**2 / (n * lengths[:, None]), axis=1) for size in (along, along + 2 * twice[:, None]))
    return Agreement(-ndtri(chance), np.minimum(shares, 1.0), np.minimum(largest, 1.0))
