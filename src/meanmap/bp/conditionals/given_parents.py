"""p(x | parents): a regression on all parents at once, with residuals drawn from rows with parents like these."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from meanmap.bp.beliefs.densities import pick
from meanmap.bp.conditionals.row_weights import RowWeights, row_weights
from meanmap.bp.edges.regression import Regression
from meanmap.bp.edges.samples import NodeSample
from meanmap.core.door import Door
from meanmap.core.points import pieces, slices, spread_rows
from meanmap.embeddings.bandwidth import diffusion_widths
from meanmap.learning.default import kernel_for

__all__ = ["GivenParents"]

# Learned from up to so many rows; of residuals in leaves of this many at least.
MOST_ROWS, LEAST_IN_LEAF, TREES = 4000, 20, 40
# Rows are answered so many at a time.
ROWS_AT_ONCE = 1000
# What regressions of zeros and ones give to a label is never less.
LEAST_SHARE = 0.002


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
    forest : RowWeights or None
        Rows with parents like these; None without parents, and for labels.
    width : float
        By which residuals are smoothed to a density.
    """

    values: np.ndarray
    regression: Regression | None
    forest: RowWeights | None
    width: float

    @classmethod
    def fit(cls, rows: np.ndarray, values: np.ndarray) -> "GivenParents":
        """From rows of the parents and the values (n, 1) or (n, L) of the variable in them."""
        chosen = spread_rows(len(rows), MOST_ROWS)
        rows, values = rows[chosen], values[chosen]
        forest, regression, left = None, None, values
        if rows.shape[1]:
            with Door():
                regression, left = Regression.fit(NodeSample(kernel_for(rows), rows, False, False), values)
        if values.shape[1] > 1:
            return cls(values, regression, None, 0.0)
        if rows.shape[1]:
            from sklearn.ensemble import ExtraTreesRegressor

            forest = ExtraTreesRegressor(TREES, min_samples_leaf=LEAST_IN_LEAF, random_state=0)
            forest = row_weights(forest.fit(rows, np.abs(left[:, 0])), rows)
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
        found = []
        for here in pieces(rows, ROWS_AT_ONCE):
            rising = np.cumsum(self._weights(here), axis=1)
            at = [
                np.searchsorted(each, u * each[-1], side="right")
                for each, u in zip(rising, random.random(len(here)), strict=True)
            ]
            found.append(self.values[np.minimum(at, len(self.values) - 1)])
        return (self.means(rows) + np.concatenate(found))[:, None]

    def log_chance(self, rows: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The logarithm of the density of numbers (m, 1), or of the shares of labels (m, L), at rows of the parents."""
        if self.values.ndim == 2:
            with np.errstate(divide="ignore"):
                return np.log(np.sum(self.shares(rows) * value, axis=1))
        found = []
        for part in slices(len(rows), ROWS_AT_ONCE):
            with np.errstate(divide="ignore"):
                log_weights = np.log(self._weights(rows[part]))
            gap = (value[part] - self.means(rows[part])[:, None] - self.values) / self.width
            found.append(logsumexp(log_weights - gap**2 / 2, axis=1) - np.log(np.sqrt(2 * np.pi) * self.width))
        return np.concatenate(found)

    def _weights(self, rows: np.ndarray) -> np.ndarray:
        if self.forest is None:
            return np.full((len(rows), len(self.values)), 1 / len(self.values))
        return self.forest(rows)
