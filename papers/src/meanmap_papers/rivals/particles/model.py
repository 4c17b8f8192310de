"""The information at each node before messages arrive: its density, and its observations."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from meanmap.bp.evidence.field_evidence import Evidence
from meanmap_papers.rivals.mixtures.mixtures import Mixtures
from meanmap_papers.rivals.pair_densities import PairDensities
from meanmap_papers.rivals.particles.cloud import Cloud

__all__ = ["NodeFactors"]


@dataclass(frozen=True, eq=False)
class NodeFactors:
    """Densities p(x) and likelihoods l(x) of all nodes in one query.

    Attributes
    ----------
    starting : Mixtures
        p(x) l(x), about: each node's first proposal, (n,).
    """

    densities: PairDensities
    kind: np.ndarray
    names: list[Hashable]
    seen: Evidence
    query: int
    starting: Mixtures

    @classmethod
    def of(
        cls, densities: PairDensities, kind: np.ndarray, names: list[Hashable], seen: Evidence, query: int
    ) -> "NodeFactors":
        """With the first proposals."""
        return cls(densities, kind, names, seen, query, densities.starting(kind, names, seen, query))

    def log_prior(self, points: np.ndarray, nodes: np.ndarray | None = None) -> np.ndarray:
        """log p(x) at points (n, N, d) of all nodes, or of some that may be named more than once."""
        kind = self.kind if nodes is None else self.kind[nodes]
        result = np.empty(points.shape[:2])
        for which in range(len(self.names)):
            some = np.flatnonzero(kind == which)
            flat = self.densities.priors[which].log_density(points[some].reshape(-1, points.shape[2]))
            result[some] = flat.reshape(len(some), points.shape[1])
        return result

    def log_likelihood(self, points: np.ndarray, nodes: np.ndarray | None = None) -> np.ndarray:
        """log l(x) at points of all nodes, or of some, up to a constant for each row."""
        nodes = np.arange(len(self.kind)) if nodes is None else nodes
        result = np.empty(points.shape[:2])
        for which, name in enumerate(self.names):
            some = np.flatnonzero(self.kind[nodes] == which)
            there = points[some][..., : self.densities.columns[which]]
            with np.errstate(divide="ignore"):
                result[some] = np.log(self.seen.at_each(name, nodes[some], there, self.query))
        return result

    def at_seen(self, points: np.ndarray) -> np.ndarray:
        """Points of all nodes, with those of nodes that were seen at what was seen."""
        for node, value in self.seen.values.items():
            points[node, :, : value.shape[1]] = value
        return points

    def cloud(self, number: int, generator: np.random.Generator) -> Cloud:
        """Particles drawn from the first proposals."""
        points = self.at_seen(self.starting.sample(number, generator))
        return self.weighed(points, self.starting.log_density(points), 0.0)

    def weighed(self, points: np.ndarray, log_proposal: np.ndarray, log_heard: np.ndarray | float) -> Cloud:
        """Particles with their attributes; those of seen nodes are all alike."""
        log_own = self.log_likelihood(points)
        log_target = self.log_prior(points) + log_own + log_heard
        nodes = list(self.seen.values)
        for values in (log_proposal, log_own, log_target):
            values[nodes] = 0.0
        return Cloud(points, log_proposal, log_own, log_target)
