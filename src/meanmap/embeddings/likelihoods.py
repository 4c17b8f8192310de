"""The likelihood operator: from an observation x to the function y ↦ p(x | y) / p(x)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.door import Door
from meanmap.core.errors import ParameterError
from meanmap.core.points import any_sparse, rows, spread_rows
from meanmap.core.synonyms import own_words
from meanmap.core.tables.schema import opened
from meanmap.core.types import Data, Points
from meanmap.embeddings.operators import Operator
from meanmap.embeddings.reading import Side, read_pairs, refuse_tracers
from meanmap.features.base import Features, transformed
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import reads_numbers, unit_free_kernel
from meanmap.learning.density_ratio import ratio_errors, ratio_operator
from meanmap.learning.fit import Choice, relative
from meanmap.linalg.ridge import Ridge

__all__ = ["likelihood"]

# With up to this many points the operator is made on all of them; with more, in pivoted coordinates of both kernels.
DENSE_ROWS = 2000
MOST_FEATURES = 1000
# Choices are compared in pivoted coordinates of at most this rank, on at most this many pairs.
CHOICE_RANK = 150
CHOICE_ROWS = 2000
# Measured on linear-Gaussian pairs of correlation .6 to .9: one ridge for both inverses and a narrow range of
# lengthscales do better than a wider choice, which with a hundred pairs fits the noise of the held-out score.
CHOICE = Choice((0.5, 0.7, 1.0, 1.4), np.geomspace(1e-5, 1e-1, 9))


@own_words
def likelihood(
    x: Data,
    y: Data,
    *,
    kernel_x: Kernel | Features | None = None,
    kernel_y: Kernel | Features | None = None,
    ridge: float | tuple[float, float] | None = None,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
) -> Operator:
    """The likelihood operator A = (C_YY + λ₂ I)⁻¹ C_YX (C_XX + λ₁ I)⁻¹: `op(x)` is y ↦ p(x | y) / p(x).

    It is an element of the RKHS of y: the message of an observed neighbour x to y in belief propagation. It is a
    function, not a distribution: evaluate it, `op(x)(y)`.

    Parameters
    ----------
    x, y : points
        n pairs.
    kernel_x, kernel_y : Kernel or Features, optional
        By default RBF, both lengthscales the same multiple of their median distances, chosen with the ridges.
    ridge : float or (float, float), optional
        λ for both inverses, or (λ₁ of x, λ₂ of y). By default one λ, relative to each kernel's size, that minimises the
        ten-fold held-out error of f(x, y) as an estimate of the density ratio r = p(x, y) / (p(x) p(y)), ½ E_{p(x)p(y)}
        f² − E_{p(x,y)} f, which is ½ E (f − r)² up to a constant (Kanamori, Hido & Sugiyama 2009).
    missing : {"raise", "drop", "category"}, or list of codes
        Treatment of missing values, as in `condition`.
    kinds : mapping of column to kind, optional
        The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`.

    Returns
    -------
    Operator
        `op.chosen` holds the chosen hyperparameters, `op.schema` the kinds of the columns of x; `op.notes` counts
        missing values.

    Notes
    -----
    Song, Gretton & Guestrin (2010), eq. 8, with the factors in the order required for f in the RKHS of y: in points A =
    n Ψ (L + n λ₂ I)⁻¹ (K + n λ₁ I)⁻¹ Φᵀ. The printed factors are those of A_XY.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> f = likelihood(y + rng.normal(size=500), y)([1.5])
    >>> bool(f([1.0])[0, 0] > f([-1.0])[0, 0])             # 1.5 is more likely given 1 than given −1
    True
    """
    given = None if ridge is None else _read_ridges(ridge)
    if given is None or kernel_x is None or kernel_y is None:
        refuse_tracers((x, y, given), "(1e-3, 1e-3)")
    (x, y), schemas, told = opened((x, y), ("x", "y"), missing, kinds, paired=True, least=2, wild=True)
    with Door(x, y, kernel_x, kernel_y) as door:
        by_default = kernel_x is None and kernel_y is None
        kernel_x = unit_free_kernel(x) if kernel_x is None else kernel_x
        kernel_y = unit_free_kernel(y, "y") if kernel_y is None else kernel_y
        first, second = read_pairs(x, y, kernel_x, kernel_y, door, *schemas)
        first.check_like(second)
        chosen: tuple[tuple[str, float], ...] = ()
        search = by_default and reads_numbers(x) and reads_numbers(y)
        if given is None or search:
            multiple, given = _choose(first, second, CHOICE.kept(search), given)
            first, second = (_rescaled(side, multiple) for side in (first, second))
            chosen = (("ridge_x", given[0]), ("ridge_y", given[1]), ("median_multiple", multiple))
        if first.basis.orthonormal:
            return door.leave(replace(_in_features(first, second, given, chosen, door), notes=told))
        if first.count > DENSE_ROWS and not door.follows:
            first, second = (
                s.in_coordinates(PivotedCholesky.of_points(s.kernel, s.points, door, 1e-9, MOST_FEATURES))
                for s in (first, second)
            )
            return door.leave(replace(_in_features(first, second, given, chosen, door), notes=told))
        return door.leave(replace(_in_points(first, second, given, chosen, door), notes=told))


def _in_points(first: Side, second: Side, ridges: tuple[Any, Any], chosen: tuple, door: Door) -> Operator:
    n = first.count
    identity = (jnp if door.follows else np).eye(n, dtype=door.dtype)
    inner = Ridge.factor(first.basis.gram(door), ridge=ridges[0]).solve(identity)
    matrix = n * Ridge.factor(second.basis.gram(door), ridge=ridges[1]).solve(inner)
    return Operator(second.basis, first.basis, matrix, chosen=chosen)


def _in_features(first: Side, second: Side, ridges: tuple[Any, Any], chosen: tuple, door: Door) -> Operator:
    phi, psi = first.basis.at(first.points, door).T, second.basis.at(second.points, door).T
    factors = (Ridge.factor_features(f, ridge=ridge) for f, ridge in zip((phi, psi), ridges, strict=True))
    return Operator(second.basis, first.basis, ratio_operator(phi, psi, *factors).T, chosen=chosen)


def _rescaled(side: Side, multiple: float) -> Side:
    return side if multiple == 1.0 else side.under(RBF(side.kernel.lengthscale * multiple))


def _choose(
    first: Side, second: Side, choice: Choice, given: tuple[Any, Any] | None
) -> tuple[float, tuple[float, float]]:
    """The multiple of both lengthscales and the ridges with the smallest held-out density-ratio error."""
    sides = first, second
    known = [np.array([float(np.asarray(value))]) for value in given or ()]
    with Door() as door:
        index = spread_rows(first.count, CHOICE_ROWS)
        host = [_on_host(rows(side.points, index)) for side in sides]

        def features(multiple: float) -> list[np.ndarray]:
            kernels = [_rescaled(side, multiple).kernel for side in sides]
            return [_coordinates(kernel, points, door) for kernel, points in zip(kernels, host, strict=True)]

        def grids(pair: list[np.ndarray]) -> list[np.ndarray]:
            return known or [relative(choice.ridges, each) for each in pair]

        multiple, at, pair = choice.fit(features, lambda pair: ratio_errors(*pair, *grids(pair)))
    ridge_x, ridge_y = (float(grid[at]) for grid in grids(pair))
    return multiple, (ridge_x, ridge_y)


def _coordinates(kernel: Kernel | Features, points: Points, door: Door) -> np.ndarray:
    """Finite coordinates of the points, of low rank unless the kernel is given by features."""
    if not isinstance(kernel, Features):
        kernel = PivotedCholesky.of_points(kernel, points, door, tolerance=1e-7, max_rank=CHOICE_RANK)
    return transformed(kernel, points)


def _on_host(points: Points) -> Any:
    return points if any_sparse(points) else jax.tree.map(np.asarray, points)


def _read_ridges(ridge: float | tuple[float, float]) -> tuple[Any, Any]:
    pair = tuple(ridge) if isinstance(ridge, tuple | list) else (ridge, ridge)
    if len(pair) != 2:
        raise ParameterError(f"ridge has {len(pair)} entries; expected one number, or (ridge of x, ridge of y).")
    first, second = (parameter(value, "ridge", axes=0) for value in pair)
    return first, second
