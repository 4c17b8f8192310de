"""Learning from bags: each row of the training set is a sample that represents a distribution."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from meanmap.core.containers import refuse_unread
from meanmap.core.errors import ShapeError
from meanmap.core.types import Data, Seed
from meanmap.embeddings import Operator, condition
from meanmap.estimators.features import check_kernel, seed_of
from meanmap.estimators.reading import read
from meanmap.features import Features, TwoStage
from meanmap.kernels import Bags, EmbeddingGaussian, Kernel

__all__ = ["BagRegressor", "TwoStageFeatures"]


class BagRegressor(RegressorMixin, BaseEstimator):
    """Distribution regression: each row is a sample, and the response is a number.

    Parameters
    ----------
    kernel : kernel on distributions, optional
        By default a Gaussian of the distance between mean embeddings, at the scale of the bags.
    ridge : float, optional
        λ; by default chosen by leave-one-out.

    Attributes
    ----------
    operator_ : mm.embeddings.Operator
        The operator from bags to responses.

    Notes
    -----
    Szabó, Sriperumbudur, Póczos & Gretton (2016): kernel ridge regression with k(P, Q) = exp(−‖μ_P − μ_Q‖² / 2σ²). It
    computes kernels between all points of all bags: O(points²), 20 s for 10⁵ points. `TwoStageFeatures` before a linear
    model costs O(points).

    X is a list of bags, each a list of numbers or an (nᵢ, d) array; sizes may vary, and new bags may have other sizes.
    In a plain (n, m) array each row is an unordered bag of m numbers, and by scikit-learn's rules new rows must have m
    numbers too: pass list(X) for other sizes.

    Examples
    --------
    Predict the standard deviation of the distribution of each sample:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scales = rng.uniform(0.5, 2.0, size=60)
    >>> bags = [rng.normal(0.0, scale, size=rng.integers(30, 60)) for scale in scales]
    >>> model = BagRegressor().fit(bags[:50], scales[:50])
    >>> bool(np.abs(model.predict(bags[50:]) - scales[50:]).mean() < 0.2)
    True
    """

    operator_: Operator
    kernel_: Any

    def __init__(self, kernel: Kernel | None = None, ridge: float | None = None):
        self.kernel = kernel
        self.ridge = ridge

    def fit(self, X: Data, y: Data) -> "BagRegressor":
        """Fit to n bags and their responses."""
        if _is_plain(X):
            rows, y = read(self, X, y, y_numeric=True, ensure_min_samples=2)
            X = np.expand_dims(rows, 2)
        bags = Bags(X, "X")
        y = column_or_1d(y, dtype=np.float64)
        check_consistent_length(bags.weights, y)
        self.columns_ = bags.dimension
        self.kernel_ = EmbeddingGaussian.at_scale_of(bags) if self.kernel is None else self.kernel
        self.operator_ = condition(bags, y, kernel_x=self.kernel_, ridge=self.ridge)
        return self

    def predict(self, X: Data) -> np.ndarray:
        """The predicted response of each bag."""
        check_is_fitted(self)
        return self.operator_(_new_bags(self, X)).mean()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # in a plain matrix it ignores the order of the columns
        return tags


class TwoStageFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random features of the distribution from which each row is a sample, for a subsequent linear model.

    Parameters
    ----------
    kernel : kernel on distributions, optional
        By default a Gaussian of the distance between mean embeddings, at the scale of the bags.
    n_inner, n_components : int
        Numbers of features in the first stage, the mean embeddings, and in the second, the Gaussian of these.
    random_state : int, RandomState or None
        Seed of the features.

    Attributes
    ----------
    features_ : mm.features.Features
        `mm.features.TwoStage.draw(kernel, bags, n_inner, n_components)`.

    Notes
    -----
    Jitkrittum et al. (2015), Algorithm 1, for empirical distributions: O(points · n_inner + n · n_inner · n_components)
    where `BagRegressor` costs the squared number of bags. Bags are passed as in `BagRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> scales = rng.uniform(0.5, 2.0, size=60)
    >>> bags = [rng.normal(0.0, scale, size=rng.integers(30, 60)) for scale in scales]
    >>> model = make_pipeline(TwoStageFeatures(random_state=0), Ridge(1e-2)).fit(bags[:50], scales[:50])
    >>> bool(np.abs(model.predict(bags[50:]) - scales[50:]).mean() < 0.2)
    True
    """

    kernel_: Any
    features_: Features

    def __init__(
        self, kernel: Kernel | None = None, n_inner: int = 300, n_components: int = 500, random_state: Seed = None
    ):
        self.kernel = kernel
        self.n_inner = n_inner
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Data, y: Data = None) -> "TwoStageFeatures":
        """Choose the kernel from the bags, and draw features."""
        check_kernel(self.kernel, "mm.kernels.EmbeddingGaussian()")
        if _is_plain(X):
            X = np.expand_dims(read(self, X, ensure_min_samples=2), 2)
        bags = Bags(X, "X")
        self.columns_ = bags.dimension
        self.kernel_ = EmbeddingGaussian.at_scale_of(bags) if self.kernel is None else self.kernel
        kind = "cos-phase" if self.n_inner % 2 or self.n_components % 2 else "cos-sin"
        seed = seed_of(self.random_state)
        self.features_ = TwoStage.draw(self.kernel_, bags, self.n_inner, self.n_components, kind, rng=seed)
        return self

    def transform(self, X: Data) -> np.ndarray:
        """The features of each bag, (n, n_components)."""
        check_is_fitted(self)
        return np.asarray(self.features_(_new_bags(self, X)))

    @property
    def _n_features_out(self) -> int:
        return self.features_.size


def _new_bags(estimator: Any, X: Data) -> Bags:
    """Bags like those of the fit."""
    if _is_plain(X) and hasattr(estimator, "n_features_in_"):
        X = np.expand_dims(read(estimator, X, reset=False), 2)
    bags = Bags(X, "X")
    if bags.dimension != estimator.columns_:
        raise ShapeError(f"X has bags of {bags.dimension} columns; the model was fitted to {estimator.columns_}.")
    return bags


def _is_plain(X: Data) -> bool:
    """Whether X is one matrix, or can be read as one, rather than a list of samples."""
    refuse_unread(X, "X")
    if isinstance(X, list | tuple) and X and all(np.ndim(bag) for bag in X if not issparse(bag)):
        return False  # one bag, or bags that happen to be of equal size, are not a matrix
    try:
        array = np.asarray(X)
    except ValueError:  # samples of several sizes
        return False
    return array.ndim in (0, 2) or (array.ndim == 1 and array.dtype != object)
