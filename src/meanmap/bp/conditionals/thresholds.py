"""Points at which the distribution function of a number is tabulated."""

from dataclasses import dataclass, field

import numpy as np

from meanmap.bp.beliefs.tails import with_tails
from meanmap.bp.conditionals.few_values import log_chance_of_values
from meanmap.bp.conditionals.transformations import Transformation
from meanmap.bp.frequent import few_values

__all__ = ["Thresholds"]

# Quantiles of the values, and evenly spread thresholds from half a range below to half a range above them.
QUANTILES, EVEN = 120, 40
# A value with this share of all rows, and at least this many, has its own bin, whose width is a share of the smallest
# step between values, but at least a share of their range that exceeds rounding errors.
OFTEN, LEAST_OFTEN, NARROW, LEAST_STEP = 0.02, 2, 0.01, 1e-7
# The probability of all bins together in log densities, so that one value far off does not outweigh all others.
ANYWHERE = 1e-4


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Points at which distribution functions are tabulated, and the values represented by the bins between them.

    Attributes
    ----------
    at : array (G,)
        Rising. Where a column has few values they lie halfway between these, so that continuous distributions give each
        value the probability nearest to it.
    edges : array (G,)
        The ends of bins with the probabilities between: `at`, or the few values.
    points : array (G − 1,) of bool
        The bins whose mass lies at their right end: all of few values, else narrow ones below values that often come
        back.
    counts : array
        The number of rows with each of few values; else none.
    """

    at: np.ndarray
    edges: np.ndarray
    points: np.ndarray
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(
        cls, values: np.ndarray, within: tuple[float, float] = (-np.inf, np.inf), scale: Transformation | None = None
    ) -> "Thresholds":
        """Thresholds for these values, which stay within two numbers; they are evenly spaced on a scale.

        Examples
        --------
        >>> found = Thresholds.of(np.repeat([0.0, 1.0], 50))
        >>> found.at.tolist(), found.edges[1:].tolist(), found.points.tolist()
        ([-0.5, 0.5, 1.5], [0.0, 1.0], [True, True])
        """
        low, high = values.min(), values.max()
        reach = (high - low) or 1e-6 * max(abs(high), 1.0)
        found, counts = np.unique(values, return_counts=True)
        step = max(NARROW * np.min(np.diff(found), initial=reach), LEAST_STEP * reach)
        if few_values(values):
            at = np.concatenate([[low - reach / 2], (found[1:] + found[:-1]) / 2, [high + reach / 2]])
            return cls(at, np.append(low - step, found), np.ones(len(found), dtype=bool), counts)
        quantiles = np.quantile(values, np.linspace(0, 1, QUANTILES))
        even = np.linspace(low - reach / 2, high + reach / 2, EVEN)
        if scale is not None:
            first, last = scale(np.array([low, high]))
            even = scale.back(np.linspace(first - (last - first) / 2, last + (last - first) / 2, EVEN))
        often = found[counts >= max(OFTEN * len(values), LEAST_OFTEN)]
        around = np.unique(np.clip(np.concatenate([quantiles, even]), *within))
        place = np.searchsorted(often, around)
        inside = (place < len(often)) & (around > np.append(often, np.inf)[place] - step)
        at = np.unique(np.concatenate([around[~inside], often, often - step]))
        return cls(at, at, np.isin(at[1:], often))

    @property
    def centres(self) -> np.ndarray:
        """The mean of each bin."""
        return np.where(self.points, self.edges[1:], (self.edges[1:] + self.edges[:-1]) / 2)

    def bins(self, values: np.ndarray) -> np.ndarray:
        """The bin of each value; values equal to a threshold belong to the bin below."""
        return np.clip(np.searchsorted(self.at, values, side="left") - 1, 0, len(self.at) - 2)

    def log_density(self, shares: np.ndarray, values: np.ndarray, step: float) -> np.ndarray:
        """The log density of a number (m, 1) in each row from probabilities of bins, with tails; the log probability of
        a value that often comes back, and of all numbers of a column of few values, which falls with the distance from
        these; of numbers rounded to a step the probability over that step.
        """
        bins = self.bins(values)
        shares = np.maximum(shares, ANYWHERE / shares.shape[1])
        shares = shares / shares.sum(axis=1, keepdims=True)
        if self.points.all():
            return self._log_chance_of_few(shares, values[:, 0], step)
        found = np.take_along_axis(shares, bins, 1)[:, 0]
        inside = (self.at[0] <= values[:, 0]) & (values[:, 0] <= self.at[-1])
        if step:
            cell = values + np.array([-step / 2, step / 2])
            found = np.diff(self._below(shares, cell), axis=1)[:, 0] / step
        else:
            found = found / np.where(self.points, 1.0, np.diff(self.edges))[bins[:, 0]]
        with np.errstate(divide="ignore"):
            logs = np.log(inside * found)
        return with_tails(logs, values, self.at[:1], self.at[-1:])

    def _log_chance_of_few(self, shares: np.ndarray, values: np.ndarray, step: float) -> np.ndarray:
        """The log probabilities of numbers (m,) of a column of few values, of which one without a step has two."""
        few, rows = self.edges[1:], int(self.counts.sum())
        often = self.counts / rows
        scale = float(np.sqrt(often @ (few - often @ few) ** 2))
        least = float(np.min(np.diff(few), initial=np.inf))
        apart = step or (least if np.isfinite(least) else 1.0)
        return log_chance_of_values(shares, often, few, values, rows, (apart, scale or apart))

    def _below(self, shares: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The probabilities of less than numbers (m, k) in each row."""
        bins = self.bins(values)
        beyond = np.clip((self.at[bins + 1] - values) / np.diff(self.at)[bins], 0, 1)
        return np.take_along_axis(np.cumsum(shares, axis=1), bins, 1) - beyond * np.take_along_axis(shares, bins, 1)
