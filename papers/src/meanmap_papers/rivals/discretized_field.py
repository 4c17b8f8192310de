"""Random fields of numbers in bins: discrete belief propagation with potentials learned from pairs."""

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.edges.field_samples import FieldSamples
from meanmap.bp.edges.observations import Likelihood
from meanmap.bp.engine.algebra import PRODUCT, Reweighted
from meanmap.bp.engine.messages import Given
from meanmap.bp.engine.operators import EdgeMatrices
from meanmap.bp.engine.propagate import Engine
from meanmap.bp.evidence.field_evidence import Evidence
from meanmap.bp.field import Field, FittedField
from meanmap.core.arrays import parameter
from meanmap.core.errors import InputError, ParameterError
from meanmap.core.points import pieces
from meanmap.core.report import Report
from meanmap.core.types import Data, GraphLike
from meanmap_papers.rivals.appearance import edge_appearance
from meanmap_papers.rivals.bins import Bins, Smoothing, choose_bins, table
from meanmap_papers.rivals.fitting import fit_potentials

__all__ = ["DiscretizedField", "FittedDiscretizedField"]

# Likelihoods are computed for this many nodes at once.
NODES_AT_ONCE = 65_536


class DiscretizedField(Field["FittedDiscretizedField"]):
    """A pairwise random field of numbers, each cut into bins.

    Potentials are those of pseudo-moment matching (Wainwright, Jaakkola & Willsky 2003),

        ψ_st = P̂_st / (P̂_s P̂_t),   φ_s = P̂_s,

    with P̂ the smoothed counts of pairs: without evidence the beliefs are P̂, on any graph, and on forests the
    potentials are those of maximum likelihood. The same holds for tree-reweighted messages with potentials ψ_st^ρ_st,
    ρ_st how often the edge is in a spanning tree: these bound the partition function, and trust cycles less.

    Parameters
    ----------
    graph, relations, variables, schedule
        As of `KernelField`.
    bins : int, optional
        For each kind. By default one for each value where values are few, else as many as predict held-out pairs best.
    equal : "mass" or "width", optional
        What the bins have in common; by default also chosen.
    smoothing : float, optional
        Pseudo-counts for each cell; by default chosen together with a blur over neighbouring bins.
    reweighted : bool
        Tree-reweighted messages and potentials.
    learning : "moments" or "likelihood"
        The closed form above, or maximum likelihood by proportional fitting from there: exact where the graph is a
        forest or has few joint states, else with loopy marginals, of which the closed form is a fixed point already.

    Notes
    -----
    Cost: O(m) for learning from m pairs, once for each number of bins that is tried, and O(|E| k²) for a sweep. The
    error of posterior means falls as k⁻², that of densities as k⁻¹, until pairs are too few for the cells.

    References
    ----------
    Wainwright, Jaakkola & Willsky (2003), Tree-reweighted belief propagation algorithms and approximate ML estimation
    by pseudo-moment matching.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import bp
    >>> from meanmap_papers import rivals
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(size=2000)
    >>> pairs = height, 0.95 * height + 0.3 * rng.normal(size=2000)
    >>> ring = [(i, (i + 1) % 12) for i in range(12)]
    >>> beliefs = rivals.DiscretizedField(ring).fit(pairs).query({0: 1.0, 6: -1.0})
    >>> bool(beliefs[1].mean() > 0.3 > -0.3 > beliefs[5].mean())
    True
    """

    def __init__(
        self,
        graph: GraphLike,
        *,
        relations: Any = None,
        variables: Any = None,
        bins: int | None = None,
        equal: str | None = None,
        smoothing: float | None = None,
        reweighted: bool = False,
        learning: str = "moments",
        schedule: Any = None,
    ):
        super().__init__(graph, relations=relations, variables=variables, schedule=schedule)
        self.bins = None if bins is None else int(parameter(bins, "bins", axes=0, integer=True))
        if self.bins == 1:
            raise ParameterError("bins is 1; expected at least 2: with one bin there is nothing to tell apart.")
        if equal not in (None, "mass", "width"):
            raise ParameterError(f'equal is {equal!r}; expected "mass" or "width", or None to choose.')
        if learning not in ("moments", "likelihood"):
            raise ParameterError(f'learning is {learning!r}; expected "moments" or "likelihood".')
        if reweighted and learning == "likelihood":
            raise ParameterError('tree-reweighted potentials are learned by learning="moments" only.')
        self.equal, self.reweighted, self.learning = equal, bool(reweighted), learning
        self.smoothing = None if smoothing is None else float(parameter(smoothing, "smoothing", axes=0))

    def _learn(self, read: FieldSamples, likelihoods: dict[Hashable, Likelihood]) -> "FittedDiscretizedField":
        bins, smoothing, score = choose_bins(read.samples, read.directions, self.bins, self.equal)
        if self.smoothing is not None:
            smoothing = Smoothing(self.smoothing)
        return FittedDiscretizedField(self, read, likelihoods, bins, smoothing, score)


class FittedDiscretizedField(FittedField):
    """A `DiscretizedField` with learned potentials, ready for queries.

    Attributes
    ----------
    bins : dict
        `Bins` of each kind.
    smoothing : Smoothing
        How counts became probabilities.
    score : float
        The mean log density of held-out x_s given x_t.
    learning_report : Report or None
        How proportional fitting ended, for learning="likelihood".
    """

    def __init__(
        self,
        field: DiscretizedField,
        read: FieldSamples,
        likelihoods: dict[Hashable, Likelihood],
        bins: dict[Hashable, Bins],
        smoothing: Smoothing,
        score: float,
    ):
        super().__init__(field.graph, read, likelihoods, field.schedule)
        graph = field.graph
        self.bins, self.smoothing, self.score = bins, smoothing, score
        self.length = max(each.number for each in bins.values())
        self.marginals = self._marginals()
        joint, ratio = np.zeros((2, len(self.directions), self.length, self.length))
        for e, direction in enumerate(self.directions):
            table = self._probabilities(e)
            cells = e, slice(bins[direction.sender].number), slice(bins[direction.receiver].number)
            joint[cells] = table
            ratio[cells] = table / table.sum(axis=1, keepdims=True) / table.sum(axis=0)
        self.learning_report: Report | None = None
        if field.learning == "likelihood":
            states = np.array([each.number for each in bins.values()])[self.kind]
            ratio, self.learning_report = fit_potentials(graph, self.template, states, self._alone(), joint, ratio)
        self.ratio = ratio
        self.appearance = np.ones(2 * len(graph.edges))
        if field.reweighted and not graph.is_forest:
            self.appearance = np.tile(edge_appearance(graph), 2)
        # Tree-reweighted messages take potentials to the power 1 / ρ, which are the ratios again.

    @cached_property
    def engine(self) -> Engine:
        """The graph prepared for messages."""
        algebra = Reweighted(self.appearance) if (self.appearance < 1).any() else PRODUCT
        return Engine(self.graph, self.template, self.schedule, algebra)

    def _probabilities(self, e: int) -> np.ndarray:
        """P̂ of both ends of a direction, (k_t, k_s)."""
        direction = self.directions[e]
        sent, received = (
            self.samples[name].points[direction.pairs[:, side], 0]
            for side, name in enumerate((direction.sender, direction.receiver))
        )
        return self.smoothing(table(self.bins[direction.sender], self.bins[direction.receiver], sent, received))

    def _marginals(self) -> dict[Hashable, np.ndarray]:
        """P̂ of each kind: the mean over the directions that arrive there."""
        found: dict[Hashable, list[np.ndarray]] = {name: [] for name in self.bins}
        for e, direction in enumerate(self.directions):
            found[direction.receiver].append(self._probabilities(e).sum(axis=0))
        return {name: np.mean(each, axis=0) for name, each in found.items()}

    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        observed: Data = None,
        damping: float | None = None,
        floor: float | None = None,
        tolerance: float | None = None,
        counting: float | None = None,
    ) -> Beliefs:
        """The belief about each target.

        Parameters
        ----------
        evidence, targets, observed, damping
            As of every field.
        floor, tolerance, counting
            As of `Engine.run`.
        """
        return self._answers(
            evidence,
            targets,
            observed,
            lambda seen, _: self._propagate(seen, self._kept(damping), floor, tolerance, counting),
        )

    def _propagate(
        self, seen: Evidence, damping: float, floor: float | None, tolerance: float | None, counting: float | None
    ) -> tuple[Any, Report]:
        """Sum-product over bins."""
        operators, own = EdgeMatrices(self.ratio), jnp.asarray(self._own(seen))
        settings = {"damping": damping, "floor": floor, "tolerance": tolerance, "counting": counting}
        found = self.engine.run(operators, own, self._given(seen), **settings)
        weights = np.asarray(found.beliefs)
        mass = weights.sum(axis=-1, keepdims=True)
        if not (mass > 0).all():
            name = self.graph.names[int(np.argmin(mass.min(axis=(1, 2))))]
            raise InputError(f"the evidence contradicts itself: no bin of {name!r} is possible.")
        weights = weights / mass

        def belief(node: int) -> Any:
            kind = self.kind_of(node)
            each = weights[node, :, : self.bins[kind].number]
            return self.bins[kind].belief(each if seen.batched else each[0], self.samples[kind].kernel)

        return belief, found.report

    def _alone(self) -> np.ndarray:
        """P̂ of each node's bins, (n, L)."""
        own = np.zeros((len(self.bins), self.length))
        for row, (name, bins) in zip(own, self.bins.items(), strict=True):
            row[: bins.number] = self.marginals[name]
        return own[self.kind]

    def _own(self, seen: Evidence) -> np.ndarray:
        """P̂ of each node's bins times what was observed, (n, B, L)."""
        own = np.zeros((self.graph.size, seen.size, self.length))
        for which, (name, bins) in enumerate(self.bins.items()):
            nodes = np.flatnonzero(self.kind == which)
            points = bins.points().reshape(-1, 1)
            for part in pieces(nodes, NODES_AT_ONCE):
                own[part, :, : bins.number] = bins.average(seen.at(name, part, points)) * self.marginals[name]
        return own

    def _given(self, seen: Evidence) -> Given | None:
        """Messages of nodes that were seen: potentials at the value, between the centres of two bins."""
        known = np.isin(self.graph.sources, list(seen.values))
        if not known.any():
            return None
        values = np.ones((len(known), seen.size, self.length))
        for edge in np.flatnonzero(known):
            node = int(self.graph.sources[edge])
            between = self.bins[self.kind_of(node)].between(seen.values[node][0, 0])
            message = between @ self.ratio[self.template[edge], : len(between)]
            values[edge] = (message / message.max()) ** self.appearance[edge]
        return Given(jnp.asarray(np.repeat(known[:, None], seen.size, axis=1)), jnp.asarray(values))
