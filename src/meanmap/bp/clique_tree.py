"""Discrete networks with factors on any number of variables, exactly: their cliques are the nodes of a tree."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from meanmap.bp.beliefs import Beliefs
from meanmap.bp.discrete import DiscreteGraph
from meanmap.bp.potentials import read_likelihoods
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.graphs import Factors, Graph

__all__ = ["CliqueTree"]

# Numbers in the matrices of all edges together: about a gigabyte.
MOST_NUMBERS = 10**8


class CliqueTree:
    """A discrete network p(x) ∝ Π_c ψ_c(x_c) turned into a tree of cliques, in which messages are exact.

    The joint states of a clique are the states of one node of a [`DiscreteGraph`][], and an edge lets two cliques agree
    on what they share (Lauritzen & Spiegelhalter 1988). Cliques come from the min-fill order of elimination.

    Parameters
    ----------
    factors : Factors
        Such as [`mm.graphs.read_uai`][] and [`mm.graphs.from_pgmpy`][] give. Memory and time are the squared joint
        states of neighbouring cliques: networks that would need more than a gigabyte are refused.

    Attributes
    ----------
    cliques : tuple of tuple of int
        The variables of each clique, by number.

    Examples
    --------
    Both causes of an alarm, when it rings:

    >>> import numpy as np
    >>> rings = np.array([[0.01, 0.9], [0.8, 0.99]])
    >>> causes = np.array([0.95, 0.05]), np.array([0.99, 0.01])
    >>> alarm = Factors(
    ...     [2, 2, 2], ((0,), (1,), (0, 1, 2)), (*causes, np.stack([1 - rings, rings], -1)), ("thief", "quake", "alarm")
    ... )
    >>> network = CliqueTree(alarm)
    >>> [round(float(network.query({"alarm": 1})[name][1]), 3) for name in ("thief", "quake")]
    [0.691, 0.156]
    """

    def __init__(self, factors: Factors):
        if not isinstance(factors, Factors):
            raise KindError(f"factors is a {type(factors).__name__}; expected mm.graphs.Factors.")
        self.factors = factors
        self._variables = Graph.of([], nodes=factors.names)
        self.cliques, edges = _tree(factors)
        self._home = {i: next(c for c, clique in enumerate(self.cliques) if i in clique) for i in range(factors.size)}
        sizes = [self._shape(c) for c in range(len(self.cliques))]
        most = max(int(np.prod(shape)) for shape in sizes)
        if 2 * len(edges) * most**2 > MOST_NUMBERS or most**2 > MOST_NUMBERS:
            raise InputError(
                f"a clique of this network has {most} joint states: exact answers would take too much memory. Where "
                "factors are on at most two variables, mm.bp.DiscreteGraph.from_factors gives approximate ones."
            )
        priors = {c: np.ones(int(np.prod(shape))) for c, shape in enumerate(sizes)}
        for scope, table in zip(factors.scopes, factors.tables, strict=True):
            c = next(c for c, clique in enumerate(self.cliques) if set(scope) <= set(clique))
            priors[c] = priors[c] * self._spread(np.asarray(table, float), scope, c).ravel()
        potentials = {(a, b): self._agreement(a, b) for a, b in edges}
        self._graph = DiscreteGraph(Graph.of(edges, nodes=range(len(self.cliques))), potentials, priors)

    def query(
        self, evidence: Mapping[Any, Any] | None = None, targets: Iterable[Hashable] | None = None, **settings: Any
    ) -> Beliefs:
        """The marginal of each target given evidence, exactly; arguments and answer as for `DiscreteGraph.query`.

        A state may also be given by its label, where the factors have labels.
        """
        chosen = tuple(self.factors.names if targets is None else targets)
        for name in chosen:
            self._variables.index(name)
        own, _ = self._evidence(evidence or {})
        found = self._graph.query(own, **settings)

        def answer(name: Hashable) -> Any:
            i = self._variables.index(name)
            c = self._home[i]
            belief, at = found[c], self.cliques[c].index(i)
            table = belief.reshape(*belief.shape[:-1], *self._shape(c))
            others = tuple(axis - len(self.cliques[c]) for axis in range(len(self.cliques[c])) if axis != at)
            return table.sum(axis=others)

        return Beliefs(chosen, answer, found.report, found.log_evidence)

    def most_probable(self, evidence: Mapping[Any, Any] | None = None, **settings: Any) -> Beliefs:
        """The most probable state of all variables together given evidence, by max-product."""
        own, batched = self._evidence(evidence or {})
        found = self._graph.most_probable(own, **settings)

        def answer(name: Hashable) -> Any:
            i = self._variables.index(name)
            c = self._home[i]
            states = np.unravel_index(found[c], self._shape(c))[self.cliques[c].index(i)]
            return states if batched else int(states)

        return Beliefs(self.factors.names, answer, found.report, found.log_evidence)

    def _evidence(self, evidence: Mapping[Any, Any]) -> tuple[dict[int, np.ndarray], bool]:
        """Likelihoods of the joint states of cliques, (B, k) where there is a batch."""
        if not isinstance(evidence, Mapping):
            raise KindError(f'evidence is a {type(evidence).__name__}; expected a mapping such as {{"rain": 1}}.')
        numbered = {name: self._numbers(name, value) for name, value in evidence.items()}
        with Door(numbered) as door:
            read, batched = read_likelihoods(self._variables, self.factors.cardinalities, numbered, door)
        own: dict[int, Any] = {}
        for i, likelihood in read.items():
            c = self._home[i]
            wide = self._spread(np.asarray(likelihood), (i,), c).reshape(len(likelihood), -1)
            own[c] = own.get(c, 1.0) * wide
        # What is said once is said to all queries of a batch.
        return {c: value[0] if len(value) == 1 else value for c, value in own.items()}, batched

    def _numbers(self, name: Hashable, value: Any) -> Any:
        """States by number; labels are looked up where the variable has them."""
        labels = self.factors.labels.get(name)
        if labels is None or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
            return value
        if isinstance(value, str) or not np.ndim(value):
            if value in labels:
                return labels.index(value)
            shown = ", ".join(map(repr, labels))
            raise InputError(f"evidence[{name!r}] is {value!r}; expected one of {shown}, or likelihoods.")
        known = all(each in labels for each in value)
        return np.array([labels.index(each) for each in value]) if known else value

    def _shape(self, c: int) -> tuple[int, ...]:
        return tuple(int(self.factors.cardinalities[i]) for i in self.cliques[c])

    def _spread(self, table: np.ndarray, scope: tuple[int, ...], c: int) -> np.ndarray:
        """A table on some variables of a clique, its leading axes kept, repeated over the clique's other variables."""
        lead = table.ndim - len(scope)
        order = np.argsort([self.cliques[c].index(i) for i in scope]).tolist()
        ordered = table.transpose(*range(lead), *(lead + axis for axis in order))
        shape = tuple(k if i in scope else 1 for i, k in zip(self.cliques[c], self._shape(c), strict=True))
        batch = table.shape[:lead]
        return np.broadcast_to(ordered.reshape(*batch, *shape), (*batch, *self._shape(c)))

    def _agreement(self, a: int, b: int) -> np.ndarray:
        """One where the joint states of two cliques agree on the variables of both."""
        shared = [i for i in self.cliques[a] if i in self.cliques[b]]

        def code(c: int) -> np.ndarray:
            states = np.indices(self._shape(c)).reshape(len(self.cliques[c]), -1)
            number = np.zeros(states.shape[1], dtype=np.int64)
            for i in shared:
                number = number * int(self.factors.cardinalities[i]) + states[self.cliques[c].index(i)]
            return number

        return (code(a)[:, None] == code(b)[None, :]).astype(float)


def _tree(factors: Factors) -> tuple[tuple[tuple[int, ...], ...], list[tuple[int, int]]]:
    """Cliques that hold every scope, and the edges of a tree in which each variable's cliques hang together."""
    import networkx
    from networkx.algorithms.approximation import treewidth_min_fill_in

    graph = networkx.Graph()
    graph.add_nodes_from(range(factors.size))
    for scope in factors.scopes:
        graph.add_edges_from((a, b) for at, a in enumerate(scope) for b in scope[at + 1 :])
    _, tree = treewidth_min_fill_in(graph)
    bags = list(tree)
    number = {bag: c for c, bag in enumerate(bags)}
    return tuple(tuple(sorted(bag)) for bag in bags), [(number[a], number[b]) for a, b in tree.edges]
