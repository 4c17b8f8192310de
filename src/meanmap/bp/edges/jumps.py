"""Kernels of numbers of which many rows have the same one, as a top code: what depends on these may jump there."""

from typing import Any

import jax
import numpy as np

from meanmap.bp.frequent import few_values, frequent
from meanmap.core.points import any_sparse
from meanmap.core.types import Array, Points
from meanmap.kernels.base import Kernel, Sum

__all__ = ["smooth_and_jumps", "with_jumps"]


class _AtValues(Kernel):
    """k(x, y) = 1 if x and y are the same one of some numbers, else 0."""

    values: Array

    def evaluate(self, x: Array, y: Array) -> jax.Array:
        """k(x, y) for two points."""
        return self.gram(x[None], y[None])[0, 0]

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The (n, m) Gram matrix of points already read."""
        return self._hits(x) @ self._hits(y).T

    def diagonal(self, x: Points) -> jax.Array:
        """k(x, x) for each of n points already read."""
        return self._hits(x).sum(axis=1)

    @property
    def in_numpy(self) -> bool:
        """True: the same for arrays of both libraries."""
        return True

    def _hits(self, x: Any) -> Any:
        return (x == self.values).astype(x.dtype)


def with_jumps(kernel: Kernel, points: Any) -> Kernel:
    """A kernel of numbers (n, 1), and an indicator of each value that many of them have."""
    if any_sparse(points) or np.shape(points)[1:] != (1,):
        return kernel
    values = np.asarray(points)[:, 0]
    often = np.zeros(0) if few_values(values) else frequent(values)
    return Sum((kernel, _AtValues(often))) if len(often) else kernel


def smooth_and_jumps(kernel: Kernel) -> tuple[Kernel, tuple[Kernel, ...]]:
    """The kernel without these indicators, and a kernel of them where it has some."""
    if isinstance(kernel, Sum) and isinstance(kernel.members[-1], _AtValues):
        return kernel.members[0], kernel.members[1:]
    return kernel, ()
