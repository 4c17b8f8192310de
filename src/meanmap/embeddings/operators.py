"""Operators between RKHSs: conditional distributions, likelihoods, covariances, and their compositions."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import is_factor
from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.core.language import a_type
from meanmap.core.points import count, library_of, of_batch, rows
from meanmap.core.tables.schema import Schema, check_same_columns
from meanmap.core.types import Array, Data, Index, Numbers, Points
from meanmap.embeddings.bases import Basis, overlap
from meanmap.embeddings.element import Embedding
from meanmap.embeddings.points import PointEmbedding, Weights
from meanmap.embeddings.readouts import values_at
from meanmap.kernels.geometry import safe_sqrt
from meanmap.linalg.ridge import Ridge

__all__ = ["ImplicitMatrix", "Operator"]


class ImplicitMatrix(eqx.Module):
    """A symmetric matrix M that is applied but never stored."""

    @abstractmethod
    def times(self, values: Array, library: ModuleType) -> Any:
        """M v for v of shape (n, m), with the functions of NumPy or of `jax.numpy`."""

    @abstractmethod
    def dense(self) -> Any:
        """M as an array."""

    @abstractmethod
    def square(self, output: Basis, inputs: Basis, door: Door) -> float | None:
        """tr(G M H M) for the Gram matrices G and H of two bases, on the host; None if these must be stored."""


class Operator(eqx.Module):
    """A finite-rank operator A = Σᵢⱼ Mᵢⱼ bᵢ ⊗ cⱼ from the span of the input basis c to that of the output basis b.

    `op(x)` applies it to k(x, ·), once for each point: for a conditional operator, the belief about y given x.
    `op.apply(f)` applies it to any element; `op.adjoint()` and `op @ other` are its adjoint and its composition;
    operators of the same spaces can be added and scaled.

    Attributes
    ----------
    output, input : Basis
        The bases of M: points, or feature coordinates.
    matrix : array (p, q) or ImplicitMatrix, optional
        M, unless it is the inverse in `solve`.
    solve : Ridge, optional
        M = (K + n λ I)⁻¹ as a factorisation that every right-hand side reuses.
    chosen : tuple of (str, float)
        The settings chosen from the data: ridges, lengthscales.
    conditional : bool
        Whether A k(x, ·) represents a distribution given x, as for `mm.condition`.
    notes : tuple of str
        Notes on rows that were left out.
    """

    output: Basis
    input: Basis
    matrix: Any = None
    solve: Ridge | None = None
    chosen: tuple[tuple[str, float], ...] = eqx.field(default=(), static=True)
    conditional: bool = eqx.field(default=False, static=True)
    notes: tuple[str, ...] = eqx.field(default=(), static=True)

    @property
    def schema(self) -> Schema | None:
        """The kinds of the columns of x, if x is a table or a NumPy array."""
        return self.input.schema

    def __check_init__(self):
        if (self.matrix is None) == (self.solve is None):
            raise KindError("an operator needs either a matrix or a factorisation, not both.")

    @property
    def implicit(self) -> ImplicitMatrix | None:
        """The matrix, if it is applied but never stored."""
        return self.matrix if isinstance(self.matrix, ImplicitMatrix) else None

    def __call__(self, x: Data) -> Any:
        """A k(x, ·) for each of m points: a batch of m elements."""
        with Door(self, x) as door:
            points = self.input.read(x, door)
            if not self.output.orthonormal:
                y: Any = self.output
                found = Queries(self, points)
                return door.leave(PointEmbedding(y.kernel, y.points, found, y.flat, self.conditional, schema=y.schema))
            return door.leave(self.output.build(self.times(self.input.at(points, door), door).T))

    def apply(self, element: Embedding) -> Any:
        """A f, for an element f of the input space (a batch gives a batch): the kernel sum rule for an embedding f."""
        if not isinstance(element, Embedding):
            raise KindError(f"element is {a_type(element)}; expected an embedding. For points call op(x).")
        self.input.check_space(element.space, "applying an operator")
        check_same_columns(self.input.schema, element.schema, "applying an operator")
        with Door(self, element) as door:
            values = self.input.measure(door.cast(element), door)
            flat = values.reshape(-1, values.shape[-1])
            result = self.times(flat.T, door).T
            return door.leave(self.output.build(result.reshape(*values.shape[:-1], -1)))

    def expect(self, function: Callable[..., Any] | Array, x: Data) -> Any:
        """E[g(Y) | x] at each of m points, (m,) or (m, q): Σᵢ βᵢ(x) g(yᵢ), for an output on points.

        The same as `op(x).expect(function)`, but without normalising the weights; `function` is the same.
        """
        if self.output.orthonormal:
            raise KindError("expect needs an output on points: in condition, kernel_y must be a kernel, not features.")
        with Door(self, x) as door:
            points = self.input.read(x, door)
            y: Any = self.output
            values = values_at(function, y.points, y.flat, door)
            columns = values[:, None] if values.ndim == 1 else values
            result = self.input.combine(points, self.transposed_times(columns, door), door)
            return result[:, 0] if values.ndim == 1 else result

    def adjoint(self) -> "Operator":
        """A*, with ⟨A f, g⟩ = ⟨f, A* g⟩."""
        matrix = self.matrix
        if matrix is not None and self.implicit is None:
            matrix = matrix.T
        return Operator(self.input, self.output, matrix, self.solve)

    def dense(self) -> Any:
        """M as an array."""
        if self.implicit is not None:
            return self.implicit.dense()
        if self.matrix is not None:
            return self.matrix
        assert self.solve is not None
        return self.solve.solve(library_of(self.solve.triangle).eye(self.input.size))

    def __matmul__(self, other: object) -> "Operator":
        """The composition A B: first B, then A."""
        if not isinstance(other, Operator):
            return NotImplemented
        with Door(self, other) as door:
            between = overlap(self.input, other.output, door)
            inner = other.transposed_times(between.T, door).T  # G M_B
            return door.leave(Operator(self.output, other.input, self.times(inner, door)))

    def __add__(self, other: object) -> "Operator":
        if not isinstance(other, Operator):
            return NotImplemented
        if self.output is not other.output or self.input is not other.input:
            raise KindError("only operators on the same bases can be added: make both from the same sample.")
        return Operator(self.output, self.input, self.dense() + other.dense())

    def __mul__(self, factor: Numbers) -> "Operator":
        if is_factor(factor):
            return Operator(self.output, self.input, factor * self.dense())
        return NotImplemented

    __rmul__ = __mul__

    def __sub__(self, other: object) -> "Operator":
        return self + -1.0 * other if isinstance(other, Operator) else NotImplemented

    def norm(self) -> Any:
        """The Hilbert-Schmidt norm, √tr(A* A)."""
        with Door(self) as door:
            library = jnp if door.follows else np
            if self.implicit is not None and not door.follows:
                found = self.implicit.square(self.output, self.input, door)
                if found is not None:
                    return float(np.sqrt(max(found, 0.0)))
            right = self.times(self.input.gram(door), door)
            left = library.matmul(self.output.gram(door), self.dense())
            square = library.maximum(library.sum(left * right), 0)
            return safe_sqrt(square) if door.follows else float(np.sqrt(square))

    def times(self, values: Array, door: Door) -> Any:
        """M v for v of shape (q, m)."""
        library = jnp if door.follows else np
        if self.solve is not None:
            return self.solve.solve(values)
        if self.implicit is not None:
            return self.implicit.times(values, library)
        return library.matmul(self.matrix, values)

    def transposed_times(self, values: Array, door: Door) -> Any:
        """Mᵀ v for v of shape (p, m)."""
        if self.matrix is None or self.implicit is not None:
            return self.times(values, door)  # M is symmetric
        return (jnp if door.follows else np).matmul(self.matrix.T, values)

    def __repr__(self) -> str:
        def show(basis):
            return f"{basis.size} {'features' if basis.orthonormal else 'points'}"

        settings = "".join(f", {name}={value:.3g}" for name, value in self.chosen)
        return f"Operator({show(self.input)} -> {show(self.output)}{settings})"


class Queries(Weights):
    """The weights of A k(x, ·) on the output's points for each of m points x, (m, n), computed when needed."""

    operator: Operator
    x: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, n): a row for each x, a weight for each of the output's points."""
        return count(self.x), self.operator.output.size

    def dense(self) -> Any:
        """M b(x), one solve for each point; kept on the host, so that several read-outs cost one."""
        with Door(self) as door:
            # JAX results are not kept: inside an enclosing `jit` they would be tracers.
            return self._weights(door) if door.follows else self.on_host

    @cached_property
    def on_host(self) -> Any:
        """The weights as a NumPy array."""
        with Door(self) as door:
            return self._weights(door)

    def _weights(self, door: Door) -> Any:
        return self.operator.times(self.operator.input.at(self.x, door), door).T

    def against(self, values: Array) -> Any:
        """Σᵢ wᵢ vᵢ, (m, q), with one solve for each column of values instead of one for each x."""
        with Door(self, values) as door:
            return self.operator.input.combine(self.x, self.operator.transposed_times(values, door), door)

    def at(self, points: Points) -> Any:
        """None: a conditional embedding has weights only at the points of its sample."""
        return None

    def take(self, index: Index) -> Any:
        """The queries at some of the points."""
        if isinstance(index, int | np.integer | slice):
            chosen = np.arange(self.shape[0])[index]
            some = Queries(self.operator, rows(self.x, np.atleast_1d(chosen)))
            return some if np.ndim(chosen) else some.dense()[0]
        return self.dense()[of_batch(index)]
