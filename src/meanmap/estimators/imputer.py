"""Filling in tables, for scikit-learn's pipelines."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from meanmap.bp.conditionals.dependency_network import DependencyNetwork, FittedDependencyNetwork
from meanmap.core.types import Data
from meanmap.estimators.reading import read

__all__ = ["DependencyNetworkImputer"]

LEAST_ROWS = 10


class DependencyNetworkImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Missing numbers filled in by what the others of their row say: `mm.bp.DependencyNetwork` as a transformer.

    Parameters
    ----------
    regressions : sequence of scikit-learn regressors, optional
        As of `mm.bp.DependencyNetwork`: forests, trees, nearest neighbours.

    Attributes
    ----------
    model_ : FittedDependencyNetwork
        For beliefs, scores and draws: `imputer.model_.predict(X, targets=["0"])`, columns being called by their number.

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

    def fit(self, X: Data, y: Any = None) -> "DependencyNetworkImputer":
        """Learn from a table of numbers with gaps; at least ten rows and two columns."""
        del y
        rows = read(self, X, ensure_all_finite="allow-nan", ensure_min_samples=LEAST_ROWS, ensure_min_features=2)
        self.model_ = DependencyNetwork(self.regressions).fit(rows)
        return self

    def transform(self, X: Data) -> np.ndarray:
        """The table with its gaps filled by means."""
        check_is_fitted(self)
        return self.model_.impute(read(self, X, ensure_all_finite="allow-nan", reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
