"""Bisection of many monotone functions at once, and a zero or the maximum of one function in an interval."""

import math
from collections.abc import Callable

import numpy as np

__all__ = ["bisect", "crossing", "highest", "zero"]

# The smaller part of an interval in the golden section.
GOLDEN = (3 - 5**0.5) / 2
# Evaluations of `crossing`.
_MOST = 60
ROUNDING = float(np.finfo(float).eps)
# Relative to its position: near a maximum the function is constant up to rounding this far.
CLOSEST = ROUNDING**0.5


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


def zero(value: Callable[[float], float], low: float, high: float, within: float) -> float:
    """Where a function that has different signs at both ends of an interval is 0, located to `within`.

    Brent's method (1973, chapter 4): the parabola through three points or a secant, or half of the interval where steps
    do not shrink. SciPy has it too (`brentq`, with the same steps), but importing it takes longer.
    """
    last, best, other = low, high, low
    of_last, top, of_other = value(low), value(high), 0.0
    step = before = 0.0
    while True:
        if of_last != 0 and top != 0 and (of_last > 0) != (top > 0):
            other, of_other, before, step = last, of_last, best - last, best - last
        if abs(of_other) < abs(top):
            last, best, other, of_last, top, of_other = best, other, best, top, of_other, top
        least, half = (within + 4 * ROUNDING * abs(best)) / 2, (other - best) / 2
        if top == 0 or abs(half) < least:
            return best
        tried = math.inf
        if abs(before) > least and abs(top) < abs(of_last):
            slope = (of_last - top) / (last - best)
            if last == other:
                tried = -top / slope
            else:
                across = (of_other - top) / (other - best)
                tried = -top * (of_other * across - of_last * slope) / (across * slope * (of_other - of_last))
        usable = 2 * abs(tried) < min(abs(before), 3 * abs(half) - least)
        before, step = (step, tried) if usable else (half, half)
        last, of_last = best, top
        best += step if abs(step) > least else math.copysign(least, half)
        top = value(best)


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
