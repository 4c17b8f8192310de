"""The number of draws that functions on the host allow, by what they take at one draw."""

import time
from typing import Any, NamedTuple

import numpy as np

from meanmap.ep.calling import LINES, evaluated
from meanmap.ep.factor import Factor, replaced
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.inference.cheapest import seconds_each
from meanmap.ep.inference.tempered import FEW, MANY, Effort

__all__ = ["Affordable", "is_on_host"]

# Efforts, and how many seconds calls may take for each; for every draw that goes to the posterior there are this many.
_EFFORTS, _TIMES = ((MANY, 20.0), (FEW, 300.0)), 80
# Functions of single values that are quicker than this are called at this many points to see whether they take arrays.
_QUICK, _POINTS = 5e-3, 48


class Affordable(NamedTuple):
    """Factors as they are called for draws, the seconds they take for one, and the number of draws that this allows."""

    factors: tuple[Factor, ...]
    seconds: float
    effort: Effort | None

    @classmethod
    def of(cls, factors: tuple[Factor, ...]) -> "Affordable":
        """Functions of numbers that return the same for many points at once are called for many at once."""
        called, seconds = [], 0.0
        factor: Any
        for factor in factors:
            if is_on_host(factor):
                each = seconds_each(factor)
                numbers = all(a.known or not a.variable.dimension for a in factor.arguments)
                if each < _QUICK and (numbers or factor.vectorised):
                    factor, each = _at_many(factor)
                seconds += each * (factor.plate or 1)
            called.append(factor)
        effort = next((each for each, limit in _EFFORTS if _TIMES * each.draws * seconds < limit), None)
        return cls(tuple(called), seconds, effort)


def is_on_host(factor: Any) -> bool:
    """Whether a factor has a function that JAX does not trace."""
    return isinstance(factor, BlackBoxFactor) and factor.host


def _at_many(factor: Any) -> tuple[Any, float]:
    """A factor, whose function is called for many points at once if that gives the same, and its seconds for each."""
    generator = np.random.default_rng(0)
    values = [_some(argument, generator) for argument in factor.arguments[: len(factor.arguments) - factor.outputs]]
    seconds = 0.0
    try:
        found, seconds = _timed(factor, values)
        if factor.vectorised:
            return factor, seconds
        other = replaced(factor, vectorised=True)
        same, quicker = _timed(other, values)
    except Exception:  # such as that of a function for single values; a run raises those of the model again
        return factor, seconds
    return (other, quicker) if np.allclose(found, same, rtol=1e-12, atol=0.0, equal_nan=True) else (factor, seconds)


def _timed(factor: Any, values: list[np.ndarray]) -> tuple[np.ndarray, float]:
    start = time.perf_counter()
    found = evaluated(factor, values)
    return found, (time.perf_counter() - start) / len(found)


def _some(argument: Any, generator: np.random.Generator) -> np.ndarray:
    """Values of an argument: of rows, of the prior, or about as large as numbers are."""
    if argument.known:
        values = np.asarray(argument.values, float)
        return values[np.arange(_POINTS) % len(values)] if argument.plate is not None else np.stack([values] * _POINTS)
    prior, line = argument.variable.prior, argument.variable.family.coordinates[-1]
    if prior is None or prior.shape:
        return LINES[line](generator.normal(size=_POINTS))
    return np.asarray(prior.sample(_POINTS, int(generator.integers(2**31))), float)
