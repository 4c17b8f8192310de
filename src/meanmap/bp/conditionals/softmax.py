"""Multinomial logistic regression with a ridge: shares of labels from columns of numbers."""

import numpy as np
from scipy.special import log_softmax

__all__ = ["log_shares", "softmax_weights"]

# Limits of steps, and of the gradient in coordinates in which the curvature at the shares of all rows is one.
MOST_STEPS, AT_REST = 500, 1e-6
# A number, relative to the mean curvature, that is added to the curvature before it is factored.
HAIR = 1e-10


def softmax_weights(
    design: np.ndarray,
    hits: np.ndarray,
    ridges: np.ndarray,
    offset: np.ndarray | float = 0.0,
    start: np.ndarray | None = None,
    often: np.ndarray | None = None,
) -> np.ndarray:
    """Weights W (q, L) of least −Σᵢ log p(label of row i) + ½ Σⱼ ridgeⱼ |Wⱼ|², with p = softmax(offset + design W).

    Of n rows and L labels: hits (n, L) are zeros and a one, and labels are treated alike, so that their order does not
    matter. Offsets (n, L) are known terms of the logits; steps begin at `start`; rows count so `often` (n,), or once.

    Notes
    -----
    By L-BFGS (Nocedal 1980). For two labels a column's difference of weights has the prior variance 2 / ridge.

    Examples
    --------
    >>> design = np.column_stack([np.ones(4), [0.0, 0.0, 1.0, 1.0]])
    >>> weights = softmax_weights(design, np.eye(2)[[0, 1, 0, 0]], np.array([0.0, 0.5]))
    >>> np.exp(log_shares(design @ weights)).round(2).tolist()
    [[0.65, 0.35], [0.65, 0.35], [0.85, 0.15], [0.85, 0.15]]
    """
    from scipy.optimize import minimize

    if often is not None:
        here = often > 0
        design, offset = design[here], np.broadcast_to(offset, hits.shape)[here]
        hits = hits[here] * often[here, None]
    rows = hits.sum(axis=1, keepdims=True)
    shares = hits.sum(axis=0) / rows.sum()
    curvature = max(float(np.mean(shares * (1 - shares))), np.finfo(float).tiny) * (design.T @ (rows * design))
    curvature[np.diag_indices(len(curvature))] += ridges + HAIR * np.trace(curvature) / len(curvature)
    root = np.linalg.cholesky(curvature)
    turn = np.linalg.inv(root).T
    white, penalty = design @ turn, turn.T @ (ridges[:, None] * turn)
    shape = white.shape[1], hits.shape[1]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(shape)
        logs = log_shares(offset + white @ weights)
        pull = penalty @ weights
        value = float(np.sum(weights * pull) / 2 - np.sum(logs * hits))
        return value, (white.T @ (rows * np.exp(logs) - hits) + pull).ravel()

    begin = np.zeros(shape) if start is None else root.T @ start
    options = {"maxiter": MOST_STEPS, "gtol": AT_REST, "ftol": 0.0, "maxcor": 20}
    found = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options=options)
    return turn @ found.x.reshape(shape)


def log_shares(logits: np.ndarray) -> np.ndarray:
    """The logarithms of the shares (n, L) of logits."""
    return log_softmax(logits, axis=1)
