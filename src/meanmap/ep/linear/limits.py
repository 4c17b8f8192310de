"""Censored and truncated responses: what a formula calls, and the likelihoods."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln, log_ndtr, stdtr

from meanmap.core.errors import ColumnError, ParameterError
from meanmap.core.held import holds_floats
from meanmap.ep.linear.family import Family, Observed

__all__ = ["LIMITS", "censored", "limited", "truncated"]

# The functions of a formula, as in Bambi.
LIMITS = ("censored", "truncated")
_STATUS = ("none", "left", "right", "interval")
# The smallest probability of an interval, and half the step for derivatives by the shape of a distribution.
_LEAST, _STEP = 1e-300, 1e-4
# log P(low < y < high) from (low, high, η, parameters).
Between = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def censored(*columns: Any) -> np.ndarray:
    """Values, lower and upper limits (n, 3), from `censored(y, status)` or `censored(low, high, status)`."""
    if len(columns) not in (2, 3):
        raise ParameterError(f"censored has {len(columns)} arguments; expected (y, status) or (low, high, status).")
    low, high, status = _numbers(columns[0], "censored"), columns[-2], np.asarray(columns[-1])
    if holds_floats(status):
        raise ColumnError(
            f"the status in censored(...) holds numbers, such as {status.ravel()[0]:g}; expected the words 'none', "
            "'left', 'right' and 'interval'. For events 0 and 1: numpy.where(event == 1, 'none', 'right')."
        )
    wrong = [at for at, each in enumerate(status.tolist()) if each not in _STATUS]
    if wrong:
        raise ColumnError(
            f"the status in censored(...) is {status[wrong[0]]!r} in row {wrong[0]}; expected 'none', 'left' (the "
            "value is below y), 'right' (above y) or 'interval'."
        )
    inside = status == "interval"
    high = _numbers(high, "censored") if len(columns) == 3 else low
    if inside.any() and len(columns) == 2:
        raise ParameterError("the status in censored(y, status) is 'interval'; type censored(low, high, status).")
    if (wrong := inside & ~(low < high)).any():
        at = int(np.argmax(wrong))
        raise ColumnError(f"the interval in row {at} of censored(...) is {low[at]:g} to {high[at]:g}: it is empty.")
    values = np.where(inside, (low + high) / 2, low)
    lower = np.where(status == "left", -np.inf, low)
    return np.stack([values, lower, np.where(status == "right", np.inf, np.where(inside, high, low))], axis=1)


def truncated(values: Any, lb: Any = None, ub: Any = None) -> np.ndarray:
    """Values, lower and upper limits (n, 3), from `truncated(y, lb, ub)`: rows outside these were never recorded."""
    if lb is None and ub is None:
        raise ParameterError("truncated has no limits; type truncated(y, lb=0), truncated(y, ub=10) or both.")
    y = _numbers(values, "truncated")
    limits = (-np.inf if lb is None else lb, np.inf if ub is None else ub)
    low, high = (np.broadcast_to(np.asarray(each, float), y.shape) for each in limits)
    outside = ~((low <= y) & (y <= high) & (low < high))
    if outside.any():
        at = int(np.argmax(outside))
        raise ColumnError(f"y of truncated(...) is {y[at]:g} in row {at}, outside {low[at]:g} to {high[at]:g}.")
    return np.stack([y, low, high], axis=1)


def _numbers(values: Any, name: str) -> np.ndarray:
    found = np.asarray(values)
    if not holds_floats(found):
        raise ColumnError(f"{name}(...) holds {found.ravel()[0]!r}; expected numbers before the status.")
    return found


def limited(law: Family, kind: str) -> Family:
    """The family of responses that are censored or truncated at `low` and `high` of what is observed."""
    between = _BETWEEN.get(law.name)
    if between is None:
        raise ParameterError(f"{kind}(...) is for family 'gaussian', 't' or 'gamma'; got {law.name!r}.")
    whole = kind == "truncated"

    def limits(o: Observed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether a row has a density, and the limits whose probability counts."""
        if whole:
            return np.ones(o.low.shape, bool), o.low, o.high
        seen = o.low == o.high
        return seen, np.where(seen, -np.inf, o.low), np.where(seen, np.inf, o.high)

    def log_density(o: Observed, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
        seen, low, high = limits(o)
        inside = between(low, high, eta, p)
        return np.where(seen, law.log_density(o, eta, p), 0.0) + (-inside if whole else inside)

    def slopes(o: Observed, eta: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
        seen, low, high = limits(o)
        found = []
        for at, of_density in enumerate(law.slopes(o, eta, p)):
            step = _STEP * np.eye(len(p))[at]
            moved = (between(low, high, eta, p + step) - between(low, high, eta, p - step)) / (2 * _STEP)
            found.append(np.where(seen, of_density, 0.0) + (-moved if whole else moved))
        return found

    def start(o: Observed, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place, precision = law.start(o, p)
        return place, precision * np.where(limits(o)[0], 1.0, 0.5)

    return replace(law, log_density=log_density, slopes=slopes, start=start, exact=False, censored=not whole)


def _standard(low: np.ndarray, high: np.ndarray, eta: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both limits in scales of the noise, reflected to the side where tails are small."""
    a, b = (low - eta) * np.exp(-p[0]), (high - eta) * np.exp(-p[0])
    with np.errstate(invalid="ignore"):
        return np.where(a + b > 0, -b, a), np.where(a + b > 0, -a, b)


def _normal(low: np.ndarray, high: np.ndarray, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    a, b = _standard(low, high, eta, p)
    top = log_ndtr(b)
    return top + np.log1p(-np.exp(np.minimum(log_ndtr(a) - top, -1e-16)))


def _student(low: np.ndarray, high: np.ndarray, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    nu, (a, b) = np.exp(p[1]), _standard(low, high, eta, p)
    return np.log(np.maximum(stdtr(nu, b) - stdtr(nu, a), _LEAST))


def _gamma(low: np.ndarray, high: np.ndarray, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    alpha = np.exp(p[0])
    rate = alpha * np.exp(np.clip(-eta, -600.0, 600.0))
    a, b = np.maximum(low, 0.0) * rate, high * rate
    above = np.log(np.maximum(gammaincc(alpha, a) - gammaincc(alpha, b), _LEAST))
    below = np.log(np.maximum(gammainc(alpha, b) - gammainc(alpha, a), _LEAST))
    # Far above, where both are 0.
    tail = _gamma_tail(alpha, np.maximum(a, alpha + 1))
    with np.errstate(invalid="ignore"):
        tail = tail + np.log1p(-np.exp(np.minimum(_gamma_tail(alpha, np.maximum(b, alpha + 1)) - tail, -1e-16)))
    return np.where(a > alpha, np.where(a > alpha + 600, tail, above), below)


def _gamma_tail(alpha: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The leading terms of the log of the upper incomplete gamma function."""
    x = np.minimum(x, 1e300)
    return -x + (alpha - 1) * np.log(x) - np.log1p(-(alpha - 1) / x) - gammaln(alpha)


_BETWEEN: dict[str, Between] = {"gaussian": _normal, "t": _student, "gamma": _gamma}
