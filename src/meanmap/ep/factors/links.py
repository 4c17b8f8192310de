"""Observed outcomes of a Normal: logistic labels, Poisson counts, and numbers with Student noise."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.core.synonyms import own_words
from meanmap.core.types import Data
from meanmap.ep.factor import Factor, check_family, check_observed, replaced
from meanmap.ep.factors.blackbox import Density
from meanmap.ep.factors.conjugate import PoissonRate
from meanmap.ep.variables import Argument, read_argument, read_given
from meanmap.families import Gamma, Normal

Slopes = tuple[np.ndarray, np.ndarray, np.ndarray]

__all__ = ["Logistic", "Poisson", "Student", "slopes_of"]


@own_words
def Logistic(z: Argument, *, observed: Data, name: str | None = None) -> Density:
    """P(y = 1) = 1/(1 + exp(−z)), observed.

    The same as `BlackBox(sigmoid, z, p)` and `Bernoulli(p, observed=y)` without the variable p between them.

    Parameters
    ----------
    z : Variable
        A Normal.
    observed : array_like
        Zeros and ones.
    name : str, optional
        Of the factor, for reports.

    Examples
    --------
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 1.0))
    >>> round(float(ep.infer(ep.FactorGraph(ep.Logistic(z, observed=1)))["z"].mean()), 4)
    0.4132
    """
    z, y = read_argument(z, "z"), read_given(observed, "observed")
    label = name or f"Logistic({z.name})"
    check_family(label, "z", z, Normal)
    check_observed(label, y, np.isin(y.values, (0, 1)), "zeros and ones")
    return replaced(Density(_log_logistic, z, y, name=label), smooth=True)


@own_words
def Poisson(rate: Argument, *, observed: Data, exposure: Argument = 1.0, name: str | None = None) -> Factor:
    """Counts with mean exposure × rate, observed.

    Parameters
    ----------
    rate : Variable
        A Gamma, the rate itself (then the factor is conjugate), or a Normal, its logarithm.
    observed : array_like
        Whole numbers, 0 or more.
    exposure : array_like
        Known positive numbers.
    name : str, optional
        Of the factor, for reports.

    Examples
    --------
    >>> from meanmap import ep
    >>> rate = ep.Variable("rate", ep.Gamma(1.0, 1.0))
    >>> ep.infer(ep.FactorGraph(ep.Poisson(rate, observed=[3, 5])))["rate"]
    Gamma(shape=9, rate=3, mean=3, sd=1)
    """
    rate = read_argument(rate, "rate")
    counts, times = read_given(observed, "observed"), read_given(exposure, "exposure")
    label = name or f"Poisson({rate.name})"
    check_family(label, "rate", rate, Gamma, Normal)
    whole = (counts.values >= 0) & (counts.values == np.round(counts.values))
    check_observed(label, counts, whole, "whole numbers, 0 or more")
    if not (times.values > 0).all():
        raise ParameterError(f"exposure of {label} is {times.values.min():g} at least; expected numbers above 0.")
    if rate.variable.family is Gamma:
        return PoissonRate(rate, counts, times, label)
    return replaced(Density(_log_poisson, rate, counts, times, name=label), smooth=True)


@own_words
def Student(
    z: Argument, *, observed: Data, scale: Argument = 1.0, degrees: Argument = 4.0, name: str | None = None
) -> Density:
    """observed = z + scale × noise with Student's t distribution: outliers have little influence.

    The same as `Gaussian(z, observed=y, precision=tau)` with a Gamma(degrees/2, degrees scale²/2) variable tau for each
    member. The factor is not log-concave: messages from outliers have negative precision, which the policy
    improper="allow" of `infer` keeps; damping helps.

    Parameters
    ----------
    z : Variable
        A Normal.
    observed : array_like
        Numbers.
    scale : array_like or Variable
        Of the noise, above 0; a Gamma where it is unknown, by quadrature over both.
    degrees : array_like or Variable
        Degrees of freedom, above 0: 1 is Cauchy noise, and ∞ would be Gaussian. A Gamma where they are unknown.
    name : str, optional
        Of the factor, for reports.

    Examples
    --------
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 100.0))
    >>> near = ep.infer(ep.FactorGraph(ep.Student(z, observed=1.0)))["z"].mean()
    >>> z = ep.Variable("z", ep.Normal(0.0, 1.0))
    >>> far = ep.infer(ep.FactorGraph(ep.Student(z, observed=30.0)))["z"].mean()
    >>> round(float(near), 2), round(float(far), 2)
    (0.98, 0.17)
    """
    z, y = read_argument(z, "z"), read_given(observed, "observed")
    label = name or f"Student({z.name})"
    check_family(label, "z", z, Normal)
    scales, degrees = read_argument(scale, "scale"), read_argument(degrees, "degrees")
    for given in (scales, degrees):
        if not given.known:
            check_family(label, "scale" if given is scales else "degrees", given, Gamma)
        elif not (given.values > 0).all():
            raise ParameterError(f"{given.name} of {label} is {given.values.min():g} at least; expected above 0.")
    return Density(_log_student, z, y, scales, degrees, name=label)


def slopes_of(factor: Factor) -> Callable[..., Slopes] | None:
    """The log likelihood of labels or counts at numbers, then of given ones: values, slopes, minus second derivatives.

    In NumPy; None for other factors.
    """
    found = {_log_logistic: _logistic_slopes, _log_poisson: _poisson_slopes}
    return found.get(factor.own) if isinstance(factor, Density) and factor.smooth else None


def _logistic_slopes(z: np.ndarray, y: np.ndarray) -> Slopes:
    small = np.exp(-np.abs(z))
    one = np.where(z < 0, small, 1.0) / (1 + small)
    return np.minimum((2 * y - 1) * z, 0.0) - np.log1p(small), y - one, one * (1 - one)


def _poisson_slopes(z: np.ndarray, count: np.ndarray, exposure: np.ndarray) -> Slopes:
    expected = exposure * np.exp(z)
    return count * z - expected, count - expected, expected


def _log_logistic(z: jax.Array, y: jax.Array) -> jax.Array:
    return -jax.nn.softplus((1 - 2 * y) * z)


def _log_poisson(z: jax.Array, count: jax.Array, exposure: jax.Array) -> jax.Array:
    log_mean = z + jnp.log(exposure)
    return count * log_mean - jnp.exp(log_mean) - jax.scipy.special.gammaln(count + 1)


def _log_student(z: jax.Array, y: jax.Array, scale: jax.Array, degrees: jax.Array) -> jax.Array:
    gammaln = jax.scipy.special.gammaln
    constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - jnp.log(degrees * jnp.pi) / 2 - jnp.log(scale)
    return constant - (degrees + 1) / 2 * jnp.log1p(((y - z) / scale) ** 2 / degrees)
