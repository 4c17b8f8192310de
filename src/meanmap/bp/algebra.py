"""How messages come together at a node: values are multiplied, natural parameters are added.

The schedules do not know which. A third way multiplies powers of messages, for tree-reweighted belief propagation.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.messages import Given, Settings, damped, finish
from meanmap.bp.products import all_but_one, scaled, whole

__all__ = ["PRODUCT", "SUM", "Algebra", "Counted", "Product", "Reweighted", "Sum"]


class Algebra(eqx.Module):
    """What the engine has to know about messages (..., L)."""

    neutral: ClassVar[float]

    @abstractmethod
    def whole(self, own: jax.Array, incoming: jax.Array) -> tuple[jax.Array, jax.Array]:
        """A node's own factor (n, ..., L) and all that it received (n, D, ..., L), and the log of a scale."""

    @abstractmethod
    def all_but_one(self, own: jax.Array, incoming: jax.Array) -> jax.Array:
        """The same without each of the slots in turn, (n, D, ..., L)."""

    @abstractmethod
    def join(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """Two of them."""

    @abstractmethod
    def gather(self, heard: jax.Array, at: jax.Array, sent: jax.Array) -> jax.Array:
        """Messages brought to what was heard at some nodes, which may be named more than once."""

    @abstractmethod
    def finish(
        self, message: jax.Array, old: jax.Array | None, given: Given | None, settings: Settings, rows: Any = None
    ) -> jax.Array:
        """Messages as they are kept, for some rows."""

    def reweighted(self, products: jax.Array, received: jax.Array, rows: Any) -> jax.Array:
        """What a node knows without one neighbour; `received` is what that one said."""
        del received, rows
        return products

    def at_rows(self, row: np.ndarray, rows: int) -> "Algebra":
        """For messages that lie at rows; `row` (2 |E|,) is that of each directed edge."""
        del row, rows
        return self


class Product(Algebra):
    """Values are multiplied and scaled to largest value 1."""

    neutral: ClassVar[float] = 1.0

    def whole(self, own: jax.Array, incoming: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Scaled, with the logarithm of the scale."""
        return whole(own, incoming)

    def all_but_one(self, own: jax.Array, incoming: jax.Array) -> jax.Array:
        """Up to a positive factor."""
        return all_but_one(own, incoming)

    def join(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """Scaled."""
        return scaled(first * second)[0]

    def gather(self, heard: jax.Array, at: jax.Array, sent: jax.Array) -> jax.Array:
        """Multiplied there and scaled."""
        heard = heard.at[at].multiply(sent)
        return heard.at[at].set(scaled(heard[at])[0])

    def finish(
        self, message: jax.Array, old: jax.Array | None, given: Given | None, settings: Settings, rows: Any = None
    ) -> jax.Array:
        """Floored, scaled, damped."""
        del rows
        return finish(message, old, given, settings)


class Sum(Algebra):
    """Natural parameters, or logarithms, are added."""

    neutral: ClassVar[float] = 0.0

    def whole(self, own: jax.Array, incoming: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The sum; there is no scale."""
        return own + incoming.sum(axis=1), jnp.zeros(own.shape[:-1], own.dtype)

    def all_but_one(self, own: jax.Array, incoming: jax.Array) -> jax.Array:
        """Sums of what comes before plus sums of what comes behind: a difference would cancel digits."""
        before = jnp.cumsum(incoming, axis=1)
        behind = jnp.cumsum(incoming[:, ::-1], axis=1)[:, ::-1]
        none = jnp.zeros_like(incoming[:, :1])
        before = jnp.concatenate([none, before[:, :-1]], axis=1)
        return own[:, None] + before + jnp.concatenate([behind[:, 1:], none], axis=1)

    def join(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """The sum."""
        return first + second

    def gather(self, heard: jax.Array, at: jax.Array, sent: jax.Array) -> jax.Array:
        """Added there."""
        return heard.at[at].add(sent)

    def finish(
        self, message: jax.Array, old: jax.Array | None, given: Given | None, settings: Settings, rows: Any = None
    ) -> jax.Array:
        """Damped."""
        del rows
        return damped(message, old, given, settings)


class Reweighted(Product):
    """Tree-reweighted products (Wainwright, Jaakkola & Willsky 2003): with ρ how often an edge is in a spanning tree,

        m_ts(x_s) ∝ [Σ_{x_t} ψ_st(x_t, x_s)^(1/ρ_st) φ_t(x_t) Π_{u≠s} m_ut(x_t) · m_st(x_t)^(1 − 1/ρ_st)]^ρ_st.

    Messages are kept as their power ρ, so that beliefs are plain products. With ρ = 1 it is sum-product.

    Attributes
    ----------
    appearance : array (2 |E|,), or (rows,) once laid out
        ρ of each directed edge.
    """

    appearance: Any

    def at_rows(self, row: np.ndarray, rows: int) -> "Reweighted":
        """ρ of each row, ones where a slot is empty."""
        placed = np.ones(rows)
        placed[row] = self.appearance
        return Reweighted(placed)

    def reweighted(self, products: jax.Array, received: jax.Array, rows: Any) -> jax.Array:
        """Times what the receiver said, to the power 1 − 1/ρ."""
        power = (1 - 1 / self.appearance[rows])[:, None, None].astype(products.dtype)
        return scaled(products * jnp.maximum(received, np.finfo(products.dtype).tiny) ** power)[0]

    def finish(
        self, message: jax.Array, old: jax.Array | None, given: Given | None, settings: Settings, rows: Any = None
    ) -> jax.Array:
        """Scaled to largest value 1, to the power ρ, damped."""
        top = jnp.max(message, axis=-1, keepdims=True)
        power = self.appearance[rows][:, None, None].astype(message.dtype)
        message = jnp.maximum(message / jnp.where(top > 0, top, 1), 0) ** power
        return finish(message, old, given, settings)


class Counted(Product):
    """Tree-reweighted products with one share μ for all edges, of messages that have a floor and may be learned ratios.

    A node knows own × Π_j m_j^μ, and without its i-th neighbour that over m_i: the fixed points of `Reweighted` with
    ρ = μ and potentials to the power 1/μ, with messages kept, floored and damped before they are raised to ρ.
    """

    share: Any

    def whole(self, own: jax.Array, incoming: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Of messages to the power μ."""
        return whole(own, incoming**self.share)

    def all_but_one(self, own: jax.Array, incoming: jax.Array) -> jax.Array:
        """The same over one message."""
        counted = incoming**self.share
        return all_but_one(own, counted) * (counted / incoming)


PRODUCT = Product()
SUM = Sum()
