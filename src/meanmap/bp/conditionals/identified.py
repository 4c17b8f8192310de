"""Effects that a graph does not determine, as they depend on an undirected edge, are refused."""

from collections.abc import Collection, Hashable

import numpy as np

from meanmap.core.errors import InputError
from meanmap.graphs.partial import PDAG

__all__ = ["refuse_undecided"]


def refuse_undecided(graph: PDAG, causes: Collection[Hashable], targets: Collection[Hashable]) -> None:
    """Refuse effects that depend on an unknown direction (Perković 2020, theorem 3.6): a possibly causal path from
    one of the causes, all of which are set, to a target begins with an undirected edge.
    """
    matrix, names = graph.matrix, list(graph.names)
    others = {names.index(cause) for cause in causes}
    for cause in causes:
        start = names.index(cause)
        undirected = np.flatnonzero(matrix[start] & matrix[:, start]).tolist()
        reached = {first: _reached(matrix, first, others) for first in undirected}
        for target in targets:
            first = next((first for first, found in reached.items() if names.index(target) in found), None)
            if first is not None:
                raise InputError(
                    f"the effect of {cause!r} on {target!r} depends on the direction of the edge {cause!r} — "
                    f"{names[first]!r}, which the graph does not determine: both are possible. If you know it, pass "
                    f"it, "
                    "mm.graphs.PDAG.of(arrows, lines), or mm.pc(..., with what you know as required= and forbidden=)."
                )


def _reached(matrix: np.ndarray, first: int, others: set[int]) -> set[int]:
    """Variables reached by paths from a variable that avoid those that are set."""
    found, stack = {first} - others, [first] if first not in others else []
    while stack:
        for after in np.flatnonzero(matrix[stack.pop()]).tolist():
            if after not in found and after not in others:
                found.add(after)
                stack.append(after)
    return found
