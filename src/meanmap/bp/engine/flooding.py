"""Flooding: all messages at once, sweep after sweep."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.bp.engine.messages import residual
from meanmap.bp.engine.terms import Terms
from meanmap.core.compiling import compiled_values

__all__ = ["flood", "flood_differentiably"]


def flood(terms: Terms, max_sweeps: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Messages (rows + 1, B, L), sweeps taken and the trace of residuals (max_sweeps,).

    A sweep is one gather, running products, and one product with each matrix: for 40,000 messages of 30 values a few
    milliseconds.
    """
    return (_flood_quickly if terms.layout.narrow else _flood_compiled)(terms, max_sweeps)


def _flood(terms: Terms, max_sweeps: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    def unfinished(state: Any) -> jax.Array:
        _, count, trace = state
        last = trace[jnp.maximum(count - 1, 0)]
        return (count < max_sweeps) & ((count == 0) | (last > terms.settings.tolerance))

    def step(state: Any) -> Any:
        messages, count, trace = state
        new = terms.send_all(messages)
        return terms.damped(new, messages), count + 1, trace.at[count].set(residual(new, messages))

    return jax.lax.while_loop(unfinished, step, (terms.silence(), 0, jnp.zeros(max_sweeps, terms.own.dtype)))


# Products of plain numbers are as fast without emitters of fused loops and compile in half the time; wide ones of a few
# slots take up to 1.4 times as long without.
_flood_quickly, _flood_compiled = compiled_values(_flood), eqx.filter_jit(_flood)


def flood_differentiably(terms: Terms, max_sweeps: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`flood` with the derivatives of its fixed point F(m) = m: those of m are (I − ∂F)⁻¹ ∂F, by sweeps of ∂F."""
    fixed = jax.lax.stop_gradient(terms)

    def left(messages: jax.Array) -> jax.Array:
        return terms.send_all(messages) - messages

    def settled(_: Any, __: Any) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        messages, count, trace = flood(fixed, max_sweeps)
        return messages, (count.astype(trace.dtype), trace)  # whole numbers have no derivatives

    def swept(product: Any, right: jax.Array) -> jax.Array:
        """x with ∂F x − x = b: from x to ∂F x − b, until nothing moves."""

        def unfinished(state: Any) -> jax.Array:
            count, _, change = state
            return (count < max_sweeps) & (change > terms.settings.tolerance * jnp.max(jnp.abs(right), initial=0.0))

        def step(state: Any) -> Any:
            count, x, _ = state
            change = product(x) - right
            return count + 1, x + change, jnp.max(jnp.abs(change), initial=0.0)

        start = 0, jnp.zeros_like(right), jnp.full((), jnp.inf, right.dtype)
        return jax.lax.while_loop(unfinished, step, start)[1]

    def solve(product: Any, right: jax.Array) -> jax.Array:
        return jax.lax.custom_linear_solve(product, right, swept, transpose_solve=swept)

    start = jax.lax.stop_gradient(terms.silence())
    messages, (count, trace) = jax.lax.custom_root(left, start, settled, solve, has_aux=True)
    return messages, count.astype(int), trace
