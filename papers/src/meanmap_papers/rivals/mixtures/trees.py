"""Balanced trees over the components of mixtures, as arrays: weights and boxes of all nodes (Bentley's KD-trees)."""

from dataclasses import dataclass

import numpy as np

from meanmap_papers.rivals.mixtures.mixtures import Mixtures

__all__ = ["Trees"]


@dataclass(frozen=True, eq=False)
class Trees:
    """For M mixtures of K components; node 0 is the root, and nodes 2i + 1 and 2i + 2 are the halves of node i.

    Components are cut at the median of the column in which they spread most, level by level for all mixtures at once.
    Cost O(M K log² K).

    Attributes
    ----------
    order : array (M, 2^depth)
        The component at each leaf, from the left; K is filled up with components of weight zero.
    weight : array (M, 2^(depth + 1) − 1)
        Of each node: the sum over its components.
    low, high : array (M, 2^(depth + 1) − 1, d)
        The box around their means.
    """

    order: np.ndarray
    weight: np.ndarray
    low: np.ndarray
    high: np.ndarray
    depth: int

    @classmethod
    def of(cls, mixtures: Mixtures) -> "Trees":
        """Build the trees of a batch (M,)."""
        number, size, d = mixtures.means.shape
        depth = int(np.ceil(np.log2(size))) if size > 1 else 0
        extra = 2**depth - size
        order = np.concatenate(
            [np.broadcast_to(np.arange(size), (number, size)), np.full((number, extra), size - 1)], 1
        )
        weights = np.concatenate([mixtures.weights, np.zeros((number, extra))], axis=1)
        means = np.take_along_axis(mixtures.means, order[..., None], axis=1)
        stats = []
        for level in range(depth + 1):
            parts = means.reshape(number, 2**level, -1, d)
            low, high = parts.min(axis=2), parts.max(axis=2)
            stats.append((weights.reshape(number, 2**level, -1).sum(axis=2), low, high))
            if level < depth:
                widest = np.argmax(high - low, axis=2)
                column = np.take_along_axis(parts, widest[:, :, None, None], axis=3)[..., 0]
                half = column.shape[2] // 2
                inner = np.argpartition(column, half, axis=2)
                inner = (inner + np.arange(2**level)[:, None] * column.shape[2]).reshape(number, -1)
                order, weights = (np.take_along_axis(a, inner, axis=1) for a in (order, weights))
                means = np.take_along_axis(means, inner[..., None], axis=1)
        weight, low, high = (np.concatenate(parts, axis=1) for parts in zip(*stats, strict=True))
        return cls(order, weight, low, high, depth)
