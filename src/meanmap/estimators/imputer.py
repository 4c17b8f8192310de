"""Imputation of tables, for scikit-learn's pipelines."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from meanmap.bp.conditionals.dependency_network import DependencyNetwork
from meanmap.bp.conditionals.fitted_dependency import FittedDependencyNetwork
from meanmap.bp.kernel.fitted_graph import FittedKernelGraph
from meanmap.core.types import Data
from meanmap.estimators.reading import read
from meanmap.estimators.trees import learned_tree

__all__ = ["DependencyNetworkImputer", "KernelGraphImputer"]

LEAST_ROWS = 10


class _Imputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):
    """Missing numbers replaced by the means of a model's beliefs."""

    model_: Any

    def fit(self, X: Data, y: object = None) -> Any:
        """Learn from a table of numbers with missing values; at least ten rows and two columns."""
        del y
        rows = read(self, X, ensure_all_finite="allow-nan", ensure_min_samples=LEAST_ROWS, ensure_min_features=2)
        self._learn(rows)
        return self

    @abstractmethod
    def _learn(self, rows: np.ndarray) -> None:
        """Learn from validated rows."""

    def transform(self, X: Data) -> np.ndarray:
        """The table with missing numbers replaced by means."""
        check_is_fitted(self)
        return self._filled(read(self, X, ensure_all_finite="allow-nan", reset=False))

    def _filled(self, rows: np.ndarray) -> np.ndarray:
        return self.model_.impute(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class DependencyNetworkImputer(_Imputer):
    """Missing numbers imputed from the other cells of their row: `mm.bp.DependencyNetwork` as a transformer.

    Parameters
    ----------
    regressions : sequence of scikit-learn regressors, optional
        As for `mm.bp.DependencyNetwork`: forests, trees, nearest neighbours.

    Attributes
    ----------
    model_ : FittedDependencyNetwork
        For beliefs, scores and draws: `imputer.model_.predict(X, targets=["0"])`; columns are named by their number.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 2))
    >>> imputer = DependencyNetworkImputer().fit(x)
    >>> imputer.transform([[1.0, np.nan]]).round(1).tolist()
    [[1.0, 1.0]]
    """

    model_: FittedDependencyNetwork

    def __init__(self, regressions: Sequence[Any] | None = None):
        self.regressions = regressions

    def _learn(self, rows: np.ndarray) -> None:
        self.model_ = DependencyNetwork(self.regressions).fit(rows)


class KernelGraphImputer(_Imputer):
    """Missing numbers imputed along a Chow-Liu tree of the columns: `mm.KernelGraph` as a transformer.

    Attributes
    ----------
    model_ : FittedKernelGraph
        For beliefs, scores and draws: `imputer.model_.predict(X, targets=[0])`; columns are named by their number.
    constants_ : dict
        Constant columns, which are not part of the tree: their numbers and values.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, size=(200, 1))
    >>> imputer = KernelGraphImputer().fit(np.hstack([x, x**2]))
    >>> imputer.transform([[1.5, np.nan]]).round(1).tolist()
    [[1.5, 2.2]]
    """

    model_: FittedKernelGraph
    constants_: dict[int, float]

    def _learn(self, rows: np.ndarray) -> None:
        self.model_ = learned_tree(rows)
        tree = set(self.model_.graph.names)
        first = {j: column[~np.isnan(column)] for j, column in enumerate(rows.T) if j not in tree}
        self.constants_ = {j: float(values[0]) if len(values) else 0.0 for j, values in first.items()}

    def _filled(self, rows: np.ndarray) -> np.ndarray:
        found = self.model_.impute(rows)
        for j, value in self.constants_.items():
            found[np.isnan(found[:, j]), j] = value
        return found
