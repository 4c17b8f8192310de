"""Flooding: all messages at once, sweep after sweep."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.bp.engine.messages import residual
from meanmap.bp.engine.terms import Terms
from meanmap.core.anew import compiled_anew
from meanmap.core.compiling import compiled_values

__all__ = ["flood", "flood_differentiably"]

# Derivatives may take this many times the sweeps of messages, which converge sooner if they start near the fixed point.
DERIVATIVE_SWEEPS = 10
# The relative error of derivatives is about the residual of messages; above this residual derivatives are meaningless.
NEAR = 1e-2


def flood(terms: Terms, max_sweeps: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Messages (rows + 1, B, L), sweeps taken and the trace of residuals (max_sweeps,).

    A sweep is one gather, running products, and one product with each matrix: a few milliseconds for 40,000 messages of
    30 values.
    """
    return (_flood_quickly if terms.layout.narrow else _flood_compiled)(terms, max_sweeps)


def _flood(terms: Terms, max_sweeps: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    def unfinished(state: tuple[Any, ...]) -> jax.Array:
        _, count, trace = state
        last = trace[jnp.maximum(count - 1, 0)]
        return (count < max_sweeps) & ((count == 0) | (last > terms.settings.tolerance))

    def step(state: tuple[Any, ...]) -> Any:
        messages, count, trace = state
        new = terms.send_all(messages)
        return terms.settings.damped(new, messages), count + 1, trace.at[count].set(residual(new, messages))

    return jax.lax.while_loop(unfinished, step, (terms.silence(), 0, jnp.zeros(max_sweeps, terms.own.dtype)))


# Products of plain numbers are as fast without XLA's emitters of fused loops and compile in half the time; wide
# products of a few slots take up to 1.4 times as long without them.
_flood_quickly, _flood_compiled = compiled_values(_flood), compiled_anew(eqx.filter_jit(_flood))


def flood_differentiably(terms: Terms, max_sweeps: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`flood` with the derivatives of its fixed point F(m) = m: those of m are (I − ∂F)⁻¹ ∂F, by sweeps of ∂F.

    These sweeps have the damping of the messages, so that they converge if messages did. If they do not, or messages
    are far from convergence, derivatives are NaN.
    """
    fixed = jax.lax.stop_gradient(terms)

    def left(messages: jax.Array) -> jax.Array:
        return terms.send_all(messages) - messages

    def settled(_: object, __: object) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        messages, count, trace = flood(fixed, max_sweeps)
        return messages, (count.astype(trace.dtype), trace)  # whole numbers have no derivatives

    def swept(product: Any, right: jax.Array) -> jax.Array:
        """x with ∂F x − x = b, by iterating x → ∂F x − b to convergence."""
        enough = terms.settings.tolerance * jnp.max(jnp.abs(right), initial=0.0)

        def unfinished(state: tuple[Any, ...]) -> jax.Array:
            count, _, left = state
            return (count < DERIVATIVE_SWEEPS * max_sweeps) & (left > enough)

        def step(state: tuple[Any, ...]) -> Any:
            count, x, _ = state
            change = product(x) - right
            return count + 1, fixed.settings.damped(x + change, x), jnp.max(jnp.abs(change), initial=0.0)

        start = 0, jnp.zeros_like(right), jnp.full((), jnp.inf, right.dtype)
        _, x, left = jax.lax.while_loop(unfinished, step, start)
        return jnp.where(left <= enough, x, jnp.nan)

    def solve(product: Any, right: jax.Array) -> jax.Array:
        return jax.lax.custom_linear_solve(product, right, swept, transpose_solve=swept)

    start = jax.lax.stop_gradient(terms.silence())
    messages, (count, trace) = jax.lax.custom_root(left, start, settled, solve, has_aux=True)
    count = count.astype(int)
    settled = jax.lax.stop_gradient(trace)[jnp.maximum(count - 1, 0)] <= jnp.maximum(terms.settings.tolerance, NEAR)
    return _differentiable_where(settled, messages), count, trace


@jax.custom_jvp
def _differentiable_where(settled: jax.Array, messages: jax.Array) -> jax.Array:
    """Messages whose derivatives are NaN unless they converged."""
    del settled
    return messages


@_differentiable_where.defjvp
def _(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    settled, messages = primals
    return messages, tangents[1] * jnp.where(settled, 1.0, jnp.nan).astype(messages.dtype)
