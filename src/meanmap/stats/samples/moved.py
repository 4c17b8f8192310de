"""Tests of whether means of single columns moved further than a margin, besides the test of all columns together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from meanmap.core.tables.kinds import family_of
from meanmap.core.types import Data
from meanmap.core.values import Value
from meanmap.stats.samples.comparing import by_name

__all__ = ["Centres", "Moved", "further", "moved_further"]


@dataclass(frozen=True)
class Moved:
    """The move of a column's mean in standard deviations of the first sample, and the p-value of the hypothesis that it
    is at most the margin.
    """

    name: str
    shift: float
    pvalue: float


@dataclass(frozen=True, eq=False, repr=False)
class Centres(Value):
    """Means of the numbers of a sample, their standard deviations, and standardised fourth moments.

    Attributes
    ----------
    names : tuple of str
        The columns of numbers that vary.
    means, units, fourths : array
        The mean, standard deviation and standardised fourth moment of each of these columns.
    n : int
        The number of rows.
    """

    names: tuple[str, ...]
    means: np.ndarray
    units: np.ndarray
    fourths: np.ndarray
    n: int

    @classmethod
    def of(cls, sample: Data, argument: str) -> "Centres":
        """The moments of the rows of a sample."""
        found = {name: values for name, values in _numbers(sample, argument).items() if np.std(values) > 0}
        columns = np.array(list(found.values())).reshape(len(found), -1)
        means, units = columns.mean(axis=1), columns.std(axis=1, ddof=1) if found else np.zeros(0)
        fourths = np.mean(((columns - means[:, None]) / units[:, None]) ** 4, axis=1)
        return cls(tuple(found), means, units, fourths, columns.shape[1])

    def errors(self, margin: float) -> np.ndarray:
        """The standard errors of means minus a margin, in standard deviations, which are estimated as well."""
        return np.sqrt((1 + margin**2 * (self.fourths - 1) / 4) / max(self.n, 1))

    def moved(self, sample: Data, argument: str, margin: float, certain: float | None = None) -> list[Moved]:
        """The move of each column, tested by the normal limit with the larger of both variances, so that a heavy tail
        with few rows in the sample is not taken as evidence.

        By default the sampling error of the first sample adds to the standard error. With `certain`, the margin grows
        by this many standard errors of the first sample instead, so that p-values of several samples are valid
        together.
        """
        other, found = _numbers(sample, argument), []
        ends = zip(self.names, self.means, self.units, self.errors(margin), strict=True)
        for name, mean, unit, error in ends:
            y = (other[name] - mean) / unit if name in other else np.zeros(0)
            if len(y) > 1:
                shift, own = abs(float(y.mean())), float(np.sqrt(max(y.var(ddof=1), 1.0) / len(y)))
                z = (shift - margin) / np.hypot(own, error) if certain is None else shift - margin - certain * error
                found.append(Moved(name, shift, float(ndtr(-z if certain is None else -z / own))))
        return found


def moved_further(first: Data, second: Data, names: tuple[str, str], margin: float) -> list[tuple[str, float]]:
    """The columns whose means are shown to differ by more than `margin` standard deviations of the first sample, and by
    how many. All columns are tested, at level .05 after Bonferroni's correction.
    """
    return further(Centres.of(first, names[0]).moved(second, names[1], margin))


def further(found: Sequence[Moved]) -> list[tuple[str, float]]:
    """The columns whose p-values are below .05 after Bonferroni's correction, and by how much they moved."""
    return [(each.name, each.shift) for each in found if each.pvalue * len(found) < 0.05]


def _numbers(sample: Data, argument: str) -> dict[str, np.ndarray]:
    columns = by_name(sample, argument).items()
    return {name: np.asarray(x, float) for name, x in columns if family_of(x) == "number" and x.ndim == 1}
