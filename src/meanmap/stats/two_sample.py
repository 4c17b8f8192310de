"""Do two samples come from one distribution?"""

from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import InputError, ParameterError, ShapeError
from meanmap.core.points import count, rows
from meanmap.core.rng import Rng
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.embeddings.points import PointEmbedding, is_flat
from meanmap.features.base import FeatureKernel, transform_in_chunks
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.stats.blocks import block_length, block_test
from meanmap.stats.collections import fused
from meanmap.stats.feature_means import FeatureMeans, gaussian_limit, landmark_features, working_precision
from meanmap.stats.limits import gamma_null, spectral_null
from meanmap.stats.permutations import (
    Centred,
    CentredFeatures,
    CentredGram,
    assignments,
    flipped_mmd,
    permuted_mmd,
    signs,
)
from meanmap.stats.result import Null, TestResult
from meanmap.stats.samples import Samples, read_samples
from meanmap.stats.settings import check_choice, check_draws

__all__ = ["two_sample_test"]

# Which null distributions each statistic has; the first is what "auto" takes.
CHOICES = {
    "auto": ("permutation", "wild", "gamma", "spectral", "normal"),
    "unbiased": ("permutation", "wild"),
    "biased": ("permutation", "wild", "gamma", "spectral"),
    "features": ("permutation", "spectral"),
    "block": ("wild", "normal"),
    "linear": ("wild", "normal"),
}
# Up to this many points in all "auto" takes whole Gram matrices, and beyond it features.
WHOLE = 5000
# Above this many points in all a Gram matrix no longer fits comfortably.
MOST_POINTS = 12_000
# Up to this many points in all features are permuted; beyond, both samples are large enough for the Gaussian limit.
PERMUTED = 20_000
# Landmarks of each kernel, and where many rows meet several kernels, whose features all correlate.
LANDMARKS, FEWER_LANDMARKS = 256, 64
# From this many points on, it pays to see whether a few features hold the Gram matrix to this accuracy.
LOW_RANK_FROM, LOW_RANK, TRACE_TOLERANCE = 3000, 300, 1e-6


def two_sample_test(
    x: Any,
    y: Any,
    kernel: Any = None,
    *,
    statistic: str = "auto",
    null: str = "auto",
    n_permutations: int = 1000,
    rng: Any = None,
) -> TestResult:
    """Test whether two samples come from one distribution, by the maximum mean discrepancy ‖μ_P − μ_Q‖.

    Parameters
    ----------
    x, y : points
        n and m points, at least 5 of each.
    kernel : Kernel, Features, "median", a sequence of kernels, or None
        None, the default: for numbers, five Laplace kernels over the range of distances, whose statistics are fused
        into one (MMD-FUSE, Biggs et al. 2023), so that no scale has to be guessed; for labels and mixed tables their
        default kernel. "median" is one RBF kernel at the median distance of the pooled sample. A sequence of kernels is
        fused like the default.
    statistic : {"auto", "unbiased", "biased", "features", "block", "linear"}
        "unbiased" and "biased" use whole Gram matrices, without or with pairs of a point with itself; O((n + m)²).
        "features" compares means of Nyström features on 256 landmarks drawn from the pooled sample, O(n + m); from
        20,000 points on 64 for each of several kernels.
        "block" and "linear" are means over blocks of √n or 2 pairs of one kernel, the least powerful (Zaremba et al.
        2013; Gretton et al. 2012, section 6). "auto" is "unbiased" up to 5000 points in all, then "features".
    null : {"auto", "permutation", "wild", "gamma", "spectral", "normal"}
        "permutation" and, for pairs (n = m), "wild" (random signs) keep the level exactly at every size. The others
        use the limit: weighted chi-squares ("spectral") or their gamma fit for "biased", weighted chi-squares for
        "features", a normal one for "block" and "linear". "auto" is exact up to 20,000 points, and the limit beyond.
    n_permutations : int
        Permutations, or draws from the limit.
    rng : None, int, numpy.random.Generator or JAX key
        Draws the permutations; `result.seed` repeats them.

    Returns
    -------
    TestResult

    Notes
    -----
    Gretton et al. (2012). All permutations are one matrix product: O((n + m)² (d + B)) for each kernel, or
    O((n + m) r (d + B)) where r features hold its Gram matrix to a millionth of its trace, which is certified.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> r = two_sample_test(rng.normal(size=(60, 2)), rng.normal(1.0, 1.0, size=(50, 2)), rng=0)
    >>> r.reject(0.05), r.pvalue < 0.01
    (True, True)
    """
    check_choice(statistic, null, CHOICES)
    check_draws(n_permutations)
    random = Rng.of(rng)
    with Door() as door:
        one = statistic in ("block", "linear") or null in ("gamma", "normal")
        one = one or (statistic, null) == ("biased", "spectral")
        samples = read_samples(
            (x, y), ("x", "y"), "median" if one and kernel is None else kernel, random.generator, door
        )
        if one and len(samples.kernels) > 1:
            raise ParameterError(f"statistic={statistic!r} with null={null!r} takes one kernel, not several.")
        statistic, null = _automatic(samples, statistic, null)
        witness = _witness(samples, x)
        if statistic in ("block", "linear"):
            value, law = _of_blocks(samples, statistic, null, n_permutations, random.generator)
        elif statistic == "features":
            value, law, witness = _of_features(samples, null, n_permutations, random.generator, door, witness)
        elif null in ("gamma", "spectral"):
            value, law = _limit(samples, null, n_permutations, random.generator)
        else:
            value, law = _whole(samples, statistic == "unbiased", null, n_permutations, random.generator, door)
        return TestResult(
            statistic=value,
            pvalue=law.pvalue(value),
            null=law,
            kernel=samples.kernel,
            method=f"two-sample test, {_label(samples, statistic, null)}",
            sizes=samples.sizes,
            seed=random.seed,
            warnings=_warnings(law, n_permutations),
            witness=witness,
        )


def _automatic(samples: Samples, statistic: str, null: str) -> tuple[str, str]:
    """The statistic and the null that "auto" stands for."""
    size = sum(samples.sizes)
    if statistic == "auto":
        fitting = [name for name, nulls in CHOICES.items() if name != "auto" and null in nulls]
        large = size > WHOLE or any(isinstance(kernel, FeatureKernel) for kernel in samples.kernels)
        large = large or (null == "spectral" and len(samples.kernels) > 1)
        preferred = "features" if large else "biased" if null == "spectral" else "unbiased"
        statistic = preferred if null == "auto" or preferred in fitting else fitting[0]
    if statistic in ("unbiased", "biased") and size > MOST_POINTS:
        raise InputError(
            f"x and y have {size} points together, and whole Gram matrices are for at most {MOST_POINTS}: "
            "pass statistic='features' (or 'auto'), or draw a sample."
        )
    if null == "wild" and len(set(samples.sizes)) > 1:
        raise ShapeError(
            f"null='wild' exchanges pairs, and x has {samples.sizes[0]} points and y {samples.sizes[1]}: "
            "pass null='permutation'."
        )
    if null == "auto" and statistic in ("unbiased", "biased", "features"):
        null = "permutation" if statistic != "features" or size <= PERMUTED else "spectral"
    return statistic, null


def _whole(
    samples: Samples, unbiased: bool, null: str, n_draws: int, generator: np.random.Generator, door: Door
) -> tuple[float, Null]:
    """The fused statistic from every kernel's Gram matrix, under permutations or exchanges within pairs."""
    n, m = samples.sizes
    flips = null == "wild"
    z = signs(n, n_draws, generator) if flips else assignments(n, m, n_draws, generator)
    values, squares = [], []
    for kernel in samples.kernels:
        if flips:
            gram = gram_matrix(kernel, samples.pooled)
            values.append(flipped_mmd(gram, z, unbiased))
            squares.append(CentredGram(gram).mean_square if len(samples.kernels) > 1 else 1.0)
        else:
            centred = _centred(kernel, samples.pooled, door)
            values.append(permuted_mmd(centred, z, n, unbiased))
            squares.append(centred.mean_square)
    return _law(values, squares, samples, "random signs" if flips else "permutation")


def _law(values: list[np.ndarray], squares: list[float], samples: Samples, kind: str) -> tuple[float, Null]:
    smaller = min(samples.sizes)
    result = fused(np.stack(values), squares, np.sqrt(smaller * (smaller - 1.0)))
    return float(result[0]), Null(kind, result[1:], exact=True)


def _centred(kernel: Kernel, pooled: Any, door: Door) -> Centred:
    """The centred Gram matrix, by few features where these hold it."""
    size = count(pooled)
    if size >= LOW_RANK_FROM:
        some = rows(pooled, slice(None, None, size // LOW_RANK))
        if PivotedCholesky.of_points(kernel, some, door, TRACE_TOLERANCE, LOW_RANK // 3).report.converged:
            low = PivotedCholesky.of_points(kernel, pooled, door, TRACE_TOLERANCE, LOW_RANK)
            if low.report.converged:
                return CentredFeatures(np.concatenate(list(transform_in_chunks(low, pooled))))
    return CentredGram(gram_matrix(kernel, pooled))


def _of_blocks(
    samples: Samples, statistic: str, null: str, n_draws: int, generator: np.random.Generator
) -> tuple[float, Null]:
    n = min(samples.sizes)
    x, y = (rows(samples[i], slice(0, n)) for i in (0, 1))
    return block_test(samples.kernels[0], x, y, block_length(statistic, n), null, n_draws, generator)


def _of_features(
    samples: Samples, null: str, n_draws: int, generator: np.random.Generator, door: Door, witness: Any
) -> tuple[float, Null, Any]:
    n, m = samples.sizes
    permuted = null == "permutation"
    dtype = np.float64 if permuted else working_precision(samples.pooled)
    number = LANDMARKS if permuted or len(samples.kernels) == 1 else FEWER_LANDMARKS
    features = landmark_features(samples.kernels, samples.pooled, number, generator, door, dtype)
    if permuted:
        z = assignments(n, m, n_draws, generator)
        members = [
            CentredFeatures(np.concatenate(list(transform_in_chunks(f, samples.pooled)))) for f in features.members
        ]
        values = [permuted_mmd(member, z, n, unbiased=True) for member in members]
        return *_law(values, [member.mean_square for member in members], samples, "permutation"), witness
    means = [FeatureMeans.of(features, [samples[i]], dtype) for i in (0, 1)]
    sizes = [member.size for member in features.members]
    witness = FeatureEmbedding(features, means[0].mean - means[1].mean)
    return *gaussian_limit(*means, sizes, n_draws, generator), witness


def _limit(samples: Samples, kind: str, n_draws: int, generator: np.random.Generator) -> tuple[float, Null]:
    """nm/(n + m) × biased MMD² and its weighted chi-squares, or their gamma fit."""
    n, m = samples.sizes
    gram = CentredGram(gram_matrix(samples.kernels[0], samples.pooled))
    z = np.zeros((1, n + m), np.float32)
    z[0, :n] = 1
    value = n * m / (n + m) * float(permuted_mmd(gram, z, n, unbiased=False)[0])
    centred = gram.centred.astype(float) / (n + m)
    if kind == "gamma":
        return value, gamma_null(float(np.trace(centred)), 2 * float(np.sum(centred**2)), n_draws, generator)
    return value, spectral_null(np.linalg.eigvalsh(centred), n_draws, generator)


def _label(samples: Samples, statistic: str, null: str) -> str:
    several = f" fused over {len(samples.kernels)} kernels" if len(samples.kernels) > 1 else ""
    if statistic == "features":
        return f"unbiased MMD² of features{several}"
    if statistic in ("block", "linear"):
        length = block_length(statistic, min(samples.sizes))
        return f"mean MMD² over blocks of {length} pairs"
    if null in ("gamma", "spectral"):
        return "biased MMD² × nm/(n + m)"
    return f"{statistic} MMD²{several}"


def _warnings(law: Null, n_permutations: int) -> tuple[str, ...]:
    found = []
    if np.ptp(law.draws) == 0:
        found.append("the statistic is the same under every permutation: the data cannot tell the samples apart.")
    if law.exact and n_permutations < 100:
        found.append(f"with {n_permutations} permutations no p-value can be below {1 / (n_permutations + 1):.2g}.")
    return tuple(found)


def _witness(samples: Samples, x: Any) -> PointEmbedding:
    """μ_P − μ_Q; of several kernels under the one in the middle."""
    kernel = samples.kernels[len(samples.kernels) // 2]
    n, m = samples.sizes
    return PointEmbedding(kernel, samples.pooled, np.r_[np.full(n, 1 / n), np.full(m, -1 / m)], is_flat(x, kernel))
