"""Pivoted incomplete Cholesky: a positive semidefinite matrix as L Lᵀ, from its diagonal and a few of its columns.

Harbrecht, Peters and Schneider (2012), "On the low-rank approximation by the pivoted Cholesky decomposition",
algorithm 1; Fine and Scheinberg (2001), "Efficient SVM training using low-rank kernel representations", figure 2.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import array_of, check_finite, check_rows, parameter
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import InputError, KindError, ParameterError, ShapeError
from meanmap.core.points import library_of
from meanmap.core.report import Report
from meanmap.core.types import Array

__all__ = ["PivotedCholesky", "pivoted_cholesky", "pivoted_cholesky_whole", "pivoted_coordinates", "pivoted_triangle"]

# Initial rows of the host factor; storage doubles when full, so this only saves a few copies.
FIRST_CAPACITY = 32


class PivotedCholesky(eqx.Module):
    """K ≈ L Lᵀ, with the error certified by its trace.

    K − L Lᵀ is positive semidefinite, so its operator norm is at most its trace, `residual_diagonal.sum()`.

    Attributes
    ----------
    factor : array (n, r)
        L. Rows are the coordinates of the n points in r dimensions.
    pivots : integer array (r,)
        The chosen rows, in order, all different.
    residual_diagonal : array (n,)
        The diagonal of K − L Lᵀ, never negative, exactly zero at the pivots in use.
    trace_errors : array (r + 1,)
        The trace of K − L Lᵀ after 0, 1, ..., r columns.
    rank : integer
        Columns in use; below r only for `pivoted_cholesky_fixed` on a matrix of lower numerical rank. The others are 0.
    stopped : str
        The reason for stopping: "tolerance", "max_rank", "rounding" or "fixed".
    """

    factor: Any
    pivots: Any
    residual_diagonal: Any
    trace_errors: Any
    rank: Any
    stopped: str = eqx.field(static=True)

    @property
    def pivot_factor(self) -> Any:
        """The lower-triangular (r, r) matrix L[pivots]; unused columns are the identity's, so that it inverts."""
        library = library_of(self.factor)
        columns = library.arange(self.factor.shape[1])
        used = (columns < self.rank)[:, None] & (columns < self.rank)[None, :]
        rows = self.factor[self.pivots]
        # Above the diagonal the residual of a pivot has been eliminated; only rounding errors remain there.
        identity = library.eye(columns.size, dtype=self.factor.dtype)
        return library.where(used, library.tril(rows), identity)

    def coordinates(self, cross: Array) -> Any:
        """The coordinates (m, r) of new points from `cross` (m, r), their kernel values against the pivots.

        φ(x) = L[pivots]⁻¹ k(pivots, x), so that φ(x)·φ(y) is the Nyström approximation of k(x, y) on the pivots, and
        the pivots' own coordinates are their rows of L. Cost m r².
        """
        with Door(self.factor, cross) as door:
            if np.ndim(cross) != 2 or np.shape(cross)[1] != self.factor.shape[1]:
                raise ShapeError(
                    f"cross has shape {np.shape(cross)}; expected (m, {self.factor.shape[1]}): the kernel between "
                    "m new points (rows) and the pivots (columns)."
                )
            if door.follows:
                triangle = jnp.asarray(self.pivot_factor)
                solved = jax.scipy.linalg.solve_triangular(triangle, jnp.asarray(cross, triangle.dtype).T, lower=True).T
                return jnp.where(jnp.arange(solved.shape[1]) < self.rank, solved, 0.0)
            solved = pivoted_coordinates(self.pivot_factor, np.asarray(cross, float).T)
            solved[:, int(self.rank) :] = 0.0
            return solved

    @property
    def report(self) -> Report:
        """How the factorisation ended, with the relative trace after each column."""
        if not is_concrete(self.rank):
            raise KindError("a report needs concrete values: read it outside jit, vmap and grad.")
        rank, errors = int(self.rank), np.asarray(self.trace_errors)
        residuals = errors / errors[0] if errors[0] > 0 else errors
        complete = rank == self.factor.shape[1]
        status = {
            "tolerance": "reached the trace tolerance",
            "max_rank": "stopped at max_rank before the trace tolerance",
            "rounding": "stopped at the rounding floor before the trace tolerance",
            "fixed": "computed every requested column"
            if complete
            else "stopped at the rounding floor: other columns are 0",
        }[self.stopped]
        floor = self.stopped == "rounding" or not complete
        note = (
            f"the largest residual is within rounding error of zero: the matrix has numerical rank {rank} in "
            f"{np.dtype(self.factor.dtype).name}, and a smaller tolerance cannot be met."
        )
        return Report(status, self.stopped in ("tolerance", "fixed"), rank, residuals, notes=(note,) if floor else ())


def pivoted_coordinates(triangle: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """φ(x) = L⁻¹ k(pivots, x) of m points, (m, r), on the host, where new shapes need no compilation.

    `triangle` (r, r) is L, and `cross` (r, m) are the kernel's values between pivots and points.
    """
    from scipy.linalg import solve_triangular  # here: most calls that import this file factor nothing

    return solve_triangular(triangle, cross, lower=True, check_finite=False).T


def pivoted_cholesky(
    diagonal: Array, column: Callable[[int], Any], *, tolerance: float = 1e-6, max_rank: int | None = None
) -> PivotedCholesky:
    """Factor a positive semidefinite K ≈ L Lᵀ, taking columns until trace(K − L Lᵀ) ≤ tolerance · trace(K).

    Each step takes the row with the largest residual variance as pivot p and adds the column (K[:, p] − L L[p]ᵀ) /
    √residual[p]. K is never formed. It stops early, as stated in `.report`, when the largest residual is below its own
    rounding error (r + 2) · u · max(diagonal), u the unit roundoff: further columns would be noise.

    Parameters
    ----------
    diagonal : array (n,)
        The diagonal of K.
    column : callable
        `column(i)` gives K[:, i] as an (n,) array.
    tolerance : float
        Allowed error as a fraction of the trace, in [0, 1).
    max_rank : int, optional
        The largest number of columns.

    Returns
    -------
    PivotedCholesky
        NumPy arrays, or JAX arrays where `diagonal` is one. It runs on the host; inside `jit` use
        `pivoted_cholesky_fixed`.

    Notes
    -----
    Cost n r² and r calls of `column`; memory n r (twice that for a moment while storage doubles).
    Harbrecht, Peters and Schneider (2012), algorithm 1; rounding bound of inner products: Higham (2002), equation 3.5.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 200)
    >>> low = pivoted_cholesky(np.ones(200), lambda i: np.exp(-((x - x[i]) ** 2)), tolerance=1e-6)
    >>> low.factor.shape, bool(low.residual_diagonal.sum() <= 1e-6 * 200)
    ((200, 5), True)
    >>> K = np.exp(-((x[:, None] - x) ** 2))
    >>> bool(np.linalg.norm(K - low.factor @ low.factor.T, 2) <= low.residual_diagonal.sum())
    True
    """
    if not is_concrete(diagonal):
        raise KindError(
            "pivoted_cholesky runs on the host and cannot be traced: use pivoted_cholesky_fixed with a rank."
        )
    with Door(diagonal) as door:
        # A copy: it becomes the running residual, and the caller's array must stay as it was.
        residual = np.array(read_diagonal(diagonal), dtype=door.dtype)
        size = residual.size
        parameter(tolerance, "tolerance", positive=False, axes=0, at_least=0.0)
        limit = size if max_rank is None else min(positive_integer(max_rank, "max_rank"), size)
        if tolerance >= 1:
            raise ParameterError(f"tolerance is {tolerance}; expected a fraction of the trace below 1, such as 1e-6.")
        rows, pivots, errors, stopped = _factor_on_host(residual, column, float(tolerance), limit)
        out: Any = (rows.T, np.array(pivots, dtype=np.int64), residual, np.array(errors, dtype=door.dtype))
        if door.follows:
            out = (*(jnp.asarray(array) for array in (out[0], out[1].astype(np.int32), *out[2:])),)
        return PivotedCholesky(*out, rank=len(pivots), stopped=stopped)


def pivoted_cholesky_whole(matrix: np.ndarray, *, tolerance: float, max_rank: int | None = None) -> PivotedCholesky:
    """`pivoted_cholesky` of a given matrix (n, n), by LAPACK.

    It is for few rows, where Python's overhead per step dominates. It continues to the rounding floor and drops columns
    beyond the tolerance. Cost n r².
    """
    from scipy.linalg.lapack import dpstrf  # pyright: ignore[reportAttributeAccessIssue]

    size, diagonal = len(matrix), matrix.diagonal()
    roundoff, largest = float(np.finfo(np.float64).eps) / 2, float(diagonal.max())
    lower, order, found, _ = dpstrf(matrix, tol=2 * roundoff * largest, lower=1)
    columns = np.tril(lower[:, :found])
    errors = diagonal.sum() - np.concatenate([[0.0], np.cumsum(np.sum(columns**2, axis=0))])
    steps, variances = np.arange(found + 1), np.append(columns.diagonal() ** 2, 0.0)
    limit = size if max_rank is None else min(max_rank, size)
    reasons = {
        "tolerance": errors <= tolerance * errors[0],
        "max_rank": steps == limit,
        "rounding": variances <= (steps + 2) * roundoff * largest,
    }
    rank = int(np.argmax(np.any(list(reasons.values()), axis=0)))
    pivots = order[:rank].astype(np.int64) - 1
    factor = np.empty((size, rank))
    factor[order - 1] = columns[:, :rank]
    residual = diagonal - np.sum(factor**2, axis=1)
    if rank:
        _check_semidefinite(residual, residual, int(pivots[-1]), np.sqrt(2 * roundoff) * largest)
    residual[pivots] = 0.0
    stopped = next(reason for reason, here in reasons.items() if here[rank])
    out = factor, pivots, np.maximum(residual, 0.0), np.maximum(errors[: rank + 1], 0.0)
    return PivotedCholesky(*out, rank=rank, stopped=stopped)


def pivoted_triangle(
    diagonal: np.ndarray, column: Callable[[int], Any], tolerance: float, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Only the pivots of `pivoted_cholesky` and their triangle, for computations with hundreds of small factors."""
    rows, pivots, _, _ = _factor_on_host(diagonal.copy(), column, tolerance, limit)
    return np.array(pivots), np.tril(rows[:, pivots].T)


def _factor_on_host(
    residual: np.ndarray, column: Callable[[int], Any], tolerance: float, limit: int
) -> tuple[np.ndarray, list[int], list[float], str]:
    """Rows of Lᵀ, pivots, residual traces and the reason to stop; `residual` is updated in place."""
    size, dtype = residual.size, residual.dtype
    roundoff, largest = float(np.finfo(dtype).eps) / 2, float(residual.max())
    # √eps is far above rounding errors and far below mistakes such as a shifted index.
    diagonal, mistake = residual.copy(), math.sqrt(2 * roundoff) * largest
    goal = tolerance * float(residual.sum(dtype=np.float64))
    # Rows of Lᵀ, so that a step is one matrix-vector product over contiguous memory.
    rows, square = np.empty((min(FIRST_CAPACITY, limit), size), dtype), np.empty(size, dtype)
    pivots: list[int] = []
    errors = [float(residual.sum(dtype=np.float64))]
    while True:
        rank = len(pivots)
        if errors[-1] <= goal:
            stopped = "tolerance"
            break
        if rank == limit:
            stopped = "max_rank"
            break
        pivot = int(residual.argmax())
        variance = float(residual[pivot])
        if variance <= (rank + 2) * roundoff * largest:
            stopped = "rounding"
            break
        if rank == len(rows):
            grown = np.empty((min(2 * rank, limit), size), dtype)
            grown[:rank] = rows
            rows = grown
        values, new, root = _read_column(column(pivot), pivot, diagonal, mistake), rows[rank], math.sqrt(variance)
        if rank:
            np.matmul(rows[:rank, pivot], rows[:rank], out=new)
            np.subtract(values, new, out=new)
        else:
            new[:] = values
        new /= dtype.type(root)
        new[pivot] = root
        residual -= np.multiply(new, new, out=square)
        pivots.append(pivot)
        # Zero is exact here, so with the floor above no pivot can be chosen twice.
        residual[pivot] = 0.0
        _check_semidefinite(residual, values, pivot, mistake)
        np.maximum(residual, 0.0, out=residual)
        errors.append(float(residual.sum(dtype=np.float64)))
    rows = rows[: len(pivots)].copy()
    rows[:, pivots] = np.triu(rows[:, pivots])  # removes rounding errors at earlier pivots, which affect nothing else
    return rows, pivots, errors, stopped


def positive_integer(value: object, name: str) -> int:
    """`value` as a Python integer above zero."""
    return int(parameter(value, name, axes=0, integer=True))


def read_diagonal(diagonal: Array) -> Any:
    """`diagonal` as a checked (n,) array."""
    array = array_of(diagonal, "diagonal")
    if array.ndim != 1:
        raise ShapeError(f"diagonal has shape {array.shape}; expected (n,): pass the diagonal only, as numpy.diag(K).")
    check_rows(array.shape[0], "diagonal")
    check_finite(array, "diagonal")
    if is_concrete(array) and (np.asarray(array) < 0).any():
        where = int(np.asarray(array).argmin())
        raise InputError(
            f"diagonal[{where}] is {float(array[where]):.6g}; a positive semidefinite matrix has no negative diagonal."
        )
    return array


def _read_column(values: Array, index: int, diagonal: np.ndarray, mistake: float) -> np.ndarray:
    new = np.asarray(values, dtype=diagonal.dtype)
    if new.shape != diagonal.shape:
        raise ShapeError(f"column({index}) has shape {new.shape}; expected {diagonal.shape}, like diagonal.")
    if not abs(float(new[index]) - float(diagonal[index])) <= mistake:
        check_finite(new, f"column({index})")
        raise InputError(
            f"column({index})[{index}] is {float(new[index]):.6g} but diagonal[{index}] is "
            f"{float(diagonal[index]):.6g}; expected the same number: both must describe one matrix."
        )
    return new


def _check_semidefinite(residual: np.ndarray, column: np.ndarray, pivot: int, mistake: float) -> None:
    if float(residual.min()) >= -mistake:
        return
    check_finite(column, f"column({pivot})")
    worst = int(residual.argmin())
    raise InputError(
        f"the matrix is not positive semidefinite: after the column of row {pivot} the residual variance of row "
        f"{worst} is {float(residual[worst]):.3g}. Check that the kernel is positive definite."
    )
