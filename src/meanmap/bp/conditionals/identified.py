"""Effects that graph and rows do not determine are refused: an undirected edge, a doubted arrow, selected rows."""

from collections.abc import Collection, Hashable, Mapping
from itertools import compress
from typing import Any

import numpy as np

from meanmap.core.errors import InputError
from meanmap.core.tables.missing import present, take
from meanmap.graphs.orientation import reaches
from meanmap.graphs.partial import PDAG

__all__ = ["refuse_selected", "refuse_undecided", "same_value"]


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


def refuse_selected(graph: PDAG, cause: Hashable, target: Hashable, columns: Mapping[str, Any]) -> None:
    """Refuse an effect in a table where all rows have the same value of something that the cause affects: rows that
    were selected by an effect of both would show another one, or one where there is none.
    """
    reached = reaches(graph.matrix)[list(graph.names).index(cause)]
    for name in compress(graph.names, reached):
        if name not in (cause, target) and str(name) in columns and _is_constant(columns[str(name)]):
            raise InputError(same_value(name, f"which {cause!r} affects"))


def same_value(name: Hashable, why: str = "") -> str:
    """The error for a column with a single value, and `why` a selection by it would matter."""
    if not why:
        return f"data[{name!r}] has the same value in all rows and carries no information: leave it out of the graph."
    return (
        f"data[{name!r}] has the same value in all rows, {why}: if they were selected by it, they do not show what "
        "causes what. Pass the rows before the selection; if it never varies, leave it out of the graph."
    )


def _is_constant(column: Any) -> bool:
    there = take(column, np.flatnonzero(present(column)))
    return len(set(np.asarray(there, object).tolist())) == 1


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
