"""Random fields of numbers in bins: discrete belief propagation with potentials learned from pairs."""

from collections.abc import Hashable
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.bp.bins import Bins, Smoothing, choose_bins, table
from meanmap.bp.field import Field, FittedField
from meanmap.bp.field_evidence import Evidence
from meanmap.bp.field_samples import FieldSamples
from meanmap.bp.observations import Likelihood
from meanmap.bp.operators import EdgeMatrices
from meanmap.bp.propagate import Engine
from meanmap.core.arrays import parameter
from meanmap.core.errors import ParameterError
from meanmap.core.report import Report

__all__ = ["DiscretizedField", "FittedDiscretizedField"]

# Likelihoods are computed for so many nodes at once.
NODES_AT_ONCE = 65_536


class DiscretizedField(Field):
    """A pairwise random field of numbers, each cut into bins.

    Potentials are those of pseudo-moment matching (Wainwright, Jaakkola & Willsky 2003),

        ψ_st = P̂_st / (P̂_s P̂_t),   φ_s = P̂_s,

    with P̂ the smoothed counts of pairs: without evidence the beliefs are P̂, on any graph, and on forests the
    potentials are those of maximum likelihood.

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
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(size=2000)
    >>> pairs = height, 0.95 * height + 0.3 * rng.normal(size=2000)
    >>> ring = [(i, (i + 1) % 12) for i in range(12)]
    >>> beliefs = bp.DiscretizedField(ring).fit(pairs).query({0: 1.0, 6: -1.0})
    >>> bool(beliefs[1].mean() > 0.3 > -0.3 > beliefs[5].mean())
    True
    """

    def __init__(
        self,
        graph: Any,
        *,
        relations: Any = None,
        variables: Any = None,
        bins: int | None = None,
        equal: str | None = None,
        smoothing: float | None = None,
        schedule: Any = None,
    ):
        super().__init__(graph, relations=relations, variables=variables, schedule=schedule)
        self.bins = None if bins is None else int(parameter(bins, "bins", axes=0, integer=True))
        if self.bins == 1:
            raise ParameterError("bins is 1; expected at least 2: with one bin there is nothing to tell apart.")
        if equal not in (None, "mass", "width"):
            raise ParameterError(f'equal is {equal!r}; expected "mass" or "width", or None to choose.')
        self.equal = equal
        self.smoothing = None if smoothing is None else float(parameter(smoothing, "smoothing", axes=0))

    def _learn(self, read: FieldSamples, likelihoods: dict[Hashable, Likelihood]) -> "FittedDiscretizedField":
        bins, smoothing, score = choose_bins(read.samples, read.directions, self.bins, self.equal)
        if self.smoothing is not None:
            smoothing = Smoothing(self.smoothing)
        return FittedDiscretizedField(self.graph, read, likelihoods, self.schedule, bins, smoothing, score)


class FittedDiscretizedField(FittedField):
    """A `DiscretizedField` with learned potentials, ready for queries.

    Attributes
    ----------
    bins : dict
        `Bins` of each kind.
    smoothing : Smoothing
        How counts became probabilities.
    score : float
        The mean log density of held-out x_s given x_t, of all that were tried the largest.
    """

    def __init__(
        self,
        graph: Any,
        read: FieldSamples,
        likelihoods: dict[Hashable, Likelihood],
        schedule: Any,
        bins: dict[Hashable, Bins],
        smoothing: Smoothing,
        score: float,
    ):
        super().__init__(graph, read, likelihoods, schedule)
        self.bins, self.smoothing, self.score = bins, smoothing, score
        self.length = max(each.number for each in bins.values())
        self.marginals = self._marginals()
        matrices = np.zeros((len(self.directions), self.length, self.length))
        for e, direction in enumerate(self.directions):
            joint = self._probabilities(e)
            ratio = joint / joint.sum(axis=1, keepdims=True) / joint.sum(axis=0)
            matrices[e, : bins[direction.sender].number, : bins[direction.receiver].number] = ratio
        self.engine = Engine(graph, EdgeMatrices(matrices), self.template, self.schedule)

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

    def _propagate(self, seen: Evidence, damping: float, **settings: Any) -> tuple[Any, Report]:
        """Sum-product over bins; `settings` may hold a tolerance."""
        found = self.engine.run(jnp.asarray(self._own(seen)), damping=damping, **settings)
        weights = np.asarray(found.beliefs)
        weights = weights / weights.sum(axis=-1, keepdims=True)

        def belief(node: int) -> Any:
            kind = self.kind_of(node)
            each = weights[node, :, : self.bins[kind].number]
            return self.bins[kind].belief(each if seen.batched else each[0], self.samples[kind].kernel)

        return belief, found.report

    def _own(self, seen: Evidence) -> np.ndarray:
        """P̂ of each node's bins times what was observed, (n, B, L)."""
        own = np.zeros((self.graph.size, seen.size, self.length))
        for which, (name, bins) in enumerate(self.bins.items()):
            nodes = np.flatnonzero(self.kind == which)
            points = bins.points().reshape(-1, 1)
            for start in range(0, len(nodes), NODES_AT_ONCE):
                part = nodes[start : start + NODES_AT_ONCE]
                own[part, :, : bins.number] = bins.average(seen.at(name, part, points)) * self.marginals[name]
        for node, value in seen.values.items():
            bins = self.bins[self.kind_of(node)]
            own[node] = np.arange(self.length) == bins.index(value[:, 0])
        return own
