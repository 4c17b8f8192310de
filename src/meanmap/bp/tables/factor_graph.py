"""Discrete networks with factors on any number of variables: messages between factors and variables."""

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs, in_words
from meanmap.bp.engine.flooding import flood, flood_differentiably
from meanmap.bp.engine.messages import Settings
from meanmap.bp.engine.propagate import how_it_ended, not_exact
from meanmap.bp.engine.terms import Terms
from meanmap.bp.tables.factor_layout import FactorLayout, alike, read_off
from meanmap.bp.tables.potentials import probabilities, read_labelled, with_likelihoods
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import KindError
from meanmap.core.language import a_type
from meanmap.core.settings import by_name
from meanmap.core.synonyms import own_words
from meanmap.core.types import Numbers
from meanmap.graphs import Factors, Flooding, Graph
from meanmap.graphs.schedules import Schedule

__all__ = ["FactorGraph"]


class FactorGraph:
    """A discrete network p(x) ∝ Π_c ψ_c(x_c), with messages between factors and variables.

    Exact if the factors form no cycle, approximate otherwise (Kschischang, Frey & Loeliger 2001). If cliques are small
    `mm.bp.CliqueTree` is exact.

    Parameters
    ----------
    factors : Factors
        A sweep costs about two passes over each table that is written out; for a `mm.graphs.SumTable` with M values
        on d variables of k states d M k.

    Examples
    --------
    Three bits with an even sum, of which the second was received with the most noise:

    >>> from meanmap.graphs import SumTable
    >>> parity = Factors([2, 2, 2], ((0, 1, 2),), (SumTable([1, 0], (2, 2, 2), cyclic=True),))
    >>> beliefs = FactorGraph(parity).query({0: [0.1, 0.9], 1: [0.6, 0.4], 2: [0.9, 0.1]})
    >>> beliefs[1].round(3).tolist()
    [0.248, 0.752]
    """

    def __init__(self, factors: Factors):
        if not isinstance(factors, Factors):
            raise KindError(f"factors is {a_type(factors)}; expected mm.graphs.Factors.")
        self.factors = factors

    def __repr__(self) -> str:
        return f"FactorGraph({len(self.factors.names)} variables, {len(self.factors.tables)} factors)"

    @own_words
    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        schedule: Flooding | None = None,
        damping: float = 0.0,
        tolerance: float | None = None,
    ) -> Beliefs:
        """The marginal of each target given evidence, by sum-product.

        Parameters
        ----------
        evidence : mapping from names to states or likelihoods
            As for `DiscreteGraph.query`; where the factors have labels, a state may also be given by its label, and
            likelihoods as a mapping from labels.
        targets : names, optional
            All variables unless given.
        schedule : Flooding, optional
            Maximum number of sweeps; by default 100, and without cycles the length of the longest path.
        damping : float
            The share of the old message that is kept in each sweep.
        tolerance : float, optional
            Stop when no message changes by more than this share of its largest value.

        Returns
        -------
        Beliefs
            Probabilities (k,), or (B, k) for B queries; `log_evidence` is Bethe's approximation with cycles.

        Notes
        -----
        Tables and likelihoods that are JAX arrays can be jitted, mapped and differentiated; derivatives are
        those of the fixed point, and NaN where messages do not converge.
        """
        names = tuple(self.factors.names if targets is None else targets)
        for name in names:
            self._graph.index(name)
        beliefs, log_evidence, report, batched = self._run(evidence, schedule, damping, tolerance, False)

        def answer(name: Hashable) -> Any:
            i = self._graph.index(name)
            return (beliefs[i] if batched else beliefs[i, 0])[..., : int(self.factors.cardinalities[i])]

        return Beliefs(names, answer, report, log_evidence, given=in_words(by_name(evidence)))

    def most_probable(
        self,
        evidence: Mapping[Any, Any] | None = None,
        *,
        schedule: Flooding | None = None,
        damping: float = 0.0,
        tolerance: float | None = None,
    ) -> Beliefs:
        """The state of each variable in the most probable joint state, by max-product.

        Exact where the factors make no cycle and no two joint states tie.

        Returns
        -------
        Beliefs
            A state for each variable, an integer or (B,).
        """
        beliefs, log_evidence, report, batched = self._run(evidence, schedule, damping, tolerance, True)
        states = beliefs.argmax(axis=-1)
        if not batched:
            states = states[:, 0] if not is_concrete(states) else states[:, 0].tolist()
        return Beliefs(self.factors.names, dict(zip(self.factors.names, states, strict=True)), report, log_evidence)

    def _run(
        self, evidence: Any, schedule: Schedule | None, damping: float, tolerance: Numbers | None, maximum: bool
    ) -> Any:
        """Beliefs (n, B, L), log Z, the report and whether there was a batch."""
        schedule = self._usual if schedule is None else schedule
        if not isinstance(schedule, Flooding):
            raise KindError(
                f"schedule is {schedule!r}; expected mm.graphs.Flooding(), the only schedule for factor graphs."
            )
        if schedule.mesh is not None:
            raise KindError("factor graphs are for one device: leave mesh= out.")
        groups, layout = self._laid_out
        evidence = by_name(evidence)
        with Door(self.factors.tables, evidence) as door:
            priors, constant = self._priors(door)
            likelihoods, batched = read_labelled(self._graph, self.factors, evidence, door)
            own = jnp.asarray(with_likelihoods(priors, likelihoods, door))
            operators = tuple(group.operator(own.dtype, maximum) for group in groups)
            settings = Settings.of(damping, None, tolerance, own.dtype)
            terms = Terms(layout, operators, own, None, settings)
            traced = not (is_concrete(own) and all(is_concrete(group.values) for group in operators))
            messages, count, trace = (flood_differentiably if traced else flood)(terms, schedule.max_sweeps)
            beliefs, log_evidence = read_off(layout, operators, own, messages)
            converged = trace[jnp.maximum(count - 1, 0)] <= settings.tolerance
            if not traced:
                count, converged = int(count), bool(converged)
                trace = np.asarray(trace)[:count]
            report = how_it_ended("sweeps", count, trace, converged, [])
            report = report if self._longest else not_exact(report)
            beliefs, log_evidence = door.leave((probabilities(beliefs, self._graph), log_evidence + constant))
        return beliefs, log_evidence if batched else log_evidence[0], report, batched

    @cached_property
    def _longest(self) -> int:
        """The number of variables and factors of the largest tree, which no path exceeds; 0 if there are cycles."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        larger = [scope for scope in self.factors.scopes if len(scope) > 1]
        lengths = list(map(len, larger))
        places = np.repeat(np.arange(len(larger)), lengths), np.array([i for scope in larger for i in scope], dtype=int)
        size = self.factors.size + len(larger)
        edges = coo_array((np.ones(sum(lengths)), (self.factors.size + places[0], places[1])), shape=(size, size))
        ways = np.bincount(connected_components(edges, directed=False)[1], minlength=1)
        return int(ways.max()) if sum(lengths) == size - len(ways) else 0

    @cached_property
    def _usual(self) -> Flooding:
        """Flooding with enough sweeps for messages to cross a tree; they are then exact and no longer change."""
        # A last sweep confirms that nothing changes.
        return Flooding(max(Flooding().max_sweeps, self._longest + 1))

    @cached_property
    def _graph(self) -> Graph:
        """The variables by name."""
        return Graph.of([], nodes=self.factors.names)

    @cached_property
    def _laid_out(self) -> tuple[list[Any], FactorLayout]:
        larger = [number for number, scope in enumerate(self.factors.scopes) if len(scope) > 1]
        groups, variables = alike(self.factors, larger)
        return groups, FactorLayout.of(self.factors.size, variables)

    def _priors(self, door: Door) -> tuple[Any, Any]:
        """The factors on one variable together, (n, L), and the logarithm of those on none."""
        library: Any = jnp if door.follows else np
        sizes = self.factors.cardinalities
        priors = library.asarray((np.arange(sizes.max()) < sizes[:, None]).astype(door.dtype))
        constant: Any = 0.0
        for scope, given in zip(self.factors.scopes, self.factors.tables, strict=True):
            if len(scope) > 1:
                continue
            table = library.asarray(given if isinstance(given, jax.Array) else np.asarray(given), dtype=door.dtype)
            if len(scope) == 0:
                constant = constant + library.log(table)
            else:
                wide = library.pad(table, (0, int(sizes.max()) - len(table)))
                if door.follows:
                    priors = priors.at[scope[0]].multiply(wide)
                else:
                    priors[scope[0]] *= wide
        return priors, constant
