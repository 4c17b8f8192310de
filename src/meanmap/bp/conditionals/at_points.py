"""p(number | parents) where many rows have the same number, as zero: whether it is that one, and the number if not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.components import ColumnComponents
from meanmap.bp.conditionals.few_values import log_chance_of_values
from meanmap.bp.conditionals.given_parents import GivenParents, joined
from meanmap.bp.conditionals.in_range import InRange, number_given
from meanmap.bp.conditionals.labels_given_parents import LabelsGivenParents
from meanmap.core.errors import InputError

__all__ = ["AtPoints"]

# Of all other numbers at most this share is counted as rounded to a point.
MOST_AT_POINTS = 0.9


@dataclass(frozen=True, eq=False)
class AtPoints:
    """The distribution of a number that has a few values in many rows: p(which of them, or none) and p(number | none of
    them).

    A two-part model (Duan et al. 1983): a regression of the number itself would draw half as many zeros of costs as
    there are, and give those who cost something too little. A number with two values has no other part: a straight line
    through zeros and ones is neither a probability nor right near its ends.

    Attributes
    ----------
    points : array (A,)
        Rising.
    which : LabelsGivenParents
        Of the points and, last, all other numbers.
    number : GivenParents, InRange or None
        In the rows that have none of the points; None if there are none.
    unit : pair of float
        Centre and scale of the column: numbers come and go standardised.
    within : pair of float
        Points between which all other numbers are, or infinite.
    """

    points: np.ndarray
    which: LabelsGivenParents
    number: GivenParents | InRange | None
    unit: tuple[float, float]
    within: tuple[float, float]

    @classmethod
    def fit(cls, parents: Sequence[np.ndarray], values: np.ndarray, column: CodedColumn) -> "AtPoints | None":
        """From what stands for each parent (n, width) and standardised numbers (n, 1); None without such points."""
        found, two = ColumnComponents.points_alone(values[:, 0]), np.unique(values)
        points = two if len(two) == 2 else found.points
        if not len(points):
            return None
        rows, others = joined(list(parents), len(values)), ~np.isin(values[:, 0], points)
        hits = np.concatenate([values == points, others[:, None]], axis=1).astype(float)
        some = np.append(np.full(len(points), True), others.any())
        which = LabelsGivenParents.fit(rows, tuple(each.shape[1] for each in parents), hits[:, some])
        within, number = found.limits(values[:, 0], (-np.inf, np.inf)), None
        if others.any():
            low, high = column.centre + column.scale * np.array(within)
            inside = replace(column, limits=(max(low, column.limits[0]), min(high, column.limits[1])))
            number = number_given(rows[others], values[others], inside)
        return cls(points, which, number, (column.centre, column.scale), within)

    @property
    def rows(self) -> int:
        """The number of rows behind the probabilities of points."""
        return self.which.rows

    def ends(self, column: int) -> tuple[float, float]:
        """The observed range of a number that represents a parent."""
        return self.which.ends(column)

    def draw(self, rows: np.ndarray, random: np.random.Generator, smooth: bool = False) -> np.ndarray:
        """One value (m, 1) for each row of the parents, by residuals of rows or by their smooth density."""
        which = self.which.draw(rows, random).argmax(axis=1)
        found, others = np.append(self.points, np.nan)[which][:, None], which == len(self.points)
        if self.number is not None:
            found[others] = self.number.draw(rows[others], random, smooth)
        return found

    def log_chance(self, rows: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The logarithm of the density of numbers (m, 1) at rows of the parents, in the unit of the column that of the
        probability of a point, of rounded numbers over the step. Of these none is rounded to a point.
        """
        shares = self.which.shares(rows)
        if self.number is None:
            unit = float(np.ptp(self.points)), 1.0
            logs = log_chance_of_values(shares, np.ones(2), self.points, value[:, 0], self.rows, unit)
            return logs + np.log(self.unit[1])
        others, point = ~np.isin(value[:, 0], self.points), np.abs(value - self.points).argmin(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(shares[np.arange(len(value)), np.where(others, -1, point)])
        step = self.number.step if isinstance(self.number, InRange) else 0.0
        logs[~others] += np.log(self.unit[1] / (step or 1.0))
        if others.any():
            logs[others] += self.number.log_chance(rows[others], value[others])
            if step and isinstance(self.number, InRange):
                logs[others] -= np.log1p(-self._rounded_to_points(self.number, rows[others]))
        return logs

    def _rounded_to_points(self, number: InRange, rows: np.ndarray) -> np.ndarray:
        """The probability that the distribution of all others gives to what is rounded to one of the points, (m,)."""
        cell = number.step / number.scale
        each = [np.exp(number.log_chance(rows, np.full((len(rows), 1), point))) * cell for point in self.points]
        return np.minimum(np.sum(each, axis=0), MOST_AT_POINTS)

    def widths(self, value: np.ndarray) -> np.ndarray:
        """The bandwidth by which draws are smoothed to a density; points are not."""
        others = np.zeros(value.shape) if self.number is None else self.number.widths(value)
        return np.where(np.isin(value, self.points), 0.0, others)

    def moved(self, before: np.ndarray, value: float, after: np.ndarray) -> float:
        """The number of the same rank given parents `after` as `value` given `before`: see `GivenParents`. The rank of
        a point is any between the shares below it and up to it: refused unless all of these lead to one number.
        """
        if np.array_equal(before, after):
            return value
        low, high = (self._of_rank(after, rank) for rank in self._ranks(before, value))
        if low == high:
            return low
        centre, scale = self.unit
        first, at, last = (f"{centre + scale * each:.4g}" for each in (low, value, high))
        raise InputError(
            f"many rows have {at}, like this one: its rank among them is not known, and it may become any number from "
            f"{first} to {last}. do() gives the distribution of these."
        )

    def _ranks(self, rows: np.ndarray, value: float) -> tuple[float, float]:
        """The probability of less than a number, and of up to it."""
        of_points, others = self._shares(rows)
        rest = others * self._others_below(rows, value)
        less, up_to = (float(of_points[chosen].sum() + rest) for chosen in (self.points < value, self.points <= value))
        return less, up_to

    def _of_rank(self, rows: np.ndarray, rank: float) -> float:
        """The number with this rank."""
        (of_points, others), below = self._shares(rows), 0.0
        for point, share in zip(self.points.tolist(), of_points, strict=True):
            first = below + others * self._others_below(rows, point)
            if rank < first:
                break
            if rank <= first + share or (self.number is None and point == self.points[-1]):
                return point
            below += share
        assert self.number is not None  # the last point was returned
        return self.number.at_odds(rows, float(logit(np.clip((rank - below) / others, 0, 1))))

    def _shares(self, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """Of points (A,), and of all other numbers, at a row of the parents (1, q)."""
        found = self.which.shares(rows)[0]
        return found[: len(self.points)], 0.0 if self.number is None else float(found[-1])

    def _others_below(self, rows: np.ndarray, value: float) -> float:
        """The probability of less, given that it is none of the points."""
        if self.number is None or not self.within[0] < value < self.within[1]:
            return float(value >= self.within[1])
        return float(expit(self.number.log_odds(rows, value)))
