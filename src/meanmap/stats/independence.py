"""Are two variables independent?"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, KindError, ParameterError, ShapeError
from meanmap.core.points import count
from meanmap.core.progress import track
from meanmap.core.rng import Rng
from meanmap.features.base import transform_in_chunks
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import read_points
from meanmap.learning.default import kernel_for
from meanmap.stats.limits import gamma_null, spectral_null
from meanmap.stats.result import Null, TestResult
from meanmap.stats.settings import LEAST_POINTS, check_settings

__all__ = ["independence_test"]

STATISTICS = ("biased", "unbiased", "normalised")
# Each Gram matrix is replaced by Φ Φᵀ of at most this rank, with the error certified: a kernel too, so that the level
# stays exact, and as good as the whole one unless a variable has many dimensions at a short lengthscale.
TRACE_TOLERANCE = 1e-4
MOST_FEATURES = 128


def independence_test(
    x: Any,
    y: Any,
    kernel: Kernel | Sequence[Kernel] | str | None = None,
    *,
    null: str = "auto",
    statistic: str = "biased",
    n_permutations: int = 1000,
    rng: Any = None,
) -> TestResult:
    """Test whether x and y are independent, by the Hilbert-Schmidt norm of their cross-covariance operator (HSIC).

    Parameters
    ----------
    x, y : points
        n pairs, at least 5; each may be numbers, labels, or a table of both.
    kernel : Kernel, a pair of kernels, "median" or None
        One kernel for both variables, or one for each. By default (and with "median") each variable gets its own: RBF
        at its median distance, so that rescaling a variable changes nothing; Delta for labels.
    null : {"auto", "permutation", "gamma", "spectral"}
        "permutation" (what "auto" chooses) pairs x with permuted y and keeps the level exactly. The others use the
        limit of the biased statistic.
    statistic : {"biased", "unbiased", "normalised"}
        HSIC as tr(K H L H)/n² (Gretton et al. 2005), its unbiased form (Song et al. 2012, eq. 5), or divided by the
        norms of both centred Gram matrices, which makes it a correlation between 0 and 1 (Cortes et al. 2012).
    n_permutations : int
        Permutations, or draws from the limit.
    rng : None, int, numpy.random.Generator or JAX key
        Draws the permutations; `result.seed` repeats them.

    Returns
    -------
    TestResult

    Notes
    -----
    Gram matrices are factored to at most 128 certified features, so a permutation costs O(n r²) instead of a gather of
    an n × n matrix.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, size=100)
    >>> independence_test(x, x**2 + 0.3 * rng.normal(size=100), rng=0).reject(0.05)
    True
    """
    check_settings(null, statistic, STATISTICS, n_permutations)
    if null in ("gamma", "spectral") and statistic != "biased":
        raise ParameterError(f"null={null!r} is the limit of the biased statistic: pass statistic='biased'.")
    random = Rng.of(rng)
    with Door() as door:
        x, y = (np.asarray(data) if isinstance(data, jax.Array) else data for data in (x, y))
        kernels = _kernels(kernel, x, y, random.generator)
        sides = [_side(k, data, name, door) for k, data, name in zip(kernels, (x, y), ("x", "y"), strict=True)]
        (phi, rest_x), (psi, rest_y) = sides
        n = len(phi)
        if len(psi) != n:
            raise ShapeError(f"x has {n} points and y has {len(psi)}; expected pairs, one y for each x.")
        check_rows(n, "x", LEAST_POINTS)
        for features, name in ((phi, "x"), (psi, "y")):
            if np.ptp(features, axis=0).max(initial=0) == 0:
                raise ColumnError(f"{name} is constant: it is independent of everything. Leave it out.")
        values = _permuted(phi, psi, statistic, 0 if null in ("gamma", "spectral") else n_permutations, random)
        if null in ("gamma", "spectral"):
            value = n * values[0]
            law = _limit(phi, psi, null, n_permutations, random.generator)
            label = "n HSIC"
        else:
            value, law = values[0], Null("permutation", values[1:], exact=True)
            label = f"{statistic} HSIC"
    short = [name for name, rest in (("x", rest_x), ("y", rest_y)) if rest > 10 * TRACE_TOLERANCE]
    warnings = tuple(
        f"the kernel of {name} was cut to {MOST_FEATURES} features; the level is exact, some power may be lost."
        for name in short
    )
    return TestResult(
        float(value), law.pvalue(float(value)), law, kernels, f"independence test, {label}", (n,), random.seed, warnings
    )


def _kernels(kernel: Any, x: Any, y: Any, generator: np.random.Generator) -> tuple[Kernel, Kernel]:
    if kernel is None or (isinstance(kernel, str) and kernel == "median"):
        return kernel_for(x, generator), kernel_for(y, generator)
    if isinstance(kernel, Kernel):
        return kernel, kernel
    if (
        isinstance(kernel, Sequence)
        and len(kernel) == 2
        and isinstance(kernel[0], Kernel)
        and isinstance(kernel[1], Kernel)
    ):
        return kernel[0], kernel[1]
    raise KindError(f"kernel is {kernel!r}; expected a kernel, a pair (kernel of x, kernel of y), 'median' or None.")


def _side(kernel: Kernel, data: Any, name: str, door: Door) -> tuple[np.ndarray, float]:
    """Features of one variable, and the share of its Gram matrix's trace that they leave out."""
    points = read_points(kernel, data, name, door)
    check_rows(count(points), name, LEAST_POINTS)
    low = PivotedCholesky.of_points(kernel, points, door, tolerance=TRACE_TOLERANCE, max_rank=MOST_FEATURES)
    phi = np.concatenate([np.asarray(part) for part in transform_in_chunks(low, points)])
    return phi, float(low.relative_error)


def _permuted(phi: np.ndarray, psi: np.ndarray, statistic: str, n_permutations: int, random: Rng) -> np.ndarray:
    """The statistic for the data and then for each permutation of y."""
    n = len(phi)
    orders = np.empty((n_permutations + 1, n), dtype=np.int64)
    orders[:] = np.arange(n)
    orders[1:] = random.generator.permuted(orders[1:], axis=1)
    centred = [features - features.mean(axis=0) for features in (phi, psi)]
    left = np.ascontiguousarray(centred[0].T, dtype=np.float32)
    right = np.ascontiguousarray(centred[1], dtype=np.float32)
    squares = np.array([np.sum((left @ right[order]) ** 2, dtype=np.float64) for order in _quietly(orders)])
    if statistic == "biased":
        return squares / n**2
    if statistic == "normalised":
        norms = [np.linalg.norm(features.T @ features) for features in centred]
        return squares / (norms[0] * norms[1])
    return _unbiased(squares, phi, psi, orders)


def _unbiased(squares: np.ndarray, phi: np.ndarray, psi: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Song et al. (2012), eq. 5, from ‖Φ̃ᵀΨ̃‖² and the row sums and diagonals of both Gram matrices."""
    n = len(phi)
    (row_x, diagonal_x), (row_y, diagonal_y) = (
        (features @ features.sum(axis=0), np.sum(features**2, axis=1)) for features in (phi, psi)
    )
    total_x, total_y = row_x.sum(), row_y.sum()
    rows = np.array([row_x @ row_y[order] for order in orders])
    # tr(K L) from the centred trace: centring subtracts row and total sums, which permute with y.
    trace = squares + 2 * rows / n - total_x * total_y / n**2
    trace -= np.array([diagonal_x @ diagonal_y[order] for order in orders])
    off_x, off_y = row_x - diagonal_x, row_y - diagonal_y
    crossed = np.array([off_x @ off_y[order] for order in orders])
    product = (total_x - diagonal_x.sum()) * (total_y - diagonal_y.sum())
    return (trace + product / ((n - 1) * (n - 2)) - 2 * crossed / (n - 2)) / (n * (n - 3))


def _quietly(orders: np.ndarray) -> Any:
    return track(list(orders), "permutations") if orders.size > 5e6 else orders


def _limit(phi: np.ndarray, psi: np.ndarray, kind: str, n_draws: int, generator: np.random.Generator) -> Null:
    """n HSIC → Σ λᵢ μⱼ zᵢⱼ² with the eigenvalues of both centred operators (Gretton et al. 2007)."""
    n = len(phi)
    spectra = []
    for features in (phi, psi):
        centred = features - features.mean(axis=0)
        spectra.append(np.maximum(np.linalg.eigvalsh(centred.T @ centred / n), 0))
    if kind == "gamma":
        mean = spectra[0].sum() * spectra[1].sum()
        variance = 2 * np.sum(spectra[0] ** 2) * np.sum(spectra[1] ** 2)
        return gamma_null(float(mean), float(variance), n_draws, generator)
    products = np.sort(np.outer(*spectra).ravel())[::-1]
    kept = products[np.cumsum(products) <= (1 - 1e-6) * products.sum()]
    return spectral_null(kept if len(kept) else products[:1], n_draws, generator)
