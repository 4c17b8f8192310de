"""Whether members of plates send at once or one after another, and then in which order: along chains and trees."""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from meanmap.core.errors import KindError
from meanmap.core.settings import one_of
from meanmap.ep.factor import Factor
from meanmap.ep.oracles.host import HostOracle
from meanmap.ep.variables import Selection

__all__ = ["along", "chosen_schedule"]

# Beyond this many factors from one end of a plate to the other, sending all members at once takes too many sweeps.
FAR = 16
SCHEDULES = ("auto", "parallel", "sequential")


def chosen_schedule(schedule: Any, hosts: dict[int, HostOracle], factors: tuple[Factor, ...], far: int) -> str:
    """Either "parallel" or "sequential"; an error if that would ask an oracle on the host one question at a time.

    By default it is sequential along plates whose members are `far` from each other: sent all at once, information
    would travel by one member per sweep.
    """
    one_of(schedule, "schedule", SCHEDULES)
    if schedule == "auto":
        return "sequential" if far > FAR and not hosts and not any(factor.whole for factor in factors) else "parallel"
    if schedule == "sequential" and hosts:
        named = ", ".join(factors[at].name for at in hosts)
        raise KindError(
            f"{named} has an oracle on the host, which is asked for whole plates: type schedule='parallel', or give "
            "an oracle such as ep.Quadrature()."
        )
    return schedule


def along(factors: tuple[Factor, ...]) -> tuple[tuple[np.ndarray, ...], int]:
    """For each factor an order of its members, and how many factors lie between the furthest members of variables.

    Members are ordered by how far they are from one end of what they are joined to: once forwards and once backwards
    is then enough for a chain or tree of exact factors. Variables that a whole plate shares are no way from one member
    to another here.

    Examples
    --------
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal, plate=4)
    >>> steps = ep.Gaussian(z[[2, 0, 1]], z[[3, 1, 2]])  # 2-3, 0-1, 1-2
    >>> (order,), far = along((steps,))
    >>> order.tolist(), far
    ([1, 2, 0], 3)
    """
    same = tuple(np.arange(factor.plate or 1) for factor in factors)
    if not any(isinstance(argument, Selection) for factor in factors for argument in factor.arguments):
        return same, 0  # every member is joined to its namesakes alone
    first: dict[str, int] = {}
    total, places = 0, []
    for factor in factors:
        own = []
        for at, argument in enumerate(factor.arguments):
            if argument.known or at in factor.whole:
                continue
            if argument.name not in first:
                first[argument.name] = total
                total += argument.variable.plate or 1
            if argument.plate == factor.plate:
                own.append(first[argument.name] + argument.index)
        places.append(own)
    depth = _depths(total, [pair for own in places for pair in pairwise(own)])
    orders = (
        np.argsort(np.min([depth[at] for at in own], axis=0), kind="stable") if own else order
        for own, order in zip(places, same, strict=True)
    )
    return tuple(orders), int(depth.max())


def _depths(total: int, pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """How far each node is from one end of its component: the first node, or one that is further from the others."""
    rows, columns = (np.concatenate([pair[side] for pair in pairs]) if pairs else np.zeros(0, int) for side in (0, 1))
    from scipy.sparse import csgraph

    edges = rows.astype(np.int32), columns.astype(np.int32)  # Dijkstra of SciPy 1.13 takes no others
    graph = scipy.sparse.coo_array((np.ones(len(rows)), edges), (total, total)).tocsr()
    count, component = csgraph.connected_components(graph, directed=False)
    _, roots = np.unique(component, return_index=True)

    def distances(sources: np.ndarray) -> np.ndarray:
        found = csgraph.dijkstra(graph, directed=False, indices=sources, unweighted=True, min_only=True)
        return found.astype(int)

    near = distances(roots)
    ranked = np.lexsort((near, component))
    ends = ranked[np.searchsorted(component[ranked], np.arange(count), side="right") - 1]
    far = distances(ends)
    further = np.maximum.reduceat(far[ranked], np.searchsorted(component[ranked], np.arange(count))) > near[ends]
    return np.where(further[component], far, near)
