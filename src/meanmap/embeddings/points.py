"""Elements that are weighted sums over points, f = Σᵢ wᵢ k(xᵢ, ·)."""

from abc import abstractmethod
from types import ModuleType
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from meanmap.core.domains import holds_vectors
from meanmap.core.door import Door, all_concrete
from meanmap.core.errors import KindError
from meanmap.core.points import count, in_columns, joined, library_of, of_batch
from meanmap.core.tables.schema import Schema
from meanmap.core.types import Array, Data, Index, Numbers, Points
from meanmap.embeddings import certified
from meanmap.embeddings.element import Embedding
from meanmap.embeddings.readouts import Readouts
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import product, streamed_product
from meanmap.kernels.reading import check_alike
from meanmap.plots.beliefs import MOST_QUERIES, BeliefPaged, belief_text, of_number
from meanmap.plots.facts import Page, Section
from meanmap.plots.intervals import intervals_chart

__all__ = ["PointEmbedding", "Weights", "weighted_sums"]

# Weights whose sum is at most this share of their absolute sum do not represent a distribution.
NO_MASS = 1e-6
# For a belief about a number, at most this many values are printed, if each has at least this much of the mass.
MOST_SHARES, LEAST_SHARE, MANY_VALUES = 3, 0.1, 21


def weighted_sums(kernel: Kernel, at: Any, points: Points, weights: Array, door: Door) -> Any:
    """Σᵢ wᵢ k(xᵢ, at) for a batch of weights (..., n): (..., m), streamed."""
    check_alike(at, points, "the new points", "the points of the embedding")
    columns = weights.reshape(-1, weights.shape[-1]).T
    if door.follows:
        result = product(kernel, at, points, jnp.asarray(columns))
    else:
        result = streamed_product(kernel, at, points, np.asarray(columns))
    return result.T.reshape(*weights.shape[:-1], count(at))


class Weights(eqx.Module):
    """Weights (..., n) of the beliefs of many queries, computed only when they are needed.

    A mean needs one number per query, not n: `against` computes it without the weights.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights, (..., n)."""

    @abstractmethod
    def dense(self) -> Any:
        """The weights as an array."""

    @abstractmethod
    def against(self, values: Array) -> Any:
        """Σᵢ wᵢ vᵢ for values (n, q), (..., q)."""

    @abstractmethod
    def take(self, index: Index) -> Any:
        """The weights of some queries, as `Weights` or as an array."""

    @abstractmethod
    def at(self, points: Points) -> Any:
        """The weights (..., m) that other points would have; None if weights are not a function of the point."""


class PointEmbedding(Embedding, Readouts, BeliefPaged):
    """f = Σᵢ wᵢ k(xᵢ, ·): the embedding of a weighted sample, a belief, or a difference of two samples.

    Attributes
    ----------
    kernel : Kernel
        k.
    points : array (n, ...), or other points of the kernel
        x₁, ..., xₙ.
    weights : array (..., n)
        One weight per point; leading axes are a batch of functions on the same points. Weights may be negative.
    conditional : bool
        Whether read-outs distribute one minus the sum of the weights equally over the sample, as for beliefs of
        `mm.condition`; otherwise they divide the weights by their sum.

    Examples
    --------
    >>> import meanmap as mm
    >>> f = mm.embed([0.0, 1.0, 2.0], mm.kernels.RBF(1.0))
    >>> f.weights.round(3).tolist(), f([1.0]).round(3).tolist()
    ([0.333, 0.333, 0.333], [0.738])
    """

    kernel: Kernel
    points: Any
    source: Any
    flat: bool = eqx.field(static=True)
    conditional: bool = eqx.field(static=True, default=False)

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        weights: object,
        flat: bool = False,
        conditional: bool = False,
        schema: Schema | None = None,
    ):
        self.kernel = kernel
        self.points = points
        self.source = weights
        self.flat = flat
        self.conditional = conditional
        self.schema = schema

    @property
    def later(self) -> Weights | None:
        """The weights, if they are computed only when needed."""
        return self.source if isinstance(self.source, Weights) else None

    @property
    def weights(self) -> Array:
        """The weights as an array."""
        return self.source if self.later is None else self.later.dense()

    def against(self, values: Array, library: ModuleType) -> Any:
        """Σᵢ wᵢ vᵢ for values (n, q), (..., q): one number per query if the weights are not computed yet."""
        return library.matmul(self.source, values) if self.later is None else self.later.against(values)

    def weights_at(self, points: Points) -> Any:
        """The weights that other points would have, if they are a function of the point."""
        return None if self.later is None else self.later.at(points)

    def ratio(self, x: Data) -> Any:
        """p(x) / p₀(x) at any points, (m,) or (..., m): how much more probable they are than in the sample itself.

        For beliefs of graphical models, which are a sample of a variable, reweighted given the evidence: p₀ is the
        prior. Retrieval takes the largest value among candidates. Some candidates have large values for many queries:
        with a `ratio` of many queries, (queries, candidates), compare `(ratio - ratio.mean(0)) / ratio.std(0)`, which
        found the right candidate for .03 to .075 more of them.
        """
        with Door(self, x) as door:
            points = self.read(x, "x", door)
            check_alike(points, self.points, "x", "the points of the embedding")
            values = self.weights_at(points)
            if values is None:
                raise KindError(
                    "the weights of this embedding are known at its own points only, so there is no ratio elsewhere: "
                    "beliefs of mm.KernelGraph have one."
                )
            return door.leave(values / np.mean(self.weights, axis=-1, keepdims=True))

    @property
    def known_mass(self) -> Any:
        """Σᵢ |wᵢ|, or 0 if the weights are not computed yet."""
        return abs(self.source).sum(axis=-1) if self.later is None else 0.0

    @property
    def space(self) -> Kernel:
        """The kernel of the weighted functions."""
        return self.kernel

    def evaluate(self, x: Points, door: Door) -> Any:
        """Σᵢ wᵢ k(xᵢ, x)."""
        return weighted_sums(self.kernel, x, self.points, self.weights, door)

    def pair(self, other: Embedding, door: Door) -> Any:
        """Σᵢ wᵢ g(xᵢ), by the reproducing property."""
        values = other.evaluate(self.points, door)
        library = jnp if door.follows else np
        return library.sum(self.weights * values, axis=-1)

    def squared_norm(self) -> Any:
        """⟨f, f⟩, never negative.

        From 20,000 points on it is computed to eight digits from a few of them, if the kernel is smooth enough for an
        error bound; otherwise in O(n²), with a progress bar on terminals.
        """
        with Door(self) as door:
            if not door.follows and not self.batch and count(self.points) >= certified.MANY:
                known = certified.squared_norm(self.kernel, self.points, np.asarray(self.weights), door)
                if known is not None:
                    return known
        return super().squared_norm()

    def times(self, factor: Numbers) -> "PointEmbedding":
        """The weights scaled; an array of factors makes a batch, or broadcasts against one."""
        factor = factor if isinstance(factor, float | int) or not factor.ndim else factor[..., None]
        return self._weighing(self.weights * factor)

    def plus(self, other: Embedding) -> Embedding:
        """Weights are added on shared points, points are joined otherwise."""
        if not isinstance(other, PointEmbedding):
            return Embedding.plus(self, other)
        if self.points is other.points:
            return self._weighing(self.weights + other.weights)
        shape = np.broadcast_shapes(self.batch, other.batch)
        library = library_of(self.weights, other.weights)
        spread = [library.broadcast_to(f.weights, (*shape, f.weights.shape[-1])) for f in (self, other)]
        points = joined(self.points, other.points)
        flat = self.flat and other.flat
        schema = self.schema or other.schema
        return PointEmbedding(self.kernel, points, library.concatenate(spread, axis=-1), flat, schema=schema)

    def _weighing(self, weights: Array, conditional: bool = False) -> "PointEmbedding":
        """An element on these points with other weights."""
        return PointEmbedding(self.kernel, self.points, weights, self.flat, conditional, schema=self.schema)

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the weights."""
        return tuple(self.source.shape[:-1])

    def __getitem__(self, index: Index) -> "PointEmbedding":
        """One function, or some, of a batch."""
        if not self.batch:
            raise IndexError("this embedding is a single function, not a batch.")
        if self.later is not None:
            return self._weighing(self.later.take(index), self.conditional)
        return self._weighing(self.weights[of_batch(index)], self.conditional)

    def _in_numbers(self) -> list[dict[str, Any]]:
        points = self.points
        if not self._is_law or points.shape[1] != 1 or len(self.batch) > 1:
            return []
        if len(points) == 1 or (self.batch and len(points) == self.batch[0]):
            return [{"mean": float(value), "observed": True, "levels": [float(value)]} for value in points[:, 0]]
        each = [self[i] for i in range(min(self.batch[0], MOST_QUERIES))] if self.batch else [self]
        return [of_number(one) | {"shares": one._frequent()} for one in each]

    def _frequent(self) -> dict[float, float]:
        """Numbers with much of the mass, such as zero, and their probabilities, the largest first."""
        values, places = np.unique(np.asarray(self.points[:, 0]), return_inverse=True)
        mass = np.bincount(places, np.asarray(self._shares()))
        best = [at for at in np.argsort(-mass, kind="stable")[:MOST_SHARES] if mass[at] >= LEAST_SHARE]
        return {float(values[at]): float(mass[at]) for at in best} if len(values) >= MANY_VALUES else {}

    @property
    def _is_law(self) -> bool:
        """Whether the points are numbers or vectors, with weights that do not sum to nearly zero (a difference)."""
        if not (holds_vectors(self.kernel.domain) and in_columns(self.points)):
            return False
        weights = np.asarray(self.weights)
        mass = weights.sum(axis=-1)
        return self.conditional or bool((mass > NO_MASS * np.abs(weights).sum(axis=-1)).all())

    def _as_page(self, brief: bool = False) -> Page:
        """The page of a belief; for vectors, the mean and interval of each column."""
        if self.batch or not self._is_law or self.points.shape[1] == 1:
            return super()._as_page(brief)
        low, high = (np.ravel(end) for end in self.interval())
        mean = np.ravel(self.mean())
        names = self.schema.names if self.schema else [f"column {j}" for j in range(len(mean))]
        names = names if len(names) == len(mean) else [f"column {j}" for j in range(len(mean))]
        rows = zip(names, mean, low, high, strict=True)
        table = (
            ("column", "mean", "95% interval"),
            *((f"{name}", f"{m:.4g}", f"{a:.4g} to {b:.4g}") for name, m, a, b in rows),
        )
        chart = intervals_chart("The belief", [f"{name}" for name in names], mean, low, high, "mean and 95% interval")
        facts = {"mean": mean, "interval": [low, high]}
        return Page("A belief", "", (Section("The belief", "", charts=(chart,), tables=(table,)),), facts)

    def __str__(self) -> str:
        """The belief in numbers, a line for each query, if it is about a number or labels."""
        queries = self._in_numbers() if all_concrete(self) else []
        return "\n".join([*map(belief_text, queries), repr(self)])

    def __repr__(self) -> str:
        n = self.source.shape[-1]
        batch = f", batch {self.batch}" if self.batch else ""
        return f"PointEmbedding({n} points{batch}, {self.kernel!r})"
