"""Charts of numbers with their intervals, one below the other."""

from collections.abc import Sequence

import numpy as np

from meanmap.plots.facts import Axis, Chart, Mark, Panel

__all__ = ["intervals_chart"]

# More rows than these are no longer read in a picture.
MOST = 60


def intervals_chart(
    title: str, names: Sequence[str], middle: np.ndarray, low: np.ndarray, high: np.ndarray, label: str
) -> Chart:
    """Each number as a dot on its interval, the first on top; of many the first 60.

    Examples
    --------
    >>> chart = intervals_chart("Effects", ["dose"], np.ones(1), np.zeros(1), np.full(1, 2.0), "effect")
    >>> chart.panels[0].y.ticks
    ((0.0, 'dose'),)
    """
    shown = min(len(names), MOST)
    places = -np.arange(shown, dtype=float)
    ticks = tuple((float(-i), str(name)) for i, name in enumerate(names[:shown]))
    ranges = {
        "y": places,
        "x1": np.asarray(low)[:shown],
        "x": np.asarray(middle)[:shown],
        "x2": np.asarray(high)[:shown],
    }
    finite = np.concatenate([np.asarray(each, float)[np.isfinite(each)] for each in (low, middle, high)])
    zero = (
        (Mark("rules", {"x": [0.0]}, colour=6, dashed=True),) if len(finite) and finite.min() < 0 < finite.max() else ()
    )
    note = "" if shown == len(names) else f"{shown} of {len(names)} rows are drawn."
    return Chart(title, (Panel(Axis(label), Axis(ticks=ticks), (*zero, Mark("ranges", ranges)), note),))
