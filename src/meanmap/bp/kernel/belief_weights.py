"""The weights of a belief: a product of messages, each known as a function, so that any point can be weighed."""

from typing import Any

import equinox as eqx
import numpy as np

from meanmap.bp.edges.coordinates import Coordinates
from meanmap.bp.edges.floors import typical
from meanmap.bp.edges.samples import NodeSample
from meanmap.bp.engine.products import split
from meanmap.bp.evidence.kernel_evidence import likelihood_at
from meanmap.core.door import Door
from meanmap.core.types import Array, Data, Index, Points
from meanmap.embeddings.points import Weights

__all__ = ["Arriving", "Factor", "MessageWeights", "factors_of"]


class Factor(eqx.Module):
    """One message, x ↦ max(φ(x)ᵀ c / top, floor × low), for a batch of coefficients c (..., r).

    `low` is 1, or the mean value of the message if it comes from an observed node.
    """

    coordinates: Coordinates = eqx.field(static=True)
    coefficients: np.ndarray
    top: np.ndarray
    low: np.ndarray

    @classmethod
    def of(cls, coordinates: Coordinates, coefficients: np.ndarray, seen: bool) -> "Factor":
        """A message scaled to a largest value of 1 at the points of the node, like all messages."""
        values = coefficients @ coordinates.values.T
        top = np.max(values, axis=-1, keepdims=True)
        low = typical(values / np.where(top > 0, top, 1)) if seen else np.ones_like(top)
        return cls(coordinates, coefficients, top, low)

    def take(self, index: Index) -> "Factor":
        """The message for some queries."""
        return Factor(self.coordinates, self.coefficients[index], self.top[index], self.low[index])

    def at(self, points: Points, floor: float | None) -> np.ndarray:
        """Values (..., m); ones where nothing positive was left of the message."""
        return self._scaled(self.coefficients @ self.coordinates.at(points).T, floor)

    def each(self, points: Points, floor: float | None) -> np.ndarray:
        """Values (B,) of B queries, each at a point of its own."""
        values = np.sum(self.coefficients * self.coordinates.at(points), axis=-1, keepdims=True)
        return self._scaled(values, floor)[..., 0]

    def _scaled(self, values: np.ndarray, floor: float | None) -> np.ndarray:
        values = values / np.where(self.top > 0, self.top, 1)
        return np.where(self.top > 0, values if floor is None else np.maximum(values, floor * self.low), 1.0)


# The messages that a node received in some queries: coordinates, coefficients (B or 1, r), and whether from a node that
# was seen.
Arriving = list[tuple[Coordinates, np.ndarray, bool]]


def factors_of(parts: list[Arriving], size: int) -> tuple[Factor, ...]:
    """The factors of all queries, which were answered in parts."""
    factors = []
    for same in zip(*parts, strict=True):
        coefficients = np.concatenate([each[1] for each in same])
        rank = coefficients.shape[1]
        factors.append(Factor.of(same[0][0], np.broadcast_to(coefficients[:size], (size, rank)), same[0][2]))
    return tuple(factors)


class MessageWeights(Weights):
    """Weights (..., N) of the points of a node, and of any others: `scale` × 2^−power × likelihood × all messages.

    The likelihood is the node's own soft evidence, a function or an embedding, or None. The power of two keeps products
    of hundreds of messages within what a number can hold.
    """

    values: np.ndarray
    factors: tuple[Factor, ...]
    scale: np.ndarray
    sample: NodeSample = eqx.field(static=True)
    likelihood: Any = eqx.field(static=True)
    floor: float | None = eqx.field(static=True)
    power: Any = 0

    @classmethod
    def of(
        cls,
        values: np.ndarray,
        factors: tuple[Factor, ...],
        sample: NodeSample,
        likelihood: object,
        floor: float | None,
    ) -> "MessageWeights":
        """Construct from weights of the node's points that sum to one, (B, N)."""
        none = cls(values, factors, np.ones((len(values), 1)), sample, likelihood, floor)
        product, exponent = none._product(sample.points)
        power = np.max(exponent, axis=-1, keepdims=True)
        scale = 1 / np.sum(np.ldexp(product, exponent - power), axis=-1, keepdims=True)
        return cls(values, factors, scale, sample, likelihood, floor, power)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights, (..., N)."""
        return self.values.shape

    @property
    def agreement(self) -> np.ndarray:
        """The largest product of messages at any point, (...,): 1 where all of them are largest at the same one."""
        return np.ldexp(np.max(self.values, axis=-1, keepdims=True) / self.scale, self.power)[..., 0]

    def dense(self) -> np.ndarray:
        """The weights of the node's points."""
        return self.values

    def against(self, values: Array) -> Any:
        """Σᵢ wᵢ vᵢ."""
        return np.matmul(self.values, values)

    def take(self, index: Index) -> "MessageWeights":
        """The weights of some queries."""
        factors = tuple(f.take(index) for f in self.factors)
        power = self.power[index] if np.ndim(self.power) else self.power
        scale = self.scale[index]
        return MessageWeights(self.values[index], factors, scale, self.sample, self.likelihood, self.floor, power)

    def at(self, points: Points) -> np.ndarray:
        """The weights of other points, on the same scale."""
        product, exponent = self._product(points)
        return np.ldexp(self.scale * product, exponent - self.power)

    def _product(self, points: Data) -> tuple[np.ndarray, np.ndarray]:
        """Likelihood times messages at some points, as numbers and powers of two."""
        with Door() as door:
            product, exponent = split(likelihood_at(self.sample, self.likelihood, points, door))
            for factor in self.factors:
                product, exponent = split(product * factor.at(points, self.floor), exponent)
        return product, exponent
