"""Weights of several beliefs in their mixture, by how well the mixture predicts held-out values."""

import numpy as np

from meanmap.core.points import slices

__all__ = ["mixture_weights"]

STEPS = 500
# Products of errors are added up for this many rows at a time, which a processor's own memory holds.
ROWS_AT_ONCE = 100


def mixture_weights(errors: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Weights a ≥ 0 (K,) that sum to one, of the mixture Σ aₖ Fₖ with the least mean squared error.

    Parameters
    ----------
    errors : array (K, n, G)
        Fₖ − 1{y ≤ t} at G thresholds t, of n held-out values y: the mean of its square over t is the continuous ranked
        probability score. Or pₖ − 1{y = l} for G labels l, and the Brier score.
    widths : array (G,)
        Weights of the thresholds or labels.

    Notes
    -----
    Stacking of predictive distributions (Yao et al. 2018) with a score that is quadratic in a: exponentiated gradient
    steps on aᵀQa converge to its minimum on the simplex.

    Examples
    --------
    >>> errors = np.array([[[0.5], [-0.5]], [[-0.25], [0.25]]])
    >>> mixture_weights(errors, np.ones(1)).round(2).tolist()
    [0.33, 0.67]
    """
    quadratic, roots = np.zeros((len(errors), len(errors))), np.sqrt(widths)
    for some in slices(errors.shape[1], ROWS_AT_ONCE):
        each = (errors[:, some] * roots).reshape(len(errors), -1)
        quadratic += each @ each.T
    quadratic = quadratic / max(float(np.abs(quadratic).max()), np.finfo(float).tiny)
    weights = np.full(len(quadratic), 1 / len(quadratic))
    for _ in range(STEPS):
        weights = weights * np.exp(-2 * quadratic @ weights)
        weights = weights / weights.sum()
    return weights
