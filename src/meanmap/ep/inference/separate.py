"""Which variables an update takes as independent although earlier factors tie them together."""

from collections.abc import Collection, Sequence

import numpy as np
from scipy import sparse

from meanmap.ep.factor import Factor
from meanmap.ep.variables import Variable

__all__ = ["lost_ties"]


def lost_ties(variables: dict[str, Variable], factors: Sequence[Factor], shared: Collection[str]) -> str:
    """A note that names shared variables which factors join, if there are several of them or several members."""
    from scipy.sparse.csgraph import connected_components  # slow to import, and updates alone need it

    first, node = {}, 0
    for name, variable in variables.items():
        first[name], node = node, node + (variable.plate or 1)
    starts, ends = [], []
    for factor in factors:
        unknown = [argument for argument in factor.arguments if not argument.known]
        size = factor.plate or 1
        for argument in unknown if len(unknown) > 1 else ():
            starts.append(node + np.arange(size))
            ends.append(np.broadcast_to(first[argument.name] + argument.index, (size,)))
        node += size
    if not starts:
        return ""
    rows, columns = np.concatenate(starts), np.concatenate(ends)
    _, part = connected_components(sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(node, node)), False)
    parts = {name: part[first[name] + np.arange(variables[name].plate or 1)] for name in shared if name in first}
    labels, counts = np.unique(np.concatenate([*parts.values()]) if parts else np.zeros(0, int), return_counts=True)
    tied = [name for name, own in parts.items() if np.isin(own, labels[counts > 1]).any()]
    if not tied:
        return ""
    return (
        f"{', '.join(map(repr, tied))}: earlier factors tie these numbers together, and an update takes beliefs about "
        "them as independent, so that standard deviations may be too small: give them one belief, such as "
        "ep.Variable(name, ep.MultivariateNormal(mean, covariance)), or all rows to one run of infer"
    )
