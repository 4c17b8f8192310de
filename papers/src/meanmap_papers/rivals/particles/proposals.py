"""New particles: moved by Metropolis-Hastings, or drawn from Gaussians matched to messages."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.core.settings import whole_number
from meanmap.graphs import Graph
from meanmap_papers.rivals.mixtures.mixtures import Mixtures
from meanmap_papers.rivals.particles.cloud import Cloud
from meanmap_papers.rivals.particles.functions import MessageFunctions
from meanmap_papers.rivals.particles.model import NodeFactors
from meanmap_papers.rivals.weighted import effective_size

__all__ = ["Adaptive", "Metropolis", "Proposal", "Round"]

# Steps of a random walk, in standard deviations of the particles of a node: long ones find other modes, short ones are
# accepted where beliefs are narrow.
SHORTEST, LONGEST = 0.1, 3.0
# A node whose particles have met: steps are at least this share of the bandwidth of its density.
LEAST_STEP = 0.1
# The share of particles that are still drawn from the first proposal: weights stay bounded whatever was learned.
DEFENSIVE = 0.2
# Less than this many particles do not say how wide a message is.
LEAST_EFFECTIVE = 4.0
# How much of each Gaussian is replaced in a round; all neighbours change theirs at the same time.
LEARNING = 0.7


@dataclass(frozen=True, eq=False)
class Round:
    """The result of a round of messages.

    Attributes
    ----------
    messages : array (2 |E|, N)
        At the particles of their receivers.
    known : array (2 |E|,) of bool
        Messages that say nothing.
    weights : array (n, N)
        Of the beliefs.
    """

    graph: Graph
    cloud: Cloud
    factors: NodeFactors
    functions: MessageFunctions
    messages: np.ndarray
    known: np.ndarray
    weights: np.ndarray


class Proposal(ABC):
    """A way to find the next particles."""

    @abstractmethod
    def next(self, found: Round, number: int, state: Any, generator: np.random.Generator) -> tuple[Cloud, Any, float]:
        """`number` new particles for each node, what is remembered (None at first), and the share that moved."""


@dataclass(frozen=True)
class Metropolis(Proposal):
    """Particles are drawn from the belief and walk at random under it (Ihler & McAllester 2009, section 6).

    Cost O((degree + 1) b) for a step of a particle, with edge densities of b components.

    Parameters
    ----------
    steps : int
        Of each particle.
    """

    steps: int = 10

    def __post_init__(self):
        whole_number(self.steps, "steps")

    def next(self, found: Round, number: int, state: Any, generator: np.random.Generator) -> tuple[Cloud, Any, float]:
        """Resampled and moved; their proposal is the belief itself, as far as it is known."""
        factors, old = found.factors, found.cloud.points
        chosen = _systematic(found.weights, number, generator)
        points = np.take_along_axis(old, chosen[..., None], axis=1)
        spread = _spread(old, found.weights)
        least = LEAST_STEP * np.sqrt(factors.starting.variance)
        scale = np.maximum(spread, least)[:, None]
        heard = found.functions.log_heard(points, found.known)
        prior, accepted = factors.log_prior(points), 0.0
        for _ in range(self.steps):
            size = np.exp(generator.uniform(np.log(SHORTEST), np.log(LONGEST), points.shape[:2]))
            moved = points + size[..., None] * scale * generator.normal(size=points.shape)
            moved = factors.at_seen(moved)
            new_heard, new_prior = found.functions.log_heard(moved, found.known), factors.log_prior(moved)
            # Likelihoods are known up to a constant for each call, so both are asked in one.
            both = factors.log_likelihood(np.concatenate([points, moved], axis=1))
            before, behind = prior + heard + both[:, :number], new_prior + new_heard + both[:, number:]
            better = np.log(generator.random(points.shape[:2])) < _difference(behind, before)
            points = np.where(better[..., None], moved, points)
            heard, prior = np.where(better, new_heard, heard), np.where(better, new_prior, prior)
            accepted += float(better.mean()) / self.steps
        cloud = factors.weighed(points, np.zeros(points.shape[:2]), heard)
        walked = np.where(np.isfinite(cloud.log_target), cloud.log_target, 0.0)
        return Cloud(points, walked, cloud.log_own, cloud.log_target), None, accepted


@dataclass(frozen=True)
class Adaptive(Proposal):
    """Particles are drawn anew from a Gaussian for each node, the product of one for each message that it receives.

    Expectation particle belief propagation (Lienart, Teh & Doucet 2015): the Gaussian of a message is such that, times
    those of all other messages, it has the mean and variance of the message itself times those of all others. One
    particle in five still comes from the first proposal, so that weights stay bounded. Cost O(N d) per edge.
    """

    learning: float = field(default=LEARNING)

    def next(self, found: Round, number: int, state: Any, generator: np.random.Generator) -> tuple[Cloud, Any, float]:
        """Gaussians are matched to messages, then particles drawn."""
        factors, graph = found.factors, found.graph
        start = factors.starting
        own_precision = 1 / start.var()
        own_linear = start.mean() * own_precision
        if state is None:
            shape = (len(graph.targets), own_linear.shape[1])
            state = np.zeros(shape), np.zeros(shape)
        linear, precision = self._matched(found, own_linear, own_precision, *state)
        whole_linear, whole_precision = own_linear.copy(), own_precision.copy()
        np.add.at(whole_linear, graph.targets, linear)
        np.add.at(whole_precision, graph.targets, precision)
        gaussian = Mixtures(np.ones((graph.size, 1)), (whole_linear / whole_precision)[:, None], 1 / whole_precision)
        from_start = np.arange(number) < DEFENSIVE * number
        points = np.where(from_start[:, None], start.sample(number, generator), gaussian.sample(number, generator))
        points = factors.at_seen(points)
        share = from_start.mean()
        log_proposal = np.logaddexp(
            np.log(max(share, 1e-300)) + start.log_density(points), np.log1p(-share) + gaussian.log_density(points)
        )
        heard = found.functions.log_heard(points, found.known)
        return factors.weighed(points, log_proposal, heard), (linear, precision), 1.0

    def _matched(
        self, found: Round, own_linear: np.ndarray, own_precision: np.ndarray, linear: np.ndarray, precision: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The natural parameters (2 |E|, d) of the Gaussians of all messages."""
        to, points = found.graph.targets, found.cloud.points
        whole_linear, whole_precision = own_linear.copy(), own_precision.copy()
        np.add.at(whole_linear, to, linear)
        np.add.at(whole_precision, to, precision)
        others_linear, others_precision = whole_linear[to] - linear, whole_precision[to] - precision
        there = points[to]
        logs = np.log(np.maximum(found.messages, 1e-300)) - found.cloud.log_proposal[to]
        logs += np.sum(others_linear[:, None] * there - others_precision[:, None] * there**2 / 2, axis=2)
        logs = np.where(np.isfinite(found.cloud.log_own[to]), logs, -np.inf)
        top = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - np.where(np.isfinite(top), top, 0))
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        mean = np.einsum("en,end->ed", weights, there)
        variance = np.einsum("en,end->ed", weights, (there - mean[:, None]) ** 2)
        least = LEAST_STEP**2 * found.factors.starting.variance[to]
        new_precision = 1 / np.maximum(variance, least) - others_precision
        new_linear = mean / np.maximum(variance, least) - others_linear
        # A message may be wider than what is known already: then it has no Gaussian, and the old one is kept.
        good = (new_precision > 0).all(axis=1) & (effective_size(np.maximum(weights, 1e-300)) >= LEAST_EFFECTIVE)
        good &= ~found.known
        keep = np.where(good, 1 - self.learning, 1.0)[:, None]
        return (
            keep * linear + (1 - keep) * np.where(good[:, None], new_linear, 0),
            keep * precision + (1 - keep) * np.where(good[:, None], new_precision, 0),
        )


def _difference(behind: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The log ratio of a move; moves to points of zero density are never accepted, moves away from them always."""
    with np.errstate(invalid="ignore"):
        return np.where(behind == -np.inf, -np.inf, np.where(before == -np.inf, np.inf, behind - before))


def _spread(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Standard deviations (n, d) of weighted particles."""
    mean = np.einsum("ni,nid->nd", weights, points)
    return np.sqrt(np.einsum("ni,nid->nd", weights, (points - mean[:, None]) ** 2))


def _systematic(weights: np.ndarray, number: int, generator: np.random.Generator) -> np.ndarray:
    """`number` draws from each row of weights (n, N) at even steps with one random offset."""
    sums = np.cumsum(weights, axis=1)
    levels = (np.arange(number) + generator.random((len(weights), 1))) / number * sums[:, -1:]
    # All rows in one search: row i is shifted by 2 i.
    shift = 2 * np.arange(len(weights))[:, None]
    found = np.searchsorted(
        (sums / sums[:, -1:] + shift).ravel(), (levels / sums[:, -1:] + shift).ravel(), side="right"
    )
    return np.minimum(found.reshape(len(weights), number) - np.arange(len(weights))[:, None] * weights.shape[1],
                      weights.shape[1] - 1)  # fmt: skip
