"""Beliefs about whole numbers that are known as a density of what was rounded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.bp.beliefs.densities import Density
from meanmap.core.tables.filling import nearest_whole
from meanmap.core.types import Array, Index, Numbers

__all__ = ["Rounded"]


@dataclass(frozen=True, eq=False, repr=False)
class Rounded(Density):
    """The distribution of a number with a density, rounded to whole numbers: so are quantiles and draws, and the
    distribution function is a step function. Mean, variance and density are those before rounding.

    Attributes
    ----------
    belief : Density
    least : float
        The least number of the data: if it is not negative, nothing is.

    Examples
    --------
    >>> from meanmap.bp.beliefs.densities import NormalMixture
    >>> belief = Rounded(NormalMixture.normal(np.array(2.2), np.array(1.0)), 0.0)
    >>> belief.quantile([0.05, 0.5]).tolist(), belief.cdf([1.9, 2.0]).round(2).tolist()
    ([1.0, 2.0], [0.24, 0.62])
    """

    belief: Density
    least: float

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.belief.batch

    def __getitem__(self, index: Index) -> "Rounded":
        return replace(self, belief=self.belief[index])

    def mean(self) -> Array:
        """As before rounding."""
        return self.belief.mean()

    def var(self) -> Any:
        """As before rounding."""
        return self.belief.var()

    def mode(self) -> Array:
        """The whole number nearest to the point of the largest density."""
        return self._whole(np.asarray(self.belief.mode()))

    def quantile(self, q: Numbers | Sequence[float]) -> Array:
        """Quantiles, (...,) + the shape of q: those before rounding, rounded."""
        return self._whole(np.asarray(self.belief.quantile(q)))

    def _density(self, x: np.ndarray) -> np.ndarray:
        return self.belief._density(x)

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        below = (np.floor(x) < 0) & (self.least >= 0)
        return np.where(below, 0.0, self.belief._cdf(np.floor(x) + 0.5))

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        return self.belief._range()

    def _sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return self._whole(self.belief._sample(n, rng))

    def _whole(self, values: np.ndarray) -> Any:
        return nearest_whole(values, self.least).astype(float)[()]
