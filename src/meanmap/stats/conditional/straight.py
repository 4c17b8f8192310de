"""The linear part of a conditional test: covariances of the residuals of x and of y."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import gammaincc

from meanmap.stats.conditional.regression import Basis, Fit, best_fit, variance_ratios
from meanmap.stats.conditional.sign_groups import bounds, group_signs
from meanmap.stats.limits import spectral_null

__all__ = ["CHARGE", "Line", "Straight", "correlated", "together"]

# The weight of covariances if they are combined with kernels. With .7 the power against linear dependence was .89
# (kernels alone .76, covariances alone .90) and that against other dependence .53 (.52 and .40), on 60 data sets of
# each of 18 kinds. With .85 the two powers were .90 and .50.
LINEAR = 0.7
# With more pairs of columns than this no covariances are used, only kernels.
MOST_PRODUCTS = 256
# The cost of a degree of freedom in choosing the regression (Kim & Gu 2004). Each removes the information of one row
# from the covariance, and only the product of the biases of both sides does harm. On these data sets covariances alone
# had power .902 against linear dependence, and .896 with the regressions for kernels. With the squares of the products
# as their variance it was .885.
CHARGE = 1.4


@dataclass(frozen=True)
class Line:
    """One side of the covariances.

    Attributes
    ----------
    columns : array (n, a)
        Residuals.
    fit : Fit
        The regression whose residuals these are.
    sizes : array (n,)
        The variance of a row's residuals, summed over columns, as a function of z.
    """

    columns: np.ndarray
    fit: Fit
    sizes: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray, fit: Fit, bases: Sequence[Basis]) -> "Line":
        """One side with sizes from a regression of the squared residuals on z."""
        squares = np.sum(columns**2, axis=1, keepdims=True)
        expected = squares - best_fit(fit.linear, bases, squares).in_sample(squares)
        return cls(columns, fit, np.maximum(expected[:, 0], 0))


@dataclass(frozen=True)
class Straight:
    """The products wᵢ = uᵢ ⊗ vᵢ of the residuals themselves, whose sum detects linear dependence.

    Attributes
    ----------
    products : array (n, q)
    ratios : array (n,)
        The ratio of the variance of each row's term of the sum to the square of this term.
    size : float
        The mean of |u|² times that of |v|².
    """

    products: np.ndarray
    ratios: np.ndarray
    size: float

    @classmethod
    def of(cls, left: Line, right: Line, *, apart: bool = True) -> "Straight | None":
        """The products for both sides; None if these have too many columns.

        Ratios are the variance ratios of the regressions. If rows are drawn `apart`, not in clusters, ratios are
        multiplied by Σ E[|u|² | z] E[|v|² | z] over Σ |u|² |v|². Under the null hypothesis the residuals are
        independent given z. Under dependence large squares of both sides coincide, so Σ |u|² |v|² would overstate the
        variance and reduce power. It suffices to replace the squares of one side by their expectation; the larger of
        the two results is used.
        """
        u, v = left.columns, right.columns
        if u.shape[1] * v.shape[1] > MOST_PRODUCTS:
            return None
        ratios = variance_ratios(left.fit, 1 - left.fit.shrinkage, right.fit, 1 - right.fit.shrinkage)
        first, second = np.sum(u**2, axis=1), np.sum(v**2, axis=1)
        squares = first @ second
        if apart and squares > 0:
            ratios = ratios * (max(left.sizes @ second, first @ right.sizes) / squares)
        size = float(first.mean() * second.mean())
        return cls((u[:, :, None] * v[:, None, :]).reshape(len(u), -1), ratios, size)

    def in_order(self, order: np.ndarray) -> "Straight":
        """The products of rows in another order."""
        return replace(self, products=self.products[order], ratios=self.ratios[order])

    def forms(self, signs: np.ndarray, groups: int = 1) -> np.ndarray:
        """|Σ εᵢ wᵢ|²/n for each column of random signs (n, B), (groups, B): in each row with other signs of groups of
        rows. The first column is all ones, for the data.
        """
        scaled = signs * np.sqrt(self.ratios)[:, None]
        scaled[:, 0] = 1.0
        ends = bounds(len(signs), groups)
        sums = np.stack([self.products[a:b].T @ scaled[a:b] for a, b in pairwise(ends)])
        return np.sum(np.tensordot(group_signs(groups), sums, 1) ** 2, axis=1) / len(signs)

    def limit(self, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        """The statistic, followed by draws of weighted chi-squares."""
        n = len(self.products)
        covariance = self.products.T @ (self.ratios[:, None] * self.products) / n
        draws = spectral_null(np.linalg.eigvalsh(covariance), n_draws, generator).draws
        return np.append(np.sum(self.products.sum(axis=0) ** 2) / n, draws)


def together(kernels: np.ndarray, straight: np.ndarray) -> np.ndarray:
    """Two statistics combined, and their draws: minus the log of the weighted harmonic mean of p-values (Wilson 2019).

    The p-values are upper tails of gamma distributions with the mean and the variance of the draws. They only rank
    values: the null distribution is that of the combined draws.
    """
    return np.log((1 - LINEAR) / _tails(kernels) + LINEAR / _tails(straight))


def correlated(draws: np.ndarray, others: np.ndarray, covariance: float, generator: np.random.Generator) -> np.ndarray:
    """Draws reordered to have about this covariance with the others, through ranks of correlated normal variables."""
    size = np.sqrt(draws.var() * others.var())
    share = float(np.clip(covariance / size, 0, 1)) if size > 0 else 0.0
    ranks = np.empty(len(draws))
    ranks[np.argsort(others)] = np.sort(generator.normal(size=len(draws)))
    mixed = share * ranks + np.sqrt(1 - share**2) * generator.normal(size=len(draws))
    return np.sort(draws)[np.argsort(np.argsort(mixed))]


def _tails(values: np.ndarray) -> np.ndarray:
    mean, variance = values[1:].mean(), values[1:].var()
    if not variance > 0 or not mean > 0:
        return np.ones(len(values))
    return np.maximum(gammaincc(mean**2 / variance, values * mean / variance), 1e-300)
