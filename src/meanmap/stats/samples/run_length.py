"""When a monitor raises an alarm: the limit for a mean number of batches until a false one, and the wealth of a bet."""

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.core.bisection import zero
from meanmap.core.errors import ParameterError
from meanmap.core.settings import is_number
from meanmap.stats.settings import LEAST_PVALUE

__all__ = ["ALLOWANCE", "accumulated", "check_run_length", "limit_for", "mean_run_length", "wealth"]

# The reference value of the cumulative sum, in standard deviations: half of the drift to be detected, here one.
ALLOWANCE = 0.5


def accumulated(evidence: np.ndarray, pvalue: float, restarted: bool) -> float:
    """The evidence after one more p-value (Page 1954), restarted from zero after an alarm."""
    before = 0.0 if restarted or not len(evidence) else float(evidence[-1])
    return max(0.0, before - float(ndtri(max(pvalue, LEAST_PVALUE))) - ALLOWANCE)


def mean_run_length(limit: float, nodes: int = 60) -> float:
    """The mean run length without drift, L(0), where L(u) = 1 + L(0) Φ(k − u) + ∫₀ʰ L(v) φ(v + k − u) dv."""
    at, weights = np.polynomial.legendre.leggauss(nodes)
    states = np.append(limit / 2 * (at + 1), 0.0)
    density = np.exp(-((states[None, :-1] + ALLOWANCE - states[:, None]) ** 2) / 2) / np.sqrt(2 * np.pi)
    moves = np.column_stack([density * weights * limit / 2, ndtr(ALLOWANCE - states)])
    return float(np.linalg.solve(np.eye(nodes + 1) - moves, np.ones(nodes + 1))[-1])


def check_run_length(run_length: object) -> None:
    """Refuse a run length that is not a number from 4 to a million."""
    if not is_number(run_length) or not 4 <= run_length <= 1e6:
        raise ParameterError(f"run_length is {run_length!r}; expected a number from 4 to 1e6, such as 1000.")


def limit_for(run_length: float) -> float:
    """The limit of the evidence with this mean run length."""
    if run_length <= mean_run_length(0.0):
        return 0.0
    return float(zero(lambda limit: np.log(mean_run_length(limit) / run_length), 0.0, 15.0, 1e-10))


def wealth(pvalues: np.ndarray) -> float:
    """The wealth from one unit bet on drift, a share 1/(t (t + 1)) of it from batch t on.

    P-values become payoffs (1 − p + p log p) / (p log² p), whose mean is 1 without drift (Vovk & Wang 2021).
    """
    money = 0.0
    for t, p in enumerate(np.clip(pvalues, 1e-300, 1.0).tolist(), start=1):
        log = np.log(p)
        payoff = 0.5 if p > 1 - 1e-6 else (1 - p + p * log) / (p * log**2)
        money = min((money + 1 / (t * (t + 1))) * payoff, 1e300)
    return float(money + 1 / (len(pvalues) + 1))
