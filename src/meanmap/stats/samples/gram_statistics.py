"""Two-sample statistics from whole Gram matrices, and their null distributions."""

from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.points import count, rows
from meanmap.features.base import transformed
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.stats.collections import BEHIND, fused
from meanmap.stats.limits import gamma_null, spectral_null
from meanmap.stats.permutations import (
    Centred,
    CentredFeatures,
    CentredGram,
    assignments,
    flipped_mmd,
    permuted_mmd,
    root_mean_square,
    signs,
)
from meanmap.stats.samples.columns import column_statistics
from meanmap.stats.samples.samples import Outcome, Samples

__all__ = ["centred_gram", "gram_test", "limit_test"]

# From this many points on, it pays to see whether a few features hold the Gram matrix to this accuracy.
LOW_RANK_FROM, LOW_RANK, TRACE_TOLERANCE = 3000, 300, 1e-6


def gram_test(
    samples: Samples, unbiased: bool, kind: str, n_draws: int, generator: np.random.Generator, door: Door
) -> Outcome:
    """The fused statistic from every kernel's Gram matrix, under permutations or exchanges within pairs: exact."""
    n, m = samples.sizes
    flips = kind == "wild"
    z = signs(n, n_draws, generator) if flips else assignments(n, m, n_draws, generator)
    found, norms = [], []
    for kernel in samples.kernels:
        if flips:
            gram = gram_matrix(kernel, samples.pooled)
            found.append(flipped_mmd(gram, z, unbiased))
            norms.append(root_mean_square(gram))
        else:
            centred = centred_gram(kernel, samples.pooled, door)
            found.append(permuted_mmd(centred, z, n, unbiased))
            norms.append(centred.norm)
    alone = () if flips else samples.alone
    ours, theirs = column_statistics(alone, samples.pooled, lambda gram: permuted_mmd(gram, z, n, unbiased))
    result, strongest = fused([*found, *ours], [*norms, *theirs], samples.rate, [BEHIND] * len(alone))
    return Outcome.exact(result, "random signs" if flips else "permutation", strongest)


def centred_gram(kernel: Kernel, pooled: Any, door: Door) -> Centred:
    """The centred Gram matrix, by few features where these hold it."""
    size = count(pooled)
    if size >= LOW_RANK_FROM:
        some = rows(pooled, slice(None, None, size // LOW_RANK))
        if PivotedCholesky.of_points(kernel, some, door, TRACE_TOLERANCE, LOW_RANK // 3).report.converged:
            low = PivotedCholesky.of_points(kernel, pooled, door, TRACE_TOLERANCE, LOW_RANK)
            if low.report.converged:
                return CentredFeatures(transformed(low, pooled))
    return CentredGram(gram_matrix(kernel, pooled))


def limit_test(samples: Samples, kind: str, n_draws: int, generator: np.random.Generator) -> Outcome:
    """nm/(n + m) × biased MMD² and its weighted chi-squares, or their gamma fit."""
    n, m = samples.sizes
    gram = gram_matrix(samples.kernels[0], samples.pooled)
    z = np.zeros((1, n + m), np.float32)
    z[0, :n] = 1
    found = permuted_mmd(CentredGram(gram), z, n, unbiased=False)
    weight = n * m / (n + m)
    means = gram.mean(axis=1)
    centred = (gram - means[:, None] - means[None, :] + means.mean()) / (n + m)
    if kind == "gamma":
        null = gamma_null(float(np.trace(centred)), 2 * float(np.sum(centred**2)), n_draws, generator)
    else:
        null = spectral_null(np.linalg.eigvalsh(centred), n_draws, generator)
    return Outcome(weight * float(found.values[0]), replace(null, rounding=weight * found.rounding))
