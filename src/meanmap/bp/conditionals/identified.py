"""Effects that a graph does not determine, as they depend on an undirected edge or a doubted arrow, are refused."""

from collections.abc import Collection, Hashable

import numpy as np

from meanmap.core.errors import InputError
from meanmap.graphs.orientation import reaches
from meanmap.graphs.partial import PDAG

__all__ = ["refuse_undecided"]


def refuse_undecided(graph: PDAG, causes: Collection[Hashable], targets: Collection[Hashable]) -> None:
    """Refuse effects that depend on an unknown direction (Perković 2020, theorem 3.6): a possibly causal path from
    one of the causes, all of which are set, to a target begins with an undirected edge. Refuse those, too, that depend
    on an arrow that `pc` doubts: into a variable on such a path.
    """
    matrix, doubts, names = graph.matrix, graph.doubts(), list(graph.names)
    set_, wanted = ([names.index(name) for name in each] for each in (causes, targets))
    ways = matrix | doubts
    ways[:, set_] = False  # paths that avoid what is set
    reach = reaches(ways)
    for start in set_:
        below = (reach[ways[start]]).any(axis=0)
        for end in wanted:
            along = below & reach[:, end]
            if not along.any():
                continue
            of = f"the effect of {names[start]!r} on {names[end]!r}"
            open_ = np.flatnonzero(along & matrix[start] & matrix[:, start] & ~doubts[start])
            if len(open_):
                raise InputError(
                    f"{of} depends on the direction of the edge {names[start]!r} — {names[open_[0]]!r}, which the "
                    "graph does not determine: both are possible. If you know it, pass "
                    "mm.graphs.PDAG.of(arrows, lines), or mm.pc(..., with what you know as required= and forbidden=)."
                )
            doubted = np.argwhere(doubts & along)
            if len(doubted):
                a, b = min(doubted.tolist(), key=lambda pair: (len({start, end} - set(pair)), pair[0] != start))
                raise InputError(f"{of} depends on {_unknown(graph, names[a], names[b])}")


def _unknown(graph: PDAG, a: Hashable, b: Hashable) -> str:
    """A doubted arrow, and what to type."""
    known = f"If you know it, pass mm.pc(..., required=[({a!r}, {b!r})])"
    own = "or your own graph, mm.graphs.PDAG.of(arrows, lines)."
    if graph.mark(a, b) is None:
        return (
            f"whether an edge joins {a!r} and {b!r}: tests contradict each other, as the notes of the graph "
            f"say. {known} if it does, forbidden=[({a!r}, {b!r}), ({b!r}, {a!r})] if none does, {own}"
        )
    return (
        f"the direction of the edge {a!r} — {b!r}, which tests do not determine: see the notes of the graph. A "
        f"common cause of both may be missing from the table, and then neither is right. {known} for {a} → {b}, "
        f"required=[({b!r}, {a!r})] for {b} → {a}, {own}"
    )
