"""p(x | parents): a regression on all parents at once, with residuals drawn from rows with parents like these."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp

from meanmap.bp.beliefs.densities import pick
from meanmap.bp.conditionals.row_weights import LeafWeights
from meanmap.bp.conditionals.trees import Trees
from meanmap.bp.edges.regression import Regression
from meanmap.bp.edges.samples import NodeSample
from meanmap.core.bisection import bisect
from meanmap.core.door import Door
from meanmap.core.points import slices, spread_rows
from meanmap.embeddings.bandwidth import diffusion_widths
from meanmap.kernels.base import Kernel, Sum
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import kernel_for

__all__ = ["GivenParents", "joined"]

# Learned from up to so many rows; of residuals in leaves of this many at least.
MOST_ROWS, LEAST_IN_LEAF, TREES = 4000, 20, 20
# A kernel on one column is as wide as this in others, and at least so wide in its own.
ELSEWHERE, FLAT = 1e30, 1e-6
# Rows are answered so many at a time.
ROWS_AT_ONCE = 1000
# What regressions of zeros and ones give to a label is never less.
LEAST_SHARE = 0.002
# A number of the same rank is found by so many bisections.
STEPS = 60


@dataclass(frozen=True, eq=False)
class GivenParents:
    """The law of one variable given numbers (n, q) that stand for its parents.

    A number is f(parents) + r: a straight line, with a kernel's part where that predicts better, and left-out residuals
    of the training rows, weighted by a forest that knows where they are large. The shares of labels are the same
    regression of zeros and ones, cut off near zero. (Shares in the leaves of a forest mixed those of unlike parents:
    of an effect of .15 nothing was left.)

    Attributes
    ----------
    values : array (n,) or (n, L)
        Residuals, or zeros and ones for labels.
    regression : Regression or None
    forest : LeafWeights or None
        Rows with parents like these; None without parents, and for labels.
    width : float
        By which residuals are smoothed to a density.
    """

    values: np.ndarray
    regression: Regression | None
    forest: LeafWeights | None
    width: float

    @classmethod
    def fit(cls, rows: np.ndarray, values: np.ndarray) -> "GivenParents":
        """From rows of the parents and the values (n, 1) or (n, L) of the variable in them."""
        chosen = spread_rows(len(rows), MOST_ROWS)
        rows, values = rows[chosen], values[chosen]
        forest, regression, left = None, None, values
        if rows.shape[1]:
            with Door():
                regression, left = _regression(rows, values)
        if values.shape[1] > 1:
            return cls(values, regression, None, 0.0)
        if rows.shape[1]:
            from sklearn.ensemble import ExtraTreesRegressor

            forest = ExtraTreesRegressor(TREES, min_samples_leaf=LEAST_IN_LEAF, random_state=0)
            trees = Trees.of([each.tree_ for each in forest.fit(rows, np.abs(left[:, 0])).estimators_])
            forest = LeafWeights(trees, trees.leaves(rows))
        return cls(left[:, 0], regression, forest, float(diffusion_widths(left)[0]))

    def means(self, rows: np.ndarray) -> np.ndarray:
        """f at rows of the parents, (m,)."""
        if self.regression is None:
            return np.zeros(len(rows))
        with Door():
            return np.asarray(self.regression(rows))[:, 0]

    def shares(self, rows: np.ndarray) -> np.ndarray:
        """Of labels, at rows of the parents, (m, L)."""
        if self.regression is None:
            return np.broadcast_to(self.values.mean(axis=0), (len(rows), self.values.shape[1]))
        with Door():
            found = np.maximum(np.asarray(self.regression(rows)), LEAST_SHARE)
        return found / found.sum(axis=1, keepdims=True)

    def draw(self, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """One value (m, 1) or (m, L) for each row of the parents."""
        if self.values.ndim == 2:
            return np.eye(self.values.shape[1])[pick(self.shares(rows), 1, random)[:, 0]]
        if self.forest is None:
            at = random.integers(len(self.values), size=len(rows))
        else:
            at = self.forest.draw(rows, random)
        return (self.means(rows) + self.values[at])[:, None]

    def log_chance(self, rows: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The logarithm of the density of numbers (m, 1), or of the shares of labels (m, L), at rows of the parents."""
        if self.values.ndim == 2:
            with np.errstate(divide="ignore"):
                return np.log(np.sum(self.shares(rows) * value, axis=1))
        gaps = value[:, 0] - self.means(rows)
        log_sums = [self._log_sums(rows[part], gaps[part]) for part in slices(len(rows), ROWS_AT_ONCE)]
        return np.concatenate(log_sums) - np.log(np.sqrt(2 * np.pi) * self.width)

    def _log_sums(self, rows: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """log Σᵢ wᵢ exp(−(gap − vᵢ)² / 2 width²), (m,)."""
        if self.forest is None:
            return np.asarray(
                logsumexp(-(((gaps[:, None] - self.values) / self.width) ** 2) / 2, axis=1, b=1 / len(self.values))
            )
        weights = self.forest.sparse(rows)
        starts, sizes = weights.indptr[:-1], np.diff(weights.indptr)
        exponents = ((np.repeat(gaps, sizes) - self.values[weights.indices]) / self.width) ** 2 / -2
        top = np.maximum.reduceat(exponents, starts)
        return top + np.log(np.add.reduceat(weights.data * np.exp(exponents - np.repeat(top, sizes)), starts))

    def moved(self, before: np.ndarray, value: float, after: np.ndarray) -> float:
        """The number that is to parents `after` (1, q) what `value` is to parents `before`: of the same rank among the
        numbers that these leave possible, as smoothed as their density is.
        """
        if self.forest is None or np.array_equal(before, after):
            return value
        gap, reach = value - self.means(before)[0], float(np.ptp(self.values))
        here, there = (self.forest.sparse(rows) for rows in (before, after))
        wanted = self._log_odds(here, gap)
        # Each residual is at most `reach` from any other, and so is the rank of what is that far away.
        ends = np.array(gap - reach), np.array(gap + reach)
        low, high = bisect(lambda middle: np.asarray(self._log_odds(there, middle) < wanted), *ends, STEPS)
        return float(self.means(after)[0] + (low + high) / 2)

    def _log_odds(self, weights: Any, gap: Any) -> float:
        """log F / (1 − F) of a residual among weighted ones (1, n): it keeps its digits however far away."""
        away = (gap - self.values[weights.indices]) / self.width
        below, above = (np.asarray(logsumexp(log_ndtr(side), b=weights.data)) for side in (away, -away))
        return float(below - above)


def _regression(rows: np.ndarray, values: np.ndarray) -> tuple[Regression, np.ndarray]:
    """Of all parents together where that lowers the leave-one-out error by more than two standard errors, else a sum of
    functions of each: where parents are set to what was seldom seen with others, only the sum has learned something.
    """
    together, left = Regression.fit(NodeSample(kernel_for(rows), rows, False, False), values)
    if rows.shape[1] == 1:
        return together, left
    apart, residuals = Regression.fit(NodeSample(_apart(rows), rows, False, False), values)
    gain = np.sum(residuals**2 - left**2, axis=1)
    worth_it = gain.mean() > 2 * gain.std() / np.sqrt(len(gain))
    return (together, left) if worth_it else (apart, residuals)


def _apart(rows: np.ndarray) -> Kernel:
    """A kernel for each column, as wide as it varies, added up."""
    scales = np.where(np.eye(rows.shape[1]) == 1, np.maximum(rows.std(axis=0), FLAT), ELSEWHERE)
    return Sum(tuple(map(RBF, scales)))


def joined(numbers: list[np.ndarray], rows: int) -> np.ndarray:
    """Numbers (n, width) side by side, or none of them."""
    return np.concatenate([np.zeros((rows, 0)), *numbers], axis=1)
