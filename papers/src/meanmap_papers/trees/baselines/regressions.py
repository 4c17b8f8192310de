"""Practitioners' baselines: rotations by ridge regression on frames, alone or with a Kalman filter."""

from typing import Any

import numpy as np

from meanmap_papers.trees.baselines.kalman import LinearDynamics

__all__ = ["KernelRidge", "smoothed"]

RIDGES = np.logspace(-7, 1, 17)
# Of the median distance of frames.
WIDTHS = (0.5, 1.0, 2.0)
BLOCKS = 4


class KernelRidge:
    """Kernel ridge regression of vectors on frames, standardised pixel by pixel; width and ridge by cross-validation.

    Consecutive frames are alike, so whole stretches of the path are left out at a time.

    Attributes
    ----------
    left_out : (n, k) array
        Predictions for the training frames, each without its own stretch.
    """

    def __init__(self, frames: np.ndarray, targets: np.ndarray):
        self.mean, self.scale = frames.mean(axis=0), frames.std(axis=0) + 1e-6
        self.level, self.frames = targets.mean(axis=0), self._standardised(frames)
        centred, n = targets - self.level, len(frames)
        apart = _squared(self.frames, self.frames)
        median = np.median(apart[np.triu_indices(n, 1)])
        blocks = np.array_split(np.arange(n), BLOCKS)
        best = np.inf
        for width in WIDTHS:
            rate = 0.5 / (width**2 * median)
            gram = np.exp(-rate * apart)
            guesses = np.zeros((len(RIDGES), *centred.shape))
            for block in blocks:
                rest = np.setdiff1d(np.arange(n), block)
                values, vectors = np.linalg.eigh(gram[np.ix_(rest, rest)])
                inner, onto = vectors.T @ centred[rest], gram[np.ix_(block, rest)] @ vectors
                for at, ridge in enumerate(RIDGES):
                    guesses[at, block] = onto @ (inner / (np.maximum(values, 0) + ridge * len(rest))[:, None])
            errors = ((guesses - centred) ** 2).mean(axis=(1, 2))
            if errors.min() < best:
                at = int(errors.argmin())
                best, self.rate, ridge = errors[at], rate, RIDGES[at]
                self.left_out = guesses[at] + self.level
                self.weights = np.linalg.solve(gram + ridge * n * np.eye(n), centred)

    def predict(self, frames: np.ndarray) -> np.ndarray:
        """The vectors of new frames."""
        return np.exp(-self.rate * _squared(self._standardised(frames), self.frames)) @ self.weights + self.level

    def _standardised(self, frames: np.ndarray) -> np.ndarray:
        return (frames - self.mean) / self.scale


def smoothed(states: np.ndarray, regression: KernelRidge, frames: np.ndarray) -> np.ndarray:
    """States of new frames by a Kalman filter that sees the predictions of a regression instead of pixels."""
    means, _ = LinearDynamics.fit(states, regression.left_out).filter(regression.predict(frames))
    return means


def _squared(x: np.ndarray, y: np.ndarray) -> Any:
    return np.maximum((x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T, 0)
