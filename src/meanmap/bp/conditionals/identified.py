"""What a graph does not decide is refused: effects that hang on an edge without a direction."""

from collections.abc import Hashable

import numpy as np

from meanmap.core.errors import InputError
from meanmap.graphs.partial import PDAG

__all__ = ["refuse_undecided"]


def refuse_undecided(graph: PDAG, cause: Hashable, target: Hashable, fixed: set[Hashable]) -> None:
    """Refuse an effect that hangs on a direction which is not known (Perković 2020, theorem 3.6): a way along which the
    cause may act on the target begins with an undirected edge.
    """
    matrix, names = graph.matrix, list(graph.names)
    start, others = names.index(cause), {names.index(name) for name in fixed}
    for first in np.flatnonzero(matrix[start] & matrix[:, start]).tolist():
        reached, stack = {first} - others, [first] if first not in others else []
        while stack:
            for after in np.flatnonzero(matrix[stack.pop()]).tolist():
                if after not in reached and after not in others:
                    reached.add(after)
                    stack.append(after)
        if names.index(target) in reached:
            raise InputError(
                f"the effect of {cause!r} on {target!r} hangs on the direction of the edge {cause!r} — "
                f"{names[first]!r}, which the graph does not say: both are possible. If you know it, say so, "
                "mm.graphs.PDAG.of(arrows, lines), or mm.pc(..., with what you know as required= and forbidden=)."
            )
