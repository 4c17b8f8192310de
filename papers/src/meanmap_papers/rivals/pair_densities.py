"""The model of mixture and particle belief propagation: conditional densities of pairs, and densities of nodes.

As in kernel belief propagation (Song et al. 2011, appendix 6), a message divided by its fixed point is

    m_ts(x_s) = ∫ p(x_t | x_s) l_t(x_t) Π_u m_ut(x_t) dx_t   and   belief(x_s) ∝ p(x_s) l_s(x_s) Π_t m_ts(x_s),

with l the likelihoods of what was observed. Conditional densities are learned from pairs (appendix 1).
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from meanmap.bp.edges.field_samples import FieldSamples
from meanmap.bp.evidence.field_evidence import Evidence
from meanmap.core.points import rows, spread_rows
from meanmap_papers.rivals.conditional_density import least_squares_density
from meanmap_papers.rivals.conditional_mixture import ConditionalMixture
from meanmap_papers.rivals.mixtures.mixtures import Mixtures

__all__ = ["PairDensities"]

# Points of the sender over which a density of the receiver is averaged.
MOST_POINTS = 4000


@dataclass(frozen=True, eq=False)
class PairDensities:
    """Learned densities; variables of fewer than d columns are filled up with zeros, which nothing reads.

    Attributes
    ----------
    onwards : list of ConditionalMixture
        For each direction of a relation p(x_receiver | x_sender).
    backwards : list of ConditionalMixture
        p(x_sender | x_receiver).
    predictions : Mixtures
        For each direction p(x_receiver) as it follows, E p(x_receiver | x_sender). It has the components that messages
        have: what is divided by it stays bounded, which with a density of its own it would not.
    priors : Mixtures
        p(x) of each kind: the first prediction of it.
    columns : array
        The number of columns of each kind.
    """

    onwards: list[ConditionalMixture]
    backwards: list[ConditionalMixture]
    predictions: Mixtures
    priors: Mixtures
    columns: np.ndarray

    @classmethod
    def learn(cls, read: FieldSamples, centres: int) -> "PairDensities":
        """From points of each kind and the rows of their pairs."""
        points = {kind: sample.points for kind, sample in read.samples.items()}
        onwards = []
        for direction in read.directions:
            before = rows(points[direction.sender], direction.pairs[:, 0])
            behind = rows(points[direction.receiver], direction.pairs[:, 1])
            onwards.append(least_squares_density(before, behind, centres=centres))
        # A relation of its own has two directions, one after the other; that of neighbours alike is its own reverse.
        reverse = [i ^ 1 for i in range(len(onwards))] if len(onwards) > 1 else [0]
        columns = np.array([sample.shape[1] for sample in points.values()])
        predictions = _stacked(
            [
                _prediction(density, points[direction.sender], int(columns.max()))
                for density, direction in zip(onwards, read.directions, strict=True)
            ]
        )
        receivers = [direction.receiver for direction in read.directions]
        priors = predictions[[receivers.index(kind) for kind in points]]
        return cls(onwards, [onwards[i] for i in reverse], predictions, priors, columns)

    def starting(self, kind: np.ndarray, names: list[Hashable], seen: Evidence, query: int) -> Mixtures:
        """For each node p(x) times what was observed there, (n,): the prior's components, weighed at their centres."""
        start = self.priors[kind]
        weights = start.weights.copy()
        for which, name in enumerate(names):
            nodes = np.flatnonzero(kind == which)
            points = self.priors.means[which][:, : self.columns[which]]
            weights[nodes] *= seen.at(name, nodes, points)[:, query]
        total = weights.sum(axis=1, keepdims=True)
        return Mixtures(np.where(total > 0, weights / np.where(total > 0, total, 1), start.weights),
                        start.means, start.variance)  # fmt: skip


def _prediction(density: ConditionalMixture, senders: np.ndarray, d: int) -> Mixtures:
    """The density of the receiver, averaged over a sample of senders."""
    weights = np.exp(density.log_weights(senders[spread_rows(len(senders), MOST_POINTS)])).mean(axis=0)
    extra = d - density.v_width.size
    variance = np.pad(density.v_width**2, (0, extra), constant_values=1.0)
    return Mixtures.of(weights, np.pad(density.v_centres, ((0, 0), (0, extra))), variance)


def _stacked(each: list[Mixtures]) -> Mixtures:
    """As one batch, filled up with components of weight zero."""
    most = max(one.weights.size for one in each)
    weights = [np.pad(one.weights, (0, most - one.weights.size)) for one in each]
    means = [np.pad(one.means, ((0, most - one.weights.size), (0, 0))) for one in each]
    return Mixtures(np.stack(weights), np.stack(means), np.stack([one.variance for one in each]))
