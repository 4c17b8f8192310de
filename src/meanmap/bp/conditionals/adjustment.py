"""The adjustment set: variables that block every non-causal path of the graph."""

from collections.abc import Collection, Hashable

from meanmap.core.errors import InputError
from meanmap.graphs.partial import PDAG
from meanmap.graphs.relevance import Parents, ancestors, parents_by_name

__all__ = ["adjustment"]


def adjustment(
    graph: PDAG,
    cause: Hashable,
    target: Hashable,
    there: Collection[Hashable],
    avoided: Collection[Hashable] = (),
) -> tuple[Hashable, ...] | None:
    """The variables that an effect is adjusted for, or None if no path leads from the cause to the target.

    The other parents of all variables on causal paths, the valid set with the least variance (Henckel et al. 2022;
    Rotnitzky & Smucler 2020). Where the table lacks some of these, all ancestors that it has: if any set is valid, this
    one is (van der Zander et al. 2014). Where these have variables that are to be avoided, a valid set without them, or
    with fewer.

    Parameters
    ----------
    graph : PDAG
        With all edges directed.
    cause, target : names
        What is set, and the outcome.
    there : names
        The variables that the table has.
    avoided : names
        Of these, such as those with gaps.
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
    if best <= set(there) and not best & set(avoided):
        return tuple(sorted(best, key=place))
    up = ancestors(parents, [cause, target])
    rest = (up & set(there)) - forbidden
    other_ways = {name: [p for p in above if p != cause or name not in along] for name, above in parents.items()}

    def valid(names: Collection[Hashable]) -> bool:
        return target not in _connected(other_ways, cause, target, names)

    def without(names: set[Hashable], some: Collection[Hashable]) -> set[Hashable]:
        """Less some of them, one by one, as long as the set is valid."""
        for name in sorted(names & set(some), key=place):
            names = names - {name} if valid(names - {name}) else names
        return names

    if avoided:
        chosen = without(best if best <= set(there) else rest, avoided)
        if chosen & set(avoided) and valid(rest - set(avoided)):
            chosen = without(rest - set(avoided), rest - best)
        if valid(chosen):
            return tuple(sorted(chosen, key=place))
    if not valid(rest):
        needed = sorted(best - set(there), key=place)
        for name in tuple(needed):  # drop variables that are not needed to close paths
            others = set(there) | (set(needed) - {name})
            if valid((up & others) - forbidden):
                needed.remove(name)
        lacking, them = " and ".join(map(repr, needed)), len(needed) > 1
        raise InputError(
            f"the effect of {cause!r} on {target!r} is not identified by adjustment: {lacking} "
            f"{'are' if them else 'is'} missing from data, and the other columns do not block every back-door path "
            f"between them. Expected a table with {'them' if them else 'it'}, or a graph in which "
            f"{'they are not common causes' if them else 'it is not a common cause'}."
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
