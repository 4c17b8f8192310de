"""How many batches a monitor takes to a false alarm, and the limit that makes it as many as wanted."""

from typing import Any

import numpy as np
from scipy.special import ndtr

__all__ = ["ALLOWANCE", "limit_for", "mean_run_length"]

# What a batch must bring to count as evidence, in standard deviations: half of the drift that is looked for, here one.
ALLOWANCE = 0.5


def mean_run_length(limit: float, nodes: int = 60) -> float:
    """Batches to an alarm on average without drift: L(0), with L(u) = 1 + L(0) Φ(k − u) + ∫₀ʰ L(v) φ(v + k − u) dv."""
    at, weights = np.polynomial.legendre.leggauss(nodes)
    states = np.append(limit / 2 * (at + 1), 0.0)
    density = np.exp(-((states[None, :-1] + ALLOWANCE - states[:, None]) ** 2) / 2) / np.sqrt(2 * np.pi)
    moves = np.column_stack([density * weights * limit / 2, ndtr(ALLOWANCE - states)])
    return float(np.linalg.solve(np.eye(nodes + 1) - moves, np.ones(nodes + 1))[-1])


def limit_for(run_length: float) -> float:
    """Where the mean run length is as wanted."""
    if run_length <= mean_run_length(0.0):
        return 0.0
    from scipy.optimize import brentq

    found: Any = brentq(lambda limit: np.log(mean_run_length(limit) / run_length), 0.0, 15.0, xtol=1e-10)
    return float(found)
