"""Bisection of many monotone functions at once."""

from collections.abc import Callable

import numpy as np

__all__ = ["bisect"]


def bisect(
    below: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray, halvings: int
) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the intervals that are left of [low, high] after so many halvings.

    `below(x)` says, entry by entry, whether x lies below what is sought.
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        left = below(middle)
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return low, high
