"""Bisection of many monotone functions at once, and the maximum of a function in an interval."""

import math
from collections.abc import Callable

import numpy as np

__all__ = ["bisect", "crossing", "highest"]

# The smaller part of an interval in the golden section.
GOLDEN = (3 - 5**0.5) / 2
# Evaluations of `crossing`.
_MOST = 60
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


def crossing(value: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray, within: float) -> np.ndarray:
    """Where increasing functions are 0 in [low, high], up to a value of `within`: secants, where an end that stays
    counts for half (Illinois). `bisect` evaluates each function several times as often.
    """
    first, last, side = value(low), value(high), np.zeros(len(low))
    new = low
    for step in range(1, _MOST + 1):
        rise = last - first
        share = np.where(rise > 0, -first / np.where(rise > 0, rise, 1.0), 0.5) if step % 8 else 0.5
        new = low + np.clip(share, 0.0, 1.0) * (high - low)
        found = value(new)
        if (np.abs(found) <= within).all():
            break
        left = found < 0
        first, last = (
            np.where(left, found, np.where(side < 0, first / 2, first)),
            np.where(left, np.where(side > 0, last / 2, last), found),
        )
        low, high, side = np.where(left, new, low), np.where(left, high, new), np.where(left, 1, -1)
    return new


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
