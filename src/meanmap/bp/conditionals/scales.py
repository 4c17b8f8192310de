"""The scale of residuals given the parents: a regression of the logarithm of their size."""

from dataclasses import dataclass

import numpy as np

from meanmap.bp.beliefs.gain import clearly_better
from meanmap.bp.edges.regression import Regression, Regressor

__all__ = ["Scales"]

# Residuals count as at least this share of their mean size, and as at most this many times their expected size.
LEAST, MOST = 1e-3, 8.0
# Sizes stay between those that this many rows, or this share of few ones, are at or beyond: a regression at its end
# follows one row.
OUTER, MOST_OUTER = 5, 0.05


@dataclass(frozen=True, eq=False)
class Scales:
    """s(parents) > 0, about one on the whole: residuals divided by it have the same size everywhere.

    Attributes
    ----------
    regression : Regression
        Of log s.
    centre : float
        The mean of log s in the rows.
    low, high : array (q,)
        The ends of the rows: beyond them s is what it is there.
    least, most : float
        The ends of log s, but for some rows at each.
    """

    regression: Regression
    centre: float
    low: np.ndarray
    high: np.ndarray
    least: float
    most: float

    @classmethod
    def fit(cls, regressor: Regressor, residuals: np.ndarray) -> "Scales | None":
        """Fit to residuals (n,) at the rows of a regressor; None if a constant scale predicts held-out ones as well.

        Notes
        -----
        The regression of log |residual| is only a start, because logarithms of small residuals say little about their
        scale. It is followed by one step of Fisher scoring for the Laplace distribution, log s + |residual| / s − 1
        (Harvey 1976 uses the Normal). The result is kept if it lowers the leave-one-out score log s + |residual| / s by
        more than two standard errors.
        """
        sizes = np.maximum(np.abs(residuals), LEAST * np.mean(np.abs(residuals)))
        if not sizes.max() > 0:
            return None
        regressor = regressor.of_some()
        start, left = regressor.fit(np.log(sizes)[:, None])
        about = regressor.fitted(start)[:, 0]
        about += np.log(np.mean(sizes / np.exp(about)))
        step = about + np.minimum(sizes / np.exp(about), MOST) - 1
        found, left = regressor.fit(step[:, None])
        logs = np.clip(step - left[:, 0], about.min(), about.max())  # of each row without itself
        usual = np.log(np.mean(sizes))
        gain = usual + sizes / np.exp(usual) - logs - sizes / np.exp(logs)
        if not clearly_better(gain):
            return None
        logs, rows = regressor.fitted(found)[:, 0], regressor.sample.points
        outer, ordered = min(OUTER, int(MOST_OUTER * len(logs))), np.sort(logs)
        ends = float(ordered[outer]), float(ordered[-1 - outer])
        return cls(found, float(logs.mean()), rows.min(axis=0), rows.max(axis=0), *ends)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """s at rows of the parents, (m,)."""
        logs = self.regression(np.clip(rows, self.low, self.high))[:, 0]
        return np.exp(np.clip(logs, self.least, self.most) - self.centre)
