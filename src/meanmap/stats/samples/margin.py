"""Points moved by a shift, and what a drift monitor asks with a margin: is a batch further away than that?"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.points import count, is_sparse, rows
from meanmap.core.settings import is_number
from meanmap.core.tables.chunks import count_rows, pieces_of
from meanmap.core.tables.missing import seen_to
from meanmap.core.tables.sentinels import Sentinels
from meanmap.core.types import Points
from meanmap.core.values import Value
from meanmap.features.base import Features, transformed
from meanmap.features.states.feature_map import FeatureMap
from meanmap.features.states.passes import SampleState
from meanmap.features.states.reading import ROWS
from meanmap.linalg.exact import Grid
from meanmap.stats.limits import DistanceLaw

__all__ = ["Margin", "batch_state", "mover"]

# Rows that are moved, and rows whose covariance has its eigenvalues found.
MOVED, MEASURED = 3000, 1000
# The reference is as far from its law as this quantile says; the margin grows by as much.
CERTAIN = 0.999


def mover(points: Points) -> Callable[[Points, float], Any] | None:
    """What moves rows like these by so many standard deviations in every column of numbers; None if there is none.

    Values that may stand for missing ones are neither in the standard deviations nor moved: with -999 in a twentieth of
    the rows an age has twenty times the standard deviation that it has without.
    """
    if is_sparse(points):
        return None

    def numbers(leaf: Any) -> bool:
        return np.issubdtype(leaf.dtype, np.floating) and leaf.ndim <= 2

    if not any(numbers(leaf) and np.ptp(leaf, axis=0).any() for leaf in jax.tree.leaves(points)):
        return None
    steps = jax.tree.map(lambda leaf: _steps(leaf) if numbers(leaf) else len, points)

    def moved(some: Points, shift: float) -> Any:
        return jax.tree.map(lambda leaf, step: leaf + shift * step(leaf) if numbers(leaf) else leaf, some, steps)

    return moved


def _steps(numbers: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """What tells by how much each of some rows like these moves with a shift of one standard deviation."""
    columns = numbers.reshape(len(numbers), -1).T
    spreads = np.std(numbers, axis=0, ddof=1)
    found = {j: codes.values for j, codes in enumerate(map(Sentinels.of, columns)) if codes is not None}
    if not found:
        return lambda some: spreads
    spreads = np.array(spreads.reshape(-1))
    for j, codes in found.items():
        spreads[j] = np.std(columns[j][~np.isin(columns[j], codes)], ddof=1)

    def step(some: np.ndarray) -> np.ndarray:
        rows = some.reshape(len(some), -1)
        moving = np.ones(rows.shape, bool)
        for j, codes in found.items():
            moving[:, j] = ~np.isin(rows[:, j], codes)
        return (moving * spreads).reshape(some.shape)

    return step


@dataclass(frozen=True, eq=False, repr=False)
class Margin(Value):
    """How far a batch may be from the reference without being told.

    Attributes
    ----------
    shift : float
        As if every column of numbers had moved by so many standard deviations of the reference.
    bound : float
        The distance that amounts to, and how far the reference may be from its law.
    mean, spectrum : array
        The mean features of the reference, and the eigenvalues of their covariance.
    grid : Grid or None
        What features of batches in parts are rounded to; None of monitors that were saved before there was one.
    """

    shift: float
    bound: float
    mean: np.ndarray
    spectrum: np.ndarray
    grid: Grid | None = None

    @classmethod
    def of(cls, shift: float, features: Features, points: Points, phi: np.ndarray) -> "Margin":
        """From the reference's points and their features."""
        if not is_number(shift) or not 0 < shift < np.inf:
            raise ParameterError(f"margin is {shift!r}; expected a positive number of standard deviations.")
        move = mover(points)
        if move is None:
            raise KindError("the reference has no column of numbers that varies, which a margin in sd is of.")
        some = rows(points, slice(0, MOVED))
        distance = np.linalg.norm((transformed(features, move(some, float(shift))) - phi[:MOVED]).mean(axis=0))
        part = phi[:: -(-count(points) // MEASURED)]
        centred = part - part.mean(axis=0)
        spectrum = np.maximum(np.linalg.eigvalsh(centred @ centred.T), 0.0)[::-1] / (len(part) - 1)
        own = DistanceLaw(0.0, spectrum / len(phi)).draws(0.0, np.random.default_rng(0), 20_000)
        bound = float(distance + np.sqrt(np.quantile(own, CERTAIN)))
        return cls(float(shift), bound, phi.mean(axis=0), spectrum, Grid.of(phi))

    def pvalue(self, mean: np.ndarray, n: int) -> float:
        """That a batch of n rows with these mean features comes from a law within the margin."""
        return DistanceLaw(float(np.sum((mean - self.mean) ** 2)), self.spectrum / n).above(self.bound)


def batch_state(monitor: Any, source: Any, name: str) -> SampleState:
    """What some rows of a batch add."""
    rows, gaps = 0, Counter()

    def points(door: Door) -> Iterator[Any]:
        nonlocal rows
        for piece in pieces_of(source, ROWS, name):
            rows += count_rows(piece) or 0
            found, lacking = seen_to(piece, name, monitor.missing)
            gaps.update(lacking)
            if count_rows(found):
                yield monitor.features.read(monitor.in_columns(found)[0], name, door)

    with Door() as door:
        # Only means are asked for: no products of features are added up.
        sums = FeatureMap(monitor.features, monitor.margin.grid, "float64", np.zeros((0, 0))).sums(points(door))
    return SampleState(sums, rows, dict(sorted(gaps.items())))
