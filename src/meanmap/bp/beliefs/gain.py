"""The gain in log density of held-out rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Gain", "clearly_better"]

# The logarithm of a probability of zero counts as this.
LEAST_LOG = -20.0


@dataclass(frozen=True)
class Gain:
    """The gain in mean log density of held-out rows, and its standard error.

    Examples
    --------
    >>> print(Gain(0.42, 0.031))
    +0.420 ± 0.031
    """

    mean: float
    error: float

    @classmethod
    def of(cls, more: np.ndarray, less: np.ndarray) -> "Gain":
        """Compare log densities of the same rows."""
        gap = np.maximum(more, LEAST_LOG) - np.maximum(less, LEAST_LOG)
        return cls(float(gap.mean()), float(gap.std() / np.sqrt(len(gap))))

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f}"


def clearly_better(gain: np.ndarray) -> Any:
    """Whether the mean over rows, the last axis, exceeds two of its standard errors.

    Examples
    --------
    >>> rows = np.array([[0.9, 1.1, 1.0, 1.0], [-1.0, 1.0, -1.0, 1.5]])
    >>> clearly_better(rows).tolist()
    [True, False]
    """
    return gain.mean(axis=-1) > 2 * gain.std(axis=-1) / np.sqrt(gain.shape[-1])
