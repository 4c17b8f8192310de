"""Weighted draws: what they are worth, and where they disagree with beliefs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.language import in_digits, in_few_words

__all__ = ["Weighted", "apart", "pareto_shape"]

# The log of the largest mean square of weights, relative to that of their mean.
_MOST = 50.0
# Where standard deviations are off by this factor, means and the log evidence are in doubt, too.
_FAR = 2.0


@dataclass(frozen=True)
class Weighted:
    """Draws (draws, p) of the effects that all rows share, and the log ratio of exact posterior and belief at each,
    with its standard error if it is estimated from some of the rows.
    """

    draws: np.ndarray
    logs: np.ndarray
    error: float = 0.0

    @property
    def shares(self) -> np.ndarray:
        """Weights that sum to 1."""
        shares = np.exp(self.logs - self.logs.max())
        return shares / shares.sum()

    @property
    def effective(self) -> float:
        """The effective sample size as a share of all draws."""
        shares = self.shares
        return 1 / float(shares @ shares) / len(shares)

    @property
    def gain(self) -> float:
        """Log ratio of the evidence and its approximation by expectation propagation."""
        top = float(self.logs.max())
        return top + float(np.log(np.exp(self.logs - top).mean()))

    @property
    def gain_error(self) -> float:
        """The standard error of `gain`: by the draws, or if larger by a lognormal distribution with the spread of the
        upper half of the weights, because few draws of many numbers do not have the largest weights.
        """
        above = np.maximum(self.logs - np.median(self.logs), 0)
        square = max(1 / self.effective, float(np.exp(min(2 * (above**2).mean(), _MOST))))
        return float(np.hypot(np.sqrt((square - 1) / len(self.logs)), self.error))


def pareto_shape(logs: np.ndarray) -> float:
    """Shape k of a generalised Pareto distribution of the largest weights (Zhang & Stephens 2009; Vehtari et al. 2024).

    Below .7, weighted means can be trusted; equal weights have −∞.
    """
    weights = np.exp(logs - logs.max())
    count = int(min(len(weights) / 5, 3 * np.sqrt(len(weights))))
    ordered = np.sort(weights)
    excess = ordered[-count:] - ordered[-count - 1]
    excess = excess[excess > 1e-12]
    n = len(excess)
    if n < 5:
        return -np.inf
    tried = 30 + int(np.sqrt(n))
    quarter = excess[int(n / 4 + 0.5) - 1]
    theta = 1 / excess[-1] + (1 - np.sqrt(tried / (np.arange(1, tried + 1) - 0.5))) / (3 * quarter)
    shapes = np.log1p(-theta[:, None] * excess).mean(1)
    profile = n * (np.log(-theta / shapes) - shapes - 1)
    share = 1 / np.exp(profile - profile[:, None]).sum(1)
    best = float((theta * share).sum() / share.sum())
    shape = float(np.log1p(-best * excess).mean())
    # Shrunk towards a half, as by ten more excesses.
    return (n * shape + 5) / (n + 10)


def apart(times: np.ndarray, effective: Any, least: float, names: Sequence[str], most: int | None = None) -> str:
    """Which standard deviations are `times` as large by `effective` draws, of all or of each number, if that differs
    from one by the share `least` and by three standard errors: in words, the worst first, at most `most` of them.
    """
    with np.errstate(divide="ignore"):
        logs = np.abs(np.log(times))
    named = np.flatnonzero(logs > np.maximum(least, 3 / np.sqrt(2 * np.asarray(effective))))
    worst = named[np.argsort(-logs[named])]
    found = [f"{in_digits(float(times[at]))} times as large for {names[at]}" for at in worst]
    if not found:
        return ""
    besides = ", and means and the log evidence may be wrong, too" if logs[worst[0]] >= np.log(_FAR) else ""
    return f"weighted draws give standard deviations {in_few_words(found, most or len(found))}{besides}"
