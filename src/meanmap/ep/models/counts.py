"""Regression of counts: Poisson with a log link."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import pdtr

from meanmap.core.errors import ParameterError
from meanmap.core.intervals import ends
from meanmap.core.synonyms import own_words
from meanmap.core.tables.indices import check_order
from meanmap.core.types import Data, Numbers
from meanmap.ep.factors.links import Poisson
from meanmap.ep.models.design import Design, read_outcomes
from meanmap.ep.models.regression import Regression, average, fit_linear, moments, prior_of, quantiles

__all__ = ["CountRegression", "poisson_regression"]


@dataclass(frozen=True, eq=False, repr=False)
class CountRegression(Regression):
    """A regression of counts."""

    def predict(self, X: Data, exposure: Numbers = 1.0) -> np.ndarray:
        """The expected count at new rows, exposure × E exp(xᵀw)."""
        check_order((X, exposure), ("X", "exposure"))
        mean, variance = self._predictor(X)
        return _exposure(exposure, len(mean)) * np.exp(mean + variance / 2)

    def predict_interval(
        self, X: Data, exposure: Numbers = 1.0, confidence: float = 0.95
    ) -> tuple[np.ndarray, np.ndarray]:
        """Prediction interval for a new count with at least this probability: lower and upper ends, both included."""
        check_order((X, exposure), ("X", "exposure"))
        mean, variance = self._predictor(X)
        times = _exposure(exposure, len(mean))
        furthest = np.exp(np.minimum(mean + 8 * np.sqrt(variance), 300)) * times
        top = furthest + 20 * np.sqrt(furthest) + 100

        def cdf(counts):
            whole, unit = np.floor(counts)[:, None], times[:, None]
            at_most = average(mean, variance, lambda z: pdtr(np.maximum(whole, 0), unit * np.exp(np.minimum(z, 300))))
            return np.where(counts < 0, 0.0, at_most)

        low, high = (quantiles(cdf, np.full(len(mean), -1.0), top, p) for p in ends(confidence))
        # A distribution function of counts jumps at whole numbers: halving ends within rounding of one.
        return np.maximum(np.ceil(low - 1e-6), 0), np.maximum(np.ceil(high - 1e-6), 0)


@own_words
def poisson_regression(
    X: Data,
    y: Data,
    *,
    exposure: Numbers = 1.0,
    prior_sd: Numbers = 2.5,
    intercept_sd: float = 10.0,
    standardise: bool = True,
    intercept: bool = True,
    kinds: Mapping[str, Any] | None = None,
    **settings: Any,
) -> CountRegression:
    """Poisson regression: counts with mean exposure × exp(xᵀw), by expectation propagation.

    Parameters
    ----------
    X : DataFrame, mapping of columns or (n, d) array
        Columns of numbers; their names are kept.
    y : array_like (n,)
        Whole numbers, 0 or more.
    exposure : number or (n,) array
        Time, area or number of units over which each count was taken.
    prior_sd, intercept_sd, standardise, intercept, kinds, **settings
        As for `logistic_regression`.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import ep
    >>> rng = np.random.default_rng(0)
    >>> size = rng.uniform(0, 2, size=300)
    >>> fit = ep.models.poisson_regression({"size": size}, rng.poisson(np.exp(0.5 + size)))
    >>> bool(abs(fit.coefficients.mean()[1] - 1) < 3 * fit.coefficients.sd()[1])
    True
    """
    check_order((X, y, exposure), ("X", "y", "exposure"))
    design, matrix = Design.of(X, standardise=standardise, intercept=intercept, kinds=kinds)
    counts = read_outcomes(y, len(matrix))
    times = _exposure(exposure, len(matrix))
    wrong = (counts < 0) | (counts != np.round(counts))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ParameterError(f"y holds {counts[at]:g} at row {at}; expected counts: whole numbers, 0 or more.")
    post = fit_linear(
        matrix,
        prior_of(design, prior_sd, intercept_sd),
        lambda z: Poisson(z, observed=counts, exposure=times),
        names=design.labels,
        **settings,
    )
    notes = ("every count is 0: only the prior keeps the intercept from falling.",) if not counts.any() else ()
    return CountRegression(
        "Poisson regression", design, *design.in_units(*moments(post["w"])), post, len(matrix), notes
    )


def _exposure(value: Any, rows: int) -> np.ndarray:
    times = read_outcomes(np.broadcast_to(value, rows) if np.ndim(value) == 0 else value, rows, "exposure")
    if not (times > 0).all():
        raise ParameterError(f"exposure is {times.min():g} at row {int(np.argmin(times))}; expected numbers above 0.")
    return times
