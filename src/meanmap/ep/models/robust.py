"""Regression of numbers with outliers: Student noise, whose scale is integrated out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from meanmap.core.arrays import parameter
from meanmap.core.errors import ColumnError, InputError
from meanmap.core.intervals import ends
from meanmap.core.synonyms import own_words
from meanmap.core.tables.column import middle_units
from meanmap.core.tables.indices import check_order
from meanmap.core.types import Data, Numbers
from meanmap.ep.factors.links import Student
from meanmap.ep.models.design import Design, read_outcomes
from meanmap.ep.models.regression import Regression, average, fit_linear, moments, prior_of, quantiles
from meanmap.ep.models.scales import Fit, Scales, at_three_nodes, on_a_grid

__all__ = ["RobustRegression", "robust_regression"]

# The scale of the noise, over that of y, is integrated over a grid in its logarithm. Its posterior has a standard
# deviation near 1/√n there, which is the step.
_STEP = 0.25
_LOWEST, _HIGHEST = np.log(1e-3), np.log(10.0)
# With more rows than this, a part of them, drawn with a fixed seed, locates the scale.
_MANY, _PART = 5000, 1000


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

    def predict_interval(self, X: Data, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Prediction interval of a new outcome with this probability: lower and upper ends."""
        mean, variance = self._predictor(X)

        def cdf(y):
            parts = [
                w * average(mean, variance, lambda z, s=s: scipy.special.stdtr(self.degrees, (y[:, None] - z) / s))
                for s, w in zip(self.scales, self.weights, strict=True)
            ]
            return np.sum(parts, axis=0)

        reach = 1e4 * (np.sqrt(variance) + self.scales.max())
        low, high = (quantiles(cdf, mean - reach, mean + reach, p) for p in ends(confidence))
        return low, high

    def _facts(self) -> list[tuple[str, str]]:
        noise = f"Student with {self.degrees:g} degrees of freedom, scale {self.scale:.4g}"
        return [("noise", noise), *super()._facts()]


@own_words
def robust_regression(
    X: Data,
    y: Data,
    *,
    degrees: float = 4.0,
    prior_sd: Numbers = 2.5,
    intercept_sd: float = 10.0,
    standardise: bool = True,
    intercept: bool = True,
    kinds: Mapping[str, Any] | None = None,
    **settings: Any,
) -> RobustRegression:
    """Linear regression robust to outliers: y = xᵀw + Student noise.

    Parameters
    ----------
    X : DataFrame, mapping of columns or (n, d) array
        Columns of numbers; their names are kept.
    y : array_like (n,)
        Numbers.
    degrees : number
        Degrees of freedom of the noise: the fewer, the less influence outliers have.
    prior_sd, intercept_sd : number
        Standard deviations of the prior for columns and outcomes that are both standardised, the outcome by its median
        and its median absolute deviation.
    standardise, intercept, kinds, **settings
        As for `logistic_regression`.

    Notes
    -----
    The scale of the noise is integrated out, with a prior that is flat in its logarithm from a thousandth to ten times
    the spread of y: expectation propagation is run for each value of a grid, and the results are averaged with the
    evidence as weight. `posterior` is that of the best value. With more than 5000 rows, a thousand of them locate the
    scale; the evidence is then close to normal in the log scale, and three values suffice (Gauss-Hermite quadrature).
    Otherwise the grid is used.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import ep
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=30)
    >>> y = 3 * x + 0.1 * rng.normal(size=30)
    >>> y[:5] += 50
    >>> fit = ep.models.robust_regression({"x": x}, y)
    >>> round(float(fit.coefficients.mean()[1]), 1), int((fit.outlying > 10).sum())
    (3.0, 5)
    """
    check_order((X, y), ("X", "y"))
    design, matrix = Design.of(X, standardise=standardise, intercept=intercept, kinds=kinds)
    outcome = read_outcomes(y, len(matrix))
    freedom = float(parameter(degrees, "degrees", axes=0))
    middle = float(np.median(outcome)) if intercept else 0.0
    unit = 1.4826 * float(np.median(np.abs(outcome - middle)))
    # Half of what the middle says, which is below the other where outcomes are no mixture with many zeros.
    unit = max(unit, float(middle_units(outcome)) / 2) or float(outcome.std())
    if unit <= 1e-12 * np.abs(outcome).max():
        raise ColumnError(f"y is {outcome[0]:g} in all {len(outcome)} rows: there is nothing to explain.")
    scaled = (outcome - middle) / unit
    prior = prior_of(design, prior_sd, intercept_sd)

    def on(rows: np.ndarray, values: np.ndarray, begin: np.ndarray | None = None) -> Fit:
        def fit(log_scale: float, near: object) -> Any:
            noise = float(np.exp(log_scale))

            def outcome(z: object) -> Any:
                return Student(z, observed=values, scale=noise, degrees=freedom)

            slopes = None if begin is None else lambda z: _slopes(values - z, noise, freedom)
            return fit_linear(rows, prior, outcome, slopes, begin, design.labels, **{"start_from": near, **settings})

        return fit

    found = _scales(on, matrix, scaled)
    if found is None:
        raise InputError(
            "no scale of the noise led to a proper belief: the data contradict the model too strongly. "
            "Type damping=0.9, or give the noise more degrees of freedom."
        )
    posts = found.posteriors
    weights, evidence = found.weighed()
    means, covariances = (np.array(each) for each in zip(*(moments(post["w"]) for post in posts), strict=True))
    centre = weights @ means
    spread = np.einsum("k,ki,kj->ij", weights, means - centre, means - centre)
    covariance = np.tensordot(weights, covariances, 1) + spread
    mean, covariance = design.in_units(unit * centre, unit**2 * covariance)
    mean[0] += middle  # 0 without an intercept
    best = posts[int(np.argmax([post.log_evidence for post in posts]))]
    evidence -= np.log(_HIGHEST - _LOWEST) + len(outcome) * np.log(unit)
    scales = unit * np.exp(found.logs)
    away = np.abs(scaled - matrix @ centre) * unit / float(scales @ weights)
    bad = sum(not post.report.converged for post in posts)
    notes = (f"{bad} of {len(posts)} runs, one for each scale of the noise, did not converge.",) if bad else ()
    facts = (freedom, evidence, scales, weights, away)
    return RobustRegression("robust regression", design, mean, covariance, best, len(matrix), notes, *facts)


def _scales(on: Callable[..., Fit], rows: np.ndarray, values: np.ndarray) -> Scales | None:
    """Where the evidence lies, from runs `on` rows and values; None if no run had proper beliefs."""
    if len(rows) > _MANY:
        part = np.random.default_rng(0).permutation(len(rows))[:_PART]
        guess = _on_a_grid(on(rows[part], values[part]), _PART)
        if guess is not None:
            weights, _ = guess.weighed()
            start = weights @ guess.logs
            spread = np.sqrt(weights @ (guess.logs - start) ** 2)
            begin = weights @ np.array([moments(post["w"])[0] for post in guess.posteriors])
            found = at_three_nodes(on(rows, values, begin), float(start), float(spread))
            if found is not None:
                return found
    return _on_a_grid(on(rows, values), len(rows))


def _on_a_grid(fit: Fit, rows: int) -> Scales | None:
    return on_a_grid(fit, min(_STEP, 1 / np.sqrt(rows)), _LOWEST, _HIGHEST, np.log(0.5))


def _slopes(away: np.ndarray, scale: float, degrees: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the log likelihood at linear predictors: values, first derivatives, and curvatures of parabolas below it.

    Steps with these are those of iteratively reweighted least squares, which never lead downwards.
    """
    weight = (degrees + 1) / (degrees * scale**2 + away**2)
    return -(degrees + 1) / 2 * np.log1p((away / scale) ** 2 / degrees), weight * away, weight
