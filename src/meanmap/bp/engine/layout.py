"""A graph's slots on the device: gathers the messages that nodes received, and computes those they send."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.algebra import PRODUCT, Algebra, Product
from meanmap.bp.engine.messages import Given, Settings
from meanmap.bp.engine.operators import EdgeOperators, Grouping
from meanmap.graphs import Graph, Slots

__all__ = ["Layout"]


class Layout(eqx.Module):
    """The layout of the messages (rows + 1, B, L) of a graph; the last row is uninformative, for empty slots.

    Attributes
    ----------
    nodes : tuple of arrays
        The nodes of each bucket.
    row : array (2 |E|,)
        The row of each directed edge.
    reverse, empty : array (rows,)
        The row of the message in the opposite direction, and whether the slot is empty.
    template : array (rows,)
        The operator of the message that the node of this row sends to the neighbour of this slot.
    incoming : array (n, D)
        For single nodes: the rows that each receives, filled up with the last row to D.
    algebra : Algebra
        The operations that combine messages.
    border : Border or None
        The messages to nodes of other devices, if the graph is divided among several.
    """

    nodes: tuple[Any, ...]
    row: Any
    reverse: Any
    empty: Any
    template: Any
    grouping: Grouping | None
    receiver: Any
    incoming: Any
    widths: tuple[tuple[int, int], ...] = eqx.field(static=True)
    has_empty: bool = eqx.field(static=True)
    algebra: Algebra = PRODUCT
    border: Any = None

    @classmethod
    def of(
        cls, graph: Graph, template: np.ndarray, number: int, single: bool = False, algebra: Algebra = PRODUCT
    ) -> "Layout":
        """Lay out a graph whose directed edges have operators `template`, (2 |E|,).

        With `single`, also for schedules that process single nodes.
        """
        slots = Slots.of(graph)
        empty = slots.edge < 0
        edges = len(graph.edges)
        # The message from node t to the neighbour of row (t, j) is that of the edge opposite to the one received there.
        against = np.where(empty, 0, (slots.edge + edges) % max(2 * edges, 1))
        sends = np.where(empty, 0, template[against]) if edges else np.zeros(0, dtype=np.int64)
        incoming = np.full((graph.size, int(graph.degrees.max(initial=0)) if single else 0), slots.rows)
        if single:
            order = np.argsort(graph.targets, kind="stable")
            start = np.concatenate([[0], np.cumsum(graph.degrees)])
            place = np.arange(2 * edges) - start[graph.targets[order]]
            incoming[graph.targets[order], place] = slots.row[order]
        receiver = np.zeros(slots.rows, dtype=np.int64)
        receiver[slots.row] = graph.targets
        return cls(
            tuple(bucket.nodes for bucket in slots.buckets),
            slots.row,
            slots.reverse,
            empty,
            sends,
            Grouping.of(sends, number),
            receiver,
            incoming,
            tuple((bucket.start, bucket.width) for bucket in slots.buckets),
            bool(empty.any()),
            algebra.at_rows(slots.row, slots.rows),
        )

    @property
    def narrow(self) -> bool:
        """Whether no product of messages can underflow or overflow."""
        return isinstance(self.algebra, Product) and self.algebra.narrow

    def silence(self, own: jax.Array, given: Given | None = None) -> jax.Array:
        """Uninformative messages, except for those that are given."""
        start = jnp.full((len(self.reverse) + 1, *own.shape[1:]), self.algebra.neutral, own.dtype)
        if given is None:
            return start
        return start.at[:-1].set(jnp.where(given.known[..., None], given.values, self.algebra.neutral))

    def bucket(self, messages: jax.Array, number: int) -> jax.Array:
        """The messages received by the nodes of a bucket, (nodes, D, B, L)."""
        start, width = self.widths[number]
        count = len(self.nodes[number])
        return messages[start : start + count * width].reshape(count, width, *messages.shape[1:])

    def others(self, messages: jax.Array, own: jax.Array) -> Any:
        """At row (t, j), the open product at t without its j-th neighbour, (rows, B, L); more can be joined to it."""
        parts = []
        for number, nodes in enumerate(self.nodes):
            found = self.algebra.others(own[nodes], self.bucket(messages, number))
            parts.append(jax.tree.map(lambda leaf: leaf.reshape(-1, *own.shape[1:]), found))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)

    def pre_messages(self, messages: jax.Array, own: jax.Array, step: int = 1) -> jax.Array:
        """At row (t, j), the product at t without its j-th neighbour, (rows, B, L); or only at the rows of `every`."""
        parts = [jnp.zeros((0, *own.shape[1:]), own.dtype)]
        for number, nodes in enumerate(self.nodes):
            products = self.algebra.all_but_one(own[nodes[::step]], self.bucket(messages, number)[::step])
            parts.append(products.reshape(-1, *own.shape[1:]))
        rows = self.every(step)
        return self.algebra.reweighted(jnp.concatenate(parts), messages[:-1][rows], rows)

    def every(self, step: int) -> Any:
        """The rows of every `step`-th node of each bucket."""
        if step == 1:
            return slice(None)
        parts = [np.zeros(0, dtype=np.int64)]
        for nodes, (start, width) in zip(self.nodes, self.widths, strict=True):
            first = start + width * np.arange(0, len(nodes), step)
            parts.append((first[:, None] + np.arange(width)).ravel())
        return np.concatenate(parts)

    def send_all(
        self, messages: jax.Array, own: jax.Array, operators: EdgeOperators, given: Given | None, settings: Settings
    ) -> jax.Array:
        """Update all messages in parallel."""
        raw = self.arrived(operators.send(self.pre_messages(messages, own), self.template, self.grouping))
        new = self.algebra.finish(raw, given, settings, slice(None))
        if self.has_empty:
            new = jnp.where(self.empty[:, None, None], self.algebra.neutral, new)
        return jnp.concatenate([new, messages[-1:]])

    def arrived(self, raw: jax.Array) -> jax.Array:
        """Messages at the rows of their receivers, from those at the rows of their senders."""
        return (raw if self.border is None else self.border.beside(raw))[self.reverse]

    def send_from(
        self,
        nodes: jax.Array,
        messages: jax.Array,
        own: jax.Array,
        operators: EdgeOperators,
        given: Given | None,
        settings: Settings,
    ) -> tuple[jax.Array, jax.Array]:
        """The messages of some nodes (W,), with their rows (W · D,). Node n is a placeholder with the last row."""
        inside = (nodes < len(self.incoming))[:, None]
        node = jnp.minimum(nodes, len(self.incoming) - 1)
        rows = jnp.where(inside, self.incoming[node], len(self.reverse))
        real = (rows < len(self.reverse)).reshape(-1)
        flat = jnp.minimum(rows.reshape(-1), len(self.reverse) - 1)
        products = self.algebra.all_but_one(own[node], messages[rows]).reshape(-1, *own.shape[1:])
        products = self.algebra.reweighted(products, messages[rows].reshape(-1, *own.shape[1:]), flat)
        out = jnp.where(real, self.reverse[flat], len(self.reverse))
        held = None if given is None else given.at(jnp.minimum(out, len(self.reverse) - 1))
        sent = operators.send(products, self.template[flat])
        at = jnp.minimum(out, len(self.reverse) - 1)
        new = self.algebra.finish(sent, held, settings, at)
        return out, jnp.where(real[:, None, None], new, self.algebra.neutral)

    def beliefs(self, messages: jax.Array, own: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The product of own factor and incoming messages at each node, scaled to largest absolute value 1, and the log
        of the scale.
        """
        found = [self.algebra.whole(own[nodes], self.bucket(messages, i)) for i, nodes in enumerate(self.nodes)]
        if len(found) == 1 and len(self.nodes[0]) == len(own):
            return found[0]  # all nodes, in their order
        values, log_scale = self.algebra.alone(own)
        for nodes, (product, more) in zip(self.nodes, found, strict=True):
            values, log_scale = values.at[nodes].set(product), log_scale.at[nodes].set(more)
        return values, log_scale
