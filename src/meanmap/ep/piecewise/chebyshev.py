"""A polynomial that interpolates a function on an interval, with an error estimate."""

import numpy as np

from meanmap.ep.piecewise.noise import is_level

__all__ = ["CHECK", "FEW", "NODES", "OF_CHECK", "OF_TAIL", "ROUNDING", "evaluated", "fitted", "transform"]

# Order of the finer polynomial; the coarser one uses every second node.
_ORDER = 16
NODES = -np.cos(np.pi * np.arange(_ORDER + 1) / _ORDER)
FEW: np.ndarray = np.arange(_ORDER + 1) % 2 == 0

# A point on [−1, 1] that is not a node of either polynomial, where it is checked.
CHECK = 0.3147

# Errors of smooth functions are smaller than the last coefficients. As these, and the error at the point that was left
# out, may be small by chance, the error estimate is a multiple of them.
OF_TAIL, OF_CHECK = 10.0, 4.0
_TAIL = 3

# Coefficients that no longer decrease are noise, which is equally large at every point, while the last of them may be
# small by chance. The error estimate is then this many standard deviations, computed from the upper half.
_OF_LEVEL = 8.0

# Relative rounding error of a value, here and in the function.
ROUNDING = 8 * np.finfo(float).eps


def transform(order: int) -> np.ndarray:
    """The matrix that maps values at −cos(π j / order) to coefficients."""
    j = np.arange(order + 1)
    ends = np.where((j == 0) | (j == order), 0.5, 1.0)
    return (2 / order * np.cos(np.pi * np.outer(j, order - j) / order) * ends) * ends[:, None]


_FROM_ALL, _FROM_FEW = transform(_ORDER), transform(_ORDER // 2)


def fitted(samples: np.ndarray, check: np.ndarray, fine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (n, 17) and error estimates (n,) of n polynomials; those not `fine` use every second node."""
    few = np.zeros_like(samples)
    few[:, : _ORDER // 2 + 1] = samples[:, FEW] @ _FROM_FEW.T
    filled = np.where(fine[:, None] | FEW, samples, 0.0)
    coefficients = np.where(fine[:, None], filled @ _FROM_ALL.T, few)
    last = np.where(fine, _ORDER, _ORDER // 2)
    tail = np.abs(coefficients[np.arange(len(last))[:, None], last[:, None] - np.arange(_TAIL)]).max(1)
    missed = np.abs(evaluated(coefficients, np.full(len(last), CHECK)) - check)
    size = np.abs(filled).max(1)
    error = np.maximum(np.maximum(OF_TAIL * tail, OF_CHECK * missed), ROUNDING * size)
    for order, which in ((_ORDER, fine), (_ORDER // 2, ~fine)):
        level = which & is_level(coefficients[:, : order + 1])
        spread = np.sqrt((coefficients[:, order // 2 : order + 1] ** 2).mean(1) * (order + 1) / 2)
        error = np.where(level, np.maximum(error, _OF_LEVEL * spread), error)
    return coefficients, error


def evaluated(coefficients: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Each polynomial at one point of [−1, 1], by Clenshaw's recurrence."""
    ahead, further = np.zeros_like(t), np.zeros_like(t)
    for k in range(coefficients.shape[1] - 1, 0, -1):
        ahead, further = coefficients[:, k] + 2 * t * ahead - further, ahead
    return coefficients[:, 0] + t * ahead - further
