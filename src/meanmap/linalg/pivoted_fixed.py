"""Pivoted Cholesky with a fixed number of columns, for use inside `jit`, `vmap` and `grad`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from meanmap.core.door import Door
from meanmap.core.errors import ParameterError, ShapeError
from meanmap.core.types import Array
from meanmap.linalg.pivoted import PivotedCholesky, positive_integer, read_diagonal

__all__ = ["pivoted_cholesky_fixed"]


def pivoted_cholesky_fixed(diagonal: Array, column: Callable[[Any], Any], rank: int) -> PivotedCholesky:
    """Incomplete Cholesky factor with a fixed number of columns: for use inside `jit`, `vmap` and `grad`.

    Columns beyond the numerical rank of the matrix are zero, and `.rank` is the number of columns in use. The
    derivative is that of L with the pivots held fixed, from the r columns alone: memory n r, instead of n r² when
    differentiating the loop.

    Parameters
    ----------
    diagonal : array (n,)
        The diagonal of K.
    column : callable
        `column(i)` gives K[:, i] for a traced integer i, in JAX operations.
    rank : int
        Columns of the factor, r ≤ n.

    Notes
    -----
    Cost n r² and r columns (2 r when differentiated).

    Examples
    --------
    >>> import numpy as np, jax.numpy as jnp
    >>> x = np.linspace(0, 1, 50)
    >>> low = pivoted_cholesky_fixed(np.ones(50), lambda i: jnp.exp(-((x - jnp.asarray(x)[i]) ** 2)), rank=3)
    >>> low.factor.shape, int(low.rank), np.round(low.trace_errors, 3).tolist()
    ((50, 3), 3, [50.0, 20.124, 2.845, 0.068])
    """
    with Door(diagonal) as door:
        array = jnp.asarray(read_diagonal(diagonal), door.dtype)
        rank = positive_integer(rank, "rank")
        if rank > array.shape[0]:
            raise ParameterError(
                f"rank is {rank}, but the matrix has only {array.shape[0]} rows; pass rank={array.shape[0]} or less."
            )

        def read(index):
            return jnp.asarray(column(index), array.dtype)

        shape = jax.eval_shape(read, jnp.zeros((), jnp.int32)).shape
        if shape != array.shape:
            raise ShapeError(f"column(i) has shape {shape}; expected {array.shape}, like diagonal.")
        pivots, rows, reached = _pivots_and_rows(jax.lax.stop_gradient(array), read, rank)
        rows = _with_derivative(jax.vmap(read)(pivots), rows, pivots, reached)
        # Residual traces after each column, from the rows, so that they carry derivatives too.
        steps = jnp.concatenate([jnp.zeros_like(array)[None], jnp.cumsum(rows**2, axis=0)])
        residuals = jnp.maximum(array - steps, 0.0)
        used = jnp.arange(rank) < reached
        final = residuals[-1].at[pivots].multiply(jnp.where(used, 0.0, 1.0).astype(array.dtype))
        out = (rows.T, pivots, final, jnp.sum(residuals, axis=1), reached)
        factor, pivots, final, errors, reached = door.leave(out)
        return PivotedCholesky(factor, pivots, final, errors, rank=reached, stopped="fixed")


def _pivots_and_rows(diagonal: jax.Array, read: Callable[[Any], jax.Array], rank: int) -> tuple[Any, Any, Any]:
    """The loop itself, without derivatives: pivots (r,), rows of Lᵀ (r, n) and the number of columns in use."""
    size, dtype = diagonal.shape[0], diagonal.dtype
    floor = float(jnp.finfo(dtype).eps) / 2 * jnp.max(diagonal)

    def step(k, state):
        pivots, rows, residual, taken, reached = state
        pivot = jnp.argmax(jnp.where(taken, -jnp.inf, residual)).astype(jnp.int32)
        variance = residual[pivot]
        # Once the floor is reached, no more columns are added: a later one would not be in triangular order.
        good = (variance > (k + 2) * floor) & (reached == k)
        root = jnp.sqrt(jnp.where(good, variance, 1.0))
        seen = jax.lax.stop_gradient(read(pivot))
        new = (seen - jnp.matmul(rows[:, pivot], rows, precision="highest")) / root
        new = jnp.where(good & ~taken, new, 0.0).at[pivot].set(jnp.where(good, root, 0.0))
        taken = taken.at[pivot].set(True)
        residual = jnp.where(good & taken, 0.0, jnp.maximum(residual - new**2, 0.0))
        return pivots.at[k].set(pivot), rows.at[k].set(new), residual, taken, reached + good.astype(jnp.int32)

    start = (
        jnp.zeros(rank, jnp.int32),
        jnp.zeros((rank, size), dtype),
        diagonal,
        jnp.zeros(size, bool),
        jnp.zeros((), jnp.int32),
    )
    pivots, rows, _, _, reached = jax.lax.fori_loop(0, rank, step, start)
    return pivots, rows, reached


@jax.custom_jvp
def _with_derivative(columns, rows, pivots, reached):
    """`rows` unchanged, with their derivative as a function of `columns` = K[pivots] (r, n) at fixed pivots."""
    return rows


@_with_derivative.defjvp
def _with_derivative_jvp(primals, tangents):
    # rows = C⁻¹ columns with C Cᵀ = columns[:, pivots], hence d rows = C⁻¹ d columns − S rows with
    # S = Φ(C⁻¹ d columns[:, pivots] C⁻ᵀ), Φ the lower triangle with half the diagonal (Murray 2016, equation 8).
    _, rows, pivots, reached = primals
    order = jnp.arange(rows.shape[0])
    used = order < reached
    triangle = jnp.where(
        used[:, None] & used[None, :], jnp.tril(rows[:, pivots].T), jnp.eye(rows.shape[0], dtype=rows.dtype)
    )
    change = jnp.where(used[:, None], tangents[0], 0.0)
    moved = jax.scipy.linalg.solve_triangular(triangle, change, lower=True)
    inner = jnp.where(used[None, :], moved[:, pivots], 0.0)
    inner = jax.scipy.linalg.solve_triangular(triangle, inner.T, lower=True).T
    lower = jnp.tril(inner, -1) + jnp.diag(jnp.diag(inner)) / 2
    return rows, moved - jnp.matmul(lower, rows, precision="highest")
