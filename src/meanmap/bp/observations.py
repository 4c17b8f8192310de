"""What an observation says about the variable behind it: likelihoods learned from pairs (hidden, observed).

The message of an observed node is p(observed | x), up to a factor (Song et al. 2011, appendix, equation 28). Three ways
to learn it, and any function of the user's:

- `LearnedLikelihood`: the likelihood operator, a density ratio in two kernels; for data of any kind;
- `NoiseLikelihood`: observed = f(x) + Gaussian noise, f a regression; best where noise is additive;
- `CentredLikelihood`: observed features are first regressed to a guess x̂ of x, then x̂ = f(x) + Gaussian noise; for
  patches and other long vectors, of which it keeps what says something about x.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from meanmap.bp.samples import NodeSample
from meanmap.bp.variables import coordinates, rescaled, searched, transformed
from meanmap.core.arrays import as_array, check_finite
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.points import count, rows
from meanmap.embeddings.conditional import spread_rows
from meanmap.embeddings.likelihood import held_out_errors
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import check_alike, read_points
from meanmap.learning.default import kernel_for
from meanmap.linalg.ridge import Ridge
from meanmap.linalg.ridge_path import choose_ridge_features

__all__ = ["CentredLikelihood", "LearnedLikelihood", "Likelihood", "NoiseLikelihood", "UserLikelihood"]

# Likelihoods are learned from up to so many pairs: one function of two variables needs no more.
MOST_ROWS = 4000
MOST_FEATURES = 300
TOLERANCE = 1e-8
# Multiples of the median distance among which lengthscales are chosen.
OPERATOR_LENGTHSCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)
REGRESSION_LENGTHSCALES = (0.25, 0.5, 1.0, 2.0)
RIDGES = np.geomspace(1e-5, 1e-1, 9)
FOLDS = 10
# A density ratio estimated from data dips below zero where it is nearly zero.
LEAST = 1e-3


class Likelihood(ABC):
    """p(observed | x) as a function of x, up to a factor."""

    @abstractmethod
    def at(self, observed: Any, points: Any) -> np.ndarray:
        """Values (N, n) for N observations and n points x that were read, the largest of each row 1."""

    def at_each(self, observed: Any, points: np.ndarray) -> np.ndarray:
        """The same where each observation has points of its own, (N, n, d); a row may be zero at all of them."""
        return np.concatenate([self.at(observed[i : i + 1], points[i]) for i in range(len(points))])


@dataclass(frozen=True, eq=False)
class UserLikelihood(Likelihood):
    """Any function: (N, ...) observations and (n,) or (n, d) points give (N, n) values of at least 0."""

    function: Callable[[Any, Any], Any]

    def at(self, observed: Any, points: Any) -> np.ndarray:
        """What the function gives, checked."""
        values = self._values(observed, points)
        top = values.max(axis=1)
        if not (top > 0).all():
            raise InputError(f"the likelihood of observation {int(np.argmin(top))} is zero at every point.")
        return values / top[:, None]

    def at_each(self, observed: Any, points: np.ndarray) -> np.ndarray:
        """What the function gives for each observation."""
        values = np.concatenate([self._values(observed[i : i + 1], points[i]) for i in range(len(points))])
        top = values.max(axis=1, keepdims=True)
        return values / np.where(top > 0, top, 1)

    def _values(self, observed: Any, points: Any) -> np.ndarray:
        x = points[:, 0] if isinstance(points, np.ndarray) and points.shape[1:] == (1,) else points
        values = as_array(self.function(observed, x), "the likelihood")
        shape = (len(observed), count(points))
        if values.shape != shape:
            raise ShapeError(
                f"the likelihood gave shape {values.shape}; expected {shape}: a row for each observation, a column for "
                "each point."
            )
        check_finite(values, "the likelihood")
        if (values < 0).any():
            raise InputError(f"the likelihood has the negative value {values.min():.3g}.")
        return values


@dataclass(frozen=True, eq=False)
class LearnedLikelihood(Likelihood):
    """The likelihood operator: φ(y)ᵀ M ψ(x), M = (C_yy + λ I)⁻¹ C_yx (C_xx + λ I)⁻¹ (Song et al. 2010, equation 8).

    An estimate of p(x, y) / (p(x) p(y)); both lengthscales by one multiple of their medians, and the ridge relative to
    each kernel's size, have the least held-out error of it. Made by `LearnedLikelihood.fit`.
    """

    observed: NodeSample
    phi: PivotedCholesky
    psi: PivotedCholesky
    matrix: np.ndarray
    ridge: float
    multiple: float

    @classmethod
    def fit(cls, hidden: Any, observed: Any, kernel: Kernel | None = None) -> "LearnedLikelihood":
        """From pairs; `kernel` is that of the observations, by default RBF, or Delta for labels.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=400)
        >>> likelihood = LearnedLikelihood.fit(x, x + 0.5 * rng.normal(size=400))
        >>> low, high = likelihood.at([1.0], np.array([[-1.0], [1.0]]))[0]
        >>> bool(low < 0.2 < high)
        True
        """
        return cls.between(_sample(hidden, None, "hidden"), _sample(observed, kernel, "observed"))

    @classmethod
    def between(cls, hidden: NodeSample, observed: NodeSample, pairs: np.ndarray | None = None) -> "LearnedLikelihood":
        """From samples that were read, `pairs` (m, 2) rows (observed, hidden) of them."""
        if pairs is None:
            _check_pairs(hidden.count, observed.count)
            pairs = np.repeat(np.arange(hidden.count)[:, None], 2, axis=1)
        pairs = pairs[spread_rows(len(pairs), MOST_ROWS)]
        folds = np.arange(len(pairs)) % FOLDS
        seen = [rows(observed.points, pairs[:, 0]), rows(hidden.points, pairs[:, 1])]
        best: tuple[float, float, int, Any] = (np.inf, 1.0, 0, ())
        for multiple in OPERATOR_LENGTHSCALES if searched(observed) or searched(hidden) else (1.0,):
            kernels = [rescaled(sample, multiple) for sample in (observed, hidden)]
            features = [coordinates(k, p, TOLERANCE, MOST_FEATURES) for k, p in zip(kernels, seen, strict=True)]
            phi, psi = (transformed(f, p) for f, p in zip(features, seen, strict=True))
            grids = [RIDGES * np.sum(f**2) / len(f) for f in (phi, psi)]
            scores = np.mean([held_out_errors(phi, psi, folds == i, *grids) for i in np.unique(folds)], axis=0)
            at = int(np.argmin(scores))
            if scores[at] < best[0]:
                best = (float(scores[at]), multiple, at, (features, phi, psi, grids))
        features, phi, psi, grids = best[3]
        left = Ridge.factor_features(phi, ridge=grids[0][best[2]]).solve(phi.T @ psi / len(phi))
        matrix = Ridge.factor_features(psi, ridge=grids[1][best[2]]).solve(left.T).T
        return cls(observed, features[0], features[1], matrix, float(grids[0][best[2]]), best[1])

    def at(self, observed: Any, points: Any) -> np.ndarray:
        """The density ratio; where it comes out small or negative, `LEAST` of the largest."""
        with Door() as door:
            read = read_points(self.observed.kernel, observed, "observed", door)
        check_alike(read, self.observed.points, "the observations", "those that were learned from")
        return self.at_points(read, points)

    def at_each(self, observed: Any, points: np.ndarray) -> np.ndarray:
        """The same at points of each observation, all at once."""
        with Door() as door:
            read = read_points(self.observed.kernel, observed, "observed", door)
        there = transformed(self.psi, points.reshape(-1, points.shape[-1])).reshape(*points.shape[:2], -1)
        return _positive(np.einsum("ir,ijr->ij", transformed(self.phi, read) @ self.matrix, there))

    def at_points(self, read: Any, points: Any) -> np.ndarray:
        """The same for observations that were read."""
        return _positive(transformed(self.phi, read) @ self.matrix @ transformed(self.psi, points).T)


def _positive(values: np.ndarray) -> np.ndarray:
    """Scaled rows of a density ratio. Nothing positive is left far from all that was seen: that says nothing."""
    top = values.max(axis=1, keepdims=True)
    return np.where(top > 0, np.maximum(values / np.where(top > 0, top, 1), LEAST), 1.0)


@dataclass(frozen=True, eq=False)
class NoiseLikelihood(Likelihood):
    """observed = f(x) + noise: f by regression, the noise Gaussian with the covariance of what is left.

    Made by `NoiseLikelihood.fit`. `covariance` is that of leave-one-out residuals.
    """

    regression: "Regression"
    covariance: np.ndarray

    @classmethod
    def fit(cls, hidden: Any, observed: Any) -> "NoiseLikelihood":
        """From pairs of a hidden variable of any kind and numbers or vectors.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=1000)
        >>> likelihood = NoiseLikelihood.fit(x, 2 * x + 0.5 * rng.normal(size=1000))
        >>> likelihood.covariance.round(1).tolist()
        [[0.3]]
        """
        return cls.of(_sample(hidden, None, "hidden"), _numbers(observed, "observed"))

    @classmethod
    def of(cls, hidden: NodeSample, observed: np.ndarray) -> "NoiseLikelihood":
        """From a sample that was read and vectors (m, d)."""
        _check_pairs(hidden.count, len(observed))
        regression, left = Regression.fit(hidden, observed)
        covariance = left.T @ left / len(left)
        # A direction without any noise would make one value certain: a millionth of the spread keeps it a density.
        covariance += 1e-6 * np.diag(np.maximum(observed.var(axis=0), np.finfo(float).tiny))
        return cls(regression, covariance)

    def at(self, observed: Any, points: Any) -> np.ndarray:
        """exp(−½ (y − f(x))ᵀ Σ⁻¹ (y − f(x))), scaled."""
        a, b = self._whitened(observed, points)
        squares = np.sum(b**2, axis=1) - 2 * a @ b.T  # |a|² is a factor of each row
        squares -= squares.min(axis=1, keepdims=True)
        return np.exp(-squares / 2)

    def at_each(self, observed: Any, points: np.ndarray) -> np.ndarray:
        """The same at points of each observation, all at once."""
        a, b = self._whitened(observed, points.reshape(-1, points.shape[-1]))
        squares = np.sum((a[:, None] - b.reshape(*points.shape[:2], -1)) ** 2, axis=2)
        squares -= squares.min(axis=1, keepdims=True)
        return np.exp(-squares / 2)

    def _whitened(self, observed: Any, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """Observations, and what is expected at points, in units of the noise."""
        y = _numbers(observed, "observed")
        triangle = scipy.linalg.cholesky(self.covariance, lower=True)
        if y.shape[1] != len(triangle):
            raise ShapeError(f"the observations have {y.shape[1]} columns; expected {len(triangle)} as when learned.")
        a, b = (scipy.linalg.solve_triangular(triangle, v.T, lower=True).T for v in (y, self.regression(points)))
        return a, b


@dataclass(frozen=True, eq=False)
class CentredLikelihood(Likelihood):
    """A guess x̂(observed) by regression, and the noise of that guess given x.

    Song et al. (2011), appendix 1, centre a Gaussian at x̂. As a likelihood that counts p(x) twice, because x̂ is drawn
    towards the mean; here x̂ is an observation of its own, x̂ = f(x) + noise, learned from leave-one-out guesses. Made by
    `CentredLikelihood.fit`.
    """

    regression: "Regression"
    noise: NoiseLikelihood

    @classmethod
    def fit(cls, hidden: Any, observed: Any, kernel: Kernel | None = None) -> "CentredLikelihood":
        """From pairs of numbers or vectors, and observations of any kind; `kernel` is that of the observations.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=500)
        >>> patch = x[:, None] + rng.normal(size=(500, 4))
        >>> likelihood = CentredLikelihood.fit(x, patch)
        >>> low, high = likelihood.at(np.ones((1, 4)), np.array([[-1.0], [1.0]]))[0]
        >>> bool(low < 0.1 < high)
        True
        """
        x = _numbers(hidden, "hidden")
        seen = _sample(observed, kernel, "observed")
        _check_pairs(len(x), seen.count)
        regression, left = Regression.fit(seen, x)
        chosen = spread_rows(len(x), MOST_ROWS)
        return cls(regression, NoiseLikelihood.of(_sample(x[chosen], None, "hidden"), x[chosen] - left))

    def at(self, observed: Any, points: Any) -> np.ndarray:
        """p(x̂ | x)."""
        return self.noise.at(self._guess(observed), points)

    def at_each(self, observed: Any, points: np.ndarray) -> np.ndarray:
        """The same at points of each observation, all at once."""
        return self.noise.at_each(self._guess(observed), points)

    def _guess(self, observed: Any) -> np.ndarray:
        """x̂ of each observation."""
        sample = self.regression.sample
        with Door() as door:
            read = read_points(sample.kernel, observed, "observed", door)
        check_alike(read, sample.points, "the observations", "those that were learned from")
        return self.regression(read)


@dataclass(frozen=True, eq=False)
class Regression:
    """x ↦ a + b·x + φ(x)ᵀ w: a straight line where x is a number or vector, and a kernel regression of what it leaves.

    Whatever error the regression has, all likelihoods share it: the kernel's part, of least leave-one-out error, is
    kept only where it lowers that error of the line by more than two standard errors.
    """

    sample: NodeSample
    line: np.ndarray
    features: PivotedCholesky | None
    weights: np.ndarray | None

    @classmethod
    def fit(cls, sample: NodeSample, targets: np.ndarray) -> tuple["Regression", np.ndarray]:
        """The regression, and its leave-one-out residuals at (up to `MOST_ROWS` of) the points."""
        chosen = spread_rows(len(targets), MOST_ROWS)
        points, values = rows(sample.points, chosen), targets[chosen]
        design = _design(points)
        basis = np.linalg.qr(design)[0]
        line = np.linalg.lstsq(design, values)[0]
        straight = values - design @ line
        free = 1 - np.sum(basis**2, axis=1)
        left = straight / np.maximum(free, LEAST)[:, None]
        scale = np.maximum(values.std(axis=0), np.finfo(float).tiny)
        best: tuple[float, Any] = (np.inf, None)
        for multiple in REGRESSION_LENGTHSCALES if searched(sample) else (1.0,):
            features = coordinates(rescaled(sample, multiple), points, TOLERANCE, MOST_FEATURES)
            phi = transformed(features, points)
            path = choose_ridge_features(phi, straight / scale)
            if path.scores.min() < best[0]:
                best = (float(path.scores.min()), (features, phi, float(path.best)))
        features, phi, ridge = best[1]
        solved = Ridge.factor_features(phi, ridge=ridge).solve(phi.T).T / len(phi)
        weights = solved.T @ straight
        curved = (straight - phi @ weights) / np.maximum(free - np.sum(phi * solved, axis=1), LEAST)[:, None]
        gain = np.sum((left / scale) ** 2 - (curved / scale) ** 2, axis=1)
        if gain.mean() > 2 * gain.std() / np.sqrt(len(gain)):
            return cls(sample, line, features, weights), curved
        return cls(sample, line, None, None), left

    @property
    def width(self) -> int:
        """How many columns the points have; 1 where they are no vectors."""
        points = self.sample.points
        return points.shape[1] if isinstance(points, np.ndarray) and points.ndim == 2 else 1

    def __call__(self, points: Any) -> np.ndarray:
        """The regression at points that were read, (n, d)."""
        straight = _design(points) @ self.line
        if self.features is None or self.weights is None:
            return straight
        return straight + transformed(self.features, points) @ self.weights


def _design(points: Any) -> np.ndarray:
    """Ones, and the columns of numbers or vectors."""
    ones = np.ones((count(points), 1))
    is_vector = isinstance(points, np.ndarray) and points.ndim == 2 and points.dtype.kind == "f"
    return np.concatenate([ones, points], axis=1) if is_vector else ones


def _sample(data: Any, kernel: Kernel | None, argument: str) -> NodeSample:
    kernel_or_default = kernel_for(data) if kernel is None else kernel
    with Door() as door:
        points = read_points(kernel_or_default, data, argument, door)
    return NodeSample(kernel_or_default, points, np.ndim(data) == 1, kernel is not None)


def _numbers(data: Any, argument: str) -> np.ndarray:
    array = as_array(data, argument).astype(np.float64)
    check_finite(array, argument)
    if array.ndim not in (1, 2):
        raise ShapeError(f"{argument} has shape {array.shape}; expected (m,) numbers or (m, d) vectors.")
    return array.reshape(len(array), -1)


def _check_pairs(hidden: int, observed: int) -> None:
    if hidden != observed:
        raise ShapeError(f"hidden has {hidden} points and observed {observed}; expected pairs.")


def read_likelihood(given: Any) -> Any:
    """A likelihood, a class of them to learn, or a function."""
    if isinstance(given, Likelihood) or (isinstance(given, type) and issubclass(given, Likelihood)):
        return given
    if callable(given):
        return UserLikelihood(given)
    raise KindError(
        f"likelihood is {given!r}; expected mm.bp.NoiseLikelihood, CentredLikelihood or LearnedLikelihood (learned "
        "from pairs), one that was fitted, or a function of observations (N, ...) and points (n,) that gives (N, n)."
    )
