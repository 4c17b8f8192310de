"""Tails of densities: a number far from all rows is improbable, not impossible, so that means of scores are finite."""

import numpy as np

__all__ = ["BEYOND", "with_tails"]

# The probability of tails.
BEYOND = 1e-4


def with_tails(logs: np.ndarray, values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The log density of values (m, d) mixed with BEYOND of one that falls with the square of the distance.

    With c the middle and r half the width of the range of each column, that one is Π r / (2 (r + |x − c|)²): half of it
    lies beyond the range.

    Parameters
    ----------
    logs : array (m,)
        Of the density as it is, −∞ where that is zero.
    values : array (m, d)
        Numbers.
    low, high : array (d,)
        Where the rows are.

    Examples
    --------
    >>> with_tails(np.array([-np.inf]), np.array([[1e200]]), np.array([-1.0]), np.array([1.0])).round()
    array([-931.])
    """
    reach = (high - low) / 2
    away = np.abs(values - (low + reach))
    tails = np.sum(np.log(reach / 2) - 2 * np.log(reach + away), axis=1)
    return np.logaddexp(np.log1p(-BEYOND) + logs, np.log(BEYOND) + tails)
