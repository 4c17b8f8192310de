"""Regression of numbers with outliers: Student noise, whose scale is integrated out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from meanmap.core.arrays import parameter
from meanmap.core.errors import ColumnError, InputError
from meanmap.core.types import Array, Data
from meanmap.ep.factors.links import Student
from meanmap.ep.models.design import Design, read_outcomes
from meanmap.ep.models.regression import Regression, average, fit_linear, interval_ends, moments, prior_of, quantiles

__all__ = ["RobustRegression", "robust_regression"]

# The scale of the noise, over that of y, is integrated over a grid in its logarithm. Its posterior has a standard
# deviation near 1/√n there, which is the step; scales so far below the best evidence are left out.
_STEP, _DEPTH = 0.25, 12.0
_LOWEST, _HIGHEST = np.log(1e-3), np.log(10.0)


@dataclass(frozen=True, eq=False, repr=False)
class RobustRegression(Regression):
    """A regression of numbers with Student noise.

    Attributes
    ----------
    degrees : float
        Degrees of freedom of the noise.
    integrated : float
        The log evidence, with the scale of the noise integrated out.
    scales, weights : arrays
        Values of the scale of the noise, and how probable each is.
    outlying : (n,) array
        How far each row lies from its mean, in scales of the noise.
    """

    degrees: float
    integrated: float
    scales: np.ndarray
    weights: np.ndarray
    outlying: np.ndarray

    @property
    def log_evidence(self) -> float:
        """The logarithm of the probability density of the outcomes, to compare models by."""
        return self.integrated

    @property
    def scale(self) -> float:
        """The mean of the scale of the noise."""
        return float(self.scales @ self.weights)

    def predict(self, X: Data) -> np.ndarray:
        """The expected outcome at new rows."""
        return self._predictor(X)[0]

    def predict_interval(self, X: Data, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Between which numbers a new outcome lies with this probability: lower and upper ends."""
        mean, variance = self._predictor(X)

        def cdf(y):
            parts = [
                w * average(mean, variance, lambda z, s=s: scipy.special.stdtr(self.degrees, (y[:, None] - z) / s))
                for s, w in zip(self.scales, self.weights, strict=True)
            ]
            return np.sum(parts, axis=0)

        reach = 1e4 * (np.sqrt(variance) + self.scales.max())
        low, high = (quantiles(cdf, mean - reach, mean + reach, p) for p in interval_ends(level))
        return low, high

    def _facts(self) -> list[tuple[str, str]]:
        noise = f"Student with {self.degrees:g} degrees of freedom, scale {self.scale:.4g}"
        return [("noise", noise), *super()._facts()]


def robust_regression(
    X: Data,
    y: Data,
    *,
    degrees: float = 4.0,
    prior_sd: Array = 2.5,
    intercept_sd: float = 10.0,
    standardise: bool = True,
    intercept: bool = True,
    kinds: Mapping[str, Any] | None = None,
    **settings: Any,
) -> RobustRegression:
    """y = xᵀw + Student noise: linear regression that lets outliers go.

    Parameters
    ----------
    X : DataFrame, mapping of columns or (n, d) array
        Columns of numbers; their names are kept.
    y : array_like (n,)
        Numbers.
    degrees : number
        Degrees of freedom of the noise: the fewer, the less an outlier counts.
    prior_sd, intercept_sd : number
        Standard deviations of the prior for columns and outcomes that are both standardised, the outcome by its median
        and its median absolute deviation.
    standardise, intercept, kinds, **settings
        As for [`logistic_regression`][].

    Notes
    -----
    The scale of the noise is integrated out, with a prior that is flat in its logarithm from a thousandth to ten times
    the spread of y: expectation propagation is run for each value of a grid, and the results are averaged with the
    evidence as weight. `posterior` is that of the best value.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import ep
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=30)
    >>> y = 3 * x + 0.1 * rng.normal(size=30)
    >>> y[:5] += 50
    >>> fit = ep.models.robust_regression({"x": x}, y)
    >>> round(float(fit.coefficients.mean[1]), 1), int((fit.outlying > 10).sum())
    (3.0, 5)
    """
    design, matrix = Design.of(X, standardise=standardise, intercept=intercept, kinds=kinds)
    outcome = read_outcomes(y, len(matrix))
    freedom = float(parameter(degrees, "degrees", axes=0))
    middle = float(np.median(outcome)) if intercept else 0.0
    unit = 1.4826 * float(np.median(np.abs(outcome - middle))) or float(outcome.std())
    if unit <= 1e-12 * np.abs(outcome).max():
        raise ColumnError(f"y is {outcome[0]:g} in all {len(outcome)} rows: there is nothing to explain.")
    scaled = (outcome - middle) / unit
    prior = prior_of(design, prior_sd, intercept_sd)

    def fit(log_scale, near):
        noise = float(np.exp(log_scale))
        options = {"start_from": near, **settings}
        return fit_linear(matrix, prior, lambda z: Student(z, observed=scaled, scale=noise, degrees=freedom), **options)

    step = min(_STEP, 1 / np.sqrt(len(matrix)))
    grid, posts = _along(fit, step)
    logs = np.array([post.log_evidence for post in posts])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    means, covariances = (np.array(each) for each in zip(*(moments(post["w"]) for post in posts), strict=True))
    centre = weights @ means
    spread = np.einsum("k,ki,kj->ij", weights, means - centre, means - centre)
    covariance = np.tensordot(weights, covariances, 1) + spread
    mean, covariance = design.in_units(unit * centre, unit**2 * covariance)
    mean[0] += middle  # 0 without an intercept
    best = posts[int(np.argmax(logs))]
    evidence = float(logs.max() + np.log(np.exp(logs - logs.max()).sum() * step / (_HIGHEST - _LOWEST)))
    evidence -= len(outcome) * np.log(unit)
    scales = unit * np.exp(grid)
    away = np.abs(scaled - matrix @ centre) * unit / float(scales @ weights)
    bad = sum(not post.report.converged for post in posts)
    notes = (f"{bad} of {len(posts)} runs, one for each scale of the noise, did not converge.",) if bad else ()
    facts = (freedom, evidence, scales, weights, away)
    return RobustRegression("robust regression", design, mean, covariance, best, len(matrix), notes, *facts)


def _along(fit: Any, step: float) -> tuple[np.ndarray, list[Any]]:
    """The log scales around the best one whose evidence counts, by walking down on both sides of the peak.

    Each run goes on from the messages of the nearest scale that led to laws.
    """
    found: dict[int, Any] = {}
    lowest, highest = int(_LOWEST / step), int(_HIGHEST / step)

    def at(k):
        if k not in found:
            good = [other for other in found if np.isfinite(found[other].log_evidence)]
            near = min(good, key=lambda other: abs(other - k), default=None)
            found[k] = fit(k * step, None if near is None else found[near])
        evidence = found[k].log_evidence
        return evidence if np.isfinite(evidence) else -np.inf

    peak, stride = round(np.log(0.5) / step), round(1 / step)
    while stride:
        best = max((k for k in (peak, peak - stride, peak + stride) if lowest <= k <= highest), key=at)
        peak, stride = (best, stride) if best != peak else (peak, stride // 2)
    if at(peak) == -np.inf:
        raise InputError(
            "no scale of the noise led to a belief that is a law: the data contradict the model too strongly. "
            "Type damping=0.1, or give the noise more degrees of freedom."
        )
    kept = [peak]
    for side in (-1, 1):
        k = peak + side
        while lowest <= k <= highest and at(k) > at(peak) - _DEPTH:
            kept.append(k)
            k += side
    kept.sort()
    return np.array(kept) * step, [found[k] for k in kept]
