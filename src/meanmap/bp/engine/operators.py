"""The operators of edges on messages: one matrix for each directed edge, or a few shared by many edges.

Messages are represented by values: a message to node s by its values at the points (states, landmarks) of s. The matrix
of the directed edge t → s maps the product of messages at the points of t to those values. In discrete belief
propagation it is the potential ψ(x_t, x_s); learned operators are signed matrices (Song et al. 2011).
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.points import slices

__all__ = ["EdgeMatrices", "EdgeOperators", "Factored", "Grouping"]

# With up to this many different matrices a sweep makes one product for each; with more, matrices are gathered per edge.
MOST_GROUPS = 64
# Ranks are padded to multiples of this.
RANK_STEP = 16


class Grouping(eqx.Module):
    """Rows sorted by their matrix, and the inverse permutation."""

    order: Any
    back: Any
    sizes: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, template: np.ndarray, number: int) -> "Grouping | None":
        """Group rows by template; None for a single matrix, which needs no groups, and for very many."""
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
        """The number of different operators."""

    @abstractmethod
    def apply(self, products: jax.Array, template: object) -> jax.Array:
        """Messages from products (rows, B, L); `template` is one operator number, or one for each row."""

    def least_share(self) -> float:
        """A lower bound on min / max of the values of any message; 0 if no bound is known."""
        return 0.0

    def send(self, products: jax.Array, template: jax.Array, grouping: Grouping | None = None) -> jax.Array:
        """Messages for rows of any templates, by one large product for each operator if there are few."""
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
        Whether to use max-product.
    """

    matrices: Any
    maximum: bool = eqx.field(static=True, default=False)

    @property
    def number(self) -> int:
        """T, the number of operators."""
        return self.matrices.shape[0]

    def least_share(self) -> float:
        """The smallest min / max of a row, of which messages are combinations; 0 if some value is not positive."""
        matrices = np.asarray(self.matrices)
        return max(float((matrices.min(axis=-1) / matrices.max(axis=-1)).min()), 0.0) if (matrices > 0).all() else 0.0

    def apply(self, products: jax.Array, template: object) -> jax.Array:
        """Products times matrices."""
        matrix = self.matrices[template]
        return _largest(products, matrix) if self.maximum else jnp.matmul(products, matrix, precision="highest")


class Factored(EdgeOperators):
    """m = (p A) B with A (L, r) and B (r, L): matrices of low rank, at a cost linear in the number of points.

    Attributes
    ----------
    into, out : arrays (K, L, r), (K, r, L)
        One block of A and B for each operator; with `begin` some have several blocks, whose messages are summed.
    begin : array (T + 1,) of int, optional
        Operator t has the blocks from begin[t] to begin[t + 1].
    """

    into: Any
    out: Any
    begin: Any = None

    @classmethod
    def of(cls, factors: Sequence[tuple[np.ndarray, np.ndarray]], points: int) -> "Factored":
        """Stack the factors (N, r) and (r, N') of each operator, padded to this many points and to one rank.

        If a few operators of high rank would more than double the memory, all are cut into blocks of a lower rank.
        """
        ranks = np.array([inner.shape[1] for inner, _ in factors], dtype=int)
        top = -(-int(ranks.max(initial=1)) // RANK_STEP) * RANK_STEP
        widths = np.arange(RANK_STEP, top + 1, RANK_STEP)
        least = int(min(widths, key=lambda width: (-(-ranks // width)).sum() * (width + RANK_STEP)))
        width = top if len(ranks) * top <= 2 * (-(-ranks // least)).sum() * least else least
        begin = np.concatenate([[0], np.cumsum(-(-ranks // width))])
        into, out = np.zeros((begin[-1], points, width)), np.zeros((begin[-1], width, points))
        for first, (inner, outer) in zip(begin, factors, strict=False):
            for k, part in enumerate(slices(inner.shape[1], width)):
                into[first + k, : len(inner), : part.stop - part.start] = inner[:, part]
                out[first + k, : part.stop - part.start, : outer.shape[1]] = outer[part]
        return cls(into, out, None if width == top else begin)

    @property
    def number(self) -> int:
        """T, the number of operators."""
        return len(self.into if self.begin is None else self.begin[1:])

    def send(self, products: jax.Array, template: jax.Array, grouping: Grouping | None = None) -> jax.Array:
        """Messages for rows of any templates; blocks are gathered for any number of operators."""
        return super().send(products, template, grouping if self.begin is None else None)

    def apply(self, products: jax.Array, template: object) -> jax.Array:
        """Products times both factors."""
        return self._sent(products, template) if self.begin is None else self._added(products, template)

    def _sent(self, products: jax.Array, block: object) -> jax.Array:
        """Messages through one block each."""
        inner = jnp.matmul(products, self.into[block], precision="highest")
        return jnp.matmul(inner, self.out[block], precision="highest")

    def _added(self, products: jax.Array, template: Any) -> jax.Array:
        """Messages through all blocks of each, processing as many pairs of a row and a block at a time as rows."""
        rows = len(products)
        template = jnp.broadcast_to(template, rows)
        end = jnp.cumsum(self.begin[template + 1] - self.begin[template])

        def step(i: jax.Array, sent: jax.Array) -> jax.Array:
            pair = i * rows + jnp.arange(rows)
            row = jnp.searchsorted(end, pair, side="right")  # past the last pair: no row
            at = jnp.minimum(row, rows - 1)
            block = self.begin[template[at] + 1] - end[at] + pair
            more = self._sent(products[at], jnp.where(row < rows, block, 0))
            return sent.at[row].add(more, mode="drop")

        return jax.lax.fori_loop(0, -(-end[-1] // rows), step, jnp.zeros_like(products))


def _largest(products: jax.Array, matrix: jax.Array) -> jax.Array:
    """max_i pᵢ Tᵢⱼ without the (rows, L, L) array of all candidates."""

    def step(best: jax.Array, one: Any) -> tuple[jax.Array, None]:
        value, row = one
        return jnp.maximum(best, value[..., None] * row[..., None, :]), None

    slices = jnp.moveaxis(products, -1, 0), jnp.moveaxis(matrix, -2, 0)
    start = jnp.zeros((*products.shape[:-1], matrix.shape[-1]), products.dtype)
    return jax.lax.scan(step, start, slices)[0]
