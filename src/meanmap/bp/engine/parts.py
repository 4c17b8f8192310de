"""The division of a graph among devices: nodes, the layout of messages, and messages that cross borders."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.layout import Layout
from meanmap.bp.engine.operators import Grouping
from meanmap.graphs import Graph, Slots

__all__ = ["AXIS", "Border", "Parts", "blocks"]

# The name of the axis of devices, independent of the axes of the user's mesh.
AXIS = "nodes"


class Border(eqx.Module):
    """Messages to other devices: for each distance between two devices, the rows of the messages sent that far.

    Attributes
    ----------
    rows : tuple of arrays
    steps : tuple of int
        The distances between devices, in a ring of `size`.
    """

    rows: tuple[Any, ...]
    steps: tuple[int, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def beside(self, raw: jax.Array) -> jax.Array:
        """Messages from the nodes of this device, followed by those received from others."""
        arrived = [raw]
        for rows, step in zip(self.rows, self.steps, strict=True):
            ring = [(device, (device + step) % self.size) for device in range(self.size)]
            arrived.append(jax.lax.ppermute(raw[rows], AXIS, ring))
        return jnp.concatenate(arrived)


@dataclass(frozen=True, eq=False)
class Parts:
    """A graph's nodes in one part per device, each padded to the same shape.

    Attributes
    ----------
    layout : Layout
        Host arrays of all devices, concatenated.
    node : array (n,)
        The position of each node among (devices · nodes).
    row, given : array (2 |E|,)
        The row of each directed edge's message, with and without the last row of each device.
    first, real : array
        Whether a row belongs to an edge's first direction, and whether a node is not padding.
    """

    layout: Layout
    node: np.ndarray
    row: np.ndarray
    given: np.ndarray
    first: np.ndarray
    real: np.ndarray

    @classmethod
    def of(cls, graph: Graph, layout: Layout, devices: int) -> "Parts":
        """Divide into parts of contiguous nodes, ordered so that few edges cross borders."""
        slots, part = Slots.of(graph), blocks(graph, devices)
        local = np.empty(graph.size, np.int64)
        row, nodes, widths = np.empty(slots.rows, np.int64), [], []
        alone = np.flatnonzero(graph.degrees == 0)
        first_node = first_row = 0
        for members, width, start in [(b.nodes, b.width, b.start) for b in slots.buckets] + [(alone, 0, 0)]:
            rank, most = _ranks(part[members], devices)
            local[members] = first_node + rank
            if width:
                at = first_row + width * rank[:, None] + np.arange(width)
                row[start : start + width * len(members)] = at.ravel()
                nodes.append(np.tile(first_node + np.arange(most), devices))
                widths.append((first_row, width))
            first_node, first_row = first_node + most, first_row + width * most
        size, rows = first_node, first_row
        owner = np.empty(slots.rows, np.int64)
        receiver = np.zeros((devices, rows), np.int64)
        for bucket in slots.buckets:
            inside = slice(bucket.start, bucket.start + bucket.width * len(bucket.nodes))
            owner[inside] = np.repeat(part[bucket.nodes], bucket.width)
            receiver[owner[inside], row[inside]] = np.repeat(local[bucket.nodes], bucket.width)
        there = slots.edge >= 0
        empty, first = np.ones((devices, rows), bool), np.zeros((devices, rows), bool)
        empty[owner, row], first[owner, row] = ~there, there & (slots.edge < len(graph.edges))
        template = np.zeros((devices, rows), np.int64)
        template[owner, row] = np.asarray(layout.template)
        reverse = np.tile(np.arange(rows), (devices, 1))
        border, where = _border(owner, row, slots.reverse, there, devices, rows)
        reverse[owner, row] = where
        real = np.zeros((devices, size), bool)
        real[part, local] = True
        held = Layout(
            tuple(nodes), np.zeros(0, np.int64), reverse.ravel(), empty.ravel(), template.ravel(),
            _grouped(template, layout.grouping), receiver.ravel(), np.zeros((0, 0), np.int64), tuple(widths), True,
            border=border,
        )  # fmt: skip
        at = slots.row
        return cls(
            held, part * size + local, owner[at] * (rows + 1) + row[at], owner[at] * rows + row[at], first.ravel(),
            real.ravel(),
        )  # fmt: skip


def blocks(graph: Graph, parts: int) -> np.ndarray:
    """The part of each node, (n,): contiguous parts in the given order, or in reverse Cuthill-McKee order.

    Pixels numbered along rows form strips; graphs without such an order are reordered so that neighbours are close.
    """
    plain = np.arange(graph.size) * parts // max(graph.size, 1)
    if parts == 1 or not len(graph.edges):
        return plain
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ones = np.ones(len(graph.sources), bool)
    order = reverse_cuthill_mckee(csr_array((ones, (graph.sources, graph.targets)), (graph.size, graph.size)), True)
    turned = np.empty_like(plain)
    turned[order] = plain
    return min((plain, turned), key=lambda part: int(np.sum(part[graph.sources] != part[graph.targets])))


def _ranks(part: np.ndarray, devices: int) -> tuple[np.ndarray, int]:
    """The rank of each node within its part, and the size of the largest part."""
    counts = np.bincount(part, minlength=devices)
    order = np.argsort(part, kind="stable")
    rank = np.empty(len(part), np.int64)
    rank[order] = np.arange(len(part)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank, int(counts.max(initial=0))


def _border(
    owner: np.ndarray, row: np.ndarray, reverse: np.ndarray, there: np.ndarray, devices: int, rows: int
) -> tuple[Border, np.ndarray]:
    """The crossing messages, and the position of each row's message among local and received messages."""
    where, sent, steps, begin = row[reverse].copy(), [], [], rows
    step = np.where(there, (owner - owner[reverse]) % devices, 0)
    for far in np.unique(step[step > 0]).tolist():
        crossing = np.flatnonzero(step == far)
        sender = owner[reverse[crossing]]
        rank, most = _ranks(sender, devices)
        out = np.zeros((devices, most), np.int64)
        out[sender, rank] = row[reverse[crossing]]
        where[crossing] = begin + rank
        sent.append(out.ravel())
        steps.append(far)
        begin += most
    return Border(tuple(sent), tuple(steps), devices), where


def _grouped(template: np.ndarray, grouping: Grouping | None) -> Grouping | None:
    """Rows by operator on each device, padded to equal numbers on all."""
    if grouping is None:
        return None
    devices, rows = template.shape
    number = len(grouping.sizes)
    counts = np.stack([np.bincount(own, minlength=number) for own in template])
    most = counts.max(axis=0)
    begin = np.cumsum(most) - most
    order, back = np.zeros((devices, int(most.sum())), np.int64), np.empty((devices, rows), np.int64)
    for own, ordered, found in zip(template, order, back, strict=True):
        rank, _ = _ranks(own, number)
        found[:] = begin[own] + rank
        ordered[found] = np.arange(rows)
    return Grouping(order.ravel(), back.ravel(), tuple(int(size) for size in most))
