"""Elements of an RKHS: functions that can be evaluated, compared, added and scaled.

Mean embeddings, witness functions, messages and beliefs are all elements.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import numpy as np

from meanmap.core.arrays import is_factor
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import InputError, KindError
from meanmap.core.language import a_type
from meanmap.core.pieces.row_by_row import number_by_partition
from meanmap.core.points import library_of
from meanmap.core.tables.schema import Schema, check_same_columns, later
from meanmap.core.types import Array, Data, Numbers, Points
from meanmap.kernels.base import Kernel
from meanmap.kernels.geometry import safe_sqrt
from meanmap.kernels.reading import read_points

__all__ = ["Combination", "Embedding", "check_same_space"]


class Embedding(eqx.Module):
    """A function f of an RKHS, possibly a batch of them along leading axes.

    `f(points)` evaluates it, `f.inner(g)` is ⟨f, g⟩, `f.norm()` is √⟨f, f⟩; `f + g`, `f - g` and `2 * f` are elements
    of the same space.

    Attributes
    ----------
    schema : Schema or None
        The columns of an element made from a table with names; later tables are read by it.
    """

    schema: Schema | None = eqx.field(static=True, default=None, kw_only=True)

    @property
    @abstractmethod
    def space(self) -> Kernel:
        """The kernel of the RKHS."""

    @abstractmethod
    def evaluate(self, x: Points, door: Door) -> Any:
        """f at m points already read, (..., m)."""

    @abstractmethod
    def pair(self, other: "Embedding", door: Door) -> Any:
        """⟨f, g⟩ for g in the same space, or `NotImplemented` if only g can compute it."""

    @abstractmethod
    def times(self, factor: Numbers) -> "Embedding":
        """c f for a number c, or for one number per member of a batch."""

    def plus(self, other: "Embedding") -> "Embedding":
        """f + g; in general a `Combination` of both."""
        return Combination((*_members(self), *_members(other)), schema=self.schema or other.schema)

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the batch of functions, () for a single one."""
        return ()

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """Points of this space; columns of tables are matched by name if the element has names."""
        return read_points(self.space, later(self.schema, data, argument), argument, door)

    @number_by_partition
    def __call__(self, x: Data) -> Array:
        """f at each point, (m,) or (..., m) for a batch.

        Streamed, without a Gram matrix. NumPy inputs give NumPy arrays and JAX inputs JAX arrays; a Dask collection
        gives a lazy Dask array.
        """
        with Door(self, x) as door:
            points = self.read(x, "x", door)
            return door.leave(door.cast(self).evaluate(points, door))

    def inner(self, other: "Embedding") -> Array:
        """⟨f, g⟩ in the RKHS; batches broadcast."""
        if not isinstance(other, Embedding):
            raise KindError(f"other is {a_type(other)}; expected an embedding: use f(points) to evaluate one.")
        _check_same_elements(self, other, "the inner product")
        with Door(self, other) as door:
            first, second = door.cast(self), door.cast(other)
            value = first.pair(second, door)
            if value is NotImplemented:
                value = second.pair(first, door)
            if value is NotImplemented:
                raise KindError(f"there is no inner product of {a_type(self)} and {a_type(other)}.")
            return _number(door.leave(value))

    def squared_norm(self) -> Any:
        """⟨f, f⟩, never negative."""
        value = self.inner(self)
        return library_of(value).maximum(value, 0.0)

    def norm(self) -> Array:
        """The norm √⟨f, f⟩ in the RKHS."""
        value = self.squared_norm()
        # The root is not differentiable at zero, where two embeddings are equal and the norm is minimal: its gradient
        # is set to 0.
        return _number(safe_sqrt(value))

    def __add__(self, other: object) -> "Embedding":
        if not isinstance(other, Embedding):
            return NotImplemented
        _check_same_elements(self, other, "the sum")
        return self.plus(other)

    def __sub__(self, other: object) -> "Embedding":
        if not isinstance(other, Embedding):
            return NotImplemented
        _check_same_elements(self, other, "the difference")
        return self.plus(other.times(-1.0))

    def __mul__(self, factor: Array) -> "Embedding":
        if is_factor(factor):
            return self.times(factor)
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, factor: Array) -> "Embedding":
        if is_factor(factor):
            return self.times(1.0 / factor)
        return NotImplemented

    def __neg__(self) -> "Embedding":
        return self.times(-1.0)


class Combination(Embedding):
    """f₁ + f₂ + ..., elements of the same space that are kept separately.

    Examples
    --------
    >>> import meanmap as mm
    >>> k = mm.kernels.RBF(1.0)
    >>> sample, normal = mm.embed([0.0, 1.0], k), mm.embed(mm.families.Normal.standard(), k)
    >>> f = sample - normal
    >>> bool(abs(f([0.5])[0] - (sample([0.5])[0] - normal([0.5])[0])) < 1e-15)
    True
    """

    members: tuple[Embedding, ...]

    @property
    def space(self) -> Kernel:
        """The members' space."""
        return self.members[0].space

    def evaluate(self, x: Points, door: Door) -> Any:
        """The sum of the members' values."""
        return sum(member.evaluate(x, door) for member in self.members)

    def pair(self, other: Embedding, door: Door) -> Any:
        """The sum of the members' inner products."""
        total = 0.0
        for member in self.members:
            value = member.pair(other, door)
            if value is NotImplemented:
                value = other.pair(member, door)
            if value is NotImplemented:
                return NotImplemented
            total = total + value
        return total

    def times(self, factor: Numbers) -> "Combination":
        """The combination of the scaled members."""
        return Combination(tuple(member.times(factor) for member in self.members), schema=self.schema)

    @property
    def batch(self) -> tuple[int, ...]:
        """The members' batches, broadcast."""
        return np.broadcast_shapes(*(member.batch for member in self.members))


def _members(element: Embedding) -> tuple[Embedding, ...]:
    return element.members if isinstance(element, Combination) else (element,)


def _number(value: object) -> Any:
    """A NumPy result without axes as a Python float."""
    return float(value) if isinstance(value, np.ndarray | np.number) and np.ndim(value) == 0 else value


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal in the less precise of two floating types: a kernel may be returned from `jit` in float32."""
    if np.issubdtype(a.dtype, np.floating) and np.issubdtype(b.dtype, np.floating) and a.dtype != b.dtype:
        shorter = min(a.dtype, b.dtype, key=lambda dtype: dtype.itemsize)
        a, b = a.astype(shorter), b.astype(shorter)
    return bool(np.all(a == b))


def _check_same_elements(first: Embedding, second: Embedding, what: str) -> None:
    """Refuse to combine elements of two RKHSs, or of tables whose columns differ by name or order."""
    check_same_space(first.space, second.space, what)
    check_same_columns(first.schema, second.schema, what)


def check_same_space(first: Kernel, second: Kernel, what: str) -> None:
    """Refuse to combine elements of two RKHSs; traced hyperparameters cannot be compared."""
    if first is second:
        return
    same = jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=False):
        if same and a is not b and is_concrete(a) and is_concrete(b):
            same = np.shape(a) == np.shape(b) and _equal(np.asarray(a), np.asarray(b))
    if not same:
        raise InputError(
            f"{what} needs two elements of the same space, but their kernels are {first!r} and {second!r}: "
            "embed both with the same kernel."
        )
