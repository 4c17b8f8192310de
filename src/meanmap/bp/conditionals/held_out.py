"""How probable residuals are under all others, smoothed: densities, or probabilities where numbers are rounded."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from meanmap.core.points import spread_rows

__all__ = ["HeldOut"]

# The number of held-out rows that decide between distributions.
JUDGES = 1000


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Some residuals and what each of all contributes to their densities, or probabilities. In single precision:
    millions of exponentials serve a decision.

    Attributes
    ----------
    some : array (m,)
        The places of the residuals that are judged.
    kernel : array (n, m)
        Contributions; those of the residual itself are 0.
    top : array (m,)
        The logarithms of their units.
    cells : array (m, 2) or None
        The ends of all that is rounded to the same number, as distances from the residual.
    """

    some: np.ndarray
    kernel: np.ndarray
    top: np.ndarray
    cells: np.ndarray | None

    @classmethod
    def of(cls, residuals: np.ndarray, width: float, cells: np.ndarray | None = None) -> "HeldOut":
        """From all residuals (n,), and their cells (n, 2) where they are of rounded numbers."""
        some = spread_rows(len(residuals), JUDGES)
        places, own = (residuals / width).astype(np.float32), (some, np.arange(len(some)))
        kernel = places[:, None] - places[some]
        if cells is not None:
            low, high = (cells[some] / width).astype(np.float32).T
            kernel = ndtr(high - kernel) - ndtr(low - kernel)
            kernel[own] = 0
            return cls(some, kernel, np.zeros(len(some)), cells[some])
        np.square(kernel, out=kernel)
        kernel *= np.float32(-0.5)
        kernel[own] = -np.inf
        top = kernel.max(axis=0)
        kernel -= top
        np.exp(kernel, out=kernel)
        return cls(some, kernel, top - np.log(np.sqrt(2 * np.pi) * width), None)

    def alike(self) -> np.ndarray:
        """Log densities, or probabilities, under all others alike, (m,)."""
        return self.logs(self.kernel.sum(axis=0, dtype=float) / max(len(self.kernel) - 1, 1))

    def logs(self, means: np.ndarray) -> np.ndarray:
        """Those of some means of contributions (m,)."""
        return np.log(np.maximum(means, np.finfo(float).tiny)) + self.top
