"""Two-sample statistics from full Gram matrices, and their null distributions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from meanmap.core.door import Door
from meanmap.core.points import count, rows
from meanmap.features.base import transformed
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.limits import gamma_null, spectral_null
from meanmap.stats.permutations import (
    Centred,
    CentredFeatures,
    CentredGram,
    Permuted,
    flipped_mmd,
    permuted_mmd,
    root_mean_square,
)
from meanmap.stats.samples.feature_statistics import centred_features
from meanmap.stats.samples.samples import Outcome, Samples, exact_test
from meanmap.stats.samples.scores import Scores, flipped_forms, permuted_forms
from meanmap.stats.samples.units import Forms, Units

__all__ = ["centred_grams", "feature_test", "gram_test", "limit_test"]

# With more points than this it saves time to check whether a few features approximate the Gram matrix to this accuracy.
LOW_RANK_FROM, LOW_RANK, TRACE_TOLERANCE = 3000, 300, 1e-6


def gram_test(
    samples: Samples, unbiased: bool, kind: str, n_draws: int, generator: np.random.Generator, door: Door
) -> Outcome:
    """The fused statistic from the Gram matrices of all kernels, under permutations or swaps within pairs: exact."""
    n, pooled = samples.sizes[0], samples.pooled
    if kind == "permutation":
        # Biased statistics include pairs of rows within units.
        units = Units.of(samples.sizes, generator) if unbiased else Units.of_rows(samples.sizes)
        held = centred_grams(samples.kernels, units, pooled, door)
        return _permuted(samples, units, held, unbiased, n_draws, generator)
    z = Exchange.of(n).signs(n_draws, generator)
    grams = (gram_matrix(kernel, pooled) for kernel in samples.kernels)
    found = ((flipped_mmd(gram, z, unbiased), root_mean_square(gram)) for gram in grams)

    def of_columns(scores: Scores) -> tuple[Permuted, Forms]:
        return flipped_mmd(scores.of_pairs, z, True), flipped_forms(z)

    return exact_test(samples, found, samples.rate, of_columns, "random signs")


def feature_test(samples: Samples, n_draws: int, generator: np.random.Generator, door: Door) -> Outcome:
    """The fused statistic of the features of samples in memory, under permutations."""
    units = Units.of(samples.sizes, generator)
    held = centred_features(samples, units, generator, door)
    return _permuted(samples, units, held, True, n_draws, generator)


def _permuted(
    samples: Samples,
    units: Units,
    held: Iterable[tuple[Centred, float]],
    unbiased: bool,
    n_draws: int,
    generator: np.random.Generator,
) -> Outcome:
    """The fused statistic under permutations, from the Gram matrix of units under each kernel and its norm.

    z has a row for the data and each draw: 1 for units of the first sample, 0 for others.
    """
    n = units.sizes[0]
    z = (units.exchanged(n_draws, generator) == 0).astype(np.float32)
    found = ((permuted_mmd(centred, z, n, unbiased), norm) for centred, norm in held)

    def of_columns(scores: Scores) -> tuple[Permuted, Forms]:
        pairs = scores.pairs(generator, units)
        return permuted_mmd(pairs, z, n, unbiased=True), units.forms(permuted_forms(z, n))

    return exact_test(samples, found, samples.rate, of_columns, "permutation")


def centred_grams(
    kernels: Sequence[Kernel], units: Units, pooled: object, door: Door
) -> Iterator[tuple[Centred, float]]:
    """The centred Gram matrix of units under each kernel, and the norm of the Gram matrix of rows."""
    # One array holds the matrices of all kernels in turn: allocating memory costs more than filling it.
    space = np.empty((count(pooled), count(pooled)))
    return (_centred_gram(kernel, units, pooled, door, space) for kernel in kernels)


def _centred_gram(kernel: Kernel, units: Units, pooled: object, door: Door, space: np.ndarray) -> tuple[Centred, float]:
    """The centred Gram matrix of one kernel, from a few features if these approximate it well."""
    size = count(pooled)
    if size > LOW_RANK_FROM:
        some = rows(pooled, slice(None, None, size // LOW_RANK))
        if PivotedCholesky.of_points(kernel, some, door, TRACE_TOLERANCE, LOW_RANK // 3).report.converged:
            low = PivotedCholesky.of_points(kernel, pooled, door, TRACE_TOLERANCE, LOW_RANK)
            if low.report.converged:
                rows_alone = CentredFeatures(transformed(low, pooled))
                whole = rows_alone if units.alone else CentredFeatures(units.features(low, pooled))
                return whole, rows_alone.norm
    gram = gram_matrix(kernel, rows(pooled, units.order), out=space)
    found = CentredGram(units.gram(gram))
    return found, found.norm if units.alone else root_mean_square(gram)


def limit_test(samples: Samples, kind: str, n_draws: int, generator: np.random.Generator) -> Outcome:
    """The statistic nm/(n + m) × biased MMD², and its limit: weighted chi-squares or their gamma fit."""
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
