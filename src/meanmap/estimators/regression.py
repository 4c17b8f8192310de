"""Regression to a whole distribution: its mean, quantiles, densities and draws."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from meanmap.core.containers import is_dask
from meanmap.core.pieces.row_by_row import numbers_by_partition
from meanmap.core.settings import truth
from meanmap.core.types import Array, Data, Seed
from meanmap.embeddings import Operator, condition
from meanmap.estimators.features import seed_of
from meanmap.estimators.reading import learned_from, read
from meanmap.kernels import Kernel

__all__ = ["ConditionalMeanRegressor"]


class ConditionalMeanRegressor(RegressorMixin, BaseEstimator):
    """The distribution of y given x, as a learned operator with means, quantiles, densities and draws.

    Parameters
    ----------
    kernel : Kernel, optional
        The kernel of x; by default RBF with the lengthscale chosen together with the ridge, by leave-one-out.
    ridge : float, optional
        λ; by default chosen by leave-one-out.

    Attributes
    ----------
    operator_ : mm.embeddings.Operator
        `mm.condition(X, y)`.

    Notes
    -----
    Song et al. (2009): μ_{Y|x} = Σᵢ βᵢ(x) l(yᵢ, ·) with β(x) = (K + n λ I)⁻¹ k(X, x). Means are those of kernel ridge
    regression; quantiles, densities and draws come from the same belief. `score` is the R² of the means.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, size=(300, 1))
    >>> y = x[:, 0] + (0.1 + 0.3 * (x[:, 0] > 0)) * rng.normal(size=300)
    >>> model = ConditionalMeanRegressor().fit(x, y)
    >>> low, high = model.predict_quantile([[-1.0], [1.0]], [0.1, 0.9]).T
    >>> bool(high[1] - low[1] > high[0] - low[0])    # wider where there is more noise
    True
    """

    operator_: Operator
    _several_columns = True

    def __init__(self, kernel: Kernel | None = None, ridge: float | None = None):
        self.kernel = kernel
        self.ridge = ridge

    def fit(self, X: Data, y: Data) -> "ConditionalMeanRegressor":
        """Learn the operator from n pairs; y may have several columns.

        If there are more than 100,000 pairs, that many are drawn, always the same ones, whether they are in memory, in
        Parquet files (paths, or lazy frames with the columns of each), or in Dask collections.
        """
        several = self._several_columns
        X, y = learned_from(self, X, y, multi_output=several, y_numeric=True, ensure_min_samples=2)
        self._columns = y.shape[1:]
        self._learn(X, np.asarray(y, float))
        return self

    def _learn(self, X: np.ndarray, y: np.ndarray) -> None:
        self.operator_ = condition(X, y, kernel_x=self.kernel, ridge=self.ridge)

    def predict(self, X: Data, return_std: bool = False) -> Any:
        """The mean of y at each row, and its standard deviation if requested; Dask arrays for Dask rows."""
        return_std = truth(return_std, "return_std")
        if is_dask(X):
            return (self._mean(X), self._std(X)) if return_std else self._mean(X)
        belief = self._belief(X)
        return (belief.mean(), belief.sd()) if return_std else belief.mean()

    @numbers_by_partition(lambda self: self._columns)
    def _mean(self, X: Data) -> np.ndarray:
        return self._belief(X).mean()

    @numbers_by_partition(lambda self: self._columns)
    def _std(self, X: Data) -> np.ndarray:
        return self._belief(X).sd()

    @numbers_by_partition(lambda _, q: np.shape(q))
    def predict_quantile(self, X: Data, q: Array) -> np.ndarray:
        """Quantiles of y, (n,) for one q and (n, len(q)) for several; of a single column."""
        return self._belief(X).quantile(q)

    @numbers_by_partition(lambda _, grid: np.shape(grid))
    def predict_density(self, X: Data, grid: Array) -> np.ndarray:
        """The density of y on a grid, (n, len(grid))."""
        return self._belief(X).density(grid)

    def sample(self, X: Data, n: int = 1, random_state: Seed = None) -> np.ndarray:
        """n draws of y at each row."""
        return self._belief(X).sample(n, rng=seed_of(random_state))

    def _belief(self, X: Data) -> Any:
        check_is_fitted(self)
        return self.operator_(read(self, X, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several_columns
        return tags
