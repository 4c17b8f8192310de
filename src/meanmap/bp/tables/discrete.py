"""Discrete variables with given potentials: the engine where the points of a node are its states."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs, in_words
from meanmap.bp.beliefs.pages import QueriedPage
from meanmap.bp.engine.operators import EdgeMatrices
from meanmap.bp.engine.propagate import Engine, Propagation, not_exact
from meanmap.bp.tables.potentials import probabilities, read_likelihoods, read_model, with_likelihoods
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import InputError, KindError
from meanmap.core.settings import by_name
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Axes, GraphLike
from meanmap.graphs import Factors, Graph, Rooted
from meanmap.graphs.drawing import draw_forest
from meanmap.graphs.schedules import Schedule

__all__ = ["DiscreteGraph"]


class DiscreteGraph(QueriedPage):
    """A pairwise Markov network of discrete variables, p(x) ∝ Π_(s,t) ψ_st(x_s, x_t) Π_s φ_s(x_s).

    `model = mm.bp.DiscreteGraph(edges, tables)` holds the network, `model.query({"b": 1})["a"]` is a marginal.

    Parameters
    ----------
    graph : Graph, NetworkX graph or list of edges
        n variables.
    potentials : array (k, k), array (|E|, k, k), or mapping from edges to arrays (k_s, k_t)
        ψ_st ≥ 0, rows for the first end of the edge: one table that all edges share, or one for each. With a mapping,
        variables may differ in their number of states, and an edge may be named in either direction.
    priors : array (n, k) or mapping from names to arrays (k,), optional
        φ_s ≥ 0, ones by default.

    Examples
    --------
    Rain depends on the season, and the street on rain.

    >>> network = DiscreteGraph(
    ...     [("season", "rain"), ("rain", "street")],
    ...     {("season", "rain"): [[0.9, 0.1], [0.4, 0.6]], ("rain", "street"): [[0.8, 0.2], [0.1, 0.9]]},
    ... )
    >>> network.query({"street": 1}, targets=["rain"])["rain"].round(4).tolist()
    [0.2921, 0.7079]
    """

    def __init__(self, graph: GraphLike, potentials: object, priors: object = None):
        self.graph = Graph.of(graph)
        with Door(potentials, priors) as door:
            read = read_model(self.graph, potentials, priors, door)
            self._matrices, self._priors = door.leave((read.matrices, read.priors))
            self._template, self.states = read.template, read.states

    @classmethod
    def from_factors(cls, factors: Factors) -> "DiscreteGraph":
        """Build a graph from factors on one or two variables (`mm.graphs.read_uai`); those on one edge are multiplied.

        Examples
        --------
        >>> factors = Factors([2, 2], ((0,), (0, 1)), (np.array([1.0, 3.0]), np.eye(2)))
        >>> DiscreteGraph.from_factors(factors).query()[1].tolist()
        [0.25, 0.75]
        """
        names = factors.names
        priors = {name: np.ones(int(k)) for name, k in zip(names, factors.cardinalities, strict=True)}
        constant = 1.0
        potentials: dict[tuple[Hashable, Hashable], np.ndarray] = {}
        for scope, table in zip(factors.scopes, factors.tables, strict=True):
            if len(scope) == 0:
                constant = constant * float(table)
            elif len(scope) == 1:
                priors[names[scope[0]]] = priors[names[scope[0]]] * table
            elif len(scope) == 2:
                (a, b), table = (scope, table) if scope[0] < scope[1] else (scope[::-1], table.T)
                potentials[names[a], names[b]] = potentials.get((names[a], names[b]), 1.0) * table
            elif len(scope) > 2:
                raise InputError(
                    f"a factor is on the {len(scope)} variables {scope}; expected at most two. "
                    "mm.bp.CliqueTree(factors) and mm.bp.FactorGraph(factors) accept any number, the first exactly."
                )
        priors[names[0]] = priors[names[0]] * constant
        return cls(Graph.of(list(potentials), nodes=names), potentials, priors)

    def __repr__(self) -> str:
        return f"DiscreteGraph({self.graph!r})"

    @own_words
    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        schedule: Schedule | None = None,
        damping: float = 0.0,
        tolerance: float | None = None,
    ) -> Beliefs:
        """The marginal of each target given evidence, by sum-product.

        Parameters
        ----------
        evidence : mapping from names to states or likelihoods
            An integer is the observed state, a float array (k,) the likelihood of each state. With one more axis,
            (B,) integers or (B, k) likelihoods, B queries at once; others are repeated for all of them.
        targets : names, optional
            All variables unless given.
        schedule : optional
            By default `mm.graphs.TwoPass()` on a forest, exact; else `mm.graphs.Flooding()`.
        damping : float
            The share of the old message that is kept at each step, for graphs with cycles.
        tolerance : float, optional
            Stop when no message changes by more than this share of its largest value.

        Returns
        -------
        Beliefs
            Probabilities (k,), or (B, k) for B queries.

        Notes
        -----
        Tables, priors and likelihoods that are JAX arrays can be jitted, mapped and differentiated: with two passes,
        and with flooding, whose derivatives are those of its fixed point, and NaN where messages do not converge.
        """
        nodes = {name: self.graph.index(name) for name in (() if targets is None else targets)}
        targets = tuple(self.graph.names if targets is None else nodes)
        evidence = by_name(evidence, example='{"rain": 1}')
        with Door(self._matrices, self._priors, evidence) as door:
            own, batched = self._with(evidence, door)
            found = self._run(own, schedule, damping, tolerance, False)
            beliefs = probabilities(door.leave(found.beliefs), self.graph)
            log_evidence = door.leave(found.log_partition)

        if not batched:
            log_evidence = log_evidence[0]

        def answer(name: Hashable) -> Any:
            i = self.graph.index(name)
            return (beliefs[i] if batched else beliefs[i, 0])[..., : int(self.states[i])]

        return Beliefs(targets, answer, found.report, log_evidence, given=in_words(evidence))

    def most_probable(
        self,
        evidence: Mapping[Any, Any] | None = None,
        *,
        schedule: Schedule | None = None,
        damping: float = 0.0,
        tolerance: float | None = None,
    ) -> Beliefs:
        """The most probable state of all variables together given evidence, by max-product.

        Exact on forests, ties included; on graphs with cycles each variable takes its own best state.

        Returns
        -------
        Beliefs
            A state for each variable, an integer or (B,); `log_evidence` is the logarithm of Π ψ Π φ there on forests.
        """
        evidence = by_name(evidence, example='{"rain": 1}')
        with Door(self._matrices, self._priors, evidence) as door:
            own, batched = self._with(evidence, door)
            if not is_concrete(own) or not is_concrete(self._matrices):
                raise KindError(
                    "most_probable finds states one after the other and cannot be compiled into a larger program or "
                    "differentiated; `query` can."
                )
            found = self._run(own, schedule, damping, tolerance, True)
            probabilities(door.leave(found.beliefs), self.graph)
            if self.graph.is_forest:
                states = self._decode(np.asarray(found.messages), np.asarray(own))
            else:
                states = np.asarray(jnp.argmax(found.beliefs, axis=-1))
            log_evidence = door.leave(found.log_partition)

        if not batched:
            log_evidence = log_evidence[0]

        def answer(name: Hashable) -> Any:
            i = self.graph.index(name)
            return states[i] if batched else int(states[i, 0])

        return Beliefs(
            tuple(self.graph.names),
            answer,
            found.report,
            log_evidence,
        )

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the graph; returns the matplotlib Axes."""
        return draw_forest(self.graph, ax)

    def _with(self, evidence: Mapping[Any, Any], door: Door) -> tuple[Any, bool]:
        """Priors times evidence, (n, B, L), and whether there was a batch."""
        likelihoods, batched = read_likelihoods(self.graph, self.states, evidence, door)
        return with_likelihoods(self._priors, likelihoods, door), batched

    def _run(
        self, own: Array, schedule: Schedule | None, damping: float, tolerance: float | None, maximum: bool
    ) -> Propagation:
        """Propagate on the graph laid out for a schedule, which is kept for the next query."""
        if schedule not in self._engines:
            self._engines[schedule] = Engine(self.graph, self._template, schedule)
        own = jnp.asarray(own)
        operators = EdgeMatrices(jnp.asarray(self._matrices, own.dtype), maximum)
        engine = self._engines[schedule]
        found = engine.run(operators, own, damping=damping, tolerance=tolerance, potentials=True)
        return found if self.graph.is_forest else replace(found, report=not_exact(found.report))

    @cached_property
    def _engines(self) -> dict[Any, Engine]:
        return {}

    def _decode(self, messages: np.ndarray, own: np.ndarray) -> np.ndarray:
        """The best state of each node given its parent's, from the roots outwards; this is correct for ties, too."""
        graph, matrices = self.graph, np.asarray(self._matrices)
        tree = Rooted.at(graph)
        order, start = graph.outgoing
        states = np.zeros(own.shape[:2], dtype=np.int64)
        for node in tree.order:
            arriving = graph.against[order[start[node] : start[node + 1]]]
            with np.errstate(divide="ignore"):
                heard = messages[arriving[graph.sources[arriving] != tree.parent[node]]]
                score = np.log(own[node]) + np.log(heard).sum(axis=0)
                if tree.parent[node] >= 0:
                    matrix = matrices[self._template[tree.to_parent[node]]]
                    score = score + np.log(matrix[:, states[tree.parent[node]]].T)
            states[node] = score.argmax(axis=-1)
        return states
