"""Kernels on some columns of a table."""

from typing import Any

import equinox as eqx
import jax

from meanmap.core.domains import Columns, Domain, column_names
from meanmap.core.types import Points
from meanmap.kernels.base import Kernel, Wrapper

__all__ = ["OnColumns"]


class OnColumns(Wrapper):
    """A kernel on some columns of a table: `OnColumns(RBF(1.0), ["age", "height"])`.

    Parameters
    ----------
    kernel : Kernel
        The kernel of those columns.
    names : name, number or a sequence of them
        Column names of a table, or column numbers of a plain array.

    Examples
    --------
    >>> from meanmap.kernels import RBF
    >>> OnColumns(RBF(1.0), [0])([[0.0, 7.0], [0.0, -7.0]]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    kernel: Kernel
    names: tuple[str | int, ...] = eqx.field(static=True)

    def __init__(self, kernel: Kernel, names: Any):
        self.kernel = kernel
        self.names = column_names(names)

    @property
    def domain(self) -> Domain:
        """The inner domain, read from these columns."""
        return Columns(self.names, self.kernel.domain)

    def evaluate(self, x: Points, y: Points) -> jax.Array:
        """k(x, y) for two points."""
        return self.kernel.evaluate(x, y)

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The inner Gram matrix."""
        return self.kernel.gram(x, y)

    def diagonal(self, x: Points) -> jax.Array:
        """The inner diagonal."""
        return self.kernel.diagonal(x)
