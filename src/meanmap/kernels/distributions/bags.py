"""Bags: samples of different sizes, each a point of one data set, for distribution regression."""

from types import ModuleType
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import read_matrix
from meanmap.core.door import Door
from meanmap.core.errors import EmptyError, InputError, KindError, ShapeError
from meanmap.core.language import a_type
from meanmap.core.points import library_of
from meanmap.core.types import Array
from meanmap.core.values import is_sequence

__all__ = ["Bags"]


class Bags(eqx.Module):
    """N samples of nᵢ points in R^d, padded to the largest; each represents its empirical distribution.

    Padding repeats a point of the same bag at weight zero, so that it is always a valid point.

    Parameters
    ----------
    bags : sequence of array_like, each (nᵢ, d) or (nᵢ,), or one array (N, n, d)
        The samples; sizes may differ, columns may not.

    Attributes
    ----------
    points : array, shape (N, n, d)
        n is the size of the largest bag.
    weights : array, shape (N, n)
        1/nᵢ for the points of bag i and 0 for its padding.

    Examples
    --------
    >>> bags = Bags([[1.0, 2.0, 3.0], [4.0]])
    >>> bags.points[..., 0].tolist(), bags.weights[1].tolist()
    ([[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]], [1.0, 0.0, 0.0])
    """

    points: Any
    weights: Any

    coordinates: ClassVar[tuple[str, ...]] = ("x",)

    def __init__(self, bags: object, argument: str = "bags"):
        members = _members(bags, argument)
        with Door(members) as door:
            matrices = [_read(bag, f"{argument}[{i}]", door) for i, bag in enumerate(members)]
            widths = [matrix.shape[1] for matrix in matrices]
            if len(set(widths)) > 1:
                other = next(i for i, width in enumerate(widths) if width != widths[0])
                raise ShapeError(
                    f"{argument}[0] has {widths[0]} columns and {argument}[{other}] has {widths[other]}; "
                    "expected the same columns in every bag."
                )
            largest = max(matrix.shape[0] for matrix in matrices)
            library = jnp if door.follows else np
            self.points = library.stack([_lengthen(matrix, largest, library) for matrix in matrices])
            sizes = np.array([matrix.shape[0] for matrix in matrices])
            weights = np.where(np.arange(largest) < sizes[:, None], 1 / sizes[:, None], 0.0)
            self.weights = library.asarray(weights, dtype=door.dtype)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape that two sets of bags must share: the number of columns, not the size of the largest bag."""
        return tuple(self.points.shape[2:])

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(d,), as for distributions of vectors."""
        return (self.dimension,)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch shape, (N,)."""
        return tuple(self.weights.shape[:-1])

    @property
    def dimension(self) -> int:
        """d, the number of columns."""
        return self.points.shape[-1]

    def lengthened(self, size: int) -> "Bags":
        """The bags, padded up to `size` points each."""
        missing = size - self.points.shape[1]
        if missing <= 0:
            return self
        library = library_of(self.points)
        more = library.broadcast_to(self.points[:, :1], (self.points.shape[0], missing, self.dimension))
        points = library.concatenate([self.points, more], axis=1)
        weights = library.concatenate(
            [self.weights, library.zeros((self.points.shape[0], missing), self.weights.dtype)], axis=1
        )
        return eqx.tree_at(lambda bags: (bags.points, bags.weights), self, (points, weights))

    def moments(self) -> tuple[Any, Any]:
        """Mean and variance (of the empirical distribution) of each bag, (N, d) each."""
        weights = self.weights[..., None]
        mean = (weights * self.points).sum(-2)
        return mean, (weights * (self.points - mean[..., None, :]) ** 2).sum(-2)

    def mean_in(self, coordinate: str) -> Any:
        """The mean of each bag, as for distributions."""
        del coordinate
        return self.moments()[0]

    def variance_in(self, coordinate: str) -> Any:
        """The variance of each bag, as for distributions."""
        del coordinate
        return self.moments()[1]

    def characteristic_function(self, w: Array, coordinate: str) -> jax.Array:
        """E exp(i w·X) of each bag at frequencies w (D, d), complex (N, D)."""
        del coordinate
        return _characteristic(self, w)

    def __len__(self) -> int:
        return self.weights.shape[0]

    def __repr__(self) -> str:
        return (
            f"Bags({', '.join(map(str, self.shape))} of at most {self.points.shape[-2]} points in R^{self.dimension})"
        )


@jax.jit
def _characteristic(bags: Bags, w: Array) -> jax.Array:
    def one(bag):
        points, weights = bag
        angles = jnp.matmul(points, w.T, precision="highest")
        waves = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)
        return jnp.matmul(weights, waves, precision="highest")

    # One bag at a time: all of them together would need an array of bags × points × frequencies.
    cosines, sines = jnp.split(jax.lax.map(one, (bags.points, bags.weights)), 2, axis=-1)
    return jax.lax.complex(cosines, sines)


def _members(bags: object, argument: str) -> list[Any]:
    if isinstance(bags, np.ndarray | jax.Array):
        if bags.dtype != object and bags.ndim != 3:
            raise ShapeError(
                f"{argument} is an array of shape {bags.shape}; expected bags of points: (bags, points, columns), or a "
                "list with one array of points per bag."
            )
        if not len(bags):
            raise EmptyError(f"{argument} holds no bags; expected at least one.")
        return list(bags)
    if not is_sequence(bags):
        raise KindError(f"{argument} is {a_type(bags)}; expected a list with one array of points per bag.")
    if not len(bags):
        raise EmptyError(f"{argument} holds no bags; expected at least one.")
    return list(bags)


def _read(bag: Any, argument: str, door: Door) -> Any:
    if np.ndim(bag) == 0 and isinstance(bag, float | int | np.number):
        raise ShapeError(
            f"{argument} is the single number {bag}; expected the points of one bag. A list is read as bags: "
            "pass [x] for one bag x."
        )
    try:
        return read_matrix(bag, argument, door, sparse=False)
    except EmptyError as error:
        raise EmptyError(f"{argument} is a bag without points or columns; leave it out, with its target.") from error


def _lengthen(matrix: Array, size: int, library: ModuleType) -> Any:
    missing = size - matrix.shape[0]
    return library.concatenate([matrix, library.broadcast_to(matrix[:1], (missing, matrix.shape[1]))])


def check_bags(bags: Bags, argument: str) -> None:
    """Refuse a single indexed bag, and bags reshaped to more axes."""
    if len(bags.shape) != 1:
        raise InputError(f"{argument} has batch shape {bags.shape}; expected bags along one leading axis.")
