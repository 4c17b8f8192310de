"""What a drift monitor asks with a margin: is a batch further away than after a shift of the reference?"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.points import count, in_columns
from meanmap.core.settings import is_number
from meanmap.core.tables.chunks import count_rows, source_of
from meanmap.core.tables.missing import settle_pieces
from meanmap.core.types import Points
from meanmap.core.values import Value
from meanmap.features.base import Features
from meanmap.features.states.feature_map import FeatureMap
from meanmap.features.states.passes import SampleState
from meanmap.features.states.reading import ROWS
from meanmap.linalg.exact import Grid
from meanmap.stats.limits import DistanceLaw
from meanmap.stats.samples.samples import Samples, columns_of
from meanmap.stats.samples.shifted import Shifts, between_features
from meanmap.stats.samples.spread import Spread

__all__ = ["Margin", "batch_state", "few_rows"]

# Rows whose covariance has its eigenvalues found.
MEASURED = 1000
# The reference is as far from its law as this quantile says; the margin grows by as much.
CERTAIN = 0.999
# Means of fewer rows need not be normal.
FEWEST = 20
HEAVY = (
    "So a batch may be called drifted that has moved by less than the margin: pass logarithms or ranks of what has "
    "these tails."
)


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
    def of(
        cls, shift: float, features: Features, points: Points, phi: np.ndarray, samples: Samples
    ) -> tuple["Margin", tuple[str, ...]]:
        """From the points of the reference and their features; and what is said of heavy tails.

        Names of columns are those of `samples`, a part of the reference.
        """
        if not is_number(shift) or not 0 < shift < np.inf:
            raise ParameterError(f"margin is {shift!r}; expected a positive number of standard deviations.")
        spread, n = Spread.of(points), len(phi)
        if spread is None:
            raise KindError("the reference has no column of numbers that varies, which a margin in sd is of.")
        shifts = Shifts(
            points, spread, between_features(features, phi), np.full(n, 1 / n), np.arange(n), np.random.default_rng(0)
        )
        moved = shifts.at(float(shift))
        part = phi[:: -(-count(points) // MEASURED)]
        centred = part - part.mean(axis=0)
        spectrum = np.maximum(np.linalg.eigvalsh(centred @ centred.T), 0.0)[::-1] / (len(part) - 1)
        # The error of what the shift amounts to is one more in the direction in which the mean varies most.
        error = float(np.sqrt(moved.variance))
        own = DistanceLaw(0.0, spectrum / n).draws(0.0, np.random.default_rng(0), 20_000, error)
        bound = float(moved.distance + np.sqrt(np.quantile(own, CERTAIN)))
        margin = cls(float(shift), bound, phi.mean(axis=0), spectrum, Grid.of(phi))
        return margin, spread.doubts(columns_of(samples) if in_columns(points) else (), n, HEAVY)

    def pvalue(self, mean: np.ndarray, n: int) -> float:
        """That a batch of n rows with these mean features comes from a law within the margin."""
        return DistanceLaw(float(np.sum((mean - self.mean) ** 2)), self.spectrum / n).above(self.bound)


def few_rows(n: int) -> tuple[str, ...]:
    """What is said of a batch whose means need not be normal."""
    if n >= FEWEST:
        return ()
    said = f"batch has {n} rows: p-values with a margin rest on normal means, for batches of {FEWEST} rows or more."
    return (f"{said} Join some.",)


def batch_state(monitor: Any, source: object, name: str) -> SampleState:
    """What some rows of a batch add."""
    rows, gaps = 0, Counter()

    def points(door: Door) -> Iterator[Any]:
        nonlocal rows
        for piece in source_of(source).pieces(ROWS, name):
            rows += count_rows(piece) or 0
            (found,), lacking = settle_pieces([piece], [name], monitor.missing)
            gaps.update(lacking)
            if count_rows(found):
                yield monitor.known(monitor.features.read(monitor.complete(found)[0], name, door))

    with Door() as door:
        # Only means are asked for: no products of features are added up.
        sums = FeatureMap(monitor.features, monitor.margin.grid, "float64", np.zeros((0, 0))).sums(points(door))
    return SampleState(sums, rows, dict(sorted(gaps.items())))
