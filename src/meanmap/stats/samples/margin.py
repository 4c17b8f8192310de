"""Drift monitors with a margin: is a batch further from the reference than a tolerated shift?"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.language import in_few_words
from meanmap.core.points import count, in_columns
from meanmap.core.settings import is_number
from meanmap.core.tables.chunks import count_rows, source_of
from meanmap.core.tables.missing import settle_pieces
from meanmap.core.types import Data, Points
from meanmap.core.values import Value
from meanmap.features.base import Features
from meanmap.features.states.feature_map import FeatureMap
from meanmap.features.states.passes import SampleState
from meanmap.features.states.reading import ROWS
from meanmap.linalg.exact import Grid
from meanmap.stats.limits import DistanceLaw
from meanmap.stats.samples.moved import Centres, Moved, further
from meanmap.stats.samples.samples import Samples, columns_of
from meanmap.stats.samples.shifted import Shifts, between_features
from meanmap.stats.samples.spread import Spread

__all__ = ["Margin", "batch_state", "few_rows", "not_by_column"]

# The number of rows for the eigenvalues of the covariance.
MEASURED = 1000
# The margin is enlarged by this quantile of the sampling error of the reference.
CERTAIN = 0.999
# Means of fewer rows may not be approximately normal.
FEWEST = 20
# At most this many columns that moved further are named.
MOST_SAID = 3
HEAVY = (
    "So a batch may be flagged although it has moved by less than the margin: use logarithms or ranks of the columns "
    "with heavy tails."
)


@dataclass(frozen=True, eq=False, repr=False)
class Margin(Value):
    """The distance from the reference up to which a batch raises no alarm.

    Attributes
    ----------
    shift : float
        The margin as a shift of every numeric column, in standard deviations of the reference.
    bound : float
        The distance of that shift plus the sampling error of the reference.
    mean, spectrum : array
        The mean features of the reference, and the eigenvalues of their covariance.
    grid : Grid or None
        The grid to which features of batches in parts are rounded; None for monitors saved before it existed.
    centres : Centres
        The means of the columns of the reference, each of which may move by the margin.
    """

    shift: float
    bound: float
    mean: np.ndarray
    spectrum: np.ndarray
    grid: Grid | None = None
    centres: Centres | None = None

    @classmethod
    def of(
        cls, shift: float, features: Features, points: Points, phi: np.ndarray, samples: Samples, reference: Data
    ) -> tuple["Margin", tuple[str, ...]]:
        """The margin from the points of the reference and their features, with notes on heavy tails.

        Column names are those of `samples`, a part of the reference; `reference` has all rows.
        """
        if not is_number(shift) or not 0 < shift < np.inf:
            raise ParameterError(f"margin is {shift!r}; expected a positive number of standard deviations.")
        spread, n = Spread.of(points), len(phi)
        if spread is None:
            raise KindError(
                "a margin in standard deviations needs a numeric column that varies, and the reference has none."
            )
        shifts = Shifts(
            points, spread, between_features(features, phi), np.full(n, 1 / n), np.arange(n), np.random.default_rng(0)
        )
        moved = shifts.at(float(shift))
        part = phi[:: -(-count(points) // MEASURED)]
        centred = part - part.mean(axis=0)
        spectrum = np.maximum(np.linalg.eigvalsh(centred @ centred.T), 0.0)[::-1] / (len(part) - 1)
        # The error of the shift's distance is added along the direction in which the mean varies most.
        error = float(np.sqrt(moved.variance))
        own = DistanceLaw(0.0, spectrum / n).draws(0.0, np.random.default_rng(0), 20_000, error)
        bound = float(moved.distance + np.sqrt(np.quantile(own, CERTAIN)))
        margin = cls(float(shift), bound, phi.mean(axis=0), spectrum, Grid.of(phi), Centres.of(reference, "reference"))
        return margin, spread.doubts(columns_of(samples) if in_columns(points) else (), n, HEAVY)

    def pvalue(self, mean: np.ndarray, n: int) -> float:
        """The p-value of the hypothesis that a batch of n rows with these mean features is within the margin."""
        return DistanceLaw(float(np.sum((mean - self.mean) ** 2)), self.spectrum / n).above(self.bound)

    def judged(self, mean: np.ndarray, n: int, batch: Data, notes: tuple[str, ...]) -> tuple[float, tuple[str, ...]]:
        """The p-value that includes tests of whether means of single columns moved beyond the margin, and notes."""
        pvalue, moved = self.pvalue(mean, n), self._moved(batch)
        if moved:
            pvalue = min(1.0, 2 * min(pvalue, len(moved) * min(each.pvalue for each in moved)))
        found = further(moved)
        said = in_few_words([f"{name} by {shift:.2g}" for name, shift in found], MOST_SAID)
        note = f"means differ by more than {self.shift:g} standard deviations: {said}"
        return pvalue, (*notes, *few_rows(n), *((note,) if found else ()))

    def _moved(self, batch: Data) -> list[Moved]:
        if self.centres is None or not self.centres.names:
            return []
        certain = float(ndtri(1 - (1 - CERTAIN) / (2 * len(self.centres.names))))
        return self.centres.moved(batch, "batch", self.shift, certain)


def few_rows(n: int) -> tuple[str, ...]:
    """The note on a batch whose means may not be approximately normal."""
    if n >= FEWEST:
        return ()
    said = (
        f"batch has {n} rows: p-values with a margin assume approximately normal means, and need batches of {FEWEST} "
        f"rows or more."
    )
    return (f"{said} Join some.",)


def not_by_column(margin: Margin) -> tuple[str, ...]:
    """The note on a state, which holds means of features alone."""
    if margin.centres is None or len(margin.centres.names) < 2:
        return ()
    return ("a state is compared in all columns together: one column may have moved by more than the margin",)


def batch_state(monitor: Any, source: object, name: str) -> SampleState:
    """The contribution of some rows of a batch."""
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
        # Only means are needed, so no products of features are summed.
        sums = FeatureMap(monitor.features, monitor.margin.grid, "float64", np.zeros((0, 0))).sums(points(door))
    return SampleState(sums, rows, dict(sorted(gaps.items())))
