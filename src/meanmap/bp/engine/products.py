"""Products of messages: over all slots of a node, and over all slots but one.

They use neither division (a message may be zero) nor logarithms (learned values may be negative): the product of all
factors but the j-th is the product of those before times the product of those after it. Each value has its own power of
two: a state that the first thousand of 2000 factors make unlikely by e⁻¹⁰⁰⁰ may be the one that the others make likely.
"""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.types import DType, Numbers

__all__ = ["Wide", "all_but_one", "scaled", "split", "whole"]

# Up to this many slots the loop is unrolled, which runs faster for long messages; with more it would take longer to
# compile (with 13 slots a first query took seconds more).
UNROLLED = 8
# Lower than any exponent.
LOWEST = -(2**30)

Product = TypeVar("Product")


class Wide(eqx.Module):
    """Numbers m · 2ᵉ whose products neither underflow nor overflow; powers of two cause no rounding.

    Attributes
    ----------
    mantissa : array
        Absolute values are 0, or from 1 to 2.
    exponent : array of int32
    """

    mantissa: jax.Array
    exponent: jax.Array

    @classmethod
    def of(cls, values: jax.Array, exponent: Numbers = 0) -> "Wide":
        """values · 2^exponent."""
        found = _exponent(values)
        return cls(values * _power(-found, values.dtype), found + exponent)

    @classmethod
    def ones(cls, shape: tuple[int, ...], dtype: DType) -> "Wide":
        """An array of ones."""
        return cls(jnp.ones(shape, dtype), jnp.zeros(shape, jnp.int32))

    def __mul__(self, other: "Wide") -> "Wide":
        return Wide.of(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def scaled(self) -> tuple[jax.Array, jax.Array]:
        """Values divided by their largest absolute value along the last axis, and that value's logarithm."""
        top = jnp.max(jnp.where(self.mantissa == 0, LOWEST, self.exponent), axis=-1, keepdims=True)
        least = jnp.finfo(self.mantissa.dtype).minexp
        # The exponent of a zero may be higher: its derivative is needed.
        below = jnp.clip(self.exponent - top, least - 1, -least)
        values, log_scale = scaled(self.mantissa * jnp.where(below < least, 0, _power(below, self.mantissa.dtype)))
        return values, log_scale + jnp.where(top > LOWEST, top, 0)[..., 0] * np.log(2).astype(values.dtype)


def _exponent(values: jax.Array) -> jax.Array:
    """e with 1 ≤ |v| / 2ᵉ < 2, read from the bits; 0 for zero and nearly zero values."""
    kind = jnp.finfo(values.dtype)
    words = jnp.dtype(f"int{kind.bits}")
    bits = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(values), words)
    raw = ((bits >> kind.nmant) & (2**kind.nexp - 1)).astype(jnp.int32)
    return jnp.where(raw == 0, 0, jnp.minimum(raw - kind.maxexp + 1, kind.maxexp - 2))


def _power(exponent: jax.Array, dtype: DType) -> jax.Array:
    """2^exponent without rounding."""
    kind = jnp.finfo(dtype)
    words = jnp.dtype(f"int{kind.bits}")
    return jax.lax.bitcast_convert_type((exponent + kind.maxexp - 1).astype(words) << kind.nmant, dtype)


def scaled(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Values divided by their largest absolute value along the last axis, and that value's logarithm (−∞ for zeros)."""
    top = jnp.max(jnp.abs(values), axis=-1, keepdims=True)
    return values / jnp.where(top > 0, top, 1), jnp.log(top[..., 0])


def split(values: np.ndarray, exponent: Numbers = 0) -> tuple[np.ndarray, np.ndarray]:
    """NumPy values · 2^exponent as mantissas and exponents; that of a zero is lower than any other."""
    mantissa, more = np.frexp(values)
    return mantissa, np.where(mantissa == 0, LOWEST, np.maximum(exponent, LOWEST // 2) + more)


def whole(own: Product, incoming: Product) -> Product:
    """own × Π_j incoming_j, of arrays or of wide numbers.

    Parameters
    ----------
    own : (n, ..., L)
        Each node's own factor.
    incoming : (n, D, ..., L)
        The message received in each slot; ones for empty slots.
    """
    slots = _slots_first(incoming)
    if _count(slots) > UNROLLED:
        return jax.lax.scan(lambda product, factor: (product * factor, None), own, slots)[0]
    product: Any = own
    for j in range(_count(slots)):
        product = product * _at(slots, j)
    return product


def all_but_one(own: Product, incoming: Product) -> Product:
    """own × Π_{i ≠ j} incoming_i for each slot j, (n, D, ..., L).

    Cost three products per slot, for any D.
    """
    slots = _slots_first(incoming)
    count = _count(slots)
    if count > UNROLLED:
        backwards = jax.tree.map(lambda leaf: leaf[::-1], slots)
        # The product after the last but one, …; after the last there is nothing to multiply by.
        behind = _running(_at(backwards, 0), jax.tree.map(lambda leaf: leaf[1:], backwards))
        before: Any = _running(own, slots)
        rest = jax.tree.map(lambda leaf: leaf[:-1], before) * jax.tree.map(lambda leaf: leaf[::-1], behind)
        product = jax.tree.map(lambda some, last: jnp.concatenate([some, last[-1:]]), rest, before)
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), product)
    before = [own]
    for j in range(count - 1):
        before.append(before[-1] * _at(slots, j))
    behind = [_at(slots, count - 1)]
    for j in range(count - 2, 0, -1):
        behind.append(behind[-1] * _at(slots, j))
    products = [first if j == count - 1 else first * behind[count - 2 - j] for j, first in enumerate(before)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=1), *products)


def _slots_first(incoming: object) -> Any:
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), incoming)


def _count(slots: object) -> int:
    return len(jax.tree.leaves(slots)[0])


def _at(slots: object, j: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[j], slots)


def _running(start: Any, slots: Any) -> Any:
    """The product of all slots before each slot."""
    return jax.lax.scan(lambda product, factor: (product * factor, product), start, slots)[1]
