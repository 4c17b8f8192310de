"""Points moved by a shift, and what a drift monitor asks with a margin: is a batch further away than that?"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.errors import KindError, ParameterError
from meanmap.core.points import count, is_sparse, rows
from meanmap.core.settings import is_number
from meanmap.core.types import Points
from meanmap.core.values import Value
from meanmap.features.base import Features, transformed
from meanmap.stats.limits import DistanceLaw

__all__ = ["Margin", "mover"]

# Rows that are moved, and rows whose covariance has its eigenvalues found.
MOVED, MEASURED = 3000, 1000
# The reference is as far from its law as this quantile says; the margin grows by as much.
CERTAIN = 0.999


def mover(points: Points) -> Callable[[Points, float], Any] | None:
    """What moves rows like these by so many standard deviations in every column of numbers; None if there is none."""
    if is_sparse(points):
        return None

    def numbers(leaf: Any) -> bool:
        return np.issubdtype(leaf.dtype, np.floating) and leaf.ndim <= 2

    if not any(numbers(leaf) and np.ptp(leaf, axis=0).any() for leaf in jax.tree.leaves(points)):
        return None
    spreads = jax.tree.map(lambda leaf: np.std(leaf, axis=0, ddof=1) if numbers(leaf) else 0, points)

    def moved(some: Points, shift: float) -> Any:
        return jax.tree.map(lambda leaf, spread: leaf + shift * spread if numbers(leaf) else leaf, some, spreads)

    return moved


@dataclass(frozen=True, eq=False, repr=False)
class Margin(Value):
    """How far a batch may be from the reference without being told.

    Attributes
    ----------
    shift : float
        As if every column of numbers had moved by so many standard deviations of the reference.
    bound : float
        The distance that amounts to, and how far the reference may be from its law.
    mean, spectrum : array
        The mean features of the reference, and the eigenvalues of their covariance.
    """

    shift: float
    bound: float
    mean: np.ndarray
    spectrum: np.ndarray

    @classmethod
    def of(cls, shift: float, features: Features, points: Points, phi: np.ndarray) -> "Margin":
        """From the reference's points and their features."""
        if not is_number(shift) or not 0 < shift < np.inf:
            raise ParameterError(f"margin is {shift!r}; expected a positive number of standard deviations.")
        move = mover(points)
        if move is None:
            raise KindError("the reference has no column of numbers that varies, which a margin in sd is of.")
        some = rows(points, slice(0, MOVED))
        distance = np.linalg.norm((transformed(features, move(some, float(shift))) - phi[:MOVED]).mean(axis=0))
        part = phi[:: -(-count(points) // MEASURED)]
        centred = part - part.mean(axis=0)
        spectrum = np.maximum(np.linalg.eigvalsh(centred @ centred.T), 0.0)[::-1] / (len(part) - 1)
        own = DistanceLaw(0.0, spectrum / len(phi)).draws(0.0, np.random.default_rng(0), 20_000)
        return cls(float(shift), float(distance + np.sqrt(np.quantile(own, CERTAIN))), phi.mean(axis=0), spectrum)

    def pvalue(self, phi: np.ndarray) -> float:
        """That a batch with these features comes from a law within the margin."""
        squared = float(np.sum((phi.mean(axis=0) - self.mean) ** 2))
        return DistanceLaw(squared, self.spectrum / len(phi)).above(self.bound)
