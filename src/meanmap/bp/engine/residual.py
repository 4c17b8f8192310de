"""Residual scheduling: always the message that would change most (Elidan, McGraw & Koller 2006)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.bp.engine.layout import Layout
from meanmap.bp.engine.messages import Given, Settings, damped
from meanmap.bp.engine.operators import EdgeOperators

__all__ = ["by_residual"]


@eqx.filter_jit
def by_residual(
    layout: Layout,
    operators: EdgeOperators,
    own: jax.Array,
    given: Given | None,
    settings: Settings,
    at_once: int,
    max_messages: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Messages, how many were sent, and the largest change that was left.

    Where every message is going to is kept at hand; sending one renews that of those which the receiver sends, and a
    damped one still has the rest of its way to go. For a batch of queries the order is common, by the largest change in
    any of them.
    """
    rows = len(layout.reverse)
    receivers = jnp.concatenate([layout.receiver, jnp.full(1, own.shape[0])])
    count = min(at_once, rows)

    def unfinished(state: Any) -> jax.Array:
        _, _, change, sent = state
        return (sent < max_messages) & (jnp.max(change, initial=0.0) > settings.tolerance)

    def step(state: Any) -> Any:
        messages, candidates, change, sent = state
        chosen = jax.lax.top_k(change, count)[1] if count > 1 else jnp.argmax(change)[None]
        messages = messages.at[chosen].set(damped(candidates[chosen], messages[chosen], settings))
        out, new = layout.send_from(receivers[chosen], messages, own, operators, given, settings)
        candidates = candidates.at[out].set(new)
        renewed = jnp.max(jnp.abs(new - messages[out]), axis=(1, 2), initial=0.0)
        change = change.at[chosen].multiply(settings.damping).at[out].set(renewed)
        return messages, candidates, change, sent + count

    messages = layout.silence(own, given)
    candidates = layout.send_all(messages, own, operators, given, settings)
    change = jnp.max(jnp.abs(candidates - messages), axis=(1, 2), initial=0.0)
    messages, _, change, sent = jax.lax.while_loop(unfinished, step, (messages, candidates, change, 0))
    return messages, sent, jnp.max(change, initial=0.0)
