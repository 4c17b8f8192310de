"""Observations with Gaussian noise around a regression: of numbers, and of guesses from patches and long vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from meanmap.bp.edges.observations import Likelihood, check_pairs, columns, numbers, sample_of
from meanmap.bp.edges.regression import MOST_ROWS, Regression
from meanmap.bp.edges.samples import NodeSample
from meanmap.core.arrays import as_array
from meanmap.core.door import Door
from meanmap.core.errors import InputError, ShapeError
from meanmap.core.points import rows, spread_rows
from meanmap.core.types import Data, Points
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import check_alike, read_points

__all__ = ["CentredLikelihood", "NoiseLikelihood"]

# Groups are left out in so many folds.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class NoiseLikelihood(Likelihood):
    """observed = f(x) + noise: f by regression, the noise Gaussian with the covariance of what is left.

    Made by `NoiseLikelihood.fit`. `covariance` is that of leave-one-out residuals.
    """

    regression: Regression
    covariance: np.ndarray

    @classmethod
    def fit(cls, hidden: Data, observed: Data) -> "NoiseLikelihood":
        """From pairs of a hidden variable of any kind and numbers or vectors.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=1000)
        >>> likelihood = NoiseLikelihood.fit(x, 2 * x + 0.5 * rng.normal(size=1000))
        >>> likelihood.covariance.round(1).tolist()
        [[0.3]]
        """
        return cls.of(sample_of(hidden, None, "hidden"), numbers(observed, "observed"))

    @classmethod
    def of(cls, hidden: NodeSample, observed: np.ndarray) -> "NoiseLikelihood":
        """From a sample that was read and vectors (m, d)."""
        check_pairs(hidden.count, len(observed))
        regression, left = Regression.fit(hidden, observed)
        covariance = left.T @ left / len(left)
        # A direction without any noise would make one value certain: a millionth of the spread keeps it a density.
        covariance += 1e-6 * np.diag(np.maximum(observed.var(axis=0), np.finfo(float).tiny))
        return cls(regression, covariance)

    @property
    def width(self) -> int:
        """d, how many columns an observation has."""
        return len(self.covariance)

    def at(self, observed: Data, points: Points) -> np.ndarray:
        """exp(−½ (y − f(x))ᵀ Σ⁻¹ (y − f(x))), scaled."""
        a, b = self._whitened(observed, points)
        squares = np.sum(b**2, axis=1) - 2 * a @ b.T  # |a|² is a factor of each row
        squares -= squares.min(axis=1, keepdims=True)
        return np.exp(-squares / 2)

    def at_each(self, observed: Data, points: np.ndarray) -> np.ndarray:
        """Likelihoods where each observation has points of its own, (N, n), all at once."""
        a, b = self._whitened(observed, points.reshape(-1, points.shape[-1]))
        squares = np.sum((a[:, None] - b.reshape(*points.shape[:2], -1)) ** 2, axis=2)
        squares -= squares.min(axis=1, keepdims=True)
        return np.exp(-squares / 2)

    def _whitened(self, observed: Data, points: Points) -> tuple[np.ndarray, np.ndarray]:
        """Observations, and what is expected at points, in units of the noise."""
        y = numbers(observed, "observed")
        triangle = scipy.linalg.cholesky(self.covariance, lower=True)
        if y.shape[1] != len(triangle):
            raise ShapeError(f"the observations have {y.shape[1]} columns; expected {len(triangle)} as when learned.")
        a, b = (scipy.linalg.solve_triangular(triangle, v.T, lower=True).T for v in (y, self.regression(points)))
        return a, b


@dataclass(frozen=True, eq=False)
class CentredLikelihood(Likelihood):
    """A guess x̂(observed) by regression, and the noise of that guess given x.

    Song et al. (2011), appendix 1, centre a Gaussian at x̂. As a likelihood that counts p(x) twice, because x̂ is drawn
    towards the mean; here x̂ is an observation of its own, x̂ = f(x) + noise, learned from leave-one-out guesses. Made by
    `CentredLikelihood.fit`.
    """

    regression: Regression
    noise: NoiseLikelihood

    @classmethod
    def fit(cls, hidden: Data, observed: Data, kernel: Kernel | None = None, groups: Any = None) -> "CentredLikelihood":
        """From pairs.

        Parameters
        ----------
        hidden : array (m,) or (m, d)
            Numbers or vectors.
        observed : m points
            Of any kind.
        kernel : Kernel, optional
            Of the observations.
        groups : labels (m,), optional
            The image or person each pair is from. How good guesses are is then measured by leaving out whole groups:
            where pairs of one group are alike, leaving out single ones says too little.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=500)
        >>> patch = x[:, None] + rng.normal(size=(500, 4))
        >>> likelihood = CentredLikelihood.fit(x, patch)
        >>> low, high = likelihood.at(np.ones((1, 4)), np.array([[-1.0], [1.0]]))[0]
        >>> bool(low < 0.1 < high)
        True
        """
        x = numbers(hidden, "hidden")
        seen = sample_of(observed, kernel, "observed")
        check_pairs(len(x), seen.count)
        regression, left = Regression.fit(seen, x)
        if groups is None:
            chosen = spread_rows(len(x), MOST_ROWS)
            truth, guess = x[chosen], x[chosen] - left
        else:
            truth, guess = x, _guesses(seen, x, groups)
        return cls(regression, NoiseLikelihood.of(sample_of(truth, None, "hidden"), guess))

    @property
    def width(self) -> int:
        """That of the observations it was learned from."""
        return columns(self.regression.sample.points)

    def at(self, observed: Data, points: Points) -> np.ndarray:
        """p(x̂ | x)."""
        return self.noise.at(self._guess(observed), points)

    def at_each(self, observed: Data, points: np.ndarray) -> np.ndarray:
        """Likelihoods where each observation has points of its own, (N, n), all at once."""
        return self.noise.at_each(self._guess(observed), points)

    def _guess(self, observed: Data) -> np.ndarray:
        """x̂ of each observation."""
        sample = self.regression.sample
        with Door() as door:
            read = read_points(sample.kernel, observed, "observed", door)
        check_alike(read, sample.points, "the observations", "those that were learned from")
        return self.regression(read)


def _guesses(seen: NodeSample, x: np.ndarray, groups: Any) -> np.ndarray:
    """Guesses (m, d) for the points of each group by regressions that saw none of its fold."""
    fold = np.unique(as_array(groups, "groups"), return_inverse=True)[1]
    if fold.shape != (len(x),):
        raise ShapeError(f"groups has shape {fold.shape}; expected ({len(x)},), a group for each pair.")
    if fold.max() == 0:
        raise InputError("groups names one group only; expected two or more, so that one can be left out.")
    guess = np.empty_like(x)
    for k in range(min(FOLDS, fold.max() + 1)):
        out = fold % FOLDS == k
        kept = np.flatnonzero(~out)
        sample = NodeSample(seen.kernel, rows(seen.points, kept), seen.flat, seen.given)
        guess[out] = Regression.fit(sample, x[kept])[0](rows(seen.points, np.flatnonzero(out)))
    return guess
