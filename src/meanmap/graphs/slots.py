"""The storage of messages: a row for each node and slot, with nodes of similar degree together.

The message that node t receives from its j-th neighbour lies at row (t, j). Nodes are sorted into buckets whose members
have the same number of slots, so that the messages of a bucket are one array (nodes, slots, ...), and products over all
slots but one need neither division nor a list of neighbours.
"""

from dataclasses import dataclass

import numpy as np

from meanmap.graphs.graph import Graph

__all__ = ["Bucket", "Slots", "widths"]

# Each bucket is compiled separately, which costs as much as processing this many rows.
LEAST_SAVED = 4096
# In large graphs, another bucket must save this share of the messages.
SHARE_SAVED = 1 / 16


@dataclass(frozen=True, eq=False)
class Bucket:
    """Nodes with the same number of slots: rows `start`, ..., `start + len(nodes) * width − 1`, node after node."""

    nodes: np.ndarray
    width: int
    start: int
    padded: bool

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.nodes) * self.width


@dataclass(frozen=True, eq=False)
class Slots:
    """The layout of a graph's messages.

    Attributes
    ----------
    buckets : tuple of Bucket
        Nodes by degree; nodes without neighbours have no bucket.
    row : array (2 |E|,)
        The row at which each directed edge's message is received.
    reverse : array (rows,)
        For the row of the message from s to t, the row of the one from t to s; the row itself where a slot is empty.
    edge : array (rows,)
        The directed edge whose message is received there, −1 where a slot is empty.
    """

    buckets: tuple[Bucket, ...]
    row: np.ndarray
    reverse: np.ndarray
    edge: np.ndarray

    @classmethod
    def of(cls, graph: Graph) -> "Slots":
        """Lay out a graph's messages. Cost O(|E| log |E|)."""
        slot_width = widths(graph.degrees)[graph.degrees] if graph.size else graph.degrees
        first_row = np.zeros(graph.size, dtype=np.int64)
        buckets, start = [], 0
        for width in np.unique(slot_width[slot_width > 0]).tolist():
            nodes = np.flatnonzero(slot_width == width)
            first_row[nodes] = start + width * np.arange(len(nodes))
            buckets.append(Bucket(nodes, width, start, bool((graph.degrees[nodes] < width).any())))
            start += len(nodes) * width
        order, begin = graph.outgoing
        directed = np.arange(len(graph.sources))
        place = np.empty(len(directed), dtype=np.int64)
        place[order] = directed - begin[graph.sources[order]]  # the slot of a neighbour at the sender
        row = first_row[graph.targets] + place[graph.against]
        edge = np.full(start, -1)
        edge[row] = directed
        reverse = np.arange(start)
        reverse[row] = row[graph.against]
        return cls(tuple(buckets), row, reverse, edge)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.edge)


def widths(degrees: np.ndarray) -> np.ndarray:
    """The number of slots for each degree that minimises the number of rows, including a cost in rows for each bucket.

    Cost O(d²) for d different degrees.
    """
    degree, count = np.unique(degrees[degrees > 0], return_counts=True)
    price = max(LEAST_SAVED, SHARE_SAVED * int(degrees.sum()))
    nodes = np.concatenate([[0], np.cumsum(count)])
    costs, begin = np.zeros(len(degree) + 1), np.zeros(len(degree) + 1, dtype=np.int64)
    for end in range(1, len(degree) + 1):  # the last bucket before `end` begins where the total cost is least
        tried = costs[:end] + degree[end - 1] * (nodes[end] - nodes[:end]) + price
        begin[end] = np.argmin(tried)
        costs[end] = tried[begin[end]]
    wide, end = np.zeros(int(degrees.max(initial=0)) + 1, dtype=np.int64), len(degree)
    while end:
        wide[degree[begin[end] : end]] = degree[end - 1]
        end = begin[end]
    return wide
