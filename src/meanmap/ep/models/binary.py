"""Regression of two labels: logistic and probit."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr, ndtri

from meanmap.core.intervals import ends
from meanmap.core.synonyms import own_words
from meanmap.core.tables.indices import check_order
from meanmap.core.types import Data, Numbers
from meanmap.ep.factors.interval import Probit
from meanmap.ep.factors.links import Logistic
from meanmap.ep.linear.separation import separating
from meanmap.ep.models.design import Design, label_text, read_labels
from meanmap.ep.models.regression import Regression, average, fit_linear, moments, prior_of

__all__ = ["LINKS", "BinaryRegression", "TwoLabels", "logistic_regression", "probit_regression"]

LINKS = {"logistic": (Logistic, expit), "probit": (Probit, ndtr)}


class TwoLabels:
    """What belongs to `classes` and `link`: probabilities and labels, by normal beliefs about the predictor."""

    classes: np.ndarray
    link: str

    @abstractmethod
    def _predictor(self, X: Data) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the predictor at new rows."""

    def predict_proba(self, X: Data) -> np.ndarray:
        """The probability of each label at new rows, (n, 2), averaged over the belief about the predictor."""
        mean, variance = self._predictor(X)
        one = ndtr(mean / np.sqrt(1 + variance)) if self.link == "probit" else average(mean, variance, expit)
        return np.column_stack([1 - one, one])

    def predict(self, X: Data) -> np.ndarray:
        """The more probable label at new rows."""
        return self.classes[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


@dataclass(frozen=True, eq=False, repr=False)
class BinaryRegression(Regression, TwoLabels):
    """A regression of two labels.

    Attributes
    ----------
    classes : (2,) array
        The labels; a positive coefficient makes the second more probable.
    link : {"logistic", "probit"}
    """

    classes: np.ndarray
    link: str

    def probability_interval(self, X: Data, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Credible interval of the probability of the second label at new rows: lower and upper ends."""
        (mean, variance), function = self._predictor(X), LINKS[self.link][1]
        low, high = (function(mean + ndtri(p) * np.sqrt(variance)) for p in ends(confidence))
        return low, high


@own_words
def logistic_regression(
    X: Data,
    y: Data,
    *,
    prior_sd: Numbers = 2.5,
    intercept_sd: float = 10.0,
    standardise: bool = True,
    intercept: bool = True,
    kinds: Mapping[str, Any] | None = None,
    **settings: Any,
) -> BinaryRegression:
    """Logistic regression, P(y = 1) = 1/(1 + exp(−xᵀw)), with a Gaussian belief about w by expectation propagation.

    Parameters
    ----------
    X : DataFrame, mapping of columns or (n, d) array
        Columns of numbers; their names are kept.
    y : array_like (n,)
        Two labels of any kind; the one that sorts last is the 1.
    prior_sd : number or (d,) array
        Standard deviation of the prior N(0, prior_sd²) of each coefficient, per standard deviation of its column.
    intercept_sd : number
        The same for the intercept.
    standardise : bool
        Whether columns are standardised before the prior is applied; the result is always in their own units.
    intercept : bool
        Whether there is one.
    kinds : mapping of column to kind, optional
        The kinds of columns of X whose data type does not show it, such as {"size": ("low", "middle", "high")}: see
        `Schema.of`.
    **settings
        Passed on to `meanmap.ep.infer`.

    Returns
    -------
    BinaryRegression
        Printing it shows the table of coefficients; methods and attributes: `predict_proba`, `probability_interval`,
        `log_evidence`, `plot`.

    Notes
    -----
    The default prior sd of 2.5 for standardised columns is the scale of Gelman, Jakulin, Pittau & Su (2008), with a
    Normal in place of their Cauchy. It keeps coefficients finite under complete separation. Cost O(n d²) per sweep.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import ep
    >>> rng = np.random.default_rng(0)
    >>> table = {"dose": rng.normal(size=200), "age": rng.normal(50, 10, size=200)}
    >>> cured = rng.uniform(size=200) < 1 / (1 + np.exp(-2 * table["dose"]))
    >>> fit = ep.models.logistic_regression(table, cured)
    >>> fit.summary().to_dict()["dose"]["positive"] > 0.999
    True
    >>> bool(fit.predict_proba({"dose": [3.0], "age": [50]})[0, 1] > 0.95)
    True
    """
    return _binary("logistic", X, y, prior_sd, intercept_sd, standardise, intercept, kinds, settings)


@own_words
def probit_regression(
    X: Data,
    y: Data,
    *,
    prior_sd: Numbers = 2.5,
    intercept_sd: float = 10.0,
    standardise: bool = True,
    intercept: bool = True,
    kinds: Mapping[str, Any] | None = None,
    **settings: Any,
) -> BinaryRegression:
    """Probit regression, P(y = 1) = Φ(xᵀw), with a Gaussian belief about w by expectation propagation.

    Every message is in closed form. Parameters and result are those of `logistic_regression`.

    Examples
    --------
    >>> from meanmap import ep
    >>> fit = ep.models.probit_regression([-2.0, -1, -0.5, 0.5, 1, 2], ["no", "no", "yes", "no", "yes", "yes"])
    >>> fit.predict([-3.0, 3.0]).tolist()
    ['no', 'yes']
    """
    return _binary("probit", X, y, prior_sd, intercept_sd, standardise, intercept, kinds, settings)


def _binary(
    link: str,
    X: Data,
    y: Data,
    prior_sd: Numbers,
    intercept_sd: float,
    standardise: bool,
    intercept: bool,
    kinds: Mapping[str, Any] | None,
    settings: Any,
) -> BinaryRegression:
    check_order((X, y), ("X", "y"))
    design, matrix = Design.of(X, standardise=standardise, intercept=intercept, kinds=kinds)
    classes, codes = read_labels(y, len(matrix))
    factor = LINKS[link][0]
    post = fit_linear(
        matrix,
        prior_of(design, prior_sd, intercept_sd),
        lambda z: factor(z, observed=codes),
        names=design.labels,
        **settings,
    )
    notes: tuple[str, ...] = ()
    mean, covariance = moments(post["w"])
    separated = separating(matrix, 2 * codes - 1, 0 if design.intercept else None)
    if separated or ((2 * codes - 1) * (matrix @ mean) > 0).all():
        chosen, whole = separated[0] if separated else ((), True)  # of too many rows to say by which
        rule = ", ".join(repr(design.labels[at]) for at in chosen)
        told = f"a linear rule{f' in {rule}' if rule else ''} separates the labels{'' if whole else ' in some rows'}"
        notes = (f"{told}: only the prior keeps the coefficients from growing; a tighter one is prior_sd=1.",)
    title = f"{link} regression, P({label_text(classes[1])})"
    return BinaryRegression(title, design, *design.in_units(mean, covariance), post, len(matrix), notes, classes, link)
