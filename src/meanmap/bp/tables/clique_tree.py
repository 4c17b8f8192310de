"""Exact inference in discrete networks with factors on any number of variables, by messages between cliques."""

import math
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs, in_words
from meanmap.bp.tables.clique_tables import CliqueTable
from meanmap.bp.tables.needed import Needed, constant_sum
from meanmap.bp.tables.potentials import read_labelled
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.language import a_type
from meanmap.core.report import Report
from meanmap.core.settings import by_name
from meanmap.graphs import Factors, Graph
from meanmap.graphs.elimination import CliqueForest

__all__ = ["CliqueTree"]

Marginals = tuple[dict[int, np.ndarray], np.ndarray]

# Joint states of all cliques together, in all queries answered at once: eight bytes each, plus working memory.
MOST_STATES = 4 * 10**8
STATES_AT_ONCE = 10**7
# A tree for one answer costs about .3 ms a variable, and joint states 20 ns each.
STATES_PER_VARIABLE = 2 * 10**4


class CliqueTree:
    """A discrete network p(x) ∝ Π_c ψ_c(x_c) as a tree of cliques, in which messages are exact.

    A message is a table over the variables that two neighbouring cliques share (Lauritzen & Spiegelhalter 1988; Jensen,
    Lauritzen & Olesen 1990). Cliques come from greedy elimination orders. If cliques are large, a query for few targets
    builds a smaller tree: observed states are substituted, and unobserved descendants pruned.

    Parameters
    ----------
    factors : Factors
        Such as `mm.graphs.read_uai` and `mm.graphs.from_pgmpy` give. Memory and time are those of the joint
        states of all cliques: networks that would need more than a few gigabytes are refused.

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
            raise KindError(f"factors is {a_type(factors)}; expected mm.graphs.Factors.")
        self.factors = factors
        self._sums: dict[tuple[int, int], float | None] = {}
        if self._forest.size > MOST_STATES:
            raise InputError(
                f"the cliques of this network have {self._forest.size:.2g} joint states: exact answers would take "
                f"{8 * self._forest.size / 2**30:.0f} GiB. mm.bp.FactorGraph(factors) gives approximate ones."
            )

    @property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """The variables of each clique, by number."""
        return self._forest.cliques

    @cached_property
    def _forest(self) -> CliqueForest:
        return CliqueForest.of(self.factors.cardinalities, self.factors.scopes)

    @cached_property
    def _homes(self) -> list[int]:
        """A small clique that holds each factor."""
        sets = [set(clique) for clique in self.cliques]
        holding: list[list[int]] = [[] for _ in range(self.factors.size)]
        for c in sorted(range(len(sets)), key=lambda c: math.prod(self._shape(c))):
            for i in sets[c]:
                holding[i].append(c)
        scopes = [*self.factors.scopes, *((i,) for i in range(self.factors.size))]
        # Search the cliques of the variable that is in the fewest: a hub is in thousands.
        looked_at = [min((holding[i] for i in scope), key=len, default=[0]) for scope in scopes]
        return [next(c for c in some if sets[c] >= set(scope)) for scope, some in zip(scopes, looked_at, strict=True)]

    def __repr__(self) -> str:
        return f"CliqueTree({len(self.factors.names)} variables, {len(self.factors.tables)} factors)"

    def query(self, evidence: Mapping[Any, Any] | None = None, targets: Iterable[Hashable] | None = None) -> Beliefs:
        """The marginal of each target given evidence, exactly; evidence and answer as for `DiscreteGraph.query`.

        Where the factors have labels, a state may also be given by its label, and likelihoods as a mapping from labels.
        """
        graph = Graph.of([], nodes=self.factors.names)
        names = tuple(self.factors.names if targets is None else targets)
        wanted = {name: graph.index(name) for name in names}
        likelihoods, batched = self._evidence(graph, by_name(evidence))
        found, logs = self._smaller(likelihoods, set(wanted.values())) or self._marginals(
            likelihoods, set(wanted.values())
        )
        beliefs = {name: found[i] if batched else found[i][0] for name, i in wanted.items()}
        return Beliefs(names, beliefs, _exact(), logs if batched else logs[0], given=in_words(by_name(evidence)))

    def _marginals(self, likelihoods: dict[int, np.ndarray], wanted: set[int]) -> Marginals:
        """The marginals (B, k) of some variables, by number, and log Z (B,)."""
        found: dict[int, list[np.ndarray]] = {i: [] for i in wanted}
        homes = {i: self._homes[len(self.factors.scopes) + i] for i in wanted}
        totals = []
        for part in self._parts(likelihoods):
            tables, logs = self._inwards(part, np.sum)
            totals.append(logs)
            self._outwards(tables, homes.values())
            for i, c in homes.items():
                marginal = tables[c].onto(self.cliques[c], (i,), np.sum).at(...)
                shares = marginal / marginal.sum(axis=-1, keepdims=True)
                found[i].append(np.broadcast_to(shares, (len(logs), shares.shape[-1])))
        return {i: np.concatenate(parts) for i, parts in found.items()}, np.concatenate(totals)

    def _smaller(self, likelihoods: dict[int, np.ndarray], wanted: set[int]) -> Marginals | None:
        """Marginals and log Z from a tree of what these variables need; None if it would not be worth making."""
        whole = self._forest.size
        if STATES_PER_VARIABLE * (len(wanted) + len(likelihoods)) > whole:
            return None
        seen = {i: int(each.argmax()) for i, each in likelihoods.items() if np.count_nonzero(each) == 1 == len(each)}
        needed = Needed.of(self.factors, wanted, likelihoods, seen, self._constant)
        size = needed.factors.size
        if not 0 < size < self.factors.size or STATES_PER_VARIABLE * size > whole:
            return None
        log = needed.log_constant + sum(float(np.log(likelihoods[i][0, state])) for i, state in seen.items())
        rest = {needed.number[i]: each for i, each in likelihoods.items() if i not in seen}
        unseen = wanted.difference(seen)
        found, logs = CliqueTree(needed.factors)._marginals(rest, {needed.number[i] for i in unseen})
        marginals = {i: found[needed.number[i]] for i in unseen}
        for i in wanted.intersection(seen):
            marginals[i] = np.tile(np.eye(int(self.factors.cardinalities[i]))[seen[i]], (len(logs), 1))
        return marginals, logs + log

    def _constant(self, c: int, i: int) -> float | None:
        """The sum of a factor over one of its variables, if it is constant."""
        if (c, i) not in self._sums:
            self._sums[c, i] = constant_sum(np.asarray(self.factors.tables[c]), self.factors.scopes[c].index(i))
        return self._sums[c, i]

    def most_probable(self, evidence: Mapping[Any, Any] | None = None) -> Beliefs:
        """The most probable state of all variables together given evidence, by max-product; ties are decoded together.

        Returns
        -------
        Beliefs
            A state for each variable, an integer or (B,); `log_evidence` is the logarithm of Π ψ there.
        """
        graph = Graph.of([], nodes=self.factors.names)
        likelihoods, batched = self._evidence(graph, by_name(evidence))
        states, totals = [], []
        for part in self._parts(likelihoods):
            tables, logs = self._inwards(part, np.max)
            totals.append(logs)
            states.append(self._decoded(tables, len(logs)))
        together, log_evidence = np.concatenate(states), np.concatenate(totals)
        answers = {
            name: together[:, i] if batched else int(together[0, i]) for i, name in enumerate(self.factors.names)
        }
        return Beliefs(self.factors.names, answers, _exact(), log_evidence if batched else log_evidence[0])

    def _inwards(self, likelihoods: dict[int, np.ndarray], reduce: object) -> tuple[list[CliqueTable], np.ndarray]:
        """The product of each clique's factors and its children's messages, and log Z (B,)."""
        values = [*(np.asarray(table, dtype=float)[None] for table in self.factors.tables), *likelihoods.values()]
        scopes = [*self.factors.scopes, *((i,) for i in likelihoods)]
        homes = [
            *self._homes[: len(self.factors.scopes)],
            *(self._homes[len(self.factors.scopes) + i] for i in likelihoods),
        ]
        logs = np.zeros(max((len(value) for value in likelihoods.values()), default=1))
        tables = [CliqueTable.ones(len(clique)) for clique in self.cliques]
        for scope, value, home in zip(scopes, values, homes, strict=True):
            table, log = CliqueTable.of(value)
            logs += log
            tables[home] = tables[home] * table.among(scope, self.cliques[home])
        for c, up in enumerate(self._forest.parent):
            clique, shared = self.cliques[c], self._shared[c]
            tables[c] = tables[c].wide(self._shape(c))
            message, log = tables[c].onto(clique, shared, reduce).scaled()
            impossible = np.flatnonzero(np.isneginf(log))
            if len(impossible):
                raise InputError(
                    "the evidence contradicts itself: no joint state is possible"
                    + (f" in query {impossible[0]}." if len(logs) > 1 else ".")
                )
            if up >= 0:
                logs += log
                tables[up] = tables[up] * message.among(shared, self.cliques[up])
            else:
                logs += log + np.log(message.values)
        return tables, logs

    def _outwards(self, tables: list[CliqueTable], asked: Iterable[int]) -> None:
        """Outward messages: the inward message is divided out and the parent's marginal multiplied in."""
        for c in self._towards(asked):
            up, shared, clique = self._forest.parent[c], self._shared[c], self.cliques[c]
            said = tables[c].onto(clique, shared, np.sum)
            known, _ = (tables[up].onto(self.cliques[up], shared, np.sum) / said).scaled()
            tables[c] = tables[c] * known.among(shared, clique)

    def _decoded(self, tables: list[CliqueTable], size: int) -> np.ndarray:
        """The best states of each clique given those of its parent, from the roots outwards, (B, n)."""
        states = np.zeros((size, self.factors.size), dtype=np.int64)
        for c in reversed(range(len(tables))):
            clique, shared = self.cliques[c], self._shared[c]
            free = tuple(i for i in clique if i not in shared)
            queries = np.arange(size) if len(tables[c].values) > 1 else np.zeros(size, dtype=np.int64)
            given = tuple(states[:, i] if i in shared else slice(None) for i in clique)
            table = tables[c].at((queries, *given))
            best = table.reshape(size, -1).argmax(axis=1)
            for i, state in zip(free, np.unravel_index(best, table.shape[1:]), strict=True):
                states[:, i] = state
        return states

    def _towards(self, asked: Iterable[int]) -> list[int]:
        """The cliques between the roots and the targets, parents first, without the roots."""
        found: set[int] = set()
        for c in asked:
            while c not in found and self._forest.parent[c] >= 0:
                found.add(c)
                c = self._forest.parent[c]
        return sorted(found, reverse=True)

    @cached_property
    def _shared(self) -> list[tuple[int, ...]]:
        """The variables of each clique that its parent has, too."""
        above = [set(self.cliques[up]) if up >= 0 else set() for up in self._forest.parent]
        return [tuple(i for i in clique if i in up) for clique, up in zip(self.cliques, above, strict=True)]

    def _shape(self, c: int) -> tuple[int, ...]:
        return tuple(int(self.factors.cardinalities[i]) for i in self.cliques[c])

    def _parts(self, likelihoods: dict[int, np.ndarray]) -> Iterable[dict[int, np.ndarray]]:
        """Evidence of a few queries at a time."""
        size = max((len(value) for value in likelihoods.values()), default=1)
        step = max(int(STATES_AT_ONCE // self._forest.size), 1)
        for start in range(0, size, step):
            yield {i: each if len(each) == 1 else each[start : start + step] for i, each in likelihoods.items()}

    def _evidence(self, graph: Graph, evidence: Mapping[Any, Any]) -> tuple[dict[int, np.ndarray], bool]:
        """Likelihoods (B or 1, k) of the states of some variables."""
        with Door(evidence) as door:
            read, batched = read_labelled(graph, self.factors, evidence, door)
        return {i: np.asarray(value, dtype=float) for i, value in read.items()}, batched


def _exact() -> Report:
    return Report("exact (on a tree of cliques)", True, 2, np.empty(0))
