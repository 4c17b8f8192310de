"""Beliefs that are weighted points, drawn anew for each query."""

from collections.abc import Callable

import numpy as np

from meanmap.bp.edges.samples import NodeSample
from meanmap.core.report import Report
from meanmap.embeddings.points import PointEmbedding

__all__ = ["EFFECTIVE", "effective_size", "normalised", "weighted_answers"]

# By this measure of their reports queries are compared.
EFFECTIVE = "effective particles, at least"


def normalised(logs: np.ndarray) -> np.ndarray:
    """Weights (..., N) that sum to one from their logarithms; equal weights if all are zero."""
    top = logs.max(axis=-1, keepdims=True)
    weights = np.exp(logs - np.where(np.isfinite(top), top, 0))
    total = weights.sum(axis=-1, keepdims=True)
    return np.where(total > 0, weights / np.where(total > 0, total, 1), 1 / logs.shape[-1])


def effective_size(weights: np.ndarray) -> np.ndarray:
    """1 / Σ w² for weights (..., N) that sum to one: this many equally weighted particles say as much."""
    return 1 / np.sum(weights**2, axis=-1)


def _belief(sample: NodeSample, each: list[tuple[np.ndarray, np.ndarray]], batched: bool) -> PointEmbedding:
    """The belief about a variable from points (N, d) and weights (N,) in each of B queries.

    A batch of beliefs stands on the points of all queries; those of the others weigh nothing.
    """
    columns = sample.points.shape[1]
    points = np.concatenate([points[:, :columns] for points, _ in each])
    if not batched:
        return PointEmbedding(sample.narrow, points, each[0][1], sample.flat)
    ends = np.cumsum([0, *(len(weights) for _, weights in each)])
    together = np.zeros((len(each), ends[-1]))
    for row, (_, weights) in enumerate(each):
        together[row, ends[row] : ends[row + 1]] = weights
    return PointEmbedding(sample.narrow, points, together, sample.flat)


def weighted_answers(
    sample_of: Callable[[int], NodeSample], batched: bool, results: list[tuple[np.ndarray, np.ndarray, Report]]
) -> tuple[Callable[[int], PointEmbedding], Report]:
    """Beliefs by node from points (n, N, d) and weights (n, N) of each query, and the report of the worst."""

    def belief(node: int) -> PointEmbedding:
        return _belief(sample_of(node), [(points[node], weights[node]) for points, weights, _ in results], batched)

    reports = [report for _, _, report in results]
    unsettled = [report for report in reports if not report.converged]
    return belief, min(unsettled or reports, key=lambda report: report.measures[EFFECTIVE])
