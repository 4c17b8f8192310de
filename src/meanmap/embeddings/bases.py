"""Bases: finite families of elements that span the input or the output of an operator."""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.core.language import a_type
from meanmap.core.points import count
from meanmap.core.tables.schema import Schema, check_same_columns, later
from meanmap.core.types import Array, Data, Points
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.embeddings.element import Embedding, check_same_space
from meanmap.embeddings.points import PointEmbedding
from meanmap.features.base import FeatureKernel, Features, transform_in_chunks, transformed
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix, times
from meanmap.kernels.reading import check_alike, read_points

__all__ = ["Basis", "FeatureBasis", "PointBasis", "overlap"]


class Basis(eqx.Module):
    """Elements b₁, ..., b_p of one RKHS; later points are read by `schema`."""

    schema: Schema | None = eqx.field(static=True, default=None, kw_only=True)

    # Whether the elements are coordinates of features; otherwise they are functions of a kernel at points.
    orthonormal: ClassVar[bool] = False

    @property
    @abstractmethod
    def space(self) -> Kernel:
        """The kernel of the RKHS."""

    @property
    @abstractmethod
    def size(self) -> int:
        """p, the number of functions of the basis."""

    def check_space(self, space: Kernel, what: str) -> None:
        """Refuse elements of another space."""
        check_same_space(self.space, space, what)

    @abstractmethod
    def read(self, data: Data, door: Door) -> Any:
        """New points of this space, checked to fit."""

    @abstractmethod
    def at(self, x: Points, door: Door) -> Any:
        """bᵢ(xⱼ) at m points already read, (p, m)."""

    @abstractmethod
    def combine(self, x: Points, coefficients: Array, door: Door) -> Any:
        """Σᵢ cᵢ bᵢ(xⱼ) for coefficients (p, q), (m, q); PointBasis does not form the (p, m) matrix on the host."""

    @abstractmethod
    def measure(self, element: Embedding, door: Door) -> Any:
        """⟨bᵢ, f⟩, (..., p)."""

    @abstractmethod
    def build(self, coefficients: Array) -> Any:
        """Σᵢ cᵢ bᵢ for coefficients (..., p)."""

    @abstractmethod
    def gram(self, door: Door) -> Any:
        """⟨bᵢ, bⱼ⟩, (p, p)."""


class PointBasis(Basis):
    """k(x₁, ·), ..., k(x_n, ·)."""

    kernel: Kernel
    points: Any
    flat: bool = eqx.field(static=True, default=False)

    @property
    def space(self) -> Kernel:
        """The kernel of these functions."""
        return self.kernel

    @property
    def size(self) -> int:
        """n, one function for each point."""
        return count(self.points)

    def read(self, data: Data, door: Door) -> Any:
        """New points as the kernel reads them, with the columns of these points."""
        points = read_points(self.kernel, later(self.schema, data, "x"), "x", door)
        check_alike(points, self.points, "the new points", "the points of the operator")
        return points

    def at(self, x: Points, door: Door) -> Any:
        """The basis functions k(xᵢ, ·) at new points, (n, m)."""
        check_alike(x, self.points, "the new points", "the points of the operator")
        kernel = door.cast(self.kernel)
        return kernel.gram(self.points, x) if door.follows else gram_matrix(kernel, self.points, x)

    def combine(self, x: Points, coefficients: Array, door: Door) -> Any:
        """Σᵢ cᵢ k(xᵢ, x), streamed."""
        check_alike(x, self.points, "the new points", "the points of the operator")
        return times(door.cast(self.kernel), x, self.points, coefficients, door)

    def measure(self, element: Embedding, door: Door) -> Any:
        """⟨f, k(xᵢ, ·)⟩ = f(xᵢ), the values of an element at the points."""
        return element.evaluate(self.points, door)

    def build(self, coefficients: Array) -> PointEmbedding:
        """Σᵢ wᵢ k(xᵢ, ·)."""
        return PointEmbedding(self.kernel, self.points, coefficients, self.flat, schema=self.schema)

    def gram(self, door: Door) -> Any:
        """The Gram matrix."""
        kernel = door.cast(self.kernel)
        return kernel.gram(self.points, self.points) if door.follows else gram_matrix(kernel, self.points)


class FeatureBasis(Basis):
    """The coordinates of features: an orthonormal basis of the space that they define."""

    features: Features

    orthonormal: ClassVar[bool] = True

    @property
    def space(self) -> Kernel:
        """The kernel ⟨φ(x), φ(y)⟩."""
        return FeatureKernel(self.features)

    @property
    def size(self) -> int:
        """r, one function for each feature."""
        return self.features.size

    def check_space(self, space: Kernel, what: str) -> None:
        """Pivoted coordinates are those of an orthonormal family in the kernel's space, whose elements are accepted."""
        if isinstance(self.features, PivotedCholesky) and not isinstance(space, FeatureKernel):
            check_same_space(self.features.kernel, space, what)
        else:
            check_same_space(self.space, space, what)

    def read(self, data: Data, door: Door) -> Any:
        """New points as the features read them."""
        return self.features.read(later(self.schema, data, "x"), "x", door)

    def at(self, x: Points, door: Door) -> Any:
        """φ(x)ᵀ, (r, m)."""
        features = door.cast(self.features)
        if door.follows:
            return features.transform(x).T
        return transformed(features, x).T

    def combine(self, x: Points, coefficients: Array, door: Door) -> Any:
        """φ(x)ᵀ C, streamed."""
        features = door.cast(self.features)
        if door.follows:
            return jnp.matmul(features.transform(x), coefficients, precision="highest")
        return np.concatenate([np.asarray(part) @ coefficients for part in transform_in_chunks(features, x)])

    def measure(self, element: Embedding, door: Door) -> Any:
        """The coefficients of an element in these coordinates."""
        if isinstance(element, FeatureEmbedding):
            return element.coefficients
        if isinstance(element, PointEmbedding):
            return (jnp if door.follows else np).matmul(element.weights, self.at(element.points, door).T)
        raise KindError(f"{a_type(element)} has no coordinates in features: embed a sample, or in features.")

    def build(self, coefficients: Array) -> FeatureEmbedding:
        """The element ⟨c, φ(·)⟩ with these coefficients."""
        return FeatureEmbedding(self.features, coefficients, schema=self.schema)

    def gram(self, door: Door) -> Any:
        """The identity, because coordinates are orthonormal."""
        return (jnp if door.follows else np).eye(self.size, dtype=door.dtype)


def overlap(first: Basis, second: Basis, door: Door) -> Any:
    """⟨bᵢ, cⱼ⟩ of two bases of one space, (p, q)."""
    first.check_space(second.space, "the composition of two operators")
    check_same_columns(first.schema, second.schema, "the composition of two operators")
    if first is second:
        return first.gram(door)
    one: Any = first
    other: Any = second
    if not other.orthonormal:
        return one.at(other.points, door)
    return one.gram(door) if one.orthonormal else other.at(one.points, door).T
