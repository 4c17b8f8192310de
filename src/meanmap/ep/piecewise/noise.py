"""The numerical noise of a function, estimated from values so close that a smooth function is nearly linear."""

import numpy as np

__all__ = ["AT_LEAST", "CLOSE", "OF_NOISE", "is_level", "noise_of"]

# Closely and evenly spaced points on [−1, 1], none of which is a node.
CLOSE = 0.1234 + 1e-3 * np.arange(8)

# Errors of up to OF_NOISE standard deviations are attributed to noise; error estimates are at least AT_LEAST of them.
OF_NOISE, AT_LEAST = 40.0, 8.0

# Differences of three consecutive orders, beginning with one of these, estimate the noise. The three estimates agree
# within this factor if it is noise; those of a smooth function decrease from order to order.
_FIRST, _AGREE = np.array([3, 4]), 4.0

# If one step has more than this share of all, beside their median, it is a jump: its differences agree as those of
# noise do.
_JUMP = 0.8

# Coefficients are level if the last ones are at least this share of those before them, and the first ones are this many
# times as large: those of a function that is not resolved yet are large throughout, and those of a kink decrease.
_LEVEL, _RESOLVED = 0.35, 8.0


def noise_of(samples: np.ndarray) -> np.ndarray:
    """The standard deviation of the noise in each row of values (n, 8) at closely spaced points; 0 for none.

    A difference of order k of independent noise has the variance (2k)! / (k!)² times that of the noise (Hamming 1971;
    Moré & Wild 2011, ECNoise).
    """
    with np.errstate(invalid="ignore"):
        found, difference, of_order = [], samples, 1.0
        for order in range(1, _FIRST[-1] + 3):
            difference = np.diff(difference, axis=1)
            of_order *= (2 * order) * (2 * order - 1) / order**2
            found.append(np.sqrt((difference**2).mean(1) / of_order))
        steps = np.diff(samples, axis=1)
        steps = np.abs(steps - np.median(steps, axis=1, keepdims=True))
        jump = steps.max(1) > _JUMP * steps.sum(1)
        noise = np.zeros(len(samples))
        for first in _FIRST[::-1]:
            levels = np.stack(found[first - 1 : first + 2])
            alike = np.asarray((levels.max(0) <= _AGREE * levels.min(0)) & np.isfinite(levels).all(0))
            noise = np.where(alike, levels.max(0), noise)
        return np.where(jump, 0.0, noise)


def is_level(coefficients: np.ndarray) -> np.ndarray:
    """Whether the coefficients of each row decrease at first, and then stay level."""
    size = np.abs(coefficients)
    some = size.shape[1] // 4
    last = size[:, -some:].max(1)
    return (last >= _LEVEL * size[:, size.shape[1] // 2 - 1 : -some].max(1)) & (size[:, :3].max(1) >= _RESOLVED * last)
