"""Ways to combine messages at a node: values are multiplied, natural parameters are added.

Schedules work with all of them. A third algebra multiplies powers of messages, for tree-reweighted belief propagation.
"""

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.messages import Given, Settings, finish, held
from meanmap.bp.engine.products import UNROLLED, Wide, all_but_one, scaled, whole
from meanmap.core.types import Array, DType, Index

__all__ = ["PRODUCT", "SUM", "Algebra", "Counted", "Product", "Reweighted", "Sum"]


class Algebra(eqx.Module):
    """The operations of the engine on messages (..., L). Messages being combined are "open": in a form in which many
    can be joined without underflow.
    """

    neutral: ClassVar[float]
    # Whether beliefs are values to be normalised, with a partition function, instead of parameters.
    multiplied: ClassVar[bool] = False

    @abstractmethod
    def whole(self, own: jax.Array, incoming: jax.Array) -> tuple[jax.Array, jax.Array]:
        """A node's own factor (n, ..., L) combined with all incoming messages (n, D, ..., L), and a log scale."""

    @abstractmethod
    def alone(self, own: jax.Array) -> tuple[jax.Array, jax.Array]:
        """A node's own factor, and a log scale."""

    @abstractmethod
    def others(self, own: jax.Array, incoming: jax.Array) -> Any:
        """The product over all slots but one, for each slot, (n, D, ..., L); still open."""

    def all_but_one(self, own: jax.Array, incoming: jax.Array) -> jax.Array:
        """The product over all slots but one, for each slot, (n, D, ..., L)."""
        return self.close(self.others(own, incoming))

    def open(self, values: jax.Array) -> Any:
        """Values ready to be joined to others."""
        return values

    def nothing(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """The identity, open."""
        return jnp.full(shape, self.neutral, dtype)

    def close(self, joined: Any) -> jax.Array:
        """The combined message, as values again."""
        return joined

    @abstractmethod
    def join(self, first: object, second: object) -> Any:
        """Join two open messages."""

    @abstractmethod
    def finish(self, message: jax.Array, given: Given | None, settings: Settings, rows: Index = None) -> jax.Array:
        """Messages in the form in which they are stored, for some rows."""

    def reweighted(self, products: jax.Array, received: jax.Array, rows: Array) -> jax.Array:
        """A node's product without one neighbour, whose message is `received`."""
        del received, rows
        return products

    def at_rows(self, row: np.ndarray, rows: int) -> "Algebra":
        """The algebra for messages stored by row; `row` (2 |E|,) is the row of each directed edge."""
        del row, rows
        return self

    def floored(self, factors: int, floor: float, dtype: DType, own: tuple[float, float] = (1.0, 1.0)) -> "Algebra":
        """The algebra for at most `factors` messages at a node with values of at least `floor`.

        Positive values of own factors lie between the two numbers `own`.
        """
        del factors, floor, dtype, own
        return self


class Product(Algebra):
    """Values are multiplied and scaled to largest value 1.

    Attributes
    ----------
    narrow : bool
        Whether no product of messages can underflow or overflow, because they are few and have a floor.
    """

    neutral: ClassVar[float] = 1.0
    multiplied: ClassVar[bool] = True
    narrow: bool = eqx.field(static=True, default=False, kw_only=True)

    def whole(self, own: jax.Array, incoming: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The scaled product, with the logarithm of the scale."""
        if self.narrow:
            return scaled(whole(own, incoming))
        return whole(Wide.of(own), Wide.of(incoming)).scaled()

    def alone(self, own: jax.Array) -> tuple[jax.Array, jax.Array]:
        """A node's own factor, scaled so that its largest value is 1, with the logarithm of the scale."""
        return scaled(own)

    def others(self, own: jax.Array, incoming: jax.Array) -> Any:
        """The products over all slots but one, up to a positive factor."""
        if self.narrow:
            return all_but_one(own, incoming)
        return all_but_one(Wide.of(own), Wide.of(incoming))

    def open(self, values: jax.Array) -> Any:
        """Represent each value as a number times a power of two."""
        return values if self.narrow else Wide.of(values)

    def nothing(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """The uninformative message: ones."""
        return jnp.ones(shape, dtype) if self.narrow else Wide.ones(shape, dtype)

    def close(self, joined: Any) -> jax.Array:
        """A product as plain numbers, scaled so that its largest value is 1."""
        return joined if self.narrow else joined.scaled()[0]

    def join(self, first: Any, second: Any) -> Any:
        """The product of two parts that are still open."""
        return first * second

    def finish(self, message: jax.Array, given: Given | None, settings: Settings, rows: Index = None) -> jax.Array:
        """The message, floored and scaled."""
        del rows
        return finish(message, given, settings)

    def floored(self, factors: int, floor: float, dtype: DType, own: tuple[float, float] = (1.0, 1.0)) -> "Product":
        """The algebra, narrow if no product can underflow or overflow."""
        if not (floor > 0 and own[0] > 0):
            return replace(self, narrow=False)
        most = -0.5 * math.log(float(np.finfo(dtype).tiny))
        least = factors * math.log(floor) + math.log(own[0])
        return replace(self, narrow=least > -most and math.log(own[1]) < most)


class Sum(Algebra):
    """Natural parameters, or logarithms, are added."""

    neutral: ClassVar[float] = 0.0

    def whole(self, own: jax.Array, incoming: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The sum; there is no scale."""
        return own + incoming.sum(axis=1), jnp.zeros(own.shape[:-1], own.dtype)

    def alone(self, own: jax.Array) -> tuple[jax.Array, jax.Array]:
        """A node's own factor, unchanged."""
        return own, jnp.zeros(own.shape[:-1], own.dtype)

    def others(self, own: jax.Array, incoming: jax.Array) -> jax.Array:
        """Sums of the slots before plus sums of those after; subtraction would lose digits."""
        slots = jnp.moveaxis(incoming, 1, 0)
        if len(slots) > UNROLLED:
            none = jnp.zeros_like(slots[:1])
            before, behind = (jnp.cumsum(jnp.concatenate([none, each[:-1]]), axis=0) for each in (slots, slots[::-1]))
            return jnp.moveaxis(own + before + behind[::-1], 0, 1)
        before, behind = [own], [jnp.zeros_like(own)]
        for j in range(len(slots) - 1):
            before.append(before[-1] + slots[j])
            behind.append(behind[-1] + slots[-1 - j])
        return jnp.stack([first + second for first, second in zip(before, behind[::-1], strict=True)], axis=1)

    def join(self, first: Any, second: Any) -> Any:
        """The sum of two parts."""
        return first + second

    def finish(self, message: jax.Array, given: Given | None, settings: Settings, rows: Index = None) -> jax.Array:
        """The messages, unchanged."""
        del rows, settings
        return held(message, given)


class Reweighted(Product):
    """Tree-reweighted products (Wainwright, Jaakkola & Willsky 2003), with ρ the edge appearance probabilities,

        m_ts(x_s) ∝ [Σ_{x_t} ψ_st(x_t, x_s)^(1/ρ_st) φ_t(x_t) Π_{u≠s} m_ut(x_t) · m_st(x_t)^(1 − 1/ρ_st)]^ρ_st.

    Messages are stored raised to the power ρ, so that beliefs are products. With ρ = 1 this is sum-product.

    Attributes
    ----------
    appearance : array (2 |E|,), or (rows,) once laid out
        ρ of each directed edge.
    """

    appearance: Any

    def at_rows(self, row: np.ndarray, rows: int) -> "Reweighted":
        """The algebra with ρ for each row, one for empty slots."""
        placed = np.ones(rows)
        placed[row] = self.appearance
        return Reweighted(placed)

    def floored(self, factors: int, floor: float, dtype: DType, own: tuple[float, float] = (1.0, 1.0)) -> "Reweighted":
        """The algebra, unchanged: messages to negative powers may be of any size."""
        del factors, floor, dtype, own
        return self

    def reweighted(self, products: jax.Array, received: jax.Array, rows: Array) -> jax.Array:
        """The product times the receiver's message to the power 1 − 1/ρ."""
        power = (1 - 1 / self.appearance[rows])[:, None, None].astype(products.dtype)
        return scaled(products * jnp.maximum(received, np.finfo(products.dtype).tiny) ** power)[0]

    def finish(self, message: jax.Array, given: Given | None, settings: Settings, rows: Index = None) -> jax.Array:
        """The message, scaled to largest value 1 and raised to the power ρ."""
        top = jnp.max(message, axis=-1, keepdims=True)
        power = self.appearance[rows][:, None, None].astype(message.dtype)
        message = jnp.maximum(message / jnp.where(top > 0, top, 1), 0) ** power
        return finish(message, given, settings)


class Counted(Product):
    """Tree-reweighted products with one power μ for all edges, for floored messages, which may be learned ratios.

    A node's belief is own × Π_j m_j^μ, and the product without its i-th neighbour is that divided by m_i. The fixed
    points are those of `Reweighted` with ρ = μ and potentials to the power 1/μ; messages are stored, floored and damped
    before they are raised to ρ.
    """

    share: Any

    def whole(self, own: jax.Array, incoming: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The product of own factors and of messages to the power μ."""
        return super().whole(own, incoming**self.share)

    def all_but_one(self, own: jax.Array, incoming: jax.Array) -> jax.Array:
        """The powers of all messages, divided by the message of each slot in turn."""
        return self.whole(own, incoming)[0][:, None] / incoming


PRODUCT = Product()
SUM = Sum()
