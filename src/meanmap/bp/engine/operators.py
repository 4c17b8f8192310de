"""What an edge does to a message: one matrix for each directed edge, or a few that many edges share.

Everything is in values. A message to node s is its values at the points (states, landmarks) of s, and the matrix of the
directed edge t → s takes the product of what t knows, at the points of t, to those values. Discrete belief propagation
has the potential there, ψ(x_t, x_s); learned operators have a signed matrix (Song et al. 2011, section 4).
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["EdgeMatrices", "EdgeOperators", "Factored", "Grouping"]

# Up to so many different matrices a sweep makes one product for each; beyond, matrices are gathered edge by edge.
MOST_GROUPS = 64


class Grouping(eqx.Module):
    """Rows sorted by the matrix that they meet, and the way back."""

    order: Any
    back: Any
    sizes: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, template: np.ndarray, number: int) -> "Grouping | None":
        """Group rows by template; nothing to do for a single matrix, nothing gained by very many."""
        if number == 1 or number > MOST_GROUPS:
            return None
        order = np.argsort(template, kind="stable")
        sizes = np.bincount(template, minlength=number)
        return cls(order, np.argsort(order), tuple(int(size) for size in sizes))


class EdgeOperators(eqx.Module):
    """An operator for each directed edge."""

    @property
    @abstractmethod
    def number(self) -> int:
        """How many different operators there are."""

    @abstractmethod
    def apply(self, products: jax.Array, template: Any) -> jax.Array:
        """Messages from products (rows, B, L); `template` is one operator number, or one for each row."""

    def send(self, products: jax.Array, template: jax.Array, grouping: Grouping | None = None) -> jax.Array:
        """Messages for rows of any templates, by one large product for each operator where there are few."""
        if self.number == 1:
            return self.apply(products, 0)
        if grouping is None:
            return self.apply(products, template)
        sorted_rows, parts, start = products[grouping.order], [], 0
        for number, size in enumerate(grouping.sizes):
            parts.append(self.apply(sorted_rows[start : start + size], number))
            start += size
        return jnp.concatenate(parts)[grouping.back]


class EdgeMatrices(EdgeOperators):
    """m(x_s) = Σ_{x_t} p(x_t) T(x_t, x_s), or the maximum over x_t instead of the sum.

    Attributes
    ----------
    matrices : array (T, L, L)
        Rows are the sender's points, columns the receiver's.
    maximum : bool
        Max-product.
    """

    matrices: Any
    maximum: bool = eqx.field(static=True, default=False)

    @property
    def number(self) -> int:
        """T, how many operators there are."""
        return self.matrices.shape[0]

    def apply(self, products: jax.Array, template: Any) -> jax.Array:
        """Products times matrices."""
        matrix = self.matrices[template]
        return _largest(products, matrix) if self.maximum else jnp.matmul(products, matrix, precision="highest")


class Factored(EdgeOperators):
    """m = (p A) B with A (T, L, r) and B (T, r, L): matrices of rank r, at a cost linear in the number of points."""

    into: Any
    out: Any

    @property
    def number(self) -> int:
        """T, how many operators there are."""
        return self.into.shape[0]

    def apply(self, products: jax.Array, template: Any) -> jax.Array:
        """Products times both factors."""
        inner = jnp.matmul(products, self.into[template], precision="highest")
        return jnp.matmul(inner, self.out[template], precision="highest")


def _largest(products: jax.Array, matrix: jax.Array) -> jax.Array:
    """max_i pᵢ Tᵢⱼ without the (rows, L, L) array of all candidates."""

    def step(best: jax.Array, one: Any) -> tuple[jax.Array, None]:
        value, row = one
        return jnp.maximum(best, value[..., None] * row[..., None, :]), None

    slices = jnp.moveaxis(products, -1, 0), jnp.moveaxis(matrix, -2, 0)
    start = jnp.zeros((*products.shape[:-1], matrix.shape[-1]), products.dtype)
    return jax.lax.scan(step, start, slices)[0]
