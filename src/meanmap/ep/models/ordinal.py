"""Regression of ordered labels: probit with cutpoints that the evidence chooses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.core.synonyms import own_words
from meanmap.core.tables.indices import check_order
from meanmap.core.types import Data, Numbers
from meanmap.ep.factors.interval import Ordinal, log_difference
from meanmap.ep.models.design import Design, read_codes
from meanmap.ep.models.regression import Regression, fit_linear, moments, prior_of

__all__ = ["OrdinalRegression", "ordinal_regression"]


@dataclass(frozen=True, eq=False, repr=False)
class OrdinalRegression(Regression):
    """A regression of ordered labels.

    Attributes
    ----------
    classes : (k,) array
        The labels, in order.
    cutpoints : (k − 1,) array
        Where (x − x̄)ᵀw + noise passes from one label to the next, x̄ the centre of the columns.
    """

    classes: np.ndarray
    cutpoints: np.ndarray

    def predict_proba(self, X: Data) -> np.ndarray:
        """The probability of each label at new rows, (n, k)."""
        mean, variance = self._predictor(X)
        below = ndtr((self.cutpoints - mean[:, None]) / np.sqrt(1 + variance)[:, None])
        ones = np.ones((len(below), 1))
        return np.diff(np.hstack([0 * ones, below, ones]), axis=1)

    def predict(self, X: Data) -> np.ndarray:
        """The most probable label at new rows."""
        return self.classes[self.predict_proba(X).argmax(1)]

    def _facts(self) -> list[tuple[str, str]]:
        return [("cutpoints", ", ".join(f"{cut:.4g}" for cut in self.cutpoints)), *super()._facts()]


@own_words
def ordinal_regression(
    X: Data,
    y: Data,
    *,
    levels: object = None,
    prior_sd: Numbers = 2.5,
    standardise: bool = True,
    kinds: Mapping[str, Any] | None = None,
    **settings: Any,
) -> OrdinalRegression:
    """Ordinal regression, P(y ≤ k) = Φ(c_k − (x − x̄)ᵀw), with a Gaussian belief about w by expectation propagation.

    Parameters
    ----------
    X : DataFrame, mapping of columns or (n, d) array
        Columns of numbers; their names are kept. Cutpoints, about their centre x̄, take the place of an intercept.
    y : array_like (n,)
        Ordered labels.
    levels : sequence, optional
        All labels from the lowest to the highest; required for text. By default the numbers that occur.
    prior_sd, standardise, kinds, **settings
        As for `logistic_regression`.

    Notes
    -----
    The cutpoints maximise the evidence, as in Chu & Ghahramani (2005), section 3.2; the standard deviations of the
    coefficients hold for these cutpoints. The gradient costs nothing: at a fixed point of EP the derivative of the
    evidence is that of the factors' normalisers alone. Every label of `levels` has to occur.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import ep
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> grade = np.digitize(1.5 * x + rng.normal(size=200), [-1.0, 1.0])
    >>> fit = ep.models.ordinal_regression({"hours": x}, grade)
    >>> fit.predict({"hours": [-3.0, 0.0, 3.0]}).tolist()
    [0, 1, 2]
    """
    check_order((X, y), ("X", "y"))
    design, matrix = Design.of(X, standardise=standardise, intercept=False, centre=True, kinds=kinds)
    classes, codes = read_codes(y, len(matrix), levels)
    prior = prior_of(design, prior_sd, 1.0)

    def fit(cuts):
        return fit_linear(matrix, prior, lambda z: Ordinal(z, cuts, observed=codes, name="ordinal"), **settings)

    from scipy.optimize import minimize

    def objective(free):
        cuts = np.cumsum(np.concatenate([free[:1], np.exp(free[1:])]))
        post = fit(cuts)
        slope = _slope(post, codes, cuts)
        towards = np.concatenate([[slope.sum()], np.exp(free[1:]) * np.cumsum(slope[::-1])[::-1][1:]])
        return -post.log_evidence, -towards

    start = ndtri(np.cumsum(np.bincount(codes)[:-1]) / len(codes))
    free = np.concatenate([start[:1], np.log(np.maximum(np.diff(start), 1e-3))])
    best = minimize(objective, free, jac=True, method="L-BFGS-B", options={"ftol": 1e-11})
    cuts = np.cumsum(np.concatenate([best.x[:1], np.exp(best.x[1:])]))
    post = fit(cuts)
    notes = (
        ()
        if best.success
        else (f"the search for cutpoints stopped before the evidence reached its maximum: {best.message}",)
    )
    title = f"ordinal probit regression of {len(classes)} labels"
    belief = design.in_units(*moments(post["w"]))
    return OrdinalRegression(title, design, *belief, post, len(matrix), notes, classes, cuts)


def _slope(post: Any, codes: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """The derivative of the evidence in each cutpoint: of Σᵢ log(Φ(bᵢ) − Φ(aᵢ)) with the cavities held."""
    message, z = post.messages["ordinal"][0], post["z"]
    precision = z.precision - message.precision  # of the cavity
    mean, scale = (z.precision_mean - message.precision_mean) / precision, np.sqrt(1 + 1 / precision)
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    a, b = (ends[codes] - mean) / scale, (ends[codes + 1] - mean) / scale
    log_mass = log_difference(a, b)
    high, low = (np.exp(-t * t / 2 - log_mass) / np.sqrt(2 * np.pi) / scale for t in (b, a))
    k = len(cuts) + 1
    return np.bincount(codes, high, k)[:-1] - np.bincount(codes, low, k)[1:]  # upper ends, and lower ends
