"""The density of y given x, scored by the log density of held-out pairs."""

from typing import Any

import numpy as np
import scipy.stats
from sklearn.utils.validation import check_is_fitted

from meanmap.core.types import Data
from meanmap.estimators.reading import read
from meanmap.estimators.regression import ConditionalMeanRegressor

__all__ = ["ConditionalDensity"]

# This share of any density is a wide Gaussian, so that no pair is impossible: far from all points the rest is zero.
BACKGROUND = 0.01
# Densities are computed for this many rows at a time, on the numbers of all of them.
ROWS = 500


class ConditionalDensity(ConditionalMeanRegressor):
    """The density of a number y given x, for model choice by held-out likelihood.

    Like `ConditionalMeanRegressor`, but `score` is the mean log density of pairs.

    Parameters
    ----------
    kernel, ridge :
        As for `ConditionalMeanRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, size=(400, 1))
    >>> y = np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=400)
    >>> model = ConditionalDensity().fit(x[:300], y[:300])
    >>> truth = -0.5 * np.log(2 * np.pi * 0.2**2) - 0.5       # the negative entropy of the noise
    >>> bool(abs(model.score(x[300:], y[300:]) - truth) < 0.35)
    True
    """

    _several_columns = False

    def _learn(self, X: np.ndarray, y: np.ndarray) -> None:
        super()._learn(X, y)
        self.centre_, self.scale_ = float(y.mean()), float(2.0 * y.std() or 1.0)

    def log_density(self, X: Data, y: Data) -> np.ndarray:
        """log p(yᵢ | xᵢ), (n,)."""
        check_is_fitted(self)
        X, y = read(self, X, y, y_numeric=True, reset=False)
        blocks = range(0, len(y), ROWS)
        parts = [self.operator_(X[i : i + ROWS]).density(y[i : i + ROWS]) for i in blocks]
        found = np.concatenate([np.diagonal(part) for part in parts])
        near = np.log1p(-BACKGROUND) + np.log(np.maximum(found, np.finfo(float).tiny))
        return np.logaddexp(near, np.log(BACKGROUND) + scipy.stats.norm.logpdf(y, self.centre_, self.scale_))

    def score(self, X: Data, y: Data, sample_weight: Any = None) -> float:
        """The mean log density of pairs."""
        return float(np.average(self.log_density(X, y), weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # it is not an R²
        return tags
