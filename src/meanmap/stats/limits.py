"""Limits of the null distribution of a biased quadratic statistic: weighted chi-squares, and their gamma fit."""

import numpy as np

from meanmap.stats.result import Null

__all__ = ["gamma_null", "spectral_null"]


def gamma_null(mean: float, variance: float, n_draws: int, generator: np.random.Generator) -> Null:
    """A gamma law with the mean and variance of the limit (Gretton et al. 2009, section 2.2).

    Two moments only: accurate in the middle, a little off in the far tail. Where nothing varies, its mean alone.
    """
    if not variance > 0 or not mean > 0:
        return Null("gamma approximation", np.full(n_draws, mean), exact=False)
    shape, scale = mean**2 / variance, variance / mean
    return Null("gamma approximation", generator.gamma(shape, scale, n_draws), exact=False)


def spectral_null(eigenvalues: np.ndarray, n_draws: int, generator: np.random.Generator) -> Null:
    """Draws of Σ λᵢ zᵢ² with the eigenvalues of the centred operator (Gretton et al. 2009, theorem 1)."""
    kept = eigenvalues[eigenvalues > 1e-12 * eigenvalues.max(initial=0)]
    draws = np.zeros(n_draws)
    # In blocks: eigenvalues × draws would be the largest array of the whole test.
    for start in range(0, len(kept), 64):
        part = kept[start : start + 64]
        draws += generator.chisquare(1, (n_draws, len(part))) @ part
    return Null("weighted chi-squares", draws, exact=False)
