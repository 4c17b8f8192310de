"""Between which numbers a distribution is drawn: long tails do not squash the rest."""

__all__ = ["TAILED", "bulk"]

# Nine tenths of a distribution have at least 1 / (1 + 2 REACH) of the width of the picture; tails are cut where this
# leaves less than TAILED of the whole range.
REACH, TAILED = 1.0, 0.6


def bulk(fifth: float, last: float, low: float, high: float) -> tuple[float, float]:
    """The ends of a picture, from the quantiles .05 and .95 and the ends of the data.

    Examples
    --------
    >>> bulk(-1.6, 1.6, -3.0, 3.0)
    (-3.0, 3.0)
    >>> bulk(0.0, 10.0, 0.0, 1000.0)
    (0.0, 20.0)
    """
    reach = REACH * (last - fifth)
    inner = max(low, fifth - reach), min(high, last + reach)
    return inner if 0 < inner[1] - inner[0] < TAILED * (high - low) else (low, high)
