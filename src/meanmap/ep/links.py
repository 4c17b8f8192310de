"""Observed outcomes of a Normal through a link: logistic labels and Poisson counts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.ep.blackbox import Density
from meanmap.ep.conjugate import PoissonRate
from meanmap.ep.factor import Factor, check_family
from meanmap.ep.variables import Given, Selection, read_argument, read_given
from meanmap.families import Gamma, Normal

__all__ = ["Logistic", "Poisson"]


def Logistic(z: Any, *, observed: Any, name: str | None = None) -> Density:
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
    >>> round(float(ep.infer(ep.FactorGraph(ep.Logistic(z, observed=1)))["z"].mean), 4)
    0.4132
    """
    z, y = read_argument(z, "z"), read_given(observed, "observed")
    label = name or f"Logistic({z.name})"
    check_family(label, "z", z, Normal)
    _check(label, y, np.isin(y.values, (0, 1)), "zeros and ones")
    return Density(_log_logistic, z, y, name=label)


def Poisson(rate: Any, *, observed: Any, exposure: Any = 1.0, name: str | None = None) -> Factor:
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
    _check(label, counts, (counts.values >= 0) & (counts.values == np.round(counts.values)), "whole numbers, 0 or more")
    if not (times.values > 0).all():
        raise ParameterError(f"exposure of {label} is {times.values.min():g} at least; expected numbers above 0.")
    if (rate.variable if isinstance(rate, Selection) else rate).family is Gamma:  # pyright: ignore[reportAttributeAccessIssue]
        return PoissonRate(rate, counts, times, label)
    return Density(_log_poisson, rate, counts, times, name=label)


def _check(label: str, given: Given, valid: np.ndarray, expected: str) -> None:
    if not valid.all():
        first = np.argwhere(~valid)[0].tolist()
        value = np.asarray(given.values)[~valid].flat[0]
        raise ParameterError(
            f"observed of {label} holds {value:g}{f' at {first}' if first else ''}; expected {expected}."
        )


def _log_logistic(z: jax.Array, y: jax.Array) -> jax.Array:
    return -jax.nn.softplus((1 - 2 * y) * z)


def _log_poisson(z: jax.Array, count: jax.Array, exposure: jax.Array) -> jax.Array:
    log_mean = z + jnp.log(exposure)
    return count * log_mean - jnp.exp(log_mean) - jax.scipy.special.gammaln(count + 1)
