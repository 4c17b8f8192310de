"""Chooses the elimination for a predictor: nested or crossed."""

import numpy as np

from meanmap.ep.linear.crossed import Crossed
from meanmap.ep.linear.joint import Joint
from meanmap.ep.linear.nested import Nested
from meanmap.ep.linear.predictor import Predictor, Prior

__all__ = ["joint_of"]


def joint_of(predictor: Predictor, prior: Prior, weights: np.ndarray, shifts: np.ndarray) -> Joint:
    """From the prior, and Gaussian sites exp(shift η − weight η² / 2) of the rows.

    Raises `numpy.linalg.LinAlgError` where the precision is not positive.
    """
    if predictor.nesting is None:
        return Crossed.of(predictor, prior, weights, shifts)
    return Nested.of(predictor, predictor.nesting, prior, weights, shifts)
