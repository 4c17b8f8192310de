"""Products of messages: over all slots of a node, and over all slots but one.

No division (a message may be zero) and no logarithm (values learned from data may be negative): the product of all
factors but the j-th is the product of those before times the product of those behind. Only the direction of a product
matters, so long products are scaled on the way, and the logarithm of the scale is kept where somebody needs it.
"""

from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["all_but_one", "scaled", "whole"]

# Up to so many factors are multiplied before their product is scaled: each is at most 1, and the product of four
# numbers above 1e-9 is still a float32.
BETWEEN_SCALINGS = 4
# Up to so many slots the loop is written out; beyond, compiling it would take longer than running it.
UNROLLED = 16


def scaled(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Values divided by their largest absolute value along the last axis, and that value's logarithm (−∞ for zeros)."""
    top = jnp.max(jnp.abs(values), axis=-1, keepdims=True)
    return values / jnp.where(top > 0, top, 1), jnp.log(top[..., 0])


def whole(own: jax.Array, incoming: jax.Array) -> tuple[jax.Array, jax.Array]:
    """own × Π_j incoming_j, scaled, and the logarithm of its scale.

    Parameters
    ----------
    own : array (n, ..., L)
        Each node's own factor.
    incoming : array (n, D, ..., L)
        What it received in each slot; ones where a slot is empty.
    """

    def step(carry: Any, factor: jax.Array) -> tuple[Any, None]:
        product, log_scale = scaled(carry[0] * factor)
        return (product, carry[1] + log_scale), None

    slots = jnp.moveaxis(incoming, 1, 0)
    if len(slots) > UNROLLED:
        return jax.lax.scan(step, scaled(own), slots)[0]
    product, log_scale = own, jnp.zeros(own.shape[:-1], own.dtype)
    for j, factor in enumerate(slots):
        product = product * factor
        if j % BETWEEN_SCALINGS == BETWEEN_SCALINGS - 1:
            product, more = scaled(product)
            log_scale = log_scale + more
    product, more = scaled(product)
    return product, log_scale + more


def all_but_one(own: jax.Array, incoming: jax.Array) -> jax.Array:
    """own × Π_{i ≠ j} incoming_i for each slot j, (n, D, ..., L), up to a positive factor for each j.

    Cost three products for each slot, whatever D.
    """
    slots = jnp.moveaxis(incoming, 1, 0)
    if len(slots) > UNROLLED:
        before = _running(own, slots)
        behind = _running(jnp.ones_like(own), slots[::-1])[::-1]
        return jnp.moveaxis(before * behind, 0, 1)
    count = len(slots)
    before, product = [], own
    for j in range(count):
        before.append(product)
        product = _now_and_then(product * slots[j], j)
    behind, product = [], jnp.ones_like(own)
    for j in reversed(range(count)):
        behind.append(product)
        product = _now_and_then(product * slots[j], count - 1 - j)
    products = [first if j == count - 1 else first * behind[count - 1 - j] for j, first in enumerate(before)]
    return jnp.stack(products, axis=1)


def _now_and_then(product: jax.Array, j: int) -> jax.Array:
    return scaled(product)[0] if j % BETWEEN_SCALINGS == BETWEEN_SCALINGS - 1 else product


def _running(start: jax.Array, slots: jax.Array) -> jax.Array:
    """The scaled products of what comes before each slot."""

    def step(product: jax.Array, factor: jax.Array) -> tuple[jax.Array, jax.Array]:
        return scaled(product * factor)[0], product

    return jax.lax.scan(step, start, slots)[1]
