"""First and second moments of rows, accumulated in one pass and mergeable between parts of the data."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from meanmap.core.errors import ShapeError
from meanmap.core.values import Value

__all__ = ["Moments"]


@dataclass(frozen=True, eq=False, repr=False)
class Moments(Value):
    """The number of rows, their sum, and the sum of their outer products, relative to an origin. Parts of a sample are
    merged in O(r²); sums of the same parts in the same order are equal bit for bit. An origin near the mean keeps sums
    from cancelling in the covariance.

    Attributes
    ----------
    n : int
        The number of rows.
    origin : array (r,)
        o, subtracted from each row z.
    sums : array (r,)
        Σ (z − o).
    products : array (r, r)
        Σ (z − o)(z − o)ᵀ.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 3))
    >>> whole, parts = Moments.of(rows), Moments.of(rows[:30]).merge(Moments.of(rows[30:], origin=rows[0]))
    >>> parts.n, bool(np.allclose(parts.covariance(), np.cov(rows.T))), bool(np.allclose(whole.mean, parts.mean))
    (100, True, True)
    """

    n: int
    origin: np.ndarray
    sums: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, origin: np.ndarray | None = None) -> "Moments":
        """The moments of rows (n, r), about zero unless another origin is passed."""
        if origin is None:
            return cls(len(rows), np.zeros(rows.shape[1]), rows.sum(axis=0), rows.T @ rows)
        centred = rows - origin
        return cls(len(rows), np.asarray(origin), centred.sum(axis=0), centred.T @ centred)

    @classmethod
    def none(cls, size: int) -> "Moments":
        """The moments of no rows of this length."""
        return cls(0, np.zeros(size), np.zeros(size), np.zeros((size, size)))

    @classmethod
    def merged(cls, parts: Iterable["Moments"]) -> "Moments":
        """The moments of all parts together, added in order; at least one part."""
        listed = iter(parts)
        total = next(listed)
        for part in listed:
            total = total.merge(part)
        return total

    def merge(self, other: "Moments") -> "Moments":
        """The moments of both parts together, about the origin of the first."""
        if self.sums.shape != other.sums.shape:
            raise ShapeError(f"one part has rows of length {len(self.sums)} and the other of {len(other.sums)}.")
        if not self.n:
            return other
        other = other.about(self.origin)
        return Moments(self.n + other.n, self.origin, self.sums + other.sums, self.products + other.products)

    def about(self, origin: np.ndarray) -> "Moments":
        """The moments about another origin."""
        shift = self.origin - origin
        if not shift.any():
            return self
        across = np.outer(self.sums, shift)
        products = self.products + across + across.T + self.n * np.outer(shift, shift)
        return Moments(self.n, origin, self.sums + self.n * shift, products)

    @property
    def mean(self) -> np.ndarray:
        """The mean of the rows, (r,)."""
        return self.origin + self.sums / self.n

    @property
    def second(self) -> np.ndarray:
        """The mean of z zᵀ, (r, r)."""
        return self.about(np.zeros_like(self.origin)).products / self.n

    def covariance(self, lost: int = 1) -> np.ndarray:
        """The covariance of the rows, (r, r), from sums over n rows divided by n − `lost`."""
        centre = self.sums / self.n
        return (self.products / self.n - np.outer(centre, centre)) * (self.n / (self.n - lost))
