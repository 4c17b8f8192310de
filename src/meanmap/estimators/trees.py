"""Trees of kernels as scikit-learn's regressors and classifiers: any cell of a row may be missing."""

from abc import ABC
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from meanmap.bp.kernel.fitted_graph import FittedKernelGraph
from meanmap.bp.kernel.kernel_graph import KernelGraph
from meanmap.core.types import Array, Data
from meanmap.estimators.reading import read
from meanmap.structure.chow_liu import chow_liu

__all__ = ["KernelGraphClassifier", "KernelGraphRegressor", "learned_tree"]

LEAST_ROWS = 10
TARGET = "y"


def learned_tree(table: Data) -> FittedKernelGraph:
    """A table's Chow-Liu tree, without columns that do not vary, with learned operators."""
    return KernelGraph(chow_liu(table, rng=0)).fit(table)


class _KernelGraphPredictor(BaseEstimator, ABC):
    """Predicts one column from all others, along the tree of all columns."""

    model_: FittedKernelGraph | None

    def _learn(self, X: np.ndarray, target: np.ndarray) -> None:
        """The tree, or None if the target or all other columns are constant."""
        varying = [bool(np.ptp(column[~np.isnan(column)])) if (~np.isnan(column)).any() else False for column in X.T]
        dull = not any(varying) or len(np.unique(target)) < 2
        self.model_ = None if dull else learned_tree({**_columns(X), TARGET: target})

    def _belief(self, X: np.ndarray) -> Any:
        model: Any = self.model_
        return model.predict(_columns(X), [TARGET])[TARGET]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class KernelGraphRegressor(RegressorMixin, _KernelGraphPredictor):
    """The distribution of a number given the observed cells of its row, along the Chow-Liu tree of all columns.

    Without missing cells it uses only the neighbours of the target in the tree; `ConditionalMeanRegressor` uses all
    columns, and accepts no missing cells.

    Attributes
    ----------
    model_ : FittedKernelGraph or None
        The tree over columns "0", "1", ... and "y"; None if y, or all columns, do not vary.
    mean_ : float
        The prediction in that case.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, size=(200, 1))
    >>> model = KernelGraphRegressor().fit(np.hstack([x, x + 0.1 * rng.normal(size=(200, 1))]), x[:, 0] ** 2)
    >>> model.predict([[1.5, 1.5], [np.nan, 1.5]]).round(0).tolist()
    [2.0, 2.0]
    """

    mean_: float

    def fit(self, X: Data, y: Data) -> "KernelGraphRegressor":
        """Learn from n rows; cells of X may be missing."""
        X, y = read(self, X, y, y_numeric=True, ensure_all_finite="allow-nan", ensure_min_samples=LEAST_ROWS)
        y = np.asarray(y, dtype=float)
        self.mean_ = float(y.mean())
        self._learn(X, y)
        return self

    def predict(self, X: Data) -> np.ndarray:
        """The mean of y at each row."""
        check_is_fitted(self)
        X = read(self, X, ensure_all_finite="allow-nan", reset=False)
        return np.full(len(X), self.mean_) if self.model_ is None else np.asarray(self._belief(X).mean())

    def predict_quantile(self, X: Data, q: Array) -> np.ndarray:
        """Quantiles of y, (n,) for one q and (n, len(q)) for several."""
        check_is_fitted(self)
        X = read(self, X, ensure_all_finite="allow-nan", reset=False)
        return np.full((len(X), *np.shape(q)), self.mean_) if self.model_ is None else self._belief(X).quantile(q)


class KernelGraphClassifier(ClassifierMixin, _KernelGraphPredictor):
    """Probabilities of classes given the observed cells of a row, along the Chow-Liu tree of all columns.

    Attributes
    ----------
    classes_ : array (K,)
    model_ : FittedKernelGraph or None
        The tree over columns "0", "1", ... and "y"; None if y, or all columns, do not vary.
    shares_ : array (K,)
        Shares of the classes among the rows: the prediction in that case.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))
    >>> model = KernelGraphClassifier().fit(x, np.where(np.abs(x[:, 0]) < 0.7, "near", "far"))
    >>> model.predict([[0.1, np.nan], [-2.0, 1.0]]).tolist()
    ['near', 'far']
    """

    classes_: np.ndarray
    shares_: np.ndarray

    def fit(self, X: Data, y: Data) -> "KernelGraphClassifier":
        """Learn from n rows; cells of X may be missing."""
        X, y = read(self, X, y, ensure_all_finite="allow-nan", ensure_min_samples=LEAST_ROWS)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.shares_ = np.bincount(codes) / len(codes)
        self._learn(X, codes.astype(str))
        return self

    def predict_proba(self, X: Data) -> np.ndarray:
        """The probability of each class at each row, (n, K)."""
        check_is_fitted(self)
        X = read(self, X, ensure_all_finite="allow-nan", reset=False)
        if self.model_ is None:
            return np.tile(self.shares_, (len(X), 1))
        each = self._belief(X).probabilities()
        return np.stack([each[str(code)] for code in range(len(self.classes_))], axis=1)

    def predict(self, X: Data) -> np.ndarray:
        """The most probable class at each row."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _columns(X: np.ndarray) -> dict[str, np.ndarray]:
    return {str(j): column for j, column in enumerate(X.T)}
