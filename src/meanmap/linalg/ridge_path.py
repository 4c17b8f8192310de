"""Choosing the ridge from data: scores along a grid, all from one decomposition."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import as_array, parameter, read_matrix
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.report import Report
from meanmap.core.settings import one_of
from meanmap.core.types import Array
from meanmap.linalg.cross_validation import relative_ridges
from meanmap.linalg.pivoted import pivoted_cholesky
from meanmap.linalg.pivoted_fixed import pivoted_cholesky_fixed
from meanmap.linalg.ridge import check_precision, read_square
from meanmap.linalg.spectrum import Spectrum, target_columns

__all__ = ["RidgePath", "choose_ridge", "choose_ridge_features"]

CRITERIA = ("leave-one-out", "generalised", "evidence", "k-fold")
METHODS = ("auto", "spectral", "low-rank")
# Up to this many rows an eigendecomposition takes about a second; with 5000 it takes more than ten.
SPECTRAL_ROWS = 2000
LOW_RANK = 1000
# The low-rank method drops directions with this share of the targets' variance: far below any noise.
TARGET_TOLERANCE = 1e-3
# A low-rank factor should omit less than this share of the smallest shift, so that no score changes noticeably.
GRAM_TOLERANCE = 1e-2


class RidgePath(eqx.Module):
    """Scores of a grid of ridges; the lowest is best.

    Attributes
    ----------
    ridges, scores : array (g,)
        The grid λ and its scores, lower is better.
    best : number
        The ridge with the lowest score.
    degrees_of_freedom : array (g,)
        tr K (K + n λ I)⁻¹.
    error_bounds : array (g,)
        tr(K − L Lᵀ) / (n λ) for scores on a factor L Lᵀ: the largest relative error of any 1 − Hᵢᵢ. Zero if exact.
    rank : int
        Columns of the decomposition.
    criterion : str
        The criterion of the scores.
    """

    ridges: Any
    scores: Any
    best: Any
    degrees_of_freedom: Any
    error_bounds: Any
    rank: int = eqx.field(static=True)
    criterion: str = eqx.field(static=True)

    @property
    def report(self) -> Report:
        """Whether the best ridge lies inside the grid and how exact its score is."""
        if not is_concrete(self.scores):
            raise KindError("a report needs concrete values: read it outside jit, vmap and grad.")
        ridges, scores = np.asarray(self.ridges), np.asarray(self.scores)
        order, chosen = np.argsort(ridges), int(np.argmin(scores))
        notes = []
        edge = ridges.size > 1 and chosen in (order[0], order[-1])
        if edge:
            side = "smallest" if chosen == order[0] else "largest"
            notes.append(f"the best ridge is the {side} of the grid: pass a wider range of ridges.")
        bound = float(np.asarray(self.error_bounds)[chosen])
        if bound > 0.1:
            notes.append(
                f"scores are those of a factor of rank {self.rank}; at the best ridge it is certified only within a "
                f"factor {1 + bound:.2g} of the full matrix. Pass a larger rank, or method='spectral', for more."
            )
        status = f"chose ridge {float(np.asarray(self.best)):.3g} by {self.criterion}"
        return Report(status, not edge, ridges.size, scores[order], notes=tuple(notes))


def choose_ridge(
    gram: Array,
    targets: Array | None = None,
    *,
    target_gram: Array | None = None,
    ridges: Array | None = None,
    criterion: str = "leave-one-out",
    folds: object = 10,
    method: str = "auto",
    rank: int | None = None,
) -> RidgePath:
    """Score a grid of ridges λ for predicting targets with (K + n λ I)⁻¹ and choose the best.

    Parameters
    ----------
    gram : array (n, n)
        K, symmetric positive semidefinite.
    targets : array (n,) or (n, q), optional
        Targets in R^q.
    target_gram : array (n, n), optional
        Instead of `targets`: the Gram matrix L of targets in an RKHS; errors are measured in its norm.
    ridges : array (g,), optional
        The grid; by default 25 values, log-spaced from max(1e-8, 1000 eps) to 1 times trace(K) / n.
    criterion : str
        "leave-one-out": the mean squared error at each point of the fit without it, in closed form. "generalised":
        generalised cross-validation. "evidence": marginal likelihood of a Gaussian process with noise variance n λ
        times its scale, the scale at its best value. "k-fold": the error on folds left out, in closed form.
    folds : int or array (n,)
        For "k-fold": a number of folds, to which rows are assigned in turn, or the label of each row's fold.
    method : str
        "spectral": exact, one eigendecomposition of K, about 9 n³ operations. "low-rank": the scores of K ≈ L Lᵀ
        by pivoted Cholesky, n r² operations, with a certificate. "auto": spectral up to 2000 rows.
    rank : int, optional
        The largest number of columns of the low-rank method, by default 1000.

    Notes
    -----
    When a row is left out, n λ, the shift of the diagonal, stays the same. With the shift fixed, leave-one-out errors
    are (Y − HY)ᵢ / (1 − Hᵢᵢ): Hastie, Tibshirani and Friedman (2009), equation 7.64. In an RKHS their squared norms are
    (A L Aᵀ)ᵢᵢ / Aᵢᵢ² with A = I − H.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, size=100)
    >>> y = np.sin(2 * x) + 0.1 * rng.normal(size=100)
    >>> path = choose_ridge(np.exp(-((x[:, None] - x) ** 2)), y)
    >>> bool(1e-6 < path.best < 1e-2), path.report.converged
    (True, True)
    """
    with Door(gram, targets, target_gram, ridges) as door:
        _check_names(criterion, method)
        matrix = read_square(gram, "gram", door)
        size = matrix.shape[0]
        exact = method == "spectral" or (method == "auto" and size <= SPECTRAL_ROWS)
        trace = matrix.diagonal().sum()
        grid = _read_ridges(ridges, trace, size, matrix.dtype)
        columns, outputs = _read_targets(targets, target_gram, size, door, exact)
        if exact:
            spectrum, missing = Spectrum.of_gram(matrix), matrix.dtype.type(0)
        else:
            limit = min(LOW_RANK if rank is None else int(parameter(rank, "rank", axes=0, integer=True)), size)
            factor, missing = _low_rank(matrix, GRAM_TOLERANCE * size * grid.min() / trace, limit)
            spectrum = Spectrum.of_features(factor)
        return door.leave(_score(spectrum, columns, outputs, grid, missing, criterion, folds))


def choose_ridge_features(
    features: object,
    targets: Array | None = None,
    *,
    target_gram: Array | None = None,
    ridges: Array | None = None,
    criterion: str = "leave-one-out",
    folds: object = 10,
    taken: Array | None = None,
) -> RidgePath:
    """Choose the ridge for features Φ (n, r), K = ΦΦᵀ, at cost n r² and never n × n.

    Parameters and results are those of `choose_ridge`; scores are exact. A `target_gram` is n × n by itself: for large
    n pass its pivoted Cholesky factor as `targets` instead.

    If targets and features are residuals of a first regression, such as one on a line, `taken` (n,) are its leverages:
    each row is left out of both regressions. Without them, as many features as rows would appear to predict perfectly.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(200, 5))
    >>> y = features @ np.ones(5) + rng.normal(size=200)
    >>> bool(choose_ridge_features(features, y).best < 0.1)
    True
    """
    with Door(features, targets, target_gram, ridges) as door:
        _check_names(criterion, "auto")
        matrix = read_matrix(features, "features", door, sparse=False)
        size = matrix.shape[0]
        grid = _read_ridges(ridges, (matrix**2).sum(), size, matrix.dtype)
        columns, outputs = _read_targets(targets, target_gram, size, door, size <= SPECTRAL_ROWS)
        zero = matrix.dtype.type(0)
        spectrum = Spectrum.of_features(matrix)
        if taken is not None and isinstance(spectrum.values, np.ndarray):
            spectrum = spectrum.seen()
        return door.leave(_score(spectrum, columns, outputs, grid, zero, criterion, folds, taken))


def _score(
    spectrum: Spectrum,
    columns: Any,
    outputs: int,
    ridges: Array,
    missing: Any,
    criterion: str,
    folds: Any,
    taken: Array | None = None,
) -> RidgePath:
    if isinstance(spectrum.vectors, jax.Array):
        ridges = jnp.asarray(ridges)
    shifts = spectrum.size * ridges
    if criterion == "leave-one-out":
        scores = spectrum.leave_one_out(columns, shifts, taken)
    elif criterion == "generalised":
        scores = spectrum.generalised(columns, shifts)
    elif criterion == "evidence":
        scores = spectrum.evidence(columns, shifts, outputs)
    else:
        scores = spectrum.folds(columns, shifts, _read_folds(folds, spectrum.size))
    degrees = spectrum.degrees_of_freedom(shifts)
    rank = spectrum.values.shape[0]
    return RidgePath(ridges, scores, ridges[scores.argmin()], degrees, missing / shifts, rank, criterion)


def _low_rank(matrix: Array, tolerance: Array, limit: int) -> tuple[Any, Any]:
    """A pivoted Cholesky factor of `matrix` and the trace of the remainder."""
    if isinstance(matrix, jax.Array):
        low = pivoted_cholesky_fixed(matrix.diagonal(), lambda i: matrix[i], limit)
    else:
        # A tolerance of one half keeps at least one column; the largest ridge of the grid may need none.
        low = pivoted_cholesky(
            matrix.diagonal(), lambda i: matrix[i], tolerance=min(float(tolerance), 0.5), max_rank=limit
        )
    return low.factor, low.residual_diagonal.sum()


def _check_names(criterion: str, method: str) -> None:
    one_of(criterion, "criterion", CRITERIA)
    one_of(method, "method", METHODS)


def _read_ridges(ridges: Array | None, trace: Array, size: int, dtype: np.dtype) -> Any:
    """The grid in the matrix's dtype; by default relative to the mean eigenvalue trace(K) / n of the operator K / n."""
    if is_concrete(trace) and not float(np.asarray(trace)) > 0:
        raise ParameterError(
            "the matrix is zero, so there is nothing to regularise: check the kernel and its lengthscale."
        )
    if ridges is None:
        return relative_ridges(dtype).astype(dtype) * (trace / size)
    grid = parameter(ridges, "ridges", axes=1)
    grid = grid.reshape(-1).astype(dtype)
    check_precision(trace, size * grid, dtype)
    return grid


def _read_targets(
    targets: Array | None, target_gram: Array | None, size: int, door: Door, exact: bool
) -> tuple[Any, int]:
    """Targets as columns (n, q), and the number of outputs that the evidence counts."""
    if (targets is None) == (target_gram is None):
        came = "neither" if targets is None else "both"
        raise KindError(f"got {came} of targets and target_gram; expected one: targets (n, q), or target_gram (n, n).")
    name = "targets" if target_gram is None else "target_gram"
    matrix = (
        read_matrix(targets, name, door, sparse=False) if target_gram is None else read_square(target_gram, name, door)
    )
    if matrix.shape[0] != size:
        raise ShapeError(f"{name} has {matrix.shape[0]} rows; expected {size}, one for each point.")
    if target_gram is None:
        return matrix, matrix.shape[1]
    # The evidence cannot count infinitely many outputs; a count of one gives the same best ridge.
    if exact or isinstance(matrix, jax.Array):
        return target_columns(matrix), 1
    low = pivoted_cholesky(matrix.diagonal(), lambda i: matrix[i], tolerance=TARGET_TOLERANCE)
    return low.factor, 1


def _read_folds(folds: Any, size: int) -> np.ndarray:
    if np.ndim(folds) == 0:
        count = int(parameter(folds, "folds", axes=0, integer=True))
        if not 2 <= count <= size:
            raise ParameterError(f"folds is {count}; expected between 2 and the number of rows, {size}.")
        return np.arange(size) % count
    labels = as_array(folds, "folds")
    if labels.shape != (size,):
        raise ShapeError(f"folds has shape {labels.shape}; expected a number or one label for each of {size} rows.")
    if np.unique(labels).size < 2:
        raise ParameterError("folds puts every row in one fold; expected at least two.")
    return labels
