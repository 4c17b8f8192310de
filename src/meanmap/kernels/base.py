"""The base class of kernels, and their algebra: sums, products, multiples, powers."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import array_of, check_finite, is_factor, parameter
from meanmap.core.domains import Domain, Each, Real, holds_vectors
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import KindError, ShapeError
from meanmap.core.points import count, rows
from meanmap.core.settings import whole_number
from meanmap.core.types import Array, Data, Numbers, Points
from meanmap.kernels.gram import diagonal_array, gram_array, gram_matrix, times
from meanmap.kernels.reading import read_pair, read_points

__all__ = ["ByGram", "Kernel", "Power", "Product", "Scaled", "Sum", "as_kernel", "lift"]

# `sum` and `math.prod`, typed for arrays.
_sum: Callable[[Iterable[Any]], Any] = sum
_product: Callable[[Iterable[Any]], Any] = math.prod


class Kernel(eqx.Module):
    """A positive-definite function of two points, k(x, y) = ⟨φ(x), φ(y)⟩.

    To write a kernel, define `evaluate` (two points to a number, in `jax.numpy`); Gram matrices, diagonals, streamed
    sums and the algebra follow. Define `gram` too if a matrix product is faster.
    """

    @property
    def domain(self) -> Domain:
        """How users' data are read into points."""
        return Real()

    @abstractmethod
    def evaluate(self, x: Points, y: Points) -> jax.Array:
        """k(x, y) for two points."""

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The (n, m) Gram matrix of points already read: pure, traceable, computed at once."""
        return jax.vmap(lambda p: jax.vmap(lambda q: self.evaluate(p, q))(y))(x)

    def columns(self, x: Points) -> Callable[[int], Any]:
        """`columns(x)(i)` is k(x, xᵢ), (n,); parts shared by several i are computed once."""
        gram = self.gram
        return lambda i: gram(rows(x, slice(i, i + 1)), x)[0]

    def diagonal(self, x: Points) -> jax.Array:
        """k(x, x) for each of n points already read."""
        return jax.vmap(lambda p: self.evaluate(p, p))(x)

    @property
    def in_numpy(self) -> bool:
        """Whether `gram` and `diagonal` use NumPy for NumPy points, so that a small matrix needs no compilation."""
        return False

    def check(self, points: Points, argument: str) -> None:
        """Raise if points that were read do not fit the hyperparameters."""

    def __call__(self, x: Data, y: Data = None) -> Array:
        """The Gram matrix: entry (i, j) is k(xᵢ, yⱼ); `k(x)` is `k(x, x)`.

        Parameters
        ----------
        x, y : array_like, DataFrame, sparse matrix, ... as accepted by the kernel's domain
            n and m points, one per row; one axis means points in one dimension.

        Returns
        -------
        array of shape (n, m)
            NumPy float64, or a JAX array in the inputs' dtype if any of them is one.
        """
        with Door(self, x, y) as door:
            kernel, x, y = read_pair(self, x, y, door)
            if door.follows:
                return jnp.asarray(gram_array(kernel, x, y), door.dtype)
            return gram_matrix(kernel, x, y)

    def diag(self, x: Data) -> Any:
        """k(xᵢ, xᵢ) for each point, without the Gram matrix."""
        with Door(self, x) as door:
            points = read_points(self, x, "x", door)
            return diagonal_array(door.cast(self), points, door)

    def matvec(self, x: Data, y: Data, v: Array) -> Any:
        """The product K(x, y) v, streamed by tiles: the Gram matrix is never stored.

        Parameters
        ----------
        x, y : points
            n and m points; `y=None` means `y = x`.
        v : array_like, shape (m,) or (m, q)
            One weight per point of y, or q columns of them.

        Returns
        -------
        array of shape (n,) or (n, q)
            Cost O(n m (d + q)) time and O(n + m) memory.
        """
        with Door(self, x, y, v) as door:
            kernel, x, y = read_pair(self, x, y, door)
            y = x if y is None else y
            v = array_of(v, "v")
            if v.ndim not in (1, 2) or v.shape[0] != count(y):
                raise ShapeError(
                    f"v has shape {v.shape}; expected ({count(y)},) or ({count(y)}, q): one row per point of y."
                )
            check_finite(v, "v")
            columns = (v[:, None] if v.ndim == 1 else v).astype(door.dtype)
            result = times(kernel, x, y, columns, door)
            return result[:, 0] if v.ndim == 1 else result

    def mean(self, x: Data, y: Data = None) -> Array:
        """Row means of the Gram matrix, (1/m) Σⱼ k(xᵢ, yⱼ), streamed: the empirical mean embedding of y at x."""
        with Door(self, x, y) as door:
            kernel, x, y = read_pair(self, x, y, door)
            y = x if y is None else y
            weights = np.full((count(y), 1), 1 / count(y), door.dtype)
            return times(kernel, x, y, weights, door)[:, 0]

    # NumPy numbers and arrays leave `number * kernel` to the kernel.
    __array_ufunc__ = None

    def __add__(self, other: object) -> "Kernel":
        return Sum((*_members(Sum, self), *_members(Sum, other))) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: object) -> "Kernel":
        return self if isinstance(other, int) and other == 0 else NotImplemented  # where `sum(kernels)` starts

    def __mul__(self, other: object) -> "Kernel":
        if isinstance(other, Kernel):
            return Product((*_members(Product, self), *_members(Product, other)))
        if is_factor(other):
            return Scaled(self, other)
        return NotImplemented

    __rmul__ = __mul__

    def __pow__(self, power: int) -> "Kernel":
        return Power(self, power)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_show(getattr(self, name))}" for name in self.__dataclass_fields__)
        return f"{type(self).__name__}({fields})"


class ByGram(Kernel):
    """A kernel whose values are computed for many points at once, and for two as a Gram matrix of one entry."""

    def evaluate(self, x: Points, y: Points) -> jax.Array:
        """k(x, y) for two points."""
        return self.gram(lift(x), lift(y))[0, 0]

    @abstractmethod
    def gram(self, x: Points, y: Points) -> jax.Array:
        """The (n, m) Gram matrix of points already read."""


def lift(point: Points) -> Any:
    """One point with a leading axis of one."""
    return jax.tree.map(lambda leaf: leaf[None], point)


def as_kernel(value: object, argument: str, otherwise: str = "") -> Kernel:
    """The kernel; anything else is refused, with a suggestion."""
    if not isinstance(value, Kernel):
        raise KindError(f"{argument} is {value!r}; expected a kernel such as mm.kernels.RBF(1.0){otherwise}.")
    return value


def _members(kind: "type[Composite]", kernel: Kernel) -> tuple[Kernel, ...]:
    """The members of a sum or product, so that a + b + c is one sum of three."""
    return kernel.members if isinstance(kernel, kind) else (kernel,)


def _show(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_show, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, np.ndarray) or (isinstance(value, jax.Array) and is_concrete(value)):
        if value.size > 8:
            return f"array of shape {value.shape}"
        numbers = np.asarray(value, dtype=float)
        return repr(np.reshape([_rounded(each) for each in numbers.ravel().tolist()], numbers.shape).tolist())
    return repr(value)


def _rounded(number: float) -> float:
    """To six decimals, and numbers below one to six digits: a lengthscale in small units is not zero."""
    return round(number, 6) if abs(number) >= 1 else float(f"{number:.6g}")


class Composite(Kernel):
    """Several kernels on the same data.

    Points are read once if all members read them in the same way, otherwise once for each.
    """

    members: eqx.AbstractVar[tuple[Kernel, ...]]

    @property
    def domain(self) -> Domain:
        domains = [member.domain for member in self.members]
        if all(map(holds_vectors, domains)):
            return Real(sparse=all(domain == Real(sparse=True) for domain in domains))
        return domains[0] if agree(domains) else Each(tuple(domains))

    @property
    def in_numpy(self) -> bool:
        return all(member.in_numpy for member in self.members)

    def with_members(self, members: tuple[Kernel, ...]) -> Kernel:
        """The sum or product with other members."""
        return eqx.tree_at(lambda k: k.members, self, members)

    def parts(self, x: Points) -> tuple[Any, ...]:
        """The points of each member."""
        domains = [member.domain for member in self.members]
        return (x,) * len(domains) if agree(domains) else tuple(x)

    def check(self, points: Points, argument: str) -> None:
        for member, part in self.beside(points):
            member.check(part, argument)

    def beside(self, *points: Points) -> Iterator[tuple[Any, ...]]:
        """Each member with its part of the points."""
        return zip(self.members, *map(self.parts, points), strict=True)


def agree(domains: list[Domain]) -> bool:
    """Whether all domains read the data in the same way."""
    return all(map(holds_vectors, domains)) or all(domain == domains[0] for domain in domains)


class Sum(Composite):
    """k(x, y) = Σ kᵢ(x, y), made by `k1 + k2`: features side by side.

    Examples
    --------
    >>> from meanmap.kernels import RBF, Linear
    >>> (RBF(1.0) + Linear())([[0.0], [1.0]]).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 2.0]]
    """

    members: tuple[Kernel, ...]

    def evaluate(self, x: Points, y: Points) -> jax.Array:
        """k(x, y) for two points."""
        return _sum(member.evaluate(p, q) for member, p, q in self.beside(x, y))

    def gram(self, x: Points, y: Points) -> jax.Array:
        """Sum of the members' Gram matrices."""
        return _sum(member.gram(p, q) for member, p, q in self.beside(x, y))

    def columns(self, x: Points) -> Callable[[int], Any]:
        """Sums of the members' columns."""
        each = [member.columns(part) for member, part in self.beside(x)]
        return lambda i: sum(column(i) for column in each)

    def diagonal(self, x: Points) -> jax.Array:
        """Sum of the members' diagonals."""
        return _sum(member.diagonal(p) for member, p in self.beside(x))


class Product(Composite):
    """k(x, y) = Π kᵢ(x, y), made by `k1 * k2`: tensor product of features.

    Examples
    --------
    >>> from meanmap.kernels import RBF, Delta, OnColumns
    >>> k = OnColumns(RBF(1.0), "height") * OnColumns(Delta(), "colour")
    >>> k({"height": [1.0, 1.0, 2.0], "colour": ["red", "blue", "red"]}).round(4).tolist()
    [[1.0, 0.0, 0.6065], [0.0, 1.0, 0.0], [0.6065, 0.0, 1.0]]
    """

    members: tuple[Kernel, ...]

    def evaluate(self, x: Points, y: Points) -> jax.Array:
        """k(x, y) for two points."""
        return _product(member.evaluate(p, q) for member, p, q in self.beside(x, y))

    def gram(self, x: Points, y: Points) -> jax.Array:
        """Entrywise product of the members' Gram matrices."""
        return _product(member.gram(p, q) for member, p, q in self.beside(x, y))

    def diagonal(self, x: Points) -> jax.Array:
        """Product of the members' diagonals."""
        return _product(member.diagonal(p) for member, p in self.beside(x))


class Wrapper(Kernel):
    """A kernel derived from another one, whose points are read as the inner kernel reads them."""

    kernel: eqx.AbstractVar[Kernel]

    @property
    def domain(self) -> Domain:
        return self.kernel.domain

    @property
    def in_numpy(self) -> bool:
        return self.kernel.in_numpy

    def check(self, points: Points, argument: str) -> None:
        self.kernel.check(points, argument)


class Scaled(Wrapper):
    """k(x, y) = c k₀(x, y) for c > 0, made by `c * k`.

    Examples
    --------
    >>> from meanmap.kernels import RBF
    >>> (2.0 * RBF(1.0))([0.0, 1.0]).round(4).tolist()
    [[2.0, 1.2131], [1.2131, 2.0]]
    """

    kernel: Kernel
    scale: Array

    def __init__(self, kernel: Kernel, scale: Numbers):
        self.kernel = kernel
        self.scale = parameter(scale, "scale", axes=0)

    def evaluate(self, x: Points, y: Points) -> jax.Array:
        """k(x, y) for two points."""
        return self.kernel.evaluate(x, y) * self.scale

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The scaled Gram matrix."""
        return self.kernel.gram(x, y) * self.scale

    def diagonal(self, x: Points) -> jax.Array:
        """The scaled diagonal."""
        return self.kernel.diagonal(x) * self.scale


class Power(Wrapper):
    """k(x, y) = k₀(x, y)^q for a whole number q, made by `k ** q`: the kernel of q-fold tensor features.

    Kernel belief propagation multiplies q incoming messages at a node, and the product of q elements of the RKHS of k
    is an element of the RKHS of k^q (Song et al. 2011). For the RBF kernel it is an RBF kernel of
    lengthscale ℓ/√q.

    Examples
    --------
    >>> from meanmap.kernels import RBF
    >>> (RBF(1.0) ** 4)([0.0, 1.0]).round(6).tolist() == RBF(0.5)([0.0, 1.0]).round(6).tolist()
    True
    """

    kernel: Kernel
    power: int = eqx.field(static=True)

    def __init__(self, kernel: Kernel, power: int):
        self.kernel = kernel
        self.power = whole_number(power, "power")

    def evaluate(self, x: Points, y: Points) -> jax.Array:
        """k(x, y) for two points."""
        return self.kernel.evaluate(x, y) ** self.power

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The entrywise power of the Gram matrix."""
        return self.kernel.gram(x, y) ** self.power

    def columns(self, x: Points) -> Callable[[int], Any]:
        """Powers of the inner kernel's columns."""
        column = self.kernel.columns(x)
        return lambda i: column(i) ** self.power

    def diagonal(self, x: Points) -> jax.Array:
        """The power of the diagonal."""
        return self.kernel.diagonal(x) ** self.power
