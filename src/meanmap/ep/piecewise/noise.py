"""Numerical noise of a function: what remains of values where a smooth function would be a straight line."""

import numpy as np

__all__ = ["AT_LEAST", "CLOSE", "OF_NOISE", "is_level", "noise_of"]

# Points on [−1, 1] that lie close together, in equal steps, where no node is.
CLOSE = 0.1234 + 1e-3 * np.arange(8)

# An error of up to this many standard deviations of the noise is noise; stated are this many at least.
OF_NOISE, AT_LEAST = 40.0, 8.0

# Differences of three orders in a row tell the noise, from the first of these on. They agree within the factor where it
# is noise; those of a smooth function fall by the step from one to the next.
_FIRST, _AGREE = np.array([3, 4]), 4.0

# Coefficients are level where the last ones are not below this share of those before, and the first are this many times
# as large: a function that is not resolved yet has large ones to the end, and those of a kink fall.
_LEVEL, _RESOLVED = 0.35, 8.0


def noise_of(samples: np.ndarray) -> np.ndarray:
    """The standard deviation of the noise of each row of values (n, 8) at points that lie close together; 0 for none.

    A difference of order k of independent noise has the variance (2k)! / (k!)² times that of the noise (Hamming 1971;
    Moré & Wild 2011, ECNoise).
    """
    with np.errstate(invalid="ignore"):
        found, difference, of_order = [], samples, 1.0
        for order in range(1, _FIRST[-1] + 3):
            difference = np.diff(difference, axis=1)
            of_order *= (2 * order) * (2 * order - 1) / order**2
            found.append(np.sqrt((difference**2).mean(1) / of_order))
        noise = np.zeros(len(samples))
        for first in _FIRST[::-1]:
            levels = np.stack(found[first - 1 : first + 2])
            alike = np.asarray((levels.max(0) <= _AGREE * levels.min(0)) & np.isfinite(levels).all(0))
            noise = np.where(alike, levels.max(0), noise)
        return noise


def is_level(coefficients: np.ndarray) -> np.ndarray:
    """Whether the coefficients of each row fall at first, and no more after that."""
    size = np.abs(coefficients)
    some = size.shape[1] // 4
    last = size[:, -some:].max(1)
    return (last >= _LEVEL * size[:, size.shape[1] // 2 - 1 : -some].max(1)) & (size[:, :3].max(1) >= _RESOLVED * last)
