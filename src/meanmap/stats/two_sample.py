"""Do two samples come from one distribution?"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError, ParameterError
from meanmap.core.points import count, is_sparse
from meanmap.core.rng import Rng
from meanmap.embeddings.points import PointEmbedding, is_flat
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.reading import read_pair
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import kernel_for
from meanmap.learning.median import at_median
from meanmap.stats.collections import default_collection, fused
from meanmap.stats.limits import gamma_null, spectral_null
from meanmap.stats.permutations import CentredGram, assignments, permuted_mmd
from meanmap.stats.result import Null, TestResult
from meanmap.stats.settings import LEAST_POINTS, check_settings

__all__ = ["two_sample_test"]

STATISTICS = ("unbiased", "biased")
# Above this many points in all a Gram matrix no longer fits comfortably.
MOST_POINTS = 20_000


def two_sample_test(
    x: Any,
    y: Any,
    kernel: Kernel | str | Sequence[Kernel] | None = None,
    *,
    null: str = "auto",
    statistic: str = "unbiased",
    n_permutations: int = 1000,
    rng: Any = None,
) -> TestResult:
    """Test whether two samples come from one distribution, by the maximum mean discrepancy ‖μ_P − μ_Q‖.

    Parameters
    ----------
    x, y : points
        n and m points, at least 5 of each.
    kernel : Kernel, "median", a sequence of kernels, or None
        A kernel; "median", the default kernel at the median distance of the pooled sample; several kernels, whose
        statistics are fused into one. None, the default: for numbers, ten RBF and ten Laplace kernels over the range of
        distances, fused (MMD-FUSE, Biggs et al. 2023), so that no scale has to be guessed; for labels and mixed tables
        their default kernel.
    null : {"auto", "permutation", "gamma", "spectral"}
        "permutation" (what "auto" chooses) keeps the level exactly at every size. "gamma" and "spectral" use the limit
        of the biased statistic, for one kernel.
    statistic : {"unbiased", "biased"}
        Whether pairs of a point with itself are left out.
    n_permutations : int
        Permutations, or draws from the limit.
    rng : None, int, numpy.random.Generator or JAX key
        Draws the permutations; `result.seed` repeats them.

    Returns
    -------
    TestResult

    Notes
    -----
    Gretton et al. (2012). All permutations are one matrix product: O((n + m)² (d + B)) for each kernel.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> r = two_sample_test(rng.normal(size=(60, 2)), rng.normal(1.0, 1.0, size=(50, 2)), rng=0)
    >>> r.reject(0.05), r.pvalue < 0.01
    (True, True)
    """
    check_settings(null, statistic, STATISTICS, n_permutations)
    random = Rng.of(rng)
    with Door() as door:
        x, y = _on_host(x), _on_host(y)
        chosen, pooled, n = _choose(x, y, kernel, random.generator, door)
        m = count(pooled) - n
        first, *others = chosen
        if others and null in ("gamma", "spectral"):
            raise ParameterError(f"null={null!r} is for one kernel; with several use null='permutation'.")
        if null in ("gamma", "spectral"):
            value, law = _limit(first, pooled, n, null, n_permutations, random.generator)
            label = "biased MMD² × nm/(n + m)"
        else:
            value, law = _permuted(chosen, pooled, n, statistic == "unbiased", n_permutations, random.generator)
            label = f"MMD² fused over {len(chosen)} kernels" if others else f"{statistic} MMD²"
        return TestResult(
            statistic=value,
            pvalue=law.pvalue(value),
            null=law,
            kernel=chosen if others else first,
            method=f"two-sample test, {label}",
            sizes=(n, m),
            seed=random.seed,
            warnings=_warnings(law, n_permutations),
            witness=_witness(chosen, x, pooled, n),
        )


def _on_host(data: Any) -> Any:
    return np.asarray(data) if isinstance(data, jax.Array) else data


def _choose(
    x: Any, y: Any, kernel: Any, generator: np.random.Generator, door: Door
) -> tuple[tuple[Kernel, ...], Any, int]:
    """The kernels, the pooled points and the size of the first sample."""
    listed = _listed(kernel)
    first = listed[0] if listed else kernel_for(_stack(x, y), generator)
    _, points_x, points_y = read_pair(first, x, y, door)
    n, m = count(points_x), count(points_y)
    check_rows(n, "x", LEAST_POINTS)
    check_rows(m, "y", LEAST_POINTS)
    if n + m > MOST_POINTS:
        raise InputError(f"x and y have {n + m} points together; this test takes at most {MOST_POINTS}: draw a sample.")
    pooled = jax.tree.map(_join, points_x, points_y, is_leaf=is_sparse)
    if listed:
        return listed, pooled, n
    if isinstance(first, RBF) and isinstance(pooled, np.ndarray):
        # The first guess saw both samples in the order they came; these see the pooled sample without labels.
        if kernel == "median":
            return (at_median(RBF(), pooled, generator),), pooled, n
        return default_collection(pooled, generator), pooled, n
    return (first,), pooled, n


def _listed(kernel: Any) -> tuple[Kernel, ...]:
    """The kernels that were named, none for the default or the median."""
    if kernel is None or (isinstance(kernel, str) and kernel == "median"):
        return ()
    if isinstance(kernel, Kernel):
        return (kernel,)
    if isinstance(kernel, Sequence):
        members = tuple(member for member in kernel if isinstance(member, Kernel))
        if members and len(members) == len(kernel):
            return members
    raise KindError(f"kernel is {kernel!r}; expected a kernel, a list of kernels, 'median' or None.")


def _stack(x: Any, y: Any) -> Any:
    """Both samples as one, for a default kernel that sees no labels."""
    if hasattr(x, "columns") or isinstance(x, dict):
        from meanmap.core.table import Table

        a, b = Table.of(x, "x"), Table.of(y, "y").select(Table.of(x, "x").names, "y")
        return Table({name: np.concatenate([a[name], b[name]]) for name in a.names})
    if is_sparse(x):
        return x
    a, b = np.asarray(x), np.asarray(y)
    return np.concatenate([a, b]) if a.shape[1:] == b.shape[1:] else a


def _join(a: Any, b: Any) -> Any:
    if is_sparse(a) or is_sparse(b):
        import scipy.sparse

        return scipy.sparse.vstack([a, b]).tocsr()
    return np.concatenate([a, b])


def _permuted(
    kernels: tuple[Kernel, ...],
    pooled: Any,
    n: int,
    unbiased: bool,
    n_permutations: int,
    generator: np.random.Generator,
) -> tuple[float, Null]:
    m = count(pooled) - n
    z = assignments(n, m, n_permutations, generator)
    values, squares = [], []
    for kernel in kernels:
        gram = CentredGram(gram_matrix(kernel, pooled))
        values.append(permuted_mmd(gram, z, n, unbiased))
        squares.append(max(gram.mean_square, np.finfo(float).tiny))
    smaller = min(n, m)
    result = values[0] if len(kernels) == 1 else fused(np.stack(values), squares, smaller * (smaller - 1))
    return float(result[0]), Null("permutation", result[1:], exact=True)


def _limit(
    kernel: Kernel, pooled: Any, n: int, kind: str, n_draws: int, generator: np.random.Generator
) -> tuple[float, Null]:
    size = count(pooled)
    m = size - n
    gram = CentredGram(gram_matrix(kernel, pooled))
    z = np.zeros((size, 1), np.float32)
    z[:n] = 1
    value = n * m / size * float(permuted_mmd(gram, z, n, unbiased=False)[0])
    centred = gram.centred.astype(float) / size
    if kind == "gamma":
        return value, gamma_null(float(np.trace(centred)), 2 * float(np.sum(centred**2)), n_draws, generator)
    return value, spectral_null(np.linalg.eigvalsh(centred), n_draws, generator)


def _warnings(law: Null, n_permutations: int) -> tuple[str, ...]:
    found = []
    if np.ptp(law.draws) == 0:
        found.append("the statistic is the same under every permutation: the data cannot tell the samples apart.")
    if law.exact and n_permutations < 100:
        found.append(f"with {n_permutations} permutations no p-value can be below {1 / (n_permutations + 1):.2g}.")
    return tuple(found)


def _witness(kernels: tuple[Kernel, ...], x: Any, pooled: Any, n: int) -> PointEmbedding:
    """μ_P − μ_Q; of several kernels under the one in the middle of the first half, an RBF of medium lengthscale."""
    kernel = kernels[len(kernels) // 4]
    m = count(pooled) - n
    return PointEmbedding(kernel, pooled, np.r_[np.full(n, 1 / n), np.full(m, -1 / m)], is_flat(x, kernel))
