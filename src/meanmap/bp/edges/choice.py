"""Which lengthscale and ridge an edge of a tree takes: the rules for its two operators, and the error of a message."""

import numpy as np

from meanmap.learning.choice import Rule

__all__ = ["CHOICE_ROWS", "LIKELIHOOD_RULE", "MESSAGE_RULE", "left_out_errors"]

# Choices are made on up to this many pairs.
CHOICE_ROWS = 2000

# Rules and candidates were chosen on Gaussian chains and trees and chains of bimodal variables, 100 to 1000 pairs.
MESSAGE_RULE = Rule(1.0, 0.03, (0.25, 0.5, 1.0, 2.0), np.geomspace(1e-3, 1e2, 16))
LIKELIHOOD_RULE = Rule(0.7, 0.1, (0.35, 0.5, 0.7, 1.0, 1.4), np.geomspace(1e-2, 1e1, 10))


def left_out_errors(phi: np.ndarray, targets: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """‖y − ŷ‖² of each pair when the regression of y (m, q) on φ (m, r) is fitted without it, (ridges, m)."""
    m = len(phi)
    spectrum, axes = np.linalg.eigh(phi.T @ phi / m)
    rotated = phi @ axes
    cross = rotated.T @ targets / m
    errors = []
    for ridge in ridges:
        shrunk = rotated / (np.maximum(spectrum, 0) + ridge)
        leverage = np.sum(shrunk * rotated, axis=1) / m
        residuals = (targets - shrunk @ cross) / (1 - leverage)[:, None]
        errors.append(np.sum(residuals**2, axis=1))
    return np.array(errors)
