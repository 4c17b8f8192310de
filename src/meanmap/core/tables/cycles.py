"""Weekdays, days of the month and hours of times, of which regressions that are smooth in time know nothing."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.core.held import counts_as_numbers, holds_text, holds_times
from meanmap.core.language import with_and
from meanmap.core.moments import seconds
from meanmap.core.tables.codes import ROWS_TO_COMPARE
from meanmap.core.tables.kinds import DAY
from meanmap.core.tables.sample import array_of

__all__ = ["DIFFERENT", "cycles", "differ", "notes_on_cycles"]

# The p-value below which differences among them are noted.
DIFFERENT = 1e-4
# How many seconds each takes to come back. Months are too few in a table: series that wander would seem to have some.
PERIODS = {"the weekday": 7 * DAY, "the hour": DAY}
# What is smooth in time is taken away by polynomials of this degree, if times span as many periods.
DEGREE = 8


def cycles(times: np.ndarray, left: np.ndarray, units: np.ndarray | None = None) -> list[str]:
    """Of the weekday, the day of the month and the hour of times, in seconds, those among which residuals (n,)
    differ, more than `units` do whose rows depend on one another.
    """
    days = np.floor(times / DAY).astype("datetime64[D]")
    parts = {
        "the weekday": days.astype(int) % 7,
        "the day of the month": (days - days.astype("datetime64[M]")).astype(int),
        "the hour": np.floor(times / DAY * 24).astype(int) % 24,
    }
    found = []
    for cycle, part in parts.items():
        group = np.unique(part, return_inverse=True)[1].ravel()
        if group.max() and differ(left, group, units) < DIFFERENT:
            found.append(cycle)
    return found


def notes_on_cycles(given: Mapping[str, Any], others: Mapping[str, Any]) -> tuple[str, ...]:
    """Notes on times (`given`) whose weekday or hour other columns, without missing values, vary with beyond smooth
    effects of time.

    Examples
    --------
    >>> days = np.datetime64("2024-01-01") + np.arange(200)
    >>> weekend = np.is_busday(days) + 0.1 * np.random.default_rng(0).normal(size=200)
    >>> print(*notes_on_cycles({"day": days}, {"sales": weekend}))
    'day' counts as a number with smooth effects, but 'sales' varies with the weekday of 'day': make it a \
column of its own.
    >>> notes_on_cycles({"day": days}, {"sales": days - days[0]})
    ()
    """
    notes = []
    for name, column in given.items():
        array = array_of(column)
        if array is None or array.dtype.kind != "M" or array.ndim != 1 or np.isnat(array).any():
            continue
        times = seconds(array)
        span, varying = float(np.ptp(times)), {cycle: [] for cycle in PERIODS}
        if not span:
            continue
        smooth = np.polynomial.legendre.legvander(2 * (times - times.min()) / span - 1, DEGREE)
        basis = np.linalg.svd(smooth, full_matrices=False)[0]
        for other, values in others.items():
            numbers = _numbers(array_of(values))
            if other == name or numbers is None or len(numbers) != len(times):
                continue
            for cycle in cycles(times, numbers - basis @ (basis.T @ numbers)):
                if span >= DEGREE * PERIODS.get(cycle, np.inf):
                    varying[cycle].append(other)
        notes += [
            f"{name!r} counts as a number with smooth effects, but {with_and(list(map(repr, each)))} "
            f"{'varies' if len(each) == 1 else 'vary'} with {cycle} of {name!r}: make it a column of its own."
            for cycle, each in varying.items()
            if each
        ]
    return tuple(notes)


def _numbers(values: np.ndarray | None) -> np.ndarray | None:
    """A column as one number a row: of labels, whether it is the most frequent one; None for other columns."""
    if values is None:
        return None
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or not len(values):
        return None
    if holds_text(values):
        labels, counts = np.unique(values, return_counts=True)
        return (values == labels[np.argmax(counts)]).astype(float)
    numbers = seconds(values) if holds_times(values) else values.astype(float) if counts_as_numbers(values) else None
    return numbers if numbers is not None and np.isfinite(numbers).all() else None


def differ(left: np.ndarray, group: np.ndarray, units: np.ndarray | None = None, unequal: bool = False) -> float:
    """The p-value of different means of groups by the F test; 1 where they have few rows each.

    The rows of a group that are of one of the `units`, numbers from 0, count as one, their mean. If spreads may be
    `unequal`, the larger of this and Welch's (1951), which alone is wrong for long tails.
    """
    from scipy.special import fdtrc

    if units is not None:
        together, cell = np.unique(group * (units.max() + 1) + units, return_inverse=True)
        left, group = np.bincount(cell, left) / np.bincount(cell), together // (units.max() + 1)
    n, counts, away = len(left), np.bincount(group), left - left.mean()
    k = len(counts)
    if n < ROWS_TO_COMPARE * k or k < 2:
        return 1.0
    tiny, means = np.finfo(float).tiny, np.bincount(group, away) / counts
    between = float(np.sum(counts * means**2))
    within = max(float(np.sum(away**2)) - between, tiny)
    p = float(fdtrc(k - 1, n - k, between / (k - 1) / (within / (n - k))))
    if not unequal or p > DIFFERENT:
        return p
    squares, several = np.bincount(group, (away - means[group]) ** 2), counts > 1
    counts, means, k = counts[several], means[several], int(several.sum())  # one row has no spread
    weights = counts / np.maximum(squares[several] / (counts - 1), tiny * n)
    shares = weights / weights.sum()
    doubt = float(np.sum((1 - shares) ** 2 / (counts - 1)))
    ratio = float(weights @ (means - shares @ means) ** 2) / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * doubt)
    return max(p, float(fdtrc(k - 1, (k**2 - 1) / (3 * doubt), ratio)))
