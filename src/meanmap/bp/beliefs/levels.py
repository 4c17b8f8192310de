"""Probabilities of a model, recalibrated by how often held-out values lay below, so that intervals cover."""

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Levels"]

# Prior standard deviation of log a and log b around zero.
PRIOR_DEVIATION = 0.5
# The correction is tabulated at this many levels, so that rows with many thresholds are cheap.
TABULATED = 1025
# The smallest probability of a value.
LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class Levels:
    """u ↦ I_u(a, b), the distribution function of a Beta: 1 and 1 change nothing.

    A belief is too wide where both are above one, too narrow where both are below, too low or too high where they
    differ. A mixture of calibrated beliefs is too wide (Gneiting & Ranjan 2013, whose correction this is).

    Examples
    --------
    >>> u = np.random.default_rng(0).beta(2.0, 2.0, 5000)    # where values lie in beliefs that are too wide
    >>> found = Levels.fit(u, u + 1e-6)
    >>> round(found.a, 1), round(found.b, 1)
    (2.0, 2.0)
    """

    a: float = 1.0
    b: float = 1.0

    @classmethod
    def fit(cls, below: np.ndarray, upto: np.ndarray, rows: float | None = None) -> "Levels":
        """Penalised maximum likelihood, with a prior centred at no change.

        Parameters
        ----------
        below, upto : array (n,)
            The probabilities that were claimed of values below the bin of what was held out, and up to its end.
        rows : float, optional
            The multiplicity of each, if rows are repeated.
        """
        from scipy.optimize import minimize
        from scipy.special import betainc

        weight = 1.0 if rows is None else rows / len(below)
        ends, at = np.clip(np.stack([below, upto]), 0, 1), _tabulated()
        left, steps = np.searchsorted(at, ends, side="right") - 1, np.append(np.diff(at), 1.0)
        beyond = ends - at[left]

        def loss(logs: np.ndarray) -> float:
            # As by `np.interp`, which would look up the same places each time.
            table = betainc(*np.exp(logs), at)
            low, high = (np.diff(table, append=1.0) / steps)[left] * beyond + table[left]
            chance = np.log(np.maximum(high - low, LEAST_PROBABILITY))
            return float(np.sum(logs**2) / (2 * PRIOR_DEVIATION**2) - weight * chance.sum())

        found: Any = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-3})
        return cls(*np.exp(found.x).tolist())

    def __call__(self, levels: np.ndarray) -> np.ndarray:
        """Probabilities as they are corrected."""
        from scipy.special import betainc

        if self.a == self.b == 1:
            return levels
        at = _tabulated()
        return np.interp(levels, at, betainc(self.a, self.b, at))


def _tabulated() -> np.ndarray:
    """Spaced by cosines, because the correction bends at rare values."""
    return (1 - np.cos(np.linspace(0, np.pi, TABULATED))) / 2
