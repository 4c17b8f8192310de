"""Inwards and outwards: all messages of a forest, each sent once and final (Pearl 1988).

Messages are sent level by level; levels are cut into steps of equal width, so a pass is one compiled loop for a chain
of 100,000 nodes and for a star of them alike. The products at nodes without one of their children are computed for all
nodes at once, between the passes.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.algebra import Algebra
from meanmap.bp.engine.blocks import in_steps
from meanmap.bp.engine.messages import Given
from meanmap.bp.engine.terms import Terms
from meanmap.core.anew import compiled_anew
from meanmap.core.types import Array, Index
from meanmap.graphs import Rooted

__all__ = ["Passes", "two_pass"]


class Passes(eqx.Module):
    """A rooted forest as arrays for the two loops.

    Nodes are numbered from the roots outwards, siblings side by side; `node` (n,) are their numbers in the graph.
    `parent` (n + 1,) is n for roots and for n itself, a placeholder. `steps` are the nodes that send inwards, ordered
    from the roots outwards.
    """

    node: Any
    parent: Any
    inwards: Any
    outwards: Any
    up_template: Any
    down_template: Any
    steps: Any

    @classmethod
    def of(cls, tree: Rooted, template: np.ndarray) -> "Passes":
        """Construct passes from a rooted forest and the operator of each directed edge, (2 |E|,)."""
        n = tree.graph.size
        position = np.empty(n, dtype=np.int64)
        position[tree.order] = np.arange(n)
        parent = tree.parent[tree.order]
        inwards, outwards = tree.to_parent[tree.order], tree.from_parent[tree.order]
        template = template if len(template) else np.zeros(1, dtype=np.int64)
        depth = tree.depth[tree.order]
        levels = np.split(np.arange(n), np.flatnonzero(np.diff(depth)) + 1)[1:]
        return cls(
            tree.order.astype(np.int32),
            np.append(np.where(parent < 0, n, position[parent]), n).astype(np.int32),
            inwards.astype(np.int32),
            outwards.astype(np.int32),
            np.append(np.where(inwards < 0, 0, template[inwards]), 0).astype(np.int32),
            np.append(np.where(outwards < 0, 0, template[outwards]), 0).astype(np.int32),
            in_steps(levels, n) if levels else np.zeros((0, 1), dtype=np.int32),
        )


@compiled_anew
@jax.jit
def two_pass(passes: Passes, terms: Terms) -> tuple[jax.Array, jax.Array]:
    """Messages (2 |E|, B, L) of all directed edges, and which values were negative before flooring.

    They are computed from the nodes' own factors (n, B, L); `given` has a row for each directed edge. Cost O(n L²).
    """
    layout, operators, own, given, settings = terms.layout, terms.operators, terms.own, terms.given, terms.settings
    n, algebra = own.shape[0], layout.algebra
    if len(layout.row) == 0:
        return jnp.ones((0, *own.shape[1:]), own.dtype), jnp.zeros((0, *own.shape[1:]), bool)
    nobody = jnp.full((1, *own.shape[1:]), algebra.neutral, own.dtype)
    factors = algebra.open(jnp.concatenate([own[passes.node], nobody]))
    up_given, down_given = (_in_order(given, edges) for edges in (passes.inwards, passes.outwards))

    floored = settings.floor is not None

    def finished(raw: jax.Array, nodes: jax.Array, given: Given | None) -> tuple[jax.Array, jax.Array]:
        """Messages, and the stored form, in which signs mark values that were negative before flooring."""
        sent = algebra.finish(raw, None if given is None else given.at(nodes), settings)
        sent = jnp.where((nodes < n)[:, None, None], sent, algebra.neutral)
        return sent, jnp.where(raw < 0, -sent, sent) if floored else sent

    def inward(state: tuple[Any, ...], nodes: jax.Array) -> tuple[Any, None]:
        up, heard = state
        products = algebra.close(algebra.join(_at(factors, nodes), _at(heard, nodes)))
        sent, kept = finished(operators.send(products, passes.up_template[nodes]), nodes, up_given)
        heard = _gathered(algebra, heard, passes.parent[nodes], sent)
        return (up.at[nodes].set(kept), heard), None

    nothing = jnp.full((n + 1, *own.shape[1:]), algebra.neutral, own.dtype)
    start = nothing, algebra.nothing(nothing.shape, nothing.dtype)
    up, _ = jax.lax.scan(inward, start, passes.steps[::-1])[0]
    edges = jnp.full((len(layout.row) + 1, *own.shape[1:]), algebra.neutral, own.dtype)
    edges = edges.at[passes.inwards].set(up[:-1])  # a root's −1 writes nothing to the extra row
    # The product at each node of all children but one; its parent has not sent yet.
    said = jnp.abs(edges) if floored else edges
    heard = layout.others(layout.silence(own).at[layout.row].set(said[:-1]), own)
    others = _at(heard, jnp.append(layout.row[passes.inwards], 0))

    def outward(down: jax.Array, nodes: jax.Array) -> tuple[jax.Array, None]:
        came = down[passes.parent[nodes]]
        came = jnp.abs(came) if floored else came
        products = algebra.close(algebra.join(algebra.open(came), _at(others, nodes)))
        _, kept = finished(operators.send(products, passes.down_template[nodes]), nodes, down_given)
        return down.at[nodes].set(kept), None

    down = jax.lax.scan(outward, nothing, passes.steps)[0]
    kept = edges.at[passes.outwards].set(down[:-1])[:-1]
    return (jnp.abs(kept), jnp.signbit(kept)) if floored else (kept, kept < 0)


def _at(values: Array, index: Index) -> Any:
    """Some rows of open values."""
    return jax.tree.map(lambda leaf: leaf[index], values)


def _gathered(algebra: Algebra, heard: Any, parent: jax.Array, sent: jax.Array) -> Any:
    """The open products of receivers with messages joined; messages to the same receiver are adjacent.

    They are joined in pairs, pairs of pairs, ..., and the last one of each receiver holds the total.
    """
    number = len(parent)
    place = np.arange(number)

    def doubled(joined: Array, distance: jax.Array) -> tuple[Any, None]:
        earlier = place - distance
        same = (earlier >= 0) & (parent[earlier] == parent)
        more = algebra.join(_at(joined, earlier), joined)
        return jax.tree.map(lambda new, old: jnp.where(same[:, None, None], new, old), more, joined), None

    distances: Any = 2 ** np.arange((number - 1).bit_length())
    joined = jax.lax.scan(doubled, algebra.open(sent), distances)[0]
    last = jnp.append(parent[1:] != parent[:-1], True)
    # Entries that write nothing get distinct rows out of range, so that all rows are unique.
    at = jnp.where(last, parent, len(jax.tree.leaves(heard)[0]) + place)
    joined = algebra.join(_at(heard, parent), joined)
    return jax.tree.map(lambda old, new: old.at[at].set(new, mode="drop", unique_indices=True), heard, joined)


def _in_order(given: Given | None, edges: jax.Array) -> Given | None:
    """Given messages in the order of nodes, with one more row as a placeholder."""
    if given is None:
        return None
    known = jnp.concatenate([given.known[edges] & (edges >= 0)[:, None], jnp.zeros((1, given.known.shape[1]), bool)])
    return Given(known, jnp.concatenate([given.values[edges], given.values[:1]]))
