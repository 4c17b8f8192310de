"""Sums of features over rows, block by block: identical bit for bit, however the rows are divided."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.points import any_sparse, count, joined, pad, rows
from meanmap.core.tables.column import robust_scales
from meanmap.core.types import Array, DType, Points
from meanmap.core.values import Value
from meanmap.features.base import Features, transformed
from meanmap.linalg import exact
from meanmap.linalg.exact import ExactSums, Grid
from meanmap.linalg.moments import Moments

__all__ = ["BLOCK", "TILE", "FeatureMap", "blocks", "working_precision"]

# Rows that are mapped in one compiled call, always this many, so that a row's features never depend on its neighbours.
BLOCK = 4096
# This many of them at a time, so that their features fit into a core's cache: half the time of a whole block.
TILE = 1024
# Scales and sizes whose squares are in the range of single precision.
LEAST, MOST = 1e-15, 1e15


@dataclass(frozen=True, eq=False, repr=False)
class FeatureMap(Value):
    """Features rounded to a grid, so that sums over rows are exact.

    Attributes
    ----------
    features : Features
    grid : Grid
    precision : {"float32", "float64"}
        The precision in which features are computed.
    correlations : array (r, r) or None
        Correlations of features in a sample of rows. With them only features and their squares are summed, in half the
        time of summing all products.
    """

    features: Features
    grid: Grid
    precision: str
    correlations: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        features: Features,
        sample: Points,
        precision: DType | None = None,
        groups: Sequence[int] = (),
        correlated: bool = False,
    ) -> "FeatureMap":
        """A map with a grid and a precision suited to rows like those of a sample, and optionally correlations."""
        dtype = np.dtype(working_precision(sample) if precision is None else precision)
        cast = _cast(features, dtype)
        found = np.concatenate([transformed(cast, block)[:n] for block, n in blocks([sample], dtype)])
        return cls(features, Grid.of(found, groups), dtype.name, exact.correlations(found) if correlated else None)

    @property
    def for_sums(self) -> "FeatureMap":
        """The part that sums need, without correlations, which can be megabytes and are needed only for results."""
        return self if self.correlations is None else replace(self, correlations=np.zeros((0, 0)))

    def sums(self, parts: Iterable[Points]) -> ExactSums:
        """Sums of the features of all points, in parts of any lengths; memory for one block and the sums.

        O(n r (d + r)) time; O(n r d) if only squares are summed.
        """
        dtype = np.dtype(self.precision)
        total = ExactSums.none(self.grid, self.correlations is None)
        features, kept = _cast(self.features, dtype).padded()
        origin, unit = np.zeros(features.size, dtype), np.ones(features.size, dtype)
        origin[kept], unit[kept] = self.grid.origin, self.grid.unit
        for block, n in blocks(parts, dtype):
            if any_sparse(block):
                total = total.add(np.asarray(features.transform(block), float)[:, kept])
                continue
            if self.correlations is not None:
                sums, squares, peak = map(np.asarray, _totals(features, block, origin, unit, n))
                if peak <= exact.MOST:  # False if a number is missing
                    total = total.add_totals(n, sums[kept], squares[kept])
                    continue
            total = total.add_units(np.asarray(_units(features, block, origin, unit))[:n, kept])
        return total

    def moments(self, sums: ExactSums) -> Moments:
        """Means and covariances of the features of rows from their sums."""
        return sums.moments(self.correlations)


def working_precision(points: Points) -> Any:
    """Single precision, unless it would lose the differences within a column or cannot represent its spread.

    Differences are lost in columns that lie far from zero relative to their spread.
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


def blocks(parts: Iterable[Points], dtype: DType, size: int = BLOCK) -> Iterator[tuple[Any, int]]:
    """Parts of any length as blocks of equal size, and the number of their rows that are not padding."""
    waiting: list[Any] = []
    held = 0
    for part in parts:
        start = 0
        while held + count(part) - start >= size:
            stop = start + size - held
            waiting.append(rows(part, slice(start, stop)))
            yield _cast(_together(waiting), dtype), size
            waiting, held, start = [], 0, stop
        if start < count(part):
            waiting.append(rows(part, slice(start, None)))
            held += count(part) - start
    if held:
        block = _together(waiting)
        yield _cast(block if any_sparse(block) else pad(block, size), dtype), held


def _together(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else joined(*parts)


@compiled_anew
@jax.jit
def _units(features: Features, x: Points, origin: Array, unit: Array) -> jax.Array:
    units = jax.lax.map(lambda tile: jnp.rint((features.transform(tile) - origin) / unit), _tiles(x))
    return units.reshape(BLOCK, -1)


@compiled_anew
@jax.jit
def _totals(features: Features, x: Points, origin: Array, unit: Array, n: Array) -> tuple[jax.Array, ...]:
    """Sums of the first n rows and of their squares, and the largest value: in whole units, hence exact."""

    def of_tile(tile: tuple[Points, jax.Array]) -> tuple[jax.Array, ...]:
        units = jnp.rint((features.transform(tile[0]) - origin) / unit).astype(np.float64)
        units = jnp.where(tile[1][:, None] < n, units, 0.0)
        return units.sum(axis=0), (units * units).sum(axis=0), jnp.abs(units).max(initial=0.0)

    sums, squares, peaks = jax.lax.map(of_tile, (_tiles(x), jnp.arange(BLOCK).reshape(-1, TILE)))
    return sums.sum(axis=0), squares.sum(axis=0), peaks.max()


def _tiles(x: Points) -> Any:
    return jax.tree.map(lambda leaf: leaf.reshape(-1, TILE, *leaf.shape[1:]), x)


def _cast(tree: object, dtype: DType) -> Any:
    """`tree` with its floating leaves in `dtype`, clipped to the range of single precision; labels stay as they are."""

    def cast(leaf):
        if not np.issubdtype(leaf.dtype, np.floating):
            return leaf
        return (np.clip(leaf, -MOST, MOST) if dtype == np.float32 else leaf).astype(dtype)

    return jax.tree.map(cast, tree)
