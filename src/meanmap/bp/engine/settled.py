"""Results from converged messages: beliefs, the partition function, counts of low and negative values."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from meanmap.bp.engine.layout import Layout
from meanmap.bp.engine.operators import EdgeOperators
from meanmap.bp.engine.terms import Terms
from meanmap.bp.engine.two_pass import Passes, two_pass
from meanmap.core.anew import compiled_anew
from meanmap.core.compiling import compiled_quickly
from meanmap.core.points import library_of
from meanmap.core.types import Array, Numbers

__all__ = [
    "QUERIES_COUNTED",
    "ROWS_COUNTED",
    "beliefs_of",
    "bethe_parts",
    "counted_shares",
    "pass_and_read",
    "read_settled",
    "signs_counted",
]

# Signs of messages are counted in up to this many queries of a batch and in about this many rows, which gives shares to
# within a few thousandths.
QUERIES_COUNTED = 8
ROWS_COUNTED = 20_000


@compiled_anew
@jax.jit
def beliefs_of(layout: Layout, own: jax.Array, messages: jax.Array) -> jax.Array:
    """Beliefs from messages of directed edges."""
    return layout.beliefs(layout.silence(own).at[layout.row].set(messages), own)[0]


# Often called: a query of 64 rows takes 8 ms with all passes of the compiler, and 11 ms without.
@compiled_anew
@partial(jax.jit, static_argnames="potentials")
def pass_and_read(passes: Passes, terms: Terms, potentials: bool) -> tuple[jax.Array, Any]:
    """Two passes and their results, in one program."""
    messages, below = two_pass(passes, terms)
    if potentials or not terms.layout.algebra.multiplied:
        return messages, read_settled(terms, messages, potentials)
    return messages, (beliefs_of(terms.layout, terms.own, messages), None, *_shares_sent(terms, messages, below))


@compiled_quickly("potentials")
def read_settled(terms: Terms, messages: jax.Array, potentials: bool) -> tuple[jax.Array, Any, jax.Array, jax.Array]:
    """Beliefs, log Z, and the shares of low and of negative values, from converged messages of directed edges."""
    layout, operators, own = terms.layout, terms.operators, terms.own
    placed = layout.silence(own).at[layout.row].set(messages)
    beliefs, log_scale = layout.beliefs(placed, own)
    if not layout.algebra.multiplied:
        return beliefs, None, jnp.zeros(()), jnp.zeros(())
    if not potentials:
        return beliefs, None, *_shares(terms, placed)
    products = layout.pre_messages(placed, own)
    raw = operators.send(products, layout.template, layout.grouping)
    raw = raw[layout.reverse][layout.row]
    none = jnp.zeros((), own.dtype)
    edges = messages.shape[0] // 2
    nodes, both, one = bethe_parts(operators, products[layout.row], raw, messages, beliefs)
    pairs = both[:edges] - one[:edges] - one[edges:]
    return beliefs, (nodes + log_scale).sum(axis=0) + pairs.sum(axis=0), none, none


def _shares_sent(terms: Terms, messages: jax.Array, below: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The shares of low and of negative values among messages that were sent once, and so lie on the floor if low."""
    layout, own, given, floor = terms.layout, terms.own, terms.given, terms.settings.floor
    counted = own[layout.receiver[layout.row]] > 0  # without padding
    if given is not None:
        counted &= ~given.known[..., None]
    number = jnp.maximum(jnp.sum(counted), 1)
    low = below if floor is None else messages <= floor
    return jnp.sum(low & counted) / number, jnp.sum(below & counted) / number


def _shares(terms: Terms, placed: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The shares of low and of negative values among messages before floor and scale.

    They are counted at the senders, on up to about `ROWS_COUNTED` evenly spaced rows and `QUERIES_COUNTED` queries,
    because all messages of a million nodes would take gigabytes.
    """
    layout, own, given, settings = terms.layout, terms.own, terms.given, terms.settings
    some = slice(QUERIES_COUNTED)
    step = max(len(layout.reverse) // ROWS_COUNTED, 1)
    rows = layout.every(step)
    products = layout.pre_messages(placed[:, some], own[:, some], step)
    raw = terms.operators.send(products, layout.template[rows], layout.grouping if step == 1 else None)
    answer = layout.reverse[rows]
    counted = ~layout.empty[rows][:, None, None] & (own[layout.receiver[answer], some] > 0)  # without padding
    if given is not None:
        known = jnp.zeros((len(layout.reverse), own.shape[1]), bool).at[layout.row].set(given.known)
        counted &= ~known[answer][:, some, None]
    return counted_shares(raw, counted, settings.floor)


def counted_shares(raw: Array, counted: Array, floor: Numbers | None) -> tuple[Any, Any]:
    """The shares of low and of negative values among the `counted` values of messages before floor and scale."""
    low, negative, number = signs_counted(raw, counted, floor)
    number = library_of(raw, counted).maximum(number, 1)
    return low / number, negative / number


def signs_counted(raw: Array, counted: Array, floor: Numbers | None) -> list[Any]:
    """The numbers of low, negative, and all values of messages before flooring and scaling."""
    library = library_of(raw, counted)
    # Final messages cannot be counted: damping leaves them slightly above the floor.
    low = raw < 0 if floor is None else raw <= floor * library.max(raw, axis=-1, keepdims=True)
    return [library.sum(each & counted) for each in (low, raw < 0, counted)]


def bethe_parts(
    operators: EdgeOperators, products: jax.Array, raw: jax.Array, messages: jax.Array, beliefs: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """log Z_t of nodes, and log Z_st and log Z_t of directed edges t → s, which sum to log Z.

    log Z = Σ_nodes log Z_t + Σ_edges log Z_st / (Z_s Z_t), (Yedidia, Freeman & Weiss 2005, section V). With p the
    product at a node without one neighbour, r a message before and m after scaling, Z_st = Σ p_t r_st, Z_t = Σ p_t m_st
    and Z_s = Σ p_s m_ts: the scales of p and m cancel in the ratio.
    """
    reduce = jnp.max if getattr(operators, "maximum", False) else jnp.sum
    nodes, both, one = (jnp.log(reduce(each, axis=-1)) for each in (beliefs, products * raw, products * messages))
    return nodes, both, one
