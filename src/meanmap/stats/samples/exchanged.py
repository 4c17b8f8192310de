"""Tests of two and more samples under a design: the statistic and its permutations."""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from meanmap.core.door import Door
from meanmap.core.points import rows, slices
from meanmap.features.base import transformed
from meanmap.kernels.gram import gram_matrix
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.permutations import BLOCK, SINGLE, SQUARED, Permuted
from meanmap.stats.samples.feature_statistics import FEWER_LANDMARKS, LANDMARKS, landmark_features
from meanmap.stats.samples.samples import Outcome, Samples, exact_test
from meanmap.stats.samples.scores import Scores
from meanmap.stats.samples.units import Forms
from meanmap.stats.settings import PERMUTED, WHOLE

__all__ = ["design_test"]


def design_test(
    samples: Samples, design: Exchange, n_draws: int, generator: np.random.Generator, door: Door
) -> tuple[Outcome, tuple[str, ...]]:
    """The fused statistic of samples under the permutations of a design, and notes.

    Full Gram matrices are used up to 3000 rows in all; beyond, features of 512 landmarks from the pooled sample,
    and with more than 20,000 rows of as many as for limiting null distributions.
    """
    doubts = design.doubts_of_labels(design.of_units(samples.groups))
    design = design.bundled(samples.groups, generator)
    labels = design.of_units(samples.groups)
    exchanged = design.labels(labels, n_draws, generator)
    spreads = _spreads(samples, design, exchanged, generator, door)

    def around(found: Permuted) -> Permuted:
        # The mean over all permutations, including the identity, does not depend on which of them is the identity.
        return Permuted(found.values - found.values.mean(), found.rounding)

    of_kernels = ((around(found), float(found.values.std())) for found in islice(spreads, len(samples.kernels)))

    def of_columns(_: Scores) -> tuple[Permuted, Forms]:
        return around(next(spreads)), exchanged_forms(exchanged, design)

    return exact_test(samples, of_kernels, 1.0, of_columns, "exchanges"), doubts


def exchanged_forms(labels: np.ndarray, design: Exchange) -> Forms:
    """Statistics of scores under the permutations of a design: the spread of the groups' sums, divided by its mean."""

    def forms(scores: np.ndarray) -> np.ndarray:
        sums = design.collapsed(scores)
        found = _exchanged_spread(lambda z: (z.astype(float) @ sums) ** 2, 0.0, labels, design).values
        return found * ((int(labels.max())) / np.maximum(found.mean(axis=0), np.finfo(float).tiny))

    return forms


def _exchanged_spread(
    forms: Callable[[np.ndarray], np.ndarray], rounding: float, labels: np.ndarray, design: Exchange
) -> Permuted:
    """The distance between the groups, for each row of labels of units.

    With S_g = Σ_s N_gs (μ_gs − μ_s), summed over strata s, in which group g has the mass N_gs and the mean μ_gs: for
    two groups ‖S‖² / (Σ_s N_1s N_2s / N_s)², the squared norm of the mean difference within strata, and for more Σ_g
    ‖S_g‖² / N_g. `forms` gives ‖S_g‖² for rows of zeros and ones that indicate membership in the group. For pairs,
    which are strata of two, this is the statistic of random signs.
    """
    k, least = int(labels.max()) + 1, np.inf
    values: Any = 0.0
    units, strata = np.arange(labels.shape[1]), design.strata_of_units
    masses = csr_array((design.masses, (strata, units)))
    total = np.maximum(masses.sum(axis=1), np.finfo(float).tiny)
    for g in range(1 if k == 2 else k):
        squares, held = [], []
        for part in slices(len(labels), BLOCK):
            z = (labels[part] == g).astype(np.float32)
            squares.append(forms(z))
            held.append((masses @ z.T).T)
        # The masses of groups differ between draws if units differ in mass.
        mass = np.concatenate(held)
        size = np.sum(mass * (total - mass) / total, axis=1) ** 2 if k == 2 else mass.sum(axis=1)
        positive = size > 0
        share = np.divide(1.0, size, where=positive, out=np.zeros(len(size)))
        values = values + (np.concatenate(squares).T * share).T
        least = min(least, float(size[positive].min(initial=np.inf)))
    return Permuted(values, rounding / least)


def _spreads(
    samples: Samples, design: Exchange, labels: np.ndarray, generator: np.random.Generator, door: Door
) -> Iterator[Permuted]:
    """The statistic under each kernel, and for pairs of columns."""
    scores = samples.scores
    if sum(samples.sizes) <= WHOLE:
        grams = (np.asarray(gram_matrix(kernel, samples.pooled), float) for kernel in samples.kernels)
        for gram in grams if scores is None else chain(grams, [scores.of_pairs]):
            half = design.collapsed(gram)
            products = design.collapsed(half.T).astype(np.float32)
            yield _exchanged_spread(
                lambda z, m=products: np.einsum("ij,ij->i", z, z @ m, dtype=np.float64),
                SINGLE * float(np.abs(products).sum(dtype=float)) / 4,
                labels,
                design,
            )
        return
    number = LANDMARKS if sum(samples.sizes) <= PERMUTED else FEWER_LANDMARKS[len(samples.kernels) > 1]
    features = landmark_features(samples.kernels, samples.pooled, number, generator, door, np.float64)
    maps: Any = (
        lambda chosen, member=member: transformed(member, rows(samples.pooled, chosen)) for member in features.members
    )
    for values in maps if scores is None else chain(maps, [scores.random_pairs(generator)]):
        phi = design.collapsed_in_parts(values).astype(np.float32)
        rounding = SQUARED * float(np.sum(phi.astype(float) ** 2))
        yield _exchanged_spread(
            lambda z, f=phi: np.square(z @ f).sum(axis=1, dtype=np.float64), rounding, labels, design
        )
