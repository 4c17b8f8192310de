"""Cliques of a network of factors: variables are summed out one by one, in an order that keeps tables small."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["CliqueForest"]

Neighbours = list[set[int]]


@dataclass(frozen=True, eq=False)
class CliqueForest:
    """A tree, or several, of cliques: every scope lies in one, and the cliques that hold a variable hang together.

    Attributes
    ----------
    cliques : tuple of tuples of int
        Variables in the order in which they are eliminated, and so in the same order in every clique.
    parent : tuple of int
        Behind each clique's own place; −1 at a root.
    size : float
        How many joint states there are in all cliques together.

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
        """The smaller of two greedy forests: by the next table, and by what it newly joins (Kjærulff 1990)."""
        logs = np.log(np.asarray(cardinalities, dtype=float)).tolist()
        return min((_forest(logs, scopes, rule) for rule in (_weight, _fill)), key=lambda forest: forest.size)


def _weight(node: int, near: Neighbours, logs: list[float]) -> float:
    """The logarithm of the size of the table that eliminating a node needs."""
    return logs[node] + sum(logs[other] for other in near[node])


def _fill(node: int, near: Neighbours, logs: list[float]) -> float:
    """The size of the tables of all pairs that it newly joins."""
    others = sorted(near[node])
    missing = ((a, b) for i, a in enumerate(others) for b in others[i + 1 :] if b not in near[a])
    return float(sum(np.exp(logs[a] + logs[b]) for a, b in missing))


def _forest(logs: list[float], scopes: Sequence[tuple[int, ...]], rule: Callable) -> CliqueForest:
    near: Neighbours = [set() for _ in logs]
    for scope in scopes:
        for node in scope:
            near[node].update(other for other in scope if other != node)
    heap = [(rule(node, near, logs), node) for node in range(len(logs))]
    cost = {node: value for value, node in heap}
    heapq.heapify(heap)
    place: dict[int, int] = {}
    found: list[set[int]] = []
    while heap:
        value, node = heapq.heappop(heap)
        if node in place or value != cost[node]:
            continue  # it is dearer or cheaper by now, and stands elsewhere
        others = near[node]
        place[node] = len(found)
        found.append({node, *others})
        for other in others:
            near[other] |= others
            near[other] -= {node, other}
        # What joins two of them changes the price of whoever is near both.
        changed = others if rule is _weight else others.union(*(near[other] for other in others))
        for other in changed:
            price = rule(other, near, logs)
            if price != cost[other]:
                cost[other] = price
                heapq.heappush(heap, (price, other))
    ordered = [tuple(sorted(clique, key=place.__getitem__)) for clique in found]
    return _merged(ordered, [place[clique[1]] if len(clique) > 1 else -1 for clique in ordered], logs)


def _merged(cliques: list[tuple[int, ...]], parent: list[int], logs: list[float]) -> CliqueForest:
    """Cliques that lie in one of their children give their place to it."""
    into = list(range(len(cliques)))
    kept: list[int] = []
    for c in range(len(cliques)):
        if into[c] == c:
            kept.append(c)
        # The first child that holds all of the parent stands for it.
        up = parent[c]
        if up >= 0 and into[up] == up and cliques[c][1:] == cliques[up]:
            into[up] = into[c]
    last = list(range(len(cliques)))
    for c in range(len(cliques)):
        last[into[c]] = c
    # A child is used up before its parent's last clique: in this order children come before their parents.
    kept.sort(key=last.__getitem__)
    number = {c: i for i, c in enumerate(kept)}
    above = [parent[last[c]] for c in kept]
    size = sum(float(np.exp(sum(logs[i] for i in cliques[c]))) for c in kept)
    return CliqueForest(
        tuple(cliques[c] for c in kept), tuple(number[into[up]] if up >= 0 else -1 for up in above), size
    )
