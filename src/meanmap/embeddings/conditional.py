"""The conditional operator: from x to the embedding of the distribution of Y given x."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.pieces.sources import lies_elsewhere
from meanmap.core.points import any_sparse, rows, spread_rows
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import count_rows, source_of
from meanmap.core.tables.schema import opened
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, KernelLike, Numbers
from meanmap.embeddings.bases import FeatureBasis
from meanmap.embeddings.operators import Operator
from meanmap.embeddings.reading import Side, read_pairs, refuse_tracers
from meanmap.embeddings.regression_plan import RegressionPlan, solved
from meanmap.features.base import Features, transform_in_chunks
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import asks_to_learn, unit_free_kernel
from meanmap.learning.fit import Choice
from meanmap.learning.learned import learned_for
from meanmap.linalg.ridge import Ridge
from meanmap.linalg.ridge_path import choose_ridge, choose_ridge_features
from meanmap.linalg.spectrum import target_columns

__all__ = ["condition"]

# With up to this many points the operator is fitted on all of them: a Gram matrix of 300 MB and a factorisation of a
# few seconds. With more it is fitted in the coordinates of up to MOST_FEATURES pivots, and the ridge is chosen for that
# model.
DENSE_ROWS = 6000
MOST_FEATURES = 1000
# From LOW_RANK_FROM points on, if the ridge is chosen, LOW_RANK pivots suffice if they leave at most this share of the
# trace of the kernel of x and the ridge is at least LEAST_RIDGE. Without noise a smaller ridge is best, and errors were
# .15 larger.
LOW_RANK_FROM, LOW_RANK, TRACE_TOLERANCE, LEAST_RIDGE = 400, 250, 1e-12, 1e-6
# The ridge is chosen on up to this many points; for more points n λ, the shift that smooths, is kept. In a measurement
# with 5000 points in ten dimensions, this shift had the smallest error among shifts a factor of four apart.
RIDGE_ROWS = 1000
# The ridge of features is chosen on up to this many points, for the same reason; for more, only sums are needed.
RIDGE_ROWS_IN_FEATURES = 100_000
# Files and collections of up to this many rows are read into memory.
READ_ROWS = 20_000
# The number of rows whose weights are computed together.
BLOCK = 10_000
# The lengthscale is compared on a few hundred points, at these multiples of the median distance.
LENGTHSCALE_ROWS = 500
LENGTHSCALES = Choice((0.125, 0.25, 0.5, 1.0, 2.0, 4.0))


@one_blas_thread()
@own_words
def condition(
    x: Data,
    y: Data,
    *,
    kernel_x: Kernel | Features | str | None = None,
    kernel_y: Kernel | Features | str | None = None,
    ridge: float | None = None,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
) -> Operator:
    """The conditional operator U_{Y|X} = C_YX (C_XX + λ I)⁻¹, learned from n pairs.

    `b = op(x_new)` is the belief about y at each new x: b.mean(), b.var(), b.quantile(q), b.density(grid), b.mode(),
    b.sample(n, rng), b.expect(f). In points, μ_{Y|x} = Σᵢ βᵢ(x) l(yᵢ, ·) with β(x) = (K + n λ I)⁻¹ k(X, x).

    Parameters
    ----------
    x, y : points; Parquet files; Dask arrays or frames
        n pairs. With features of both, the contributions of more than 20,000 rows are summed where the rows are stored,
        with the same coefficients bit for bit wherever that is (`RegressionPlan`); files and collections of that size
        require features.
    kernel_x : Kernel, Features or "learned", optional
        The kernel of x. By default RBF, with its lengthscale chosen along with the ridge by leave-one-out (on up to 500
        points) and several columns scaled so that units do not matter; for labels and mixed tables the kernel of
        `mm.default_kernel`. "learned" uses `learn_kernel` on x alone. Features give the primal form, streamed at a cost
        linear in n, for millions of rows.
    kernel_y : Kernel, Features or "learned", optional
        The kernel of y, by default RBF at the median distance (of each column). With features, beliefs are expressed in
        their coordinates; use `belief.to_points(candidates)` to evaluate them.
    ridge : float, optional
        λ. By default the one with the smallest leave-one-out error Σᵢ ‖l(yᵢ, ·) − μ⁽⁻ⁱ⁾_{Y|xᵢ}‖², in closed form, on at
        most 1000 points, or 100,000 with features; n λ is kept for all points.
    missing : {"raise", "drop", "category"}, or list of codes
        Treatment of missing values: an error; pairs with one in x or y are dropped; or missing labels form their own
        label. A list of codes, such as ["?", -999], drops pairs with these, too.
    kinds : mapping of column to kind, optional
        The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`.

    Returns
    -------
    Operator
        `op.chosen` holds the chosen hyperparameters, `op.schema` the kinds of the columns of x: new x are read in the
        same way, with a warning about unusual values; `op.notes` counts missing values.

    Notes
    -----
    Far from all x the weights βᵢ(x) sum to less than one, and eventually to zero. Summaries of beliefs then distribute
    the missing weight equally over all yᵢ: where x carries no information, the belief is the marginal distribution of
    y.

    Song, Gretton & Guestrin (2010), eq. 6-7. Up to 6000 points are fitted by one Cholesky factorisation, O(n³), or from
    400 on in 250 coordinates, if these represent the kernel and y has noise. More points are fitted in up to r = 1000
    pivoted coordinates of the kernel of x, or in features, in O(n r²) time and O(n r) memory, 8 KiB per point if r is
    1000. The ridge is chosen for that model, on at most 100,000 of the points. Beliefs are evaluated lazily: means and
    other expectations of m queries cost O(m n d); quantiles, densities and other summaries need the weights, one solve
    for each query.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, 300)
    >>> op = condition(x, np.sin(x) + 0.1 * rng.normal(size=300))
    >>> bool(np.abs(op([0.0, 1.0]).mean() - np.sin([0.0, 1.0])).max() < 0.1)
    True
    """
    if ridge is not None:
        parameter(ridge, "ridge", positive=False, axes=0, at_least=0.0)
    if ridge is None or kernel_x is None or kernel_y is None:
        refuse_tracers((x, y, ridge), "1e-3")
    if all(map(_is_long, (x, y))):
        found = _in_one_pass(x, y, kernel_x, kernel_y, ridge, missing, kinds)
        if found is not None:
            return found
    x, y = source_of(x).whole("x"), source_of(y).whole("y")
    (x, y), schemas, told = opened((x, y), ("x", "y"), missing, kinds, paired=True, least=2, wild=True)
    with Door(x, y, kernel_x, kernel_y) as door:
        search = kernel_x is None
        kernel_x, kernel_y = _chosen(kernel_x, x, "x"), _chosen(kernel_y, y, "y")
        first, second = read_pairs(x, y, kernel_x, kernel_y, door, *schemas)
        if search and isinstance(kernel_x, RBF):
            kernel_x = _choose_lengthscale(kernel_x, first, second, ridge, door)
            first = first.under(kernel_x)
        if first.basis.orthonormal:
            return door.leave(replace(_primal(first, second, ridge, door), conditional=True, notes=told))
        if second.basis.orthonormal:
            raise KindError("kernel_y is features but kernel_x is a kernel: give features on both sides, or on x only.")
        low = _coordinates(first, ridge is None, door)
        operator = None if low is None else _pivoted(first, low, second, ridge, door)
        if operator is None or (first.count <= DENSE_ROWS and dict(operator.chosen)["ridge"] < LEAST_RIDGE):
            operator = _dual(first, second, ridge, door)
        return door.leave(replace(operator, conditional=True, notes=told))


def _is_long(data: Data) -> bool:
    """Whether data are many rows of numbers or columns."""
    has_rows = isinstance(data, np.ndarray) or lies_elsewhere(data) or source_of(data).named
    return has_rows and (count_rows(data) or 0) > READ_ROWS


def _in_one_pass(
    x: Data, y: Data, kernel_x: KernelLike, kernel_y: KernelLike, ridge: Numbers | None, missing: str, kinds: Any
) -> Operator | None:
    """The operator in features of many rows, summed where they are stored; None for data that must be in memory."""
    in_pieces = any(map(lies_elsewhere, (x, y)))
    in_features = all(isinstance(kernel, Features) for kernel in (kernel_x, kernel_y))
    if not in_pieces and not (in_features and missing == "raise" and not kinds):
        return None
    if not in_features:
        raise KindError(
            f"x and y are collections or files of more than {READ_ROWS} rows, which need features: pass features of "
            "both, such as kernel_x=mm.features.Fourier.draw(kernel, like=some_rows) and kernel_y=..., or rows in "
            "memory."
        )
    if missing != "raise" or kinds:
        option = "kinds=" if missing == "raise" else f"missing={missing!r}"
        raise ParameterError(f"{option} is for samples in memory: handle missing values in the files or collection.")
    features: Any = kernel_x, kernel_y
    plan = RegressionPlan.of(x, y, *features, rng=0)
    return plan.result(plan.state(x, y), ridge)


def _dual(first: Side, second: Side, ridge: Numbers | None, door: Door) -> Operator:
    """β(x) = (K + n λ I)⁻¹ k(X, x), by one factorisation."""
    gram = first.basis.gram(door)
    chosen = _lengthscale(first)
    if ridge is None:
        n = first.count
        index = spread_rows(n, RIDGE_ROWS)
        if len(index) == n:
            path = choose_ridge(gram, target_gram=second.basis.gram(door))
        else:
            path = choose_ridge(gram[np.ix_(index, index)], _columns(second, index, door))
        ridge = float(path.best) * len(index) / n
        chosen = (("ridge", ridge), *chosen)
    return Operator(second.basis, first.basis, solve=Ridge.factor(gram, ridge=ridge), chosen=chosen)


def _coordinates(first: Side, chooses: bool, door: Door) -> PivotedCholesky | None:
    """Pivoted coordinates of k for many points, or if few of them represent k and the ridge is to be chosen."""
    n = first.count
    if door.follows or any_sparse(first.points):
        return None
    if n > DENSE_ROWS:
        return PivotedCholesky.of_points(first.kernel, first.points, door, tolerance=1e-9, max_rank=MOST_FEATURES)
    if n <= LOW_RANK_FROM or not chooses:
        return None
    low = PivotedCholesky.of_points(first.kernel, first.points, door, TRACE_TOLERANCE, LOW_RANK)
    return low if low.report.converged else None


def _pivoted(first: Side, low: PivotedCholesky, second: Side, ridge: Numbers | None, door: Door) -> Operator:
    """The dual operator in pivoted coordinates of k: exact for the kernel that they define."""
    operator = _primal(first.in_coordinates(low), second, ridge, door)
    chosen = (*operator.chosen, *_lengthscale(first))
    return Operator(operator.output, operator.input, operator.matrix, chosen=chosen)


def _primal(first: Side, second: Side, ridge: Numbers | None, door: Door) -> Operator:
    """C_YX (C_XX + λ I)⁻¹ in the features of x, with y on points or in features."""
    if second.basis.orthonormal:
        return _streamed(first, second, ridge, door)
    phi = first.basis.at(first.points, door).T
    n: int = phi.shape[0]
    chosen: tuple = ()
    if ridge is None:
        index = spread_rows(n, RIDGE_ROWS_IN_FEATURES)
        path = choose_ridge_features(phi if len(index) == n else phi[index], _columns(second, index, door))
        ridge = float(path.best) * len(index) / n
        chosen = (("ridge", ridge),)
    inverse = Ridge.factor_features(phi, ridge=ridge)
    if door.follows:
        return Operator(second.basis, first.basis, inverse.solve(phi.T).T / n, chosen=chosen)
    for start in range(0, n, BLOCK):  # in place: with a million points this is most of the memory
        block = phi[start : start + BLOCK]
        block[:] = inverse.solve(block.T).T / n
    return Operator(second.basis, first.basis, phi, chosen=chosen)


def _streamed(first: Side, second: Side, ridge: Numbers | None, door: Door) -> Operator:
    """Both sides in features: one pass over the data, an (s, r) matrix, and no memory of length n."""
    n = first.count
    if door.follows:
        phi, psi = first.basis.at(first.points, door).T, second.basis.at(second.points, door).T
        if ridge is None:
            ridge = float(choose_ridge_features(phi, psi).best)
        cross = jnp.matmul(phi.T, psi, precision="highest") / n
        return Operator(second.basis, first.basis, Ridge.factor_features(phi, ridge=ridge).solve(cross).T)
    covariance, cross, energy = 0.0, 0.0, 0.0
    pairs = zip(
        transform_in_chunks(door.cast(first.kernel), first.points),
        transform_in_chunks(door.cast(second.kernel), second.points),
        strict=True,
    )
    for one, other in pairs:
        a, b = np.asarray(one), np.asarray(other)
        covariance, cross, energy = covariance + a.T @ a, cross + a.T @ b, energy + float(np.sum(b * b))
    moments = np.asarray(covariance) / n, np.asarray(cross) / n, energy / n
    matrix, chosen = solved(*moments, n, ridge)
    return Operator(second.basis, first.basis, matrix, chosen=chosen)


def _chosen(kernel: KernelLike, data: Data, argument: str) -> Any:
    """The given kernel, or one chosen from the data."""
    if asks_to_learn(kernel):
        return learned_for(data)[0]
    return unit_free_kernel(data, argument) if kernel is None else kernel


def _choose_lengthscale(kernel: RBF, first: Side, second: Side, ridge: Numbers | None, door: Door) -> RBF:
    """The multiple of the median distance with the smallest leave-one-out error, each at its own best ridge."""
    n = first.count
    index = spread_rows(n, LENGTHSCALE_ROWS)
    x, y = rows(first.points, index), rows(second.points, index)
    with Door():
        x, y = (jax.tree.map(np.asarray, points) if not any_sparse(points) else points for points in (x, y))
        in_features = second.basis.orthonormal
        targets = second.kernel.transform(y) if in_features else target_columns(gram_matrix(second.kernel, y))
        median = np.asarray(kernel.lengthscale, dtype=float)
        ridges = None if ridge is None else np.atleast_1d(np.asarray(ridge, dtype=float))

        def left_out(kernel: RBF) -> np.ndarray:
            return np.asarray(choose_ridge(gram_matrix(kernel, x), np.asarray(targets), ridges=ridges).scores)

        chosen: Any = LENGTHSCALES.fit(lambda multiple: RBF(multiple * median), left_out)[2].lengthscale
    return RBF(jnp.asarray(chosen, door.dtype) if door.follows else chosen)


def _columns(side: Side, index: np.ndarray, door: Door) -> Any:
    """Columns T with T Tᵀ nearly the Gram matrix of some of the points, up to errors far below any noise."""
    points = rows(side.points, index)
    low = PivotedCholesky.of_points(side.kernel, points, door, tolerance=1e-3, max_rank=MOST_FEATURES)
    return FeatureBasis(low).at(points, door).T


def _lengthscale(side: Side) -> tuple[tuple[str, float], ...]:
    value = getattr(side.kernel, "lengthscale", None)
    return (("lengthscale", float(value)),) if value is not None and np.ndim(value) == 0 and is_concrete(value) else ()
