"""What has to be adjusted for: the variables that block every non-causal path of the graph."""

from collections.abc import Collection, Hashable

from meanmap.core.errors import InputError
from meanmap.graphs.partial import PDAG
from meanmap.graphs.relevance import Parents, ancestors, parents_by_name

__all__ = ["adjustment"]


def adjustment(
    graph: PDAG, cause: Hashable, target: Hashable, there: Collection[Hashable]
) -> tuple[Hashable, ...] | None:
    """The variables that an effect is adjusted for, or None if no path leads from the cause to the target.

    The other parents of all variables on causal paths, the valid set with the least variance (Henckel et al. 2022;
    Rotnitzky & Smucler 2020). Where the table lacks some of these, all ancestors that it has: if any set is valid, this
    one is (van der Zander et al. 2014).

    Parameters
    ----------
    graph : PDAG
        With all edges directed.
    cause, target : names
        What is set, and the outcome.
    there : names
        The variables that the table has.
    """
    arrows = graph.named("directed")
    parents = parents_by_name(graph.names, arrows)
    children = parents_by_name(graph.names, ((end, start) for start, end in arrows))
    along = (ancestors(children, [cause]) & ancestors(parents, [target])) - {cause}
    if not along:
        return None
    forbidden = ancestors(children, along) | {cause}
    best = {parent for name in along for parent in parents[name]} - forbidden
    place = {name: number for number, name in enumerate(graph.names)}.__getitem__
    if best <= set(there):
        return tuple(sorted(best, key=place))
    rest = (ancestors(parents, [cause, target]) & set(there)) - forbidden
    other_ways = {name: [p for p in above if p != cause or name not in along] for name, above in parents.items()}
    if target in _connected(other_ways, cause, target, rest):
        lacking = " and ".join(repr(name) for name in sorted(best - set(there), key=place))
        raise InputError(
            f"the effect of {cause!r} on {target!r} is not identified by adjustment: {lacking} is missing from data, "
            "and the other columns do not block every back-door path between them. Expected a table with it, or a "
            "graph in which it is not a common cause."
        )
    return tuple(sorted(rest, key=place))


def _connected(parents: Parents, cause: Hashable, target: Hashable, known: Collection[Hashable]) -> set[Hashable]:
    """Ancestors connected to the cause by a path that avoids the known variables (Lauritzen et al. 1990)."""
    neighbours: dict[Hashable, set[Hashable]] = {}
    for name in ancestors(parents, (cause, target, *known)):
        family = {name, *parents[name]}.difference(known)
        for each in family:
            neighbours.setdefault(each, set()).update(family)
    return ancestors(neighbours, [cause])
