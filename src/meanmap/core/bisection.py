"""Bisection of many monotone functions at once, and the maximum of a function in an interval."""

import math
from collections.abc import Callable

import numpy as np

__all__ = ["bisect", "highest"]

# The smaller part of an interval in the golden section.
GOLDEN = (3 - 5**0.5) / 2
# Relative to its position: near a maximum the function is constant up to rounding this far.
CLOSEST = float(np.finfo(float).eps) ** 0.5


def bisect(
    below: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray, halvings: int
) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the intervals that are left of [low, high] after this many halvings.

    `below(x)` says, entry by entry, whether x lies below what is sought.
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        left = below(middle)
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return low, high


def highest(value: Callable[[float], float], low: float, high: float, within: float) -> tuple[float, float]:
    """The maximum of a unimodal function in (low, high), located to `within`, and its value.

    Brent's search (1973, chapter 5): the vertex of the parabola through the three best points, or the golden section
    where that leaves the interval or the steps do not shrink. SciPy has it too, but importing it takes longer than most
    searches.
    """
    best = second = third = low + GOLDEN * (high - low)
    top = of_second = of_third = value(best)
    step = before = 0.0
    while True:
        middle = (low + high) / 2
        least = CLOSEST * abs(best) + within / 3
        if abs(best - middle) <= 2 * least - (high - low) / 2:
            return best, top
        # The parabola's vertex lies `rise / bend` from the best point.
        left, right = (best - second) * (of_third - top), (best - third) * (of_second - top)
        rise, bend = (best - third) * right - (best - second) * left, 2 * (left - right)
        last, before = before, step
        usable = abs(last) > least and bend != 0 and abs(rise) < abs(bend * last / 2)
        step = rise / bend if usable else math.inf
        if not low < best + step < high:
            before = (low if best >= middle else high) - best
            step = GOLDEN * before
        elif min(best + step - low, high - best - step) < 2 * least:
            step = math.copysign(least, middle - best)
        new = best + math.copysign(max(abs(step), least), step)
        found = value(new)
        if found >= top:
            low, high = (best, high) if new >= best else (low, best)
            third, of_third, second, of_second, best, top = second, of_second, best, top, new, found
            continue
        low, high = (new, high) if new < best else (low, new)
        if found >= of_second or second == best:
            third, of_third, second, of_second = second, of_second, new, found
        elif found >= of_third or third in (best, second):
            third, of_third = new, found
