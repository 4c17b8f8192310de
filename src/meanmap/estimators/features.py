"""Finite features of a kernel as transformers."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from meanmap.core.errors import ParameterError
from meanmap.core.pieces.row_by_row import numbers_by_partition, refuse_frames
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.estimators.reading import learned_from, read
from meanmap.features import Features, Fourier, PivotedCholesky
from meanmap.kernels import RBF, Kernel
from meanmap.learning.default import unit_free_kernel
from meanmap.learning.learn import LearnedKernel, learn_kernel
from meanmap.learning.learned import learned_in_units

__all__ = ["FourierFeatures", "LearnedFeatures", "LowRankFeatures", "check_kernel", "seed_of"]

# With fewer rows no lengthscale can be chosen.
LEAST = 10


class _KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Map rows of numbers to features φ with φ(x)·φ(y) ≈ k(x, y)."""

    kernel: Any
    features_: Features

    def fit(self, X: Data, y: Data = None) -> Any:
        """Choose the features from at most 100,000 rows of X, which may also be Parquet files or a Dask collection."""
        X = learned_from(self, X)
        self.kernel_ = _kernel_at(self.kernel, X)
        self.features_ = self._features(X)
        return self

    def transform(self, X: Data) -> np.ndarray:
        """The features of each row, (n, D); a Dask array for a Dask collection."""
        check_is_fitted(self)
        kind = getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        if kind != "default":
            refuse_frames(X, kind)
        return self._of_rows(X)

    @numbers_by_partition(lambda self: (self.features_.size,))
    def _of_rows(self, X: Data) -> np.ndarray:
        return np.asarray(self.features_(read(self, X, reset=False)))

    @abstractmethod
    def _features(self, X: np.ndarray) -> Features:
        """Features chosen from the rows of X."""

    @property
    def _n_features_out(self) -> int:
        return self.features_.size


class FourierFeatures(_KernelFeatures):
    """Random Fourier features of a shift-invariant kernel (Rahimi & Recht 2007).

    Parameters
    ----------
    kernel : Kernel, optional
        Such as `mm.kernels.Matern(2.0)`; by default RBF at the median distance, one for each column if there are
        several, so that units do not matter.
    n_components : int
        The number of features: cosines and sines of half as many frequencies, or, if odd, cosines with random shifts.
    random_state : int, RandomState or None
        Seed of the frequencies.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that was used.
    features_ : mm.features.Fourier
        The features.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> x = np.linspace(-3, 3, 200)[:, None]
    >>> y = np.sin(2 * x[:, 0])
    >>> model = make_pipeline(FourierFeatures(random_state=0), Ridge(1e-3)).fit(x, y)
    >>> bool(model.score(x, y) > 0.99)
    True
    """

    def __init__(self, kernel: Kernel | None = None, n_components: int = 100, random_state: Seed = None):
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def _features(self, X: np.ndarray) -> Features:
        kind = "cos-phase" if self.n_components % 2 else "cos-sin"
        return Fourier.draw(self.kernel_, X, self.n_components, kind, rng=seed_of(self.random_state))


class LowRankFeatures(_KernelFeatures):
    """Features of any kernel by pivoted incomplete Cholesky, to a certified error.

    Parameters
    ----------
    kernel : Kernel, optional
        By default RBF at the median distance, one for each column if there are several, so that units do not matter.
    tolerance : float
        Stop when trace(K − Φ Φᵀ) ≤ tolerance · trace(K).
    max_rank : int
        The largest number of features.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that was used.
    features_ : mm.features.PivotedCholesky
        The features; `features_.report` gives their error.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> phi = LowRankFeatures(tolerance=1e-4).fit(x)
    >>> bool(np.abs(phi.transform(x) @ phi.transform(x).T - phi.kernel_(x)).max() < 0.01)
    True
    """

    def __init__(self, kernel: Kernel | None = None, tolerance: float = 1e-6, max_rank: int = 500):
        self.kernel = kernel
        self.tolerance = tolerance
        self.max_rank = max_rank

    def _features(self, X: np.ndarray) -> Features:
        return PivotedCholesky.fit(self.kernel_, X, tolerance=self.tolerance, max_rank=min(self.max_rank, len(X)))


class LearnedFeatures(LowRankFeatures):
    """Low-rank features of a kernel whose lengthscale or lengthscales are learned from the rows, without labels.

    Parameters
    ----------
    kernel : Kernel, optional
        The kind of kernel, such as `mm.kernels.RBF([1.0, 1.0])` for one lengthscale per column; by default RBF with
        one, in the units of the columns.
    tolerance, max_rank :
        As for `LowRankFeatures`.
    random_state : int, RandomState or None
        Draws the landmarks of `learn_kernel`.

    Attributes
    ----------
    learned_ : mm.learning.LearnedKernel
        All modes, and caveats; by default for columns in units of √d times their median distances.
    kernel_ : Kernel
        The kernel at the highest mode.
    features_ : mm.features.PivotedCholesky
        Its features.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 1))
    >>> phi = LearnedFeatures(random_state=0).fit(x)
    >>> bool(0.1 < phi.kernel_.lengthscale < 10), phi.transform(x).shape == (100, phi.features_.size)
    (True, True)
    """

    learned_: LearnedKernel

    def __init__(
        self, kernel: Kernel | None = None, tolerance: float = 1e-6, max_rank: int = 500, random_state: Seed = None
    ):
        super().__init__(kernel, tolerance, max_rank)
        self.random_state = random_state

    def fit(self, X: Data, y: Data = None) -> Any:
        """Learn the kernel from the rows of X, and choose features."""
        X = learned_from(self, X, ensure_min_samples=LEAST)
        check_kernel(self.kernel, "mm.kernels.RBF(1.0)")
        seed = seed_of(self.random_state)
        if self.kernel is None and X.shape[1] > 1 and np.ptp(X, axis=0).any():
            self.kernel_, self.learned_ = learned_in_units(X, seed)
        else:
            self.learned_ = learn_kernel(X, self.kernel, rng=seed)
            self.kernel_ = self.learned_.kernel
        self.features_ = self._features(X)
        return self


def _kernel_at(kernel: Kernel | None, X: np.ndarray) -> Kernel:
    """The kernel, or RBF at the median distance, one for each column if there are several; a single row, or equal rows,
    get the lengthscale 1.
    """
    if kernel is None:
        distinct = len(X) > 1 and bool(np.ptp(X, axis=0).any())
        return unit_free_kernel(X, "X") if distinct else RBF(1.0)
    check_kernel(kernel, "mm.kernels.RBF(1.0)")
    return kernel


def check_kernel(kernel: KernelLike, example: str) -> None:
    """Refuse anything but a kernel or None."""
    if kernel is not None and not isinstance(kernel, Kernel):
        raise ParameterError(f"kernel is {kernel!r}; expected a kernel such as {example}, or None.")


def seed_of(random_state: Seed) -> int:
    """One seed from scikit-learn's random state."""
    return int(check_random_state(random_state).randint(2**31 - 1))
