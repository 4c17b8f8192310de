"""Messages that are Gaussian mixtures, and draws from beliefs (Sudderth et al. 2003)."""

from dataclasses import dataclass

import numpy as np

from meanmap_papers.rivals.mixtures.mixtures import Mixtures, categorical
from meanmap_papers.rivals.mixtures.products import ProductSampler, sample_product
from meanmap_papers.rivals.mixtures.reduction import BANDWIDTHS, reduced
from meanmap_papers.rivals.particles.model import NodeFactors
from meanmap_papers.rivals.weighted import normalised

__all__ = ["Knowledge", "Messages", "send"]

# Densities p(x) that messages are divided by are raised to this share of their largest value.
LEAST_PRIOR = 1e-6
# Of the precision of a component, the share that division by p(x) may take away.
MOST_TAKEN = 0.9


@dataclass(frozen=True, eq=False)
class Messages:
    """q_ts(x_s) = p(x_s) m_ts(x_s) of each directed edge, mixtures (2 |E|,) of K components; `heard` says which exist.

    Those that were never sent say nothing: m = 1.
    """

    mixtures: Mixtures
    heard: np.ndarray

    @classmethod
    def silent(cls, edges: int, components: int, d: int) -> "Messages":
        """Before anything was sent."""
        weights = np.full((edges, components), 1 / components)
        mixtures = Mixtures(weights, np.zeros((edges, components, d)), np.ones((edges, d)))
        return cls(mixtures, np.zeros(edges, dtype=bool))

    def sent(self, edges: np.ndarray, new: Mixtures) -> "Messages":
        """With some that are new."""
        parts = []
        for old, value in zip(
            (self.mixtures.weights, self.mixtures.means, self.mixtures.variance),
            (new.weights, new.means, new.variance),
            strict=True,
        ):
            changed = old.copy()
            changed[edges] = value
            parts.append(changed)
        heard = self.heard.copy()
        heard[edges] = True
        return Messages(Mixtures(*parts), heard)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What nodes know: p(x) l(x) and messages; how it is drawn from.

    A belief is p l Π_u (q_u / p) for d messages. The Gaussians nearest to l and p^(1−d) are multiplied into one of the
    mixtures, exactly; draws from the product are weighed by how l and p differ from those (importance sampling).

    Attributes
    ----------
    template : array (2 |E|,)
        The direction of each directed edge.
    linear, precision : array (n, d)
        Natural parameters of the Gaussian for l.
    prior_linear, prior_precision : array (n, d)
        And for p.
    """

    factors: NodeFactors
    sampler: ProductSampler
    template: np.ndarray
    linear: np.ndarray
    precision: np.ndarray
    prior_linear: np.ndarray
    prior_precision: np.ndarray

    @classmethod
    def of(cls, factors: NodeFactors, sampler: ProductSampler, template: np.ndarray) -> "Knowledge":
        """Gaussians by the moments of p and of p l."""
        prior, both = factors.densities.priors[factors.kind], factors.starting
        prior_precision, precision = 1 / prior.var(), 1 / both.var()
        linear = precision * both.mean() - prior_precision * prior.mean()
        narrower = precision > prior_precision
        return cls(
            factors,
            sampler,
            template,
            np.where(narrower, linear, 0),
            np.where(narrower, precision - prior_precision, 0),
            prior_precision * prior.mean(),
            prior_precision,
        )

    def draw(
        self, messages: Messages, nodes: np.ndarray, slots: np.ndarray, size: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points (M, size, d) and weights (M, size) of what nodes (M,) know from messages `slots` (M, D).

        −1 is an empty slot. Also says where all weights are zero.
        """
        heard = (slots >= 0) & messages.heard[slots]
        counts = heard.sum(axis=1)
        slots = np.take_along_axis(slots, np.argsort(~heard, axis=1, kind="stable"), axis=1)
        points = np.empty((len(nodes), size, self.linear.shape[1]))
        logs = np.empty((len(nodes), size))
        for count in np.unique(counts):
            some = np.flatnonzero(counts == count)
            found = self._product(messages, nodes[some], slots[some, :count], size, generator)
            points[some], logs[some] = found
        seen = np.isin(nodes, list(self.factors.seen.values))
        for row in np.flatnonzero(seen):
            value = self.factors.seen.values[int(nodes[row])]
            points[row, :, : value.shape[1]], logs[row] = value, 0.0
        return points, normalised(logs), np.all(logs == -np.inf, axis=1)

    def _product(
        self, messages: Messages, nodes: np.ndarray, slots: np.ndarray, size: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """For nodes that heard the same number of messages."""
        count = slots.shape[1]
        if count == 0:
            start = self.factors.starting[nodes]
            points = start.sample(size, generator)
            proposal = start.log_density(points)
            return points, self.factors.log_prior(points, nodes) + self.factors.log_likelihood(points, nodes) - proposal
        mixtures = messages.mixtures[slots]
        linear = self.linear[nodes] - (count - 1) * self.prior_linear[nodes]
        precision = self.precision[nodes] - (count - 1) * self.prior_precision[nodes]
        taken = np.maximum(-precision, 1e-300) / (MOST_TAKEN * mixtures.precision[:, 0])
        share = np.where(precision < 0, 1 / np.maximum(taken, 1), 1.0)
        linear, precision = linear * share, precision * share
        first = mixtures[:, 0].times(linear, precision)
        factors = Mixtures(
            np.concatenate([first.weights[:, None], mixtures.weights[:, 1:]], axis=1),
            np.concatenate([first.means[:, None], mixtures.means[:, 1:]], axis=1),
            np.concatenate([first.variance[:, None], mixtures.variance[:, 1:]], axis=1),
        )
        points = sample_product(factors, size, self.sampler, generator).points
        gaussian = np.sum(linear[:, None] * points - precision[:, None] * points**2 / 2, axis=2)
        logs = self.factors.log_likelihood(points, nodes) - gaussian
        logs += self._log_ratio(points, nodes, self.template[slots])
        return points, logs

    def _log_ratio(self, points: np.ndarray, nodes: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """log p − Σ_u log p, each p as it follows from the direction that a message came by."""
        if (directions == directions[0, 0]).all() and len(self.factors.densities.onwards) == 1:
            return (1 - directions.shape[1]) * self._floored(0, points)
        total = self.factors.log_prior(points, nodes)
        for direction in np.unique(directions):
            times = np.sum(directions == direction, axis=1)
            some = np.flatnonzero(times)
            total[some] -= times[some, None] * self._floored(int(direction), points[some])
        return total

    def _floored(self, direction: int, points: np.ndarray) -> np.ndarray:
        """log p at points (M, S, d), raised where it is negligible."""
        prediction = self.factors.densities.predictions[direction]
        least = prediction.log_density(prediction.means).max() + np.log(LEAST_PRIOR)
        logs = prediction.log_density(points.reshape(-1, points.shape[2])).reshape(points.shape[:2])
        return np.maximum(logs, least)


def send(
    knowledge: Knowledge,
    directions: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
    components: int,
    bandwidth: str | None,
    generator: np.random.Generator,
) -> Mixtures:
    """q_ts = Σᵢ wᵢ p(x_s | x_tⁱ) along edges of some directions, from weighted points (M, S, d) of their senders.

    Edge densities are mixtures, and so is this sum; it is reduced to K components. With a bandwidth rule, as in the
    paper: one x_s is drawn for each of K draws of x_t, and a Gaussian put on it.
    """
    number, d = len(points), points.shape[2]
    mass, means, variance = np.zeros((number, components)), np.zeros((number, components, d)), np.ones((number, d))
    for direction, density in enumerate(knowledge.factors.densities.onwards):
        some = np.flatnonzero(directions == direction)
        if not len(some):
            continue
        columns, own = density.v_width.size, density.u_width.size
        if bandwidth is None:
            gates = np.exp(density.log_weights(points[some][..., :own]))
            sums = np.matmul(weights[some][:, None], gates)[:, 0]
            centres = np.broadcast_to(density.v_centres, (len(some), *density.v_centres.shape))
            few = reduced(
                Mixtures(sums, centres, np.broadcast_to(density.v_width**2, (len(some), columns))), components
            )
            size = few.weights.shape[1]
            mass[some, :size] = few.weights
            means[some, :size, :columns] = few.means
            variance[some, :columns] = few.variance
        else:
            spread = np.broadcast_to(weights[some][:, None], (len(some), components, points.shape[1]))
            chosen = np.take_along_axis(points[some], categorical(spread, generator)[..., None], axis=1)
            drawn = density.sample(chosen[..., :own].reshape(-1, own), generator).reshape(
                len(some), components, columns
            )
            equal = np.full((len(some), components), 1 / components)
            mass[some], means[some, :, :columns] = equal, drawn
            variance[some, :columns] = BANDWIDTHS[bandwidth](drawn, equal) ** 2
    return Mixtures(mass, means, variance)
