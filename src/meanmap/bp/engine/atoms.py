"""Reading beliefs on the host: a node's messages at the atoms of its variable instead of its landmarks."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from meanmap.bp.engine.algebra import Algebra, Counted
from meanmap.bp.engine.layout import Layout
from meanmap.bp.engine.products import split
from meanmap.bp.engine.settled import QUERIES_COUNTED, ROWS_COUNTED, counted_shares
from meanmap.core.compiling import compiled_quickly
from meanmap.core.points import slices
from meanmap.core.progress import track

__all__ = ["beliefs_at_atoms", "outgoing", "shares_sent"]

# Numbers that are processed at once: some tens of megabytes.
AT_ONCE = 4_000_000
# Numbers of beliefs that are read at once, and that are multiplied message by message so that they stay in cache.
READ_AT_ONCE, IN_CACHE = 1 << 19, 1 << 16
# With more messages than this, each value of their product has its own power of two, because it might underflow.
FEW = 8


def outgoing(layout: Layout, messages: object, own: np.ndarray) -> np.ndarray:
    """The product at each node without one neighbour, (rows, B, L), from converged messages of directed edges.

    Nodes are processed in parts, because intermediate results for a million nodes would need two gigabytes.
    """
    products = np.ones((len(layout.reverse), *own.shape[1:]), own.dtype)
    products[layout.row] = messages
    for nodes, (start, width) in zip(layout.nodes, layout.widths, strict=True):
        step = max(AT_ONCE // max(width * own[0].size, 1), 1)
        for first in range(0, len(nodes), step):
            part = np.asarray(nodes)[first : first + step]
            rows = slice(start + first * width, start + (first + len(part)) * width)
            received = products[rows].reshape(len(part), width, *own.shape[1:])
            products[rows] = np.asarray(_all_but_one(layout.algebra, own[part], received)).reshape(-1, *own.shape[1:])
    return products


def shares_sent(
    layout: Layout,
    products: np.ndarray,
    matrices: Any,
    own: np.ndarray,
    known: np.ndarray | None,
    floor: float | None,
) -> tuple[float, float]:
    """The shares of low and of negative values among messages before floor and scale, as in `read_settled`.

    From products of `outgoing`, matrices of operators (T, L, L), own factors (n, B, L), and which messages of directed
    edges are given (2 |E|, B or 1).
    """
    rows = np.arange(len(products))[layout.every(max(len(products) // ROWS_COUNTED, 1))]
    template, reverse, empty, receiver = map(
        np.asarray, (layout.template, layout.reverse, layout.empty, layout.receiver)
    )
    some = slice(QUERIES_COUNTED)
    products = products[:, some]
    raw = _heard(products, rows, template, matrices, products[rows])
    counted = ~empty[rows][:, None, None] & (own[receiver[reverse[rows]], some] > 0)  # without padding
    if known is not None:
        placed = np.zeros((len(products), own.shape[1]), bool)
        placed[np.asarray(layout.row)] = known
        counted &= ~placed[reverse[rows]][:, some, None]
    low, negative = counted_shares(raw, counted, floor)
    return float(low), float(negative)


@compiled_quickly()
def _all_but_one(algebra: Algebra, own: jax.Array, received: Any) -> jax.Array:
    return algebra.all_but_one(own, received)


def beliefs_at_atoms(
    layout: Layout,
    nodes: np.ndarray,
    products: np.ndarray,
    readouts: list[np.ndarray],
    own: Callable[[np.ndarray], np.ndarray],
    fixed: tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]] | None,
    floor: float | None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """own(x) Π_u m_u(x) at the G atoms x of nodes of one kind, largest value 1: chunks (nodes, values (c, B, G)).

    Each incoming message is computed from the landmarks of its sender, floored like other messages, and multiplied: no
    product is interpolated, so that beliefs stay positive. The cost is that of G / L sweeps.

    `products` are those of `outgoing`, `readouts` (L_t, G) has one entry per operator (operators of messages to other
    nodes are not used), `own(nodes)` gives (c, B, G); `fixed` holds which directed edges have given messages, and a
    function that returns them for some edges, (c, 1, G).
    """
    first, width = _places(layout, int(nodes.max(initial=0)) + 1)
    template, reverse, empty = (np.asarray(a) for a in (layout.template, layout.reverse, layout.empty))
    edge = np.full(products.shape[0], -1)
    edge[np.asarray(layout.row)] = np.arange(len(layout.row))

    def times_heard(part: np.ndarray, values: np.ndarray) -> None:
        """Multiply values (c, B, G) of nodes of equal degree by the messages of all neighbours."""
        many, found = width[part[0]] > FEW, values
        powers: Any = 0
        for slot in range(width[part[0]]):
            here = first[part] + slot
            heard = _heard(products, reverse[here], template, readouts, values)
            top = heard.max(axis=-1, keepdims=True)
            silent = ~(top > 0) | empty[here][:, None, None]
            if floor is None:  # negative values may be far larger in size
                top = np.abs(heard).max(axis=-1, keepdims=True)
            heard /= np.where(silent, 1, top)
            if floor is not None:
                np.maximum(heard, floor, out=heard)
            if silent.any():
                heard[silent[..., 0]] = 1
            if isinstance(layout.algebra, Counted):
                heard **= layout.algebra.share
            if fixed is not None:
                known = np.flatnonzero((edge[here] >= 0) & fixed[0][edge[here]])
                heard[known] = fixed[1](edge[here[known]]) if len(known) else 1
            found *= heard
            if many:
                found, powers = split(found, powers)
        if many:
            values[:] = np.ldexp(found, powers - powers.max(axis=-1, keepdims=True))
        top = (values if floor is not None else np.abs(values)).max(axis=-1, keepdims=True)
        values /= np.maximum(top, np.finfo(values.dtype).tiny)

    size = max(READ_AT_ONCE // (products.shape[1] * readouts[0].shape[1]), 1) if readouts else len(nodes)
    groups = [nodes[width[nodes] == w] for w in np.unique(width[nodes])]
    jobs = [group[i : i + size] for group in groups for i in range(0, len(group), size)]
    for part in track(jobs, "reading beliefs"):
        values = own(part)
        for some in slices(len(part), max(IN_CACHE // values[0].size, 1)):
            times_heard(part[some], values[some])
        yield part, values


def _places(layout: Layout, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each node, and its number of rows."""
    first, width = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for nodes, (start, slots) in zip(layout.nodes, layout.widths, strict=True):
        inside = np.flatnonzero(np.asarray(nodes) < size)
        first[np.asarray(nodes)[inside]], width[np.asarray(nodes)[inside]] = start + inside * slots, slots
    return first, width


def _heard(
    products: np.ndarray, senders: np.ndarray, template: np.ndarray, readouts: list[np.ndarray], like: np.ndarray
) -> Any:
    """The messages from some rows, with one matrix product per operator."""
    which = template[senders]
    if (which == which[0]).all():
        readout = readouts[which[0]]
        return products.take(senders, axis=0)[..., : len(readout)] @ readout.astype(like.dtype, copy=False)
    heard = np.empty_like(like)
    for operator in np.unique(which):
        chosen, readout = which == operator, readouts[operator]
        heard[chosen] = products[senders[chosen]][..., : len(readout)] @ readout.astype(like.dtype, copy=False)
    return heard
