"""Beliefs about the pixels of images, read as images."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.arrays import read_levels
from meanmap.core.intervals import Intervals
from meanmap.core.points import slices
from meanmap.core.report import Report
from meanmap.embeddings.points import PointEmbedding

__all__ = ["Restored"]

# Numbers that are processed at once: some tens of megabytes.
AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Restored(Intervals):
    """Beliefs about the pixels of one image, or of a batch of them.

    Attributes
    ----------
    weights : array (H W, B, G)
        Weights of the G atoms at each pixel.
    report : Report
    """

    variable: Any
    weights: np.ndarray
    size: tuple[int, int]
    batched: bool
    report: Report

    @property
    def atoms(self) -> np.ndarray:
        """The G values that a pixel may have."""
        return self.variable.atoms[:, 0]

    def mean(self) -> np.ndarray:
        """The posterior mean of each pixel, (H, W) or (B, H, W)."""
        return self._image(self._moments()[0].astype(self.weights.dtype))

    def sd(self) -> np.ndarray:
        """The posterior standard deviation."""
        return self._image(np.sqrt(self._moments()[1]).astype(self.weights.dtype))

    def _moments(self) -> np.ndarray:
        """Means and variances (2, H W, B), computed in double precision whatever the weights are in."""
        found = np.empty((2, *self.weights.shape[:2]))
        step = max(AT_ONCE // self.weights[0].size, 1)
        for part in slices(len(self.weights), step):
            weights = self.weights[part].astype(np.float64)
            mean = weights @ self.atoms
            away = self.atoms - mean[..., None]
            found[:, part] = mean, np.einsum("pbg,pbg,pbg->pb", weights, away, away)
        return found

    def quantile(self, q: float) -> np.ndarray:
        """The smallest atom up to which a share q of the belief lies."""
        read_levels(q, axes=0)
        order = np.argsort(self.atoms)
        below = np.cumsum(self.weights[..., order], axis=-1)
        place = np.argmax(below >= q * below[..., -1:], axis=-1)
        return self._image(self.atoms[order][place])

    def mode(self) -> np.ndarray:
        """The atom with the largest weight: the most probable value where values are few, as colours are."""
        return self._image(self.atoms[self.weights.argmax(axis=-1)])

    def __getitem__(self, place: tuple[int, ...]) -> PointEmbedding:
        """The belief about pixel (i, j) as an embedding; (b, i, j) in a batch."""
        batch, i, j = place if self.batched else (0, *place)  # type: ignore[misc]
        weights = self.weights[i * self.size[1] + j, batch]
        return PointEmbedding(self.variable.kernel, self.variable.atoms, weights.astype(np.float64), True)

    def _image(self, values: np.ndarray) -> np.ndarray:
        images = values.T.reshape(-1, *self.size)
        return images if self.batched else images[0]

    def __iter__(self) -> Iterator:
        raise TypeError("a Restored is not a sequence; index it by pixel, restored[i, j].")

    def __repr__(self) -> str:
        return f"Restored({self.weights.shape[1]} of {self.size[0]} x {self.size[1]} pixels; {self.report.status})"
