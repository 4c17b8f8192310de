"""The median distance between points: exact, and in one column found by selection instead of from all pairs."""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from meanmap.core.containers import is_sparse
from meanmap.core.door import is_concrete
from meanmap.core.errors import ColumnError, InputError
from meanmap.core.points import count
from meanmap.core.types import Points
from meanmap.kernels.geometry import FEW_COLUMNS, pair_distances, safe_sqrt, squared_distances, squared_norms
from meanmap.kernels.medians import nonzero_median

__all__ = ["median_distance"]

# Up to this many pairs are looked at one by one.
FEW_PAIRS = 20_000
# Intervals of distances are halved this many times at most.
HALVINGS = 60


def median_distance(points: Points, trouble: str, metric: Literal["euclidean", "cityblock"] = "euclidean") -> Any:
    """The median over all pairs i < j, or of the distances above zero where ties make it zero.

    `trouble` is what is wrong where all points are equal.
    """
    if isinstance(points, np.ndarray) and points.shape[1] == 1:
        found = _median_gap(points[:, 0])
        if found is not None:
            return found
    median = nonzero_median(_distances(points, metric))
    if is_concrete(median) and bool(np.isnan(median)):
        error = ColumnError if trouble.startswith("column") else InputError
        raise error(f"{trouble}: there is no distance to take a lengthscale from. Drop it, or give a lengthscale.")
    return median


def _median_gap(values: np.ndarray) -> np.float64 | None:
    """The median distance of numbers (n,), in O(n log n); None if there are few, or many equal distances.

    The interval of distances that holds the median is halved: in sorted numbers the partners of each that are within a
    distance follow each other, so that pairs are counted without being listed.
    """
    n, ordered = len(values), np.sort(values)
    total = n * (n - 1) // 2
    with np.errstate(over="ignore"):
        low, high = 0.0, float(ordered[-1] - ordered[0])
    if total <= FEW_PAIRS or not 0 < high < np.inf:
        return None
    first = np.arange(1, n + 1)
    start, end, below = first, np.full(n, n), 0
    ranks = np.array([(total - 1) // 2, total // 2])
    for _ in range(HALVINGS):
        if np.sum(end - start) <= FEW_PAIRS:
            break
        middle = (low + high) / 2
        cut = np.maximum(np.searchsorted(ordered, ordered + middle, side="right"), first)
        within = int(np.sum(cut - first))
        if within <= ranks[0]:
            low, start, below = middle, cut, within
        elif within > ranks[1]:
            high, end = middle, cut
        else:
            return None
    sizes = np.maximum(end - start, 0)
    if not 0 < sizes.sum() <= FEW_PAIRS:
        return None
    row = np.repeat(np.arange(n), sizes)
    partner = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + start[row]
    found = np.partition(ordered[partner] - ordered[row], ranks - below)[ranks - below]
    # Sums were rounded where pairs were counted: what is that close to an end may be on either side of it.
    rounding = 4 * np.finfo(float).eps * float(np.abs(ordered[[0, -1]]).max())
    inside = found[0] - rounding > low and found[1] + rounding < high
    return found.mean() if inside else None


def _distances(points: Points, metric: Literal["euclidean", "cityblock"]) -> Any:
    """Distances of all pairs i < j."""
    n = count(points)
    if isinstance(points, np.ndarray):
        # Without squares in one column, and in units of a typical number in several, where squares would be zero or
        # infinite: a power of two changes no digit.
        if points.shape[1] == 1:
            return pair_distances(points, "cityblock")
        sizes = np.abs(points[points != 0])
        exponent = int(np.frexp(np.median(sizes))[1]) if sizes.size else 0
        unit = np.ldexp(1.0, exponent) if abs(exponent) > 400 else 1.0
        distances = pair_distances(points if unit == 1.0 else points / unit, metric)
        return distances if unit == 1.0 else distances * unit
    first, second = np.triu_indices(n, 1)
    if metric == "cityblock":
        return jnp.sum(jnp.abs(points[first] - points[second]), axis=1)
    squared = squared_distances(points, points)[first, second]
    sparse = is_sparse(points)
    if points.shape[1] > FEW_COLUMNS or sparse:
        # By expansion equal points are 1e-16 apart in float64, which is not the smallest distance but none.
        norms = squared_norms(points if sparse else points - points.mean(axis=0))
        floor = 32 * jnp.finfo(squared.dtype).eps * (norms[first] + norms[second])
        squared = jnp.where(squared > floor, squared, 0)
    return safe_sqrt(squared)
