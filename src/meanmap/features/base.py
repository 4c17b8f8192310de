"""The base class of features: finite-dimensional coordinates φ of a kernel, ⟨φ(x), φ(y)⟩ ≈ k(x, y)."""

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.containers import handed_over
from meanmap.core.domains import Columns, Domain
from meanmap.core.door import Door
from meanmap.core.errors import ParameterError
from meanmap.core.points import any_sparse, bucket, count, on_device, one_row, pad, rows, slices
from meanmap.core.settings import is_whole
from meanmap.core.tables.matching import Places
from meanmap.core.tables.table import Table
from meanmap.core.types import Data, Points
from meanmap.kernels.base import Composite, Kernel
from meanmap.kernels.reading import by_position, read_points

__all__ = ["Concatenated", "FeatureKernel", "Features", "OfMembers", "TensorProduct", "mean_over"]

# Rows that are mapped in one compiled call: enough to fill the cores, few enough to stay in cache.
CHUNK = 4096


Made = TypeVar("Made", bound="Features")


class Features(eqx.Module):
    """A map φ from points to R^r with ⟨φ(x), φ(y)⟩ ≈ k(x, y) for the kernel `kernel`."""

    kernel: eqx.AbstractVar[Kernel]

    # Names of the columns that the features were made for, in order; empty if the kernel needs none or has its own.
    columns: tuple[str, ...] = eqx.field(static=True, default=(), kw_only=True)
    # The same for an array of several columns, which have positions instead of names.
    places: Places | None = eqx.field(static=True, default=None, kw_only=True)

    @abstractmethod
    def transform(self, x: Points) -> jax.Array:
        """φ(x), (n, r), of points already read: pure and traceable."""

    def transform_means(self, x: Points, size: int) -> jax.Array:
        """Means of φ over consecutive blocks of `size` points, (n / size, r): pure and traceable."""
        return grouped_means(self.transform(x), size)

    def padded(self) -> tuple["Features", np.ndarray | slice]:
        """The map padded with zero features, and the positions of the others: maps of similar size share a program."""
        return self, slice(None)

    @abstractmethod
    def check(self, points: Points, argument: str) -> None:
        """Raise if points are not of the kind that these features were made for."""

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """Points as the kernel reads them, checked to fit it and these features."""
        data = handed_over(data)
        if self.places is not None:
            self.places.check(data, argument)
        points = self.domain.read(data, argument, door)
        self.kernel.check(points, argument)
        self.check(points, argument)
        return points

    @property
    def domain(self) -> Domain:
        """How users' data are read: as the kernel reads them, with columns by name if they had names."""
        return Columns(self.columns, self.kernel.domain) if self.columns else self.kernel.domain

    def __call__(self, x: Data) -> Any:
        """φ(x) for each point, (n, r).

        NumPy inputs give NumPy float64, computed in chunks of rows; JAX inputs give JAX arrays. Cost O(n r d), memory
        O(n r).
        """
        with Door(self, x) as door:
            points = self.read(x, "x", door)
            features = door.cast(self)
            if door.follows:
                return features.transform(points)
            return transformed(features, points)

    def mean(self, x: Data) -> Any:
        """The mean of φ over a sample, (r,): the empirical mean embedding in these coordinates, streamed."""
        with Door(self, x) as door:
            points = self.read(x, "x", door)
            return mean_over(door.cast(self), points, door)

    @property
    def size(self) -> int:
        """r, the number of features."""
        raise AttributeError(f"{type(self).__name__} does not define its size")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size} features of {self.kernel!r})"


@compiled_anew
@jax.jit
def _transform(features: Features, x: Points) -> jax.Array:
    return features.transform(x)


def transform_in_chunks(features: Features, points: Points, chunk: int = CHUNK) -> Any:
    """φ of successive chunks of points (already read), each (rows, r), on the host."""
    n = count(points)
    if any_sparse((features, points)):
        kept, transform = slice(None), lambda features, x: features.transform(x)
    else:
        features, kept = features.padded()
        features, transform = on_device(features), _transform
    size = min(chunk, bucket(n))
    for start in range(0, n, size):
        part = rows(points, slice(start, min(start + size, n)))
        # Cut on the host: in JAX every new number of rows would be compiled.
        yield np.asarray(transform(features, pad(part, size)))[: count(part), kept]


@compiled_anew
@partial(jax.jit, static_argnames="size")
def _transform_means(features: Features, x: Points, size: int) -> jax.Array:
    return features.transform_means(x, size)


def grouped_means(values: jax.Array, size: int) -> jax.Array:
    return jnp.mean(values.reshape(-1, size, values.shape[-1]), axis=1)


def transformed_means(features: Features, points: Points, size: int) -> np.ndarray:
    """Means of φ over consecutive blocks of `size` points (already read), (n / size, r), on the host."""
    n = count(points) // size
    if any_sparse((features, points)):
        return np.asarray(grouped_means(jnp.asarray(transformed(features, points)), size))
    found, step = np.empty((n, features.size)), max(1, CHUNK // size)
    padded, kept = features.padded()
    features = on_device(padded)
    for part in slices(n, step):
        taken = pad(rows(points, slice(part.start * size, part.stop * size)), step * size)
        found[part] = np.asarray(_transform_means(features, taken, size))[: part.stop - part.start, kept]
    return found


def transformed(features: Features, points: Points, chunk: int = CHUNK) -> np.ndarray:
    """φ of points (already read), (n, r), on the host: no memory beyond that of the result."""
    out, start = np.empty((count(points), features.size)), 0
    for part in transform_in_chunks(features, points, chunk):
        out[start : start + len(part)] = part
        start += len(part)
    return out


def mean_over(features: Features, points: Points, door: Door) -> Any:
    """The mean of φ over points already read, (r,), chunk by chunk."""
    if door.follows:
        return jnp.mean(features.transform(points), axis=0)
    return sum(part.sum(axis=0) for part in transform_in_chunks(features, points)) / count(points)


class FeatureKernel(Kernel):
    """The kernel that features define exactly, k̂(x, y) = ⟨φ(x), φ(y)⟩, for use wherever a kernel is expected.

    Examples
    --------
    >>> from meanmap import features, kernels
    >>> phi = features.Fourier.draw(kernels.RBF(1.0), like=1, n_features=2000, rng=0)
    >>> round(float(FeatureKernel(phi)([0.0], [1.0])[0, 0]), 1)
    0.6
    """

    features: Features

    @property
    def domain(self) -> Domain:
        """The domain of the features."""
        return self.features.domain

    def check(self, points: Points, argument: str) -> None:
        """Raise unless the points fit the approximated kernel and the features."""
        self.features.kernel.check(points, argument)
        self.features.check(points, argument)

    def evaluate(self, x: Points, y: Points) -> jax.Array:
        """k̂(x, y) for two points."""
        first = jax.tree.map(lambda leaf: leaf[None], x)
        second = jax.tree.map(lambda leaf: leaf[None], y)
        return jnp.vdot(self.features.transform(first), self.features.transform(second))

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The Gram matrix of the features' kernel, Φ(x) Φ(y)ᵀ."""
        return jnp.matmul(self.features.transform(x), self.features.transform(y).T, precision="highest")

    def diagonal(self, x: Points) -> jax.Array:
        """k̂(x, x) = |φ(x)|² for each point."""
        return jnp.sum(self.features.transform(x) ** 2, axis=1)


class OfMembers(Features):
    """Features made of those of several members, each of which reads its own part of the points."""

    kernel: Kernel
    members: tuple[Features, ...]

    def parts(self, x: Points) -> tuple[Any, ...]:
        """The points as each member reads them: members of sums and products may read different columns."""
        return self.kernel.parts(x) if isinstance(self.kernel, Composite) else (x,) * len(self.members)

    def of_each(self, x: Points) -> list[jax.Array]:
        """The features of each member."""
        return [member.transform(part) for member, part in zip(self.members, self.parts(x), strict=True)]

    def check(self, points: Points, argument: str) -> None:
        """Raise unless the points fit every member."""
        for member, part in zip(self.members, self.parts(points), strict=True):
            member.check(part, argument)

    @property
    def size(self) -> int:
        """The number of features of all members together, Σ rᵢ."""
        return sum(member.size for member in self.members)


class Concatenated(OfMembers):
    """Features side by side, (φ₁, φ₂, ...): the features of a sum of kernels.

    Examples
    --------
    >>> from meanmap import features, kernels
    >>> k = kernels.RBF(1.0) + kernels.Matern(1.0)
    >>> features.Fourier.draw(k, like=2, n_features=100, rng=0).size
    200
    """

    def transform(self, x: Points) -> jax.Array:
        """φ(x), (n, Σ rᵢ)."""
        return jnp.concatenate(self.of_each(x), axis=1)

    def padded(self) -> tuple[Features, np.ndarray | slice]:
        """Each member padded."""
        members, kept = zip(*(member.padded() for member in self.members), strict=True)
        ends = np.cumsum([member.size for member in members])
        places = [np.arange(end - member.size, end)[at] for end, member, at in zip(ends, members, kept, strict=True)]
        return replace(self, members=members), np.concatenate(places)


class TensorProduct(OfMembers):
    """φ(x) = φ₁(x) ⊗ ... ⊗ φ_q(x), all products of one feature of each: the features of a product of kernels.

    `TensorProduct.power(features, q)` gives the q-fold tensor power, whose kernel is k^q: the space in which kernel
    belief propagation multiplies q incoming messages (Song et al. 2011). There are Π rᵢ features, so use
    this for small r and q; for larger ones compress the same kernel with `PivotedCholesky.fit(kernel ** q, x)`.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import features, kernels
    >>> x = np.linspace(-1, 1, 30)
    >>> phi = features.PivotedCholesky.fit(kernels.RBF(1.0), x, tolerance=1e-12)
    >>> psi = features.TensorProduct.power(phi, 2)
    >>> bool(np.allclose(psi(x) @ psi(x).T, kernels.RBF(1.0)(x) ** 2, atol=1e-9))
    True
    """

    @classmethod
    def power(cls, features: Features, q: int) -> "TensorProduct":
        """The q-fold tensor power of one set of features."""
        return cls(features.kernel**q, (features,) * q, columns=features.columns, places=features.places)

    def transform(self, x: Points) -> jax.Array:
        """φ(x), (n, Π rᵢ)."""
        first, *others = self.of_each(x)
        for other in others:
            first = (first[:, :, None] * other[:, None, :]).reshape(first.shape[0], -1)
        return first

    @property
    def size(self) -> int:
        """The number of products of one feature of each member, Π rᵢ."""
        return int(np.prod([member.size for member in self.members]))


def made_from(features: Made, kernel: Kernel, data: Data, argument: str) -> Made:
    """The features, with the names of any columns that the kernel would match by position."""
    if not by_position(kernel.domain) or is_whole(data):
        return features
    if Table.has_names(data):
        return replace(features, columns=tuple(Table.names_in(data, argument)))
    places = Places.of(data)
    return replace(features, places=places if places is not None and places.number > 1 else None)


def sample_row(kernel: Kernel, like: Data, door: Door) -> Any:
    """One point that shows the shapes: the first of `like`, or zeros if `like` is a number of columns."""
    if is_whole(like):
        if like < 1:
            raise ParameterError(f"like is {like}; expected a number of columns of at least 1, or a sample.")
        like = np.zeros((1, int(like)), door.dtype)
    points = read_points(kernel, like, "like", door)
    return one_row(points)
