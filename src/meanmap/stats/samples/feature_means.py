"""Moments of the features of a sample, streamed."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.points import any_sparse, count, pad, rows
from meanmap.core.progress import track
from meanmap.core.tables.units import robust_scales
from meanmap.core.types import Data, DType, Points
from meanmap.features.base import Features
from meanmap.linalg.moments import Moments

__all__ = ["BLOCK", "blocks_of", "feature_moments", "working_precision"]

# Rows that are mapped in one compiled call, the same whatever pieces the data come in, so that sums are the same too.
BLOCK = 8192
# Scales and sizes whose squares single precision holds.
LEAST, MOST = 1e-15, 1e15


def working_precision(points: Points) -> Any:
    """Single, unless columns lie so far from zero, for their spread, that it would round their differences away.

    Or their spread is one that single precision does not hold.
    """
    if any_sparse(points):
        return np.float64
    for leaf in (leaf for leaf in jax.tree.leaves(points) if np.issubdtype(leaf.dtype, np.floating)):
        spread, peak = np.ptp(leaf, axis=0), np.abs(leaf).max(axis=0)
        scales = robust_scales(leaf.reshape(len(leaf), -1)[:, spread.ravel() > 0])
        held = (scales > LEAST).all() and (peak < MOST).all()
        if not held or (peak > 1e4 * np.maximum(leaf.std(axis=0), 1e-300)).any():
            return np.float64
    return np.float32


def feature_moments(features: Features, blocks: Iterable[Any], dtype: DType) -> Moments:
    """Summed over blocks of at most 8192 points: O(n r (d + r)) time, O(r²) memory beyond a block.

    In `dtype` within a block and in double precision between blocks: equal blocks, equal sums.
    """
    features = _cast(features, dtype)
    total = Moments.none(features.size)
    for block in blocks:
        if any_sparse(block):
            total = total.merge(Moments.of(np.asarray(features.transform(block))))
        else:
            sums, products = _sums(features, _cast(pad(block, BLOCK), dtype), count(block))
            total = total.merge(
                Moments(count(block), total.origin, np.asarray(sums, float), np.asarray(products, float))
            )
    return total


@jax.jit
def _sums(features: Features, x: Data, kept: int) -> tuple[jax.Array, jax.Array]:
    phi = jnp.where(jnp.arange(BLOCK)[:, None] < kept, features.transform(x), 0)
    return phi.sum(axis=0), phi.T @ phi


def _cast(tree: Any, dtype: DType) -> Any:
    """`tree` with its floating leaves in `dtype`, in single precision cut to what it holds; labels stay as they are."""

    def cast(leaf):
        if not np.issubdtype(leaf.dtype, np.floating):
            return leaf
        return (np.clip(leaf, -MOST, MOST) if dtype == np.float32 else leaf).astype(dtype)

    return jax.tree.map(cast, tree)


def blocks_of(points: Points, description: str) -> Iterable[Any]:
    """Points cut into blocks, with a progress bar."""
    starts = range(0, count(points), BLOCK)
    return (rows(points, slice(start, start + BLOCK)) for start in track(starts, description))
