"""A belief about a label, read in labels."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from meanmap.bp.beliefs.densities import pick
from meanmap.core.arrays import parameter
from meanmap.core.rng import Rng
from meanmap.core.types import Array, Index, Points, Seed
from meanmap.embeddings.points import PointEmbedding
from meanmap.kernels.base import Kernel
from meanmap.plots.beliefs import of_labels

__all__ = ["LabelBelief"]


class LabelBelief(PointEmbedding):
    """The embedding of a distribution over labels: its points are codes, and all its answers are labels.

    Attributes
    ----------
    labels : tuple
        The label of each point; several points may have the same.

    Examples
    --------
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> colour = rng.choice(["red", "blue"], 200)
    >>> same = np.where(rng.random(200) < 0.9, colour, "red")
    >>> belief = mm.KernelField([(0, 1), (1, 2)]).fit((colour, same)).query({0: "red", 2: "red"})[1]
    >>> str(belief.mode()), bool(belief.probabilities()["red"] > 0.8)
    ('red', True)
    """

    labels: tuple = eqx.field(static=True, default=())

    def __init__(self, kernel: Kernel, points: Points, weights: Array, labels: tuple):
        super().__init__(kernel, points, weights)
        self.labels = labels

    def __getitem__(self, index: Index) -> "LabelBelief":
        part = super().__getitem__(index)
        return LabelBelief(part.kernel, part.points, part.source, self.labels)

    def probabilities(self) -> dict[Any, Any]:
        """The probability of each label, a number or (B,)."""
        found: dict[Any, Any] = {}
        weights = np.asarray(self.weights)
        for i, label in enumerate(self.labels):
            found[label] = found.get(label, 0.0) + weights[..., i]
        return found

    def _in_numbers(self) -> list[dict[str, Any]]:
        return of_labels(self.labels, np.asarray(self.weights))

    def mode(self, candidates: Array | None = None, n_starts: int = 10) -> Array:
        """The most probable label, one or (B,); of `candidates` the number of the best, as of any embedding."""
        if candidates is not None:
            return super().mode(candidates, n_starts)
        each = self.probabilities()
        best = np.argmax(np.stack(list(each.values()), axis=-1), axis=-1)
        return _objects(list(each))[best]

    def sample(self, n: int, rng: Seed = None, bandwidth: Array | None = None) -> Array:
        """`n` independent labels, (..., n)."""
        n = int(parameter(n, "n", axes=0, integer=True))
        weights = np.maximum(np.asarray(self.weights), 0.0)
        return _objects(list(self.labels))[pick(weights, n, Rng.of(rng).generator)]

    def expect(self, function: Callable[..., Any] | Array) -> Any:
        """E f, where f gets the labels (n,) or is given by its values at the points."""
        return super().expect(np.asarray(function(_objects(list(self.labels)))) if callable(function) else function)


def _objects(labels: list) -> np.ndarray:
    """Labels as an array: of text or numbers, and of objects where one has several columns."""
    if not any(isinstance(label, tuple) for label in labels):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
