"""Cliques of a factor network: variables are summed out one by one, in an order that keeps tables small."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

__all__ = ["CliqueForest"]

Neighbours = list[set[int]]


@dataclass(frozen=True, eq=False)
class CliqueForest:
    """A clique tree or forest: every scope lies in a clique, and the cliques that contain a variable are connected.

    Attributes
    ----------
    cliques : tuple of tuples of int
        Variables in the order in which they are eliminated, and so in the same order in every clique.
    parent : tuple of int
        The parent of each clique; −1 at a root.
    size : float
        The number of joint states of all cliques together.

    Examples
    --------
    >>> forest = CliqueForest.of([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3)])
    >>> forest.cliques, forest.parent, forest.size
    (((0, 1), (1, 2), (2, 3)), (1, 2, -1), 12.0)
    """

    cliques: tuple[tuple[int, ...], ...]
    parent: tuple[int, ...]
    size: float

    @classmethod
    def of(cls, cardinalities: Sequence[int] | np.ndarray, scopes: Sequence[tuple[int, ...]]) -> "CliqueForest":
        """The smaller of two greedy forests: by the size of the next table, and by the fill-in it creates (Kjærulff
        1990).

        On trees the cost is linear in the number of variables, for any degrees.
        """
        states = [int(k) for k in cardinalities]
        return min((_forest(states, scopes, rule) for rule in (_Weight, _Fill)), key=lambda forest: forest.size)


class _Weight:
    """The size of the table that eliminating a node needs: its logarithm in integer multiples of 2⁻⁴⁰, whose sum does
    not depend on the order.
    """

    def __init__(self, states: list[int], near: Neighbours):
        self.logs = [round(math.log2(k) * 2**40) for k in states]
        self.price = [self.logs[node] + sum(self.logs[other] for other in near[node]) for node in range(len(states))]

    def removed(self, node: int, others: set[int]) -> set[int]:
        """Eliminate a node and connect all of its neighbours; returns the nodes whose cost changed."""
        for other in others:
            self.price[other] -= self.logs[node]
        return others

    def joined(self, a: int, b: int, common: set[int]) -> set[int]:
        """Connect two nodes; returns the other nodes whose cost changed."""
        del common
        self.price[a] += self.logs[b]
        self.price[b] += self.logs[a]
        return set()


class _Fill:
    """The total size of the tables of all pairs that eliminating a node would newly connect, updated incrementally.

    For a node whose neighbours' numbers of states sum to S, and their squares to S₂, it is (S² − S₂) / 2 minus the
    sizes of the pairs that are already adjacent.
    """

    def __init__(self, states: list[int], near: Neighbours):
        self.states = states
        self.around = [sum(states[other] for other in others) for others in near]
        squares = (sum(states[other] ** 2 for other in others) for others in near)
        self.price = [(total**2 - square) // 2 for total, square in zip(self.around, squares, strict=True)]
        for a, others in enumerate(near):
            for b in others:
                if a < b:
                    for node in near[a] & near[b]:
                        self.price[node] -= states[a] * states[b]

    def removed(self, node: int, others: set[int]) -> set[int]:
        """Eliminate a node and connect all of its neighbours; returns the nodes whose cost changed."""
        together = sum(self.states[other] for other in others)
        for other in others:
            self.around[other] -= self.states[node]
            # The pairs of this node with neighbours that are not adjacent to it.
            self.price[other] -= self.states[node] * (self.around[other] - together + self.states[other])
        return others

    def joined(self, a: int, b: int, common: set[int]) -> set[int]:
        """Connect two nodes; returns the other nodes whose cost changed."""
        shared = sum(self.states[node] for node in common)
        for node, other in ((a, b), (b, a)):
            self.price[node] += self.states[other] * (self.around[node] - shared)
            self.around[node] += self.states[other]
        for node in common:
            self.price[node] -= self.states[a] * self.states[b]
        return common


def _forest(states: list[int], scopes: Sequence[tuple[int, ...]], rule: type[_Weight] | type[_Fill]) -> CliqueForest:
    near: Neighbours = [set() for _ in states]
    for scope in scopes:
        for node in scope:
            near[node].update(other for other in scope if other != node)
    prices = rule(states, near)
    heap = [(price, node) for node, price in enumerate(prices.price)]
    heapq.heapify(heap)
    place: dict[int, int] = {}
    found: list[set[int]] = []
    while heap:
        price, node = heapq.heappop(heap)
        if node in place or price != prices.price[node]:
            continue  # its cost has changed, and it is queued elsewhere
        others = near[node]
        place[node] = len(found)
        found.append({node, *others})
        changed = set(others)
        for a, b in combinations(sorted(others), 2):
            if b not in near[a]:
                changed |= prices.joined(a, b, near[a] & near[b])
                near[a].add(b)
                near[b].add(a)
        changed |= prices.removed(node, others)
        for other in others:
            near[other].remove(node)
        for other in changed.difference([node]):
            heapq.heappush(heap, (prices.price[other], other))
    ordered = [tuple(sorted(clique, key=place.__getitem__)) for clique in found]
    return _merged(ordered, [place[clique[1]] if len(clique) > 1 else -1 for clique in ordered], states)


def _merged(cliques: list[tuple[int, ...]], parent: list[int], states: list[int]) -> CliqueForest:
    """Cliques contained in one of their children are replaced by it."""
    into = list(range(len(cliques)))
    kept: list[int] = []
    for c in range(len(cliques)):
        if into[c] == c:
            kept.append(c)
        # The first child that contains the parent replaces it.
        up = parent[c]
        if up >= 0 and into[up] == up and cliques[c][1:] == cliques[up]:
            into[up] = into[c]
    last = list(range(len(cliques)))
    for c in range(len(cliques)):
        last[into[c]] = c
    # The last clique merged into a child precedes the last one merged into its parent, so children come first.
    kept.sort(key=last.__getitem__)
    number = {c: i for i, c in enumerate(kept)}
    above = [parent[last[c]] for c in kept]
    size = sum(math.prod((states[i] for i in cliques[c]), start=1.0) for c in kept)
    return CliqueForest(
        tuple(cliques[c] for c in kept), tuple(number[into[up]] if up >= 0 else -1 for up in above), size
    )
