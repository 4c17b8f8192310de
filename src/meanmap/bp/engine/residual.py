"""Residual scheduling: always the message that would change most (Elidan, McGraw & Koller 2006)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.bp.engine.terms import Terms
from meanmap.core.anew import compiled_anew

__all__ = ["by_residual"]


@compiled_anew
@eqx.filter_jit
def by_residual(terms: Terms, at_once: int, max_messages: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Messages, the number that were sent, and the largest residual.

    The next value of every message is stored; sending one updates those that its receiver sends, and a damped message
    keeps a residual. The queries of a batch share one order, by the largest residual in any of them.
    """
    rows = len(terms.layout.reverse)
    receivers = jnp.concatenate([terms.layout.receiver, jnp.full(1, terms.own.shape[0])])
    count = min(at_once, rows)

    def unfinished(state: tuple[Any, ...]) -> jax.Array:
        _, _, change, sent = state
        return (sent < max_messages) & (jnp.max(change, initial=0.0) > terms.settings.tolerance)

    def step(state: tuple[Any, ...]) -> Any:
        messages, candidates, change, sent = state
        chosen = jax.lax.top_k(change, count)[1] if count > 1 else jnp.argmax(change)[None]
        messages = messages.at[chosen].set(terms.settings.damped(candidates[chosen], messages[chosen]))
        out, new = terms.send_from(receivers[chosen], messages)
        candidates = candidates.at[out].set(new)
        renewed = jnp.max(jnp.abs(new - messages[out]), axis=(1, 2), initial=0.0)
        change = change.at[chosen].multiply(terms.settings.damping).at[out].set(renewed)
        return messages, candidates, change, sent + count

    messages = terms.silence()
    candidates = terms.send_all(messages)
    change = jnp.max(jnp.abs(candidates - messages), axis=(1, 2), initial=0.0)
    messages, _, change, sent = jax.lax.while_loop(unfinished, step, (messages, candidates, change, 0))
    return messages, sent, jnp.max(change, initial=0.0)
