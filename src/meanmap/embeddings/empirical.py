"""From a sample, or a distribution, to its mean embedding."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import array_of, check_finite, check_rows, parameter
from meanmap.core.door import Door, all_concrete
from meanmap.core.errors import InputError, KindError, ParameterError, ShapeError
from meanmap.core.notes import warn_of
from meanmap.core.points import count
from meanmap.core.settings import one_of
from meanmap.core.synonyms import own_words
from meanmap.core.tables.indices import check_order
from meanmap.core.tables.schema import opened
from meanmap.core.types import Array, Data, Numbers, Points
from meanmap.embeddings import shrinkage
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.embeddings.element import Embedding
from meanmap.embeddings.families import FamilyEmbedding
from meanmap.embeddings.points import PointEmbedding, weighted_sums
from meanmap.families.base import Distribution
from meanmap.features.base import Features, mean_over, transform_in_chunks, transformed
from meanmap.kernels.base import Kernel
from meanmap.kernels.distributions import DistributionKernel
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.reading import is_flat, read_points
from meanmap.learning.default import asks_to_learn, is_default, unit_free_kernel
from meanmap.learning.learned import learned_for

__all__ = ["embed"]


@own_words
def embed(
    x: Data,
    kernel: Kernel | Features | str | None = None,
    estimator: str = "empirical",
    *,
    weights: Array | None = None,
    ridge: float | None = None,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
) -> Embedding:
    """The mean embedding μ = E k(x, ·) of a sample or of a distribution.

    Parameters
    ----------
    x : points, or a family
        n points of a type that the kernel accepts; or a distribution such as `mm.families.Normal`, whose embedding is
        exact.
    kernel : Kernel, Features or "learned", optional
        The kernel; or features, in whose coordinates the embedding is expressed at a cost that does not grow with n. By
        default a kernel for the kind of `x`: for numbers RBF at the median distance, of each column if there are
        several, so that units do not matter. "learned" is RBF with the lengthscale that `learn_kernel` finds.
    estimator : {"empirical", "shrinkage", "james-stein", "ridge"}
        "empirical" averages. The others shrink towards zero, which lowers the mean squared RKHS error for small samples
        (Muandet et al. 2016): "shrinkage" is the spectral estimate (C + λ I)⁻¹ C μ̂, S-KMSE; "james-stein" and "ridge"
        scale the average by one factor.
    weights : array_like (n,) or (..., n), optional
        Weights of the points, instead of 1/n; not normalised. For the empirical estimator only.
    ridge : float, optional
        λ of "shrinkage" and "ridge"; chosen by closed-form leave-one-out if not given.
    missing : {"raise", "drop", "category"}, or list of codes
        Treatment of missing values: an error; rows with one are dropped, and a warning counts them; or missing labels
        form their own label. A list of codes, such as ["?", -999], drops rows with these, too.
    kinds : mapping of column to kind, optional
        The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`.

    Returns
    -------
    Embedding
        An embedding of a table keeps its `schema`, and matches columns of later tables by name. An embedding of an
        array refuses later points with column names, with other columns, or of another kind. Evaluating at m points
        costs O(n m d), or O(m r) with r features; the norm costs O(n² d), and from 20,000 points on O(n r²) if r ≤ 400
        points suffice for eight digits. "shrinkage" costs one eigendecomposition, O(n³) or O(n r²); the rest at most
        O(n² d) time and O(n) memory.

    Examples
    --------
    >>> import meanmap as mm
    >>> k = mm.kernels.RBF(1.0)
    >>> p, q = mm.embed([0.0, 1.0, 2.0], k), mm.embed([5.0, 6.0], k)
    >>> round((p - q).norm() ** 2, 3)                      # MMD²
    1.432
    """
    one_of(estimator, "estimator", shrinkage.ESTIMATORS)
    # With a kernel on distributions, a batch of distributions is a sample of points.
    if isinstance(x, Distribution) and not isinstance(kernel, DistributionKernel):
        return _embed_family(x, kernel, estimator, weights, ridge)
    check_order((x, weights), ("x", "weights"))
    (x,), (schema,), told = opened((x,), ("x",), missing, kinds, brief=True, wild=True)
    warn_of(told)
    if kernel is None:
        if not all_concrete(x):
            raise InputError("inside jit no kernel can be chosen from the data: pass one, such as mm.kernels.RBF(1.0).")
        kernel = unit_free_kernel(x)
    if asks_to_learn(kernel):
        kernel, _ = learned_for(x)
    if not isinstance(kernel, Kernel | Features):
        raise KindError(f"kernel is {kernel!r}; expected a kernel such as mm.kernels.RBF(1.0), or features of one.")
    if weights is not None and estimator != "empirical":
        raise ParameterError(f"weights need estimator='empirical', not {estimator!r}.")
    if ridge is not None:
        if estimator not in ("shrinkage", "ridge"):
            raise ParameterError(f"ridge needs estimator='shrinkage' or 'ridge', not {estimator!r}.")
        parameter(ridge, "ridge", axes=0)
    with Door(x, kernel, weights) as door:
        if isinstance(kernel, Features):
            found = _in_features(x, kernel, estimator, weights, ridge, door)
            return door.leave(replace(found, schema=schema))
        points = read_points(kernel, x, "x", door)
        cast = door.cast(kernel)
        if weights is not None:
            chosen = _read_weights(weights, count(points), door)
        else:
            chosen = _weights(cast, points, estimator, ridge, door)
        return door.leave(PointEmbedding(kernel, points, chosen, is_flat(x, kernel), schema=schema))


def _embed_family(
    x: Distribution,
    kernel: Any,
    estimator: str,
    weights: Array | None,
    ridge: Numbers | None,
) -> Embedding:
    if is_default(kernel):
        raise KindError(f"kernel is {kernel!r}; a distribution's embedding needs one, such as mm.kernels.RBF(1.0).")
    if estimator != "empirical" or weights is not None or ridge is not None:
        raise ParameterError("the embedding of a distribution is exact: do not pass estimator, weights or ridge.")
    return FamilyEmbedding.of(x, kernel)


def _read_weights(weights: Array, n: int, door: Door) -> Any:
    array = array_of(weights, "weights")
    if array.ndim == 0 or array.shape[-1] != n:
        raise ShapeError(f"weights has shape {array.shape}; expected ({n},) or (..., {n}): one per point.")
    check_finite(array, "weights")
    return (jnp if door.follows else np).asarray(array, dtype=door.dtype)


def _weights(kernel: Kernel, points: Points, estimator: str, ridge: float | None, door: Door) -> Any:
    n = count(points)
    uniform = np.full(n, 1 / n, door.dtype)
    if estimator == "empirical":
        return jnp.asarray(uniform) if door.follows else uniform
    check_rows(n, "x", least=2)
    _refuse_tracers(points, estimator)
    diagonal = np.asarray(kernel.diagonal(points), dtype=np.float64)
    if estimator == "shrinkage":
        vectors, values = shrinkage.spectrum_of_gram(np.asarray(gram_matrix(kernel, points), dtype=np.float64))
        lam = shrinkage.choose_spectral_ridge(vectors, values, diagonal) if ridge is None else ridge
        chosen = shrinkage.spectral_weights(vectors, values, lam)
    else:
        means = np.asarray(weighted_sums(kernel, points, points, uniform, door), dtype=np.float64)
        chosen = uniform * shrinkage.factor_weights(means, diagonal, estimator, ridge)
    return (jnp if door.follows else np).asarray(chosen, dtype=door.dtype)


def _in_features(
    x: Data, features: Features, estimator: str, weights: Array | None, ridge: float | None, door: Door
) -> Any:
    points = features.read(x, "x", door)
    n = count(points)
    cast = door.cast(features)
    if weights is not None:
        chosen = _read_weights(weights, n, door)
    elif estimator == "empirical":
        return FeatureEmbedding(features, mean_over(cast, points, door))
    else:
        check_rows(n, "x", least=2)
        _refuse_tracers(points, estimator)
        phi = transformed(cast, points)
        diagonal = np.sum(phi**2, axis=1)
        if estimator == "shrinkage":
            vectors, values = shrinkage.spectrum_of_features(phi)
            lam = shrinkage.choose_spectral_ridge(vectors, values, diagonal) if ridge is None else ridge
            chosen = shrinkage.spectral_weights(vectors, values, lam)
        else:
            means = phi @ phi.mean(axis=0)
            chosen = np.full(n, shrinkage.factor_weights(means, diagonal, estimator, ridge) / n)
    if door.follows:
        return FeatureEmbedding(features, jnp.matmul(jnp.asarray(chosen, door.dtype), cast.transform(points)))
    return FeatureEmbedding(features, _weighted(cast, points, np.asarray(chosen)))


def _weighted(features: Features, points: Points, weights: np.ndarray) -> np.ndarray:
    total: Any = 0.0
    start = 0
    for part in transform_in_chunks(features, points):
        stop = start + part.shape[0]
        total = total + weights[..., start:stop] @ np.asarray(part)
        start = stop
    return total


def _refuse_tracers(points: Points, estimator: str) -> None:
    if not all_concrete(points):
        raise InputError(f"estimator={estimator!r} chooses its shrinkage on the host: call it outside jit.")
