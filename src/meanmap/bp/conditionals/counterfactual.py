"""Counterfactuals: one row of a table, had some of its values been different."""

from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np

from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.given_parents import joined
from meanmap.bp.conditionals.labels_given_parents import LabelsGivenParents
from meanmap.bp.conditionals.laws import Law
from meanmap.core.errors import InputError
from meanmap.graphs.partial import PDAG
from meanmap.graphs.relevance import ancestors

__all__ = ["what_would_have_been"]


def what_would_have_been(
    graph: PDAG,
    parents: Mapping[Hashable, Sequence[Hashable]],
    order: Sequence[Hashable],
    columns: Mapping[Hashable, CodedColumn],
    conditionals: Mapping[Hashable, Law],
    row: Mapping[Hashable, np.ndarray],
    fixed: Mapping[Hashable, np.ndarray],
    targets: Collection[Hashable],
) -> dict[Hashable, np.ndarray]:
    """What is set and all that changes on the way to the targets as numbers (1, width), from variables in `order`,
    causes first; what is not identified is refused.

    Whatever is no effect of what is set stays as it was. An effect keeps its rank among the values that its parents
    leave possible: what the parents do not explain is taken to act in one direction (Pearl 2009, section 7.1).
    """
    heard = {name: () if name in fixed else parents[name] for name in order}
    wanted = ancestors(heard, targets)
    became = dict(fixed)
    for name in order:
        changed = [parent for parent in heard[name] if parent in became and not _stays(row, became, parent)]
        if not changed or name not in wanted:
            continue
        _refuse(graph, columns, name, changed[0])
        for needed in (name, *parents[name]):
            if needed not in row:
                raise InputError(
                    f"row has no value of {needed!r}; the counterfactual of {name!r} needs its own value and those "
                    f"of all its parents: {', '.join(map(repr, parents[name]))}. Without them use do()."
                )
        before = joined([row[parent] for parent in parents[name]], 1)
        after = joined([became.get(parent, row[parent]) for parent in parents[name]], 1)
        law = conditionals[name]
        assert not isinstance(law, LabelsGivenParents)  # labels were refused
        became[name] = np.array([[law.moved(before, float(row[name][0, 0]), after)]])
    missing = next((name for name in targets if name not in became and name not in row), None)
    if missing is not None:
        raise InputError(f"row has no value of {missing!r}, which stays unchanged; query() gives its likely values.")
    return became


def _stays(row: Mapping[Hashable, np.ndarray], became: Mapping[Hashable, np.ndarray], name: Hashable) -> bool:
    """Whether a variable has the value that it had."""
    return name in row and np.array_equal(row[name], became[name])


def _refuse(graph: PDAG, columns: Mapping[Hashable, CodedColumn], name: Hashable, cause: Hashable) -> None:
    """Refuse counterfactuals of variables that the network cannot determine."""
    if columns[name].labels is not None:
        raise InputError(
            f"{name!r} is a label, and {cause!r} would change its probabilities: no data can determine which label "
            f"this row would have had. do() gives the probability of each."
        )
    open_edge = next((pair for pair in graph.named("undirected") if name in pair), None)
    if open_edge is not None:
        raise InputError(
            f"the edge {open_edge[0]!r} — {open_edge[1]!r} has no direction, and the counterfactual of {name!r} "
            f"depends on it. If you know it, pass it: mm.graphs.PDAG.of(arrows, lines)."
        )
