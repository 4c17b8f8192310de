"""Charts of numbers with their intervals, one below the other."""

from collections.abc import Sequence

import numpy as np

from meanmap.core.values import label_shown
from meanmap.plots.facts import Axis, Chart, Mark, Panel

__all__ = ["away_from_zero", "intervals_chart"]

# More rows than these are no longer read in a picture.
MOST = 60
# More names than these are counted in a sentence.
MOST_SAID = 5


def away_from_zero(names: Sequence[str], low: np.ndarray, high: np.ndarray) -> str:
    """Which intervals exclude zero, as a sentence.

    Examples
    --------
    >>> away_from_zero(["dose", "age"], np.array([1.0, -1.0]), np.array([2.0, 1.0]))
    'The interval of dose excludes 0.'
    >>> away_from_zero(["age"], np.array([-1.0]), np.array([1.0]))
    'Every interval contains 0.'
    """
    found = [label_shown(name) for name, a, b in zip(names, low, high, strict=True) if a > 0 or b < 0]
    if len(found) > MOST_SAID:
        return f"{len(found)} of {len(names)} intervals exclude 0."
    if not found:
        return "Every interval contains 0."
    said = " and ".join(filter(None, (", ".join(found[:-1]), found[-1])))
    return f"The interval{'s' * (len(found) > 1)} of {said} exclude{'s' * (len(found) == 1)} 0."


def intervals_chart(
    title: str,
    names: Sequence[str],
    middle: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    label: str,
    from_zero: bool = False,
) -> Chart:
    """Each number as a dot on its interval, the first on top; of many the first 60. Zero has a line where it is among
    them, or `from_zero`, where numbers are distances from it.

    Examples
    --------
    >>> chart = intervals_chart("Effects", ["dose"], np.ones(1), np.zeros(1), np.full(1, 2.0), "effect")
    >>> chart.panels[0].y.ticks
    ((0.0, 'dose'),)
    """
    shown = min(len(names), MOST)
    places = -np.arange(shown, dtype=float)
    ticks = tuple((float(-i), label_shown(name)) for i, name in enumerate(names[:shown]))
    ranges = {
        "y": places,
        "x1": np.asarray(low)[:shown],
        "x": np.asarray(middle)[:shown],
        "x2": np.asarray(high)[:shown],
    }
    finite = np.concatenate([np.asarray(each, float)[np.isfinite(each)] for each in (low, middle, high)])
    among = from_zero or (len(finite) and finite.min() < 0 < finite.max())
    zero = (Mark("rules", {"x": [0.0]}, colour=6, dashed=True),) if among else ()
    note = "" if shown == len(names) else f"{shown} of {len(names)} rows are drawn."
    return Chart(title, (Panel(Axis(label), Axis(ticks=ticks), (*zero, Mark("ranges", ranges)), note),))
