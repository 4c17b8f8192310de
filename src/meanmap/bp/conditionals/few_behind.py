"""Means of amounts that rest on few rows, as of costs with a heavy tail."""

from collections.abc import Hashable

import numpy as np

__all__ = ["mean_of_few"]

# A mean is noted if its standard error is that of less than FEW equal amounts and one row in RARE: that of lognormal
# amounts (σ = 2) in three tenths of 2000 rows is that of 11, a normal distribution's is that of all rows.
FEW, RARE = 50, 8
# From here on numbers are written without decimals.
WRITTEN_OUT = 1000


def mean_of_few(
    name: Hashable, values: np.ndarray, weights: np.ndarray, rows: float, then: str = ""
) -> tuple[str, ...]:
    """A note where few rows decide the mean of amounts of one sign (m,), with weights that add up to one and were
    learned from so many rows; nothing elsewhere.

    Examples
    --------
    >>> amounts = np.r_[np.zeros(1990), np.full(10, 100.0)]
    >>> print(*mean_of_few("cost", amounts, np.full(2000, 1 / 2000), 2000))
    the mean of 'cost' rests on few rows: half of it is that of the largest 0.25% of values, from 100 on, and its \
standard error is 32% of it or more. Quantiles rest on more rows.
    >>> mean_of_few("cost", np.arange(1.0, 2001.0), np.full(2000, 1 / 2000), 2000)
    ()
    """
    if values.min() < 0 < values.max():
        return ()
    sizes = np.abs(values)
    mean, square = float(weights @ sizes), float(weights @ sizes**2)
    if not 0 < mean**2 * rows < square * min(FEW, rows / RARE):
        return ()
    order = np.argsort(-sizes, kind="stable")
    sums = np.cumsum((weights * sizes)[order])
    half = int(np.searchsorted(sums, sums[-1] / 2))
    share, error = float(weights[order[: half + 1]].sum()), np.sqrt((square / mean**2 - 1) / rows)
    least = values[order[half]]
    shown = f"{least:.3g}" if abs(least) < WRITTEN_OUT else f"{least:.0f}"
    largest = f"half of it is that of the largest {100 * share:.2g}% of values, from {shown} on"
    uncertain = f"its standard error is {100 * error:.0f}% of it or more"
    return (f"the mean of {name!r} rests on few rows: {largest}, and {uncertain}. {then}Quantiles rest on more rows.",)
