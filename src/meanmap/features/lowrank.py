"""Features chosen from the data: pivoted Cholesky with a certified error, and Nyström landmarks."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.arrays import out_of_range
from meanmap.core.door import Door, all_concrete, is_concrete
from meanmap.core.errors import InputError, KindError, ParameterError
from meanmap.core.points import any_sparse, bucket, count, on_device, pad, rows
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Data, Points, Seed
from meanmap.features.base import Features, grouped_means, made_from
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix, point_values, suits_numpy
from meanmap.kernels.reading import check_alike, read_points
from meanmap.linalg.pivoted import PivotedCholesky as Factor
from meanmap.linalg.pivoted import pivoted_cholesky
from meanmap.linalg.pivoted_fixed import pivoted_cholesky_fixed

__all__ = ["Nystrom", "PivotedCholesky"]

# One column of sparse points costs nearly as much as a block of columns: up to this many points, all are computed at
# once.
SPARSE_ROWS = 4000
# For at most this many dense points, one call for all columns costs less than one per pivot.
FEW_ROWS = 128


class PivotedCholesky(Features):
    """Coordinates on a few chosen points: φ(x) = L⁻¹ k(pivots, x), with L Lᵀ = k(pivots, pivots).

    On the points it was fitted to, Φ Φᵀ is the incomplete Cholesky factorisation of the Gram matrix, and
    `relative_error` = trace(K − Φ Φᵀ) / trace(K) is computed, not estimated: K − Φ Φᵀ is positive semidefinite, so the
    trace bounds every entry and the operator norm.

    Made by `PivotedCholesky.fit`. Attributes: `pivots` (the chosen points), `factor` (L, lower triangular),
    `relative_error`, `rank` (the features in use; those beyond the numerical rank of the points are zero), `report`.

    References
    ----------
    Fine & Scheinberg (2001); Song et al. (2011), for kernel belief propagation.
    """

    kernel: Kernel
    pivots: Any
    factor: Any
    trace_errors: Any
    rank: Any
    ending: tuple[str, bool, tuple[str, ...]] = eqx.field(static=True)

    @classmethod
    @own_words
    def fit(
        cls, kernel: Kernel, x: Data, tolerance: float = 1e-6, max_rank: int | None = None, rank: int | None = None
    ) -> "PivotedCholesky":
        """Choose pivots among `x` greedily: each is the point with the largest error so far.

        Parameters
        ----------
        kernel : Kernel
            Any kernel; `k ** q` gives the compressed q-fold tensor features.
        x : points
            n points.
        tolerance : float
            Stop when trace(K − Φ Φᵀ) ≤ tolerance · trace(K).
        max_rank : int, optional
            The largest number of features; `report` says if it was reached.
        rank : int, optional
            Exactly this many features instead of a tolerance: the only form that runs under `jit`.

        Notes
        -----
        Cost O(n r²) time plus r columns of the Gram matrix, O(n r) memory; K is never formed.

        Examples
        --------
        >>> import numpy as np
        >>> from meanmap import kernels
        >>> x = np.random.default_rng(0).normal(size=(500, 2))
        >>> phi = PivotedCholesky.fit(kernels.RBF(1.0), x, tolerance=1e-8)
        >>> bool(np.abs(phi(x) @ phi(x).T - kernels.RBF(1.0)(x)).max() < 1e-5)
        True
        """
        with Door(kernel, x) as door:
            low = cls.of_points(kernel, read_points(kernel, x, "x", door), door, tolerance, max_rank, rank)
            return made_from(low, kernel, x, "x")

    @classmethod
    def of_points(
        cls,
        kernel: Kernel,
        points: Points,
        door: Door,
        tolerance: float = 1e-6,
        max_rank: int | None = None,
        rank: int | None = None,
    ) -> "PivotedCholesky":
        """`fit` for points already read, inside an open door."""
        cast = door.cast(kernel)
        if rank is not None:
            low = _fixed(cast, points, rank)
        elif door.follows and not is_concrete(jax.tree.leaves(points)[0]):
            raise ParameterError("inside jit the number of features must be known: pass, for example, rank=50.")
        else:
            low = _by_tolerance(cast, points, tolerance, max_rank, door)
        return cls._of(kernel, points, low, door, rank)

    @classmethod
    def with_values(
        cls, kernel: Kernel, points: Points, door: Door, tolerance: float, max_rank: int
    ) -> tuple["PivotedCholesky", np.ndarray]:
        """`of_points`, and the features of these points, which the fit computes anyway."""
        low = _by_tolerance(door.cast(kernel), points, tolerance, max_rank, door)
        return cls._of(kernel, points, low, door, None), np.asarray(low.factor)

    @classmethod
    def _of(cls, kernel: Kernel, points: Points, low: Factor, door: Door, rank: int | None) -> "PivotedCholesky":
        if is_concrete(low.trace_errors) and not low.trace_errors[0] > 0:
            raise InputError("k(x, x) is zero for every point of x: there is nothing to represent.")
        chosen = rows(points, low.pivots if not any_sparse(points) else np.asarray(low.pivots))
        in_use = on_device(low.rank) if door.follows else np.asarray(low.rank)
        factor, errors, in_use = door.leave((low.pivot_factor, low.trace_errors, in_use))
        if rank is None:
            ending = (low.report.status, low.report.converged, low.report.notes)
        else:
            ending = ("computed the requested number of features", True, ())
        return cls(kernel, door.leave(chosen), factor, errors, in_use, ending)

    def transform(self, x: Points) -> jax.Array:
        """φ(x), (n, r)."""
        in_use = jnp.arange(self.size) < self.rank
        cross = jnp.where(in_use[:, None], self.kernel.gram(self.pivots, x), 0)
        return jax.scipy.linalg.solve_triangular(jnp.asarray(self.factor), cross, lower=True).T

    def padded(self) -> tuple[Features, np.ndarray | slice]:
        """Padded with unused copies of the first pivot."""
        size = _rounded_up(self.size)
        factor = np.eye(size, dtype=self.factor.dtype)
        factor[: self.size, : self.size] = self.factor
        unread = {"trace_errors": np.zeros(0), "ending": ("", True, ())}
        pivots = pad(self.pivots, size) if self.size else self.pivots
        return replace(self, pivots=pivots, factor=factor, **unread), np.arange(self.size)

    def check(self, points: Points, argument: str) -> None:
        """Raise unless the points have the columns of the pivots."""
        check_alike(points, self.pivots, argument, "the points of the fit")

    @property
    def relative_error(self) -> Any:
        """trace(K − Φ Φᵀ) / trace(K) on the points of the fit."""
        return self.trace_errors[-1] / self.trace_errors[0]

    @property
    def report(self) -> Report:
        """How the choice of pivots ended, with the relative trace error after each."""
        if not is_concrete(self.rank):
            raise KindError("a report needs concrete values: read it outside jit, vmap and grad.")
        status, converged, notes = self.ending
        rank, errors = int(self.rank), np.asarray(self.trace_errors)
        if rank < self.size:
            notes = (*notes, f"the points have numerical rank {rank}: the other features are zero.")
        return Report(status, converged, rank, errors / errors[0], notes=notes)

    @property
    def size(self) -> int:
        """r, the number of features."""
        return self.factor.shape[0]


def _rounded_up(n: int) -> int:
    """Steps of eight, then of an eighth of an octave at most: zeros cost less than a program for each number."""
    step = max(8, 1 << max(0, (n - 1).bit_length() - 3))
    return -(-n // step) * step


@compiled_anew
@jax.jit
def _column(kernel: Kernel, x: Points, point: Points) -> jax.Array:
    return kernel.gram(point, x)[0]


def _by_tolerance(kernel: Kernel, points: Points, tolerance: float, max_rank: int | None, door: Door) -> Factor:
    n, sparse = count(points), any_sparse(points)
    if n <= (SPARSE_ROWS if sparse else FEW_ROWS) and (sparse or not door.follows):
        gram = gram_matrix(kernel, points)
        diagonal, values = gram.diagonal(), gram.__getitem__
    elif sparse or suits_numpy(kernel, points):
        diagonal, values = np.asarray(kernel.diagonal(points)), kernel.columns(points)
    else:
        kernel, padded = on_device((kernel, pad(points, bucket(n))))
        diagonal = np.asarray(point_values(kernel, padded))[:n]
        values = lambda i: np.asarray(_column(kernel, padded, rows(points, slice(i, i + 1))))[:n]  # noqa: E731

    def column(i: int) -> np.ndarray:
        found = np.array(values(i))
        found[i] = diagonal[i]  # expanded distances are wrong by 1e-16 there, the root of which is 1e-8
        return found

    with np.errstate(all="ignore"):  # infinite values are refused later
        low = pivoted_cholesky(diagonal, column, tolerance=tolerance, max_rank=max_rank)
    return on_device(low) if door.follows else low


def _fixed(kernel: Kernel, points: Points, rank: int) -> Factor:
    if any_sparse(points):
        raise KindError("x is sparse, and rank= works on dense points: pass max_rank= instead, or x.toarray().")
    points = on_device(points)

    def column(i):
        return kernel.gram(jax.tree.map(lambda leaf: leaf[i][None], points), points)[0]

    return pivoted_cholesky_fixed(kernel.diagonal(points), column, rank)


class Nystrom(Features):
    """Coordinates on randomly chosen landmarks: φ(x) = W k(landmarks, x) with W Wᵀ the inverse of their Gram matrix.

    The best approximation of the kernel in the span of the landmarks, exact on them. Directions in which the landmarks'
    Gram matrix is numerically singular are left out.

    Made by `Nystrom.fit`. `PivotedCholesky` chooses its points one by one where the error is largest, and certifies its
    error; this one costs a single factorisation.

    References
    ----------
    Williams & Seeger (2001).
    """

    kernel: Kernel
    landmarks: Any
    whitening: Any

    @classmethod
    @own_words
    def fit(cls, kernel: Kernel, x: Data, n_landmarks: int = 100, rng: Seed = None) -> "Nystrom":
        """Take `n_landmarks` of the points at random.

        Cost O(m³) for m landmarks, and O(m d + m²) per point to map.

        Examples
        --------
        >>> import numpy as np
        >>> from meanmap import kernels
        >>> x = np.random.default_rng(0).normal(size=(500, 2))
        >>> phi = Nystrom.fit(kernels.RBF(1.0), x, n_landmarks=100, rng=0)
        >>> bool(np.abs(phi(x) @ phi(x).T - kernels.RBF(1.0)(x)).mean() < 1e-3)
        True
        """
        with Door(kernel, x) as door:
            points = read_points(kernel, x, "x", door)
            cast = door.cast(kernel)
            n = count(points)
            if whole_number(n_landmarks, "n_landmarks") > n:
                raise ParameterError(f"n_landmarks is {n_landmarks}; expected 1 to {n}, the number of points in x.")
            chosen = np.sort(Rng.of(rng).generator.choice(n, int(n_landmarks), replace=False))
            return made_from(cls.at(cast, rows(points, chosen), door), kernel, x, "x")

    @classmethod
    def at(
        cls, kernel: Kernel, landmarks: Array, door: Door, working: Any = None, triangular: bool = False
    ) -> "Nystrom":
        """For given landmarks, already read, inside an open door; `working` is the dtype of later calls, if different.

        With `triangular`, W is triangular if their Gram matrix is far from singular, in a tenth of the time.
        """
        if not all_concrete((kernel, landmarks)):
            raise KindError("Nystrom runs on the host and cannot be traced: use PivotedCholesky.fit with a rank.")
        with np.errstate(over="ignore", invalid="ignore"):
            gram = np.asarray(kernel.gram(landmarks, landmarks), dtype=np.float64)
        if not np.isfinite(gram).all():
            raise out_of_range(f"a kernel value is {gram[~np.isfinite(gram)][0]}")
        precision = np.finfo(working or door.dtype).eps
        whitening = _triangular(gram, precision) if triangular else None
        if whitening is None:
            values, vectors = np.linalg.eigh(gram)
            # Smaller eigenvalues are rounding errors; their inverses would be noise.
            kept = values > values.max() * len(values) * precision
            whitening = vectors[:, kept] / np.sqrt(values[kept])
        whitening = whitening.astype(door.dtype)
        return cls(kernel, door.leave(landmarks), jnp.asarray(whitening) if door.follows else whitening)

    def transform(self, x: Points) -> jax.Array:
        """φ(x), (n, r)."""
        return jnp.matmul(self.kernel.gram(x, self.landmarks), self.whitening, precision="highest")

    def transform_means(self, x: Points, size: int) -> jax.Array:
        """W times the means of k(landmarks, x): one product for each mean, not for each point."""
        return jnp.matmul(grouped_means(self.kernel.gram(x, self.landmarks), size), self.whitening, precision="highest")

    def padded(self) -> tuple[Features, np.ndarray | slice]:
        """With columns of zeros appended to W."""
        missing = _rounded_up(self.size) - self.size
        return replace(self, whitening=np.pad(self.whitening, ((0, 0), (0, missing)))), np.arange(self.size)

    def check(self, points: Points, argument: str) -> None:
        """Raise unless the points have the columns of the landmarks."""
        check_alike(points, self.landmarks, argument, "the landmarks")

    @property
    def size(self) -> int:
        """r, at most the number of landmarks."""
        return self.whitening.shape[1]


def _triangular(gram: np.ndarray, precision: Any) -> np.ndarray | None:
    """L⁻ᵀ of a Gram matrix L Lᵀ if its inverse is accurate to the square root of a precision, otherwise None."""
    try:
        lower = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return None
    from scipy.linalg import solve_triangular  # here: this import takes a tenth of a second

    inverse = solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)
    # The trace of the inverse times that of the matrix is at least its condition number.
    condition = np.sum(inverse**2) * np.trace(gram)
    return inverse.T.copy() if condition * np.sqrt(precision) < 1 else None
