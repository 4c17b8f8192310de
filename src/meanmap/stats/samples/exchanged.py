"""Two and more samples under a design: the statistic and its exchanges."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array

from meanmap.core.door import Door
from meanmap.core.errors import InputError
from meanmap.features.base import transformed
from meanmap.kernels.gram import gram_matrix
from meanmap.stats.collections import fused
from meanmap.stats.designs.design import Design
from meanmap.stats.permutations import BLOCK, SINGLE, SQUARED, Permuted
from meanmap.stats.samples.feature_statistics import LANDMARKS, landmark_features
from meanmap.stats.samples.samples import Outcome, Samples
from meanmap.stats.settings import WHOLE

__all__ = ["design_test", "exchanged_spread"]

Forms = Callable[[np.ndarray], np.ndarray]


def design_test(
    samples: Samples, design: Design, n_draws: int, generator: np.random.Generator, door: Door
) -> tuple[Outcome, tuple[str, ...]]:
    """The fused statistic of samples under the exchanges of a design, and what is to be told.

    Whole Gram matrices up to 3000 rows in all, features of 512 landmarks beyond, chosen from the pooled sample.
    """
    groups = np.repeat(np.arange(len(samples.sizes)), samples.sizes)
    labels = _labels_of_units(design, groups)
    doubts = design.doubts_of_labels(labels)
    exchanged = design.relabelled(labels, n_draws, generator)
    found, norms = [], []
    for values, rounding in _spreads(samples, design, exchanged, generator, door):
        # The mean over the exchanges, the data among them, is the same whichever of them is the data.
        found.append(Permuted(values - values.mean(), rounding))
        norms.append(float(values.std()))
    result, strongest = fused(found, norms, 1.0)
    return Outcome.exact(result, "exchanges", strongest), doubts


def exchanged_spread(forms: Forms, rounding: float, labels: np.ndarray, design: Design) -> Permuted:
    """How far the groups lie apart, for each row of labels of units.

    With S_g = Σ_s N_gs (μ_gs − μ_s), summed over strata s, in which group g has the mass N_gs and the mean μ_gs: for
    two groups ‖S‖² / (Σ_s N_1s N_2s / N_s)², the squared norm of the mean difference within strata, and for more
    Σ_g ‖S_g‖² / N_g. `forms` gives ‖S_g‖² for rows of zeros and ones, for who is in the group. Of pairs, strata of two,
    this is the statistic of random signs.
    """
    k, values, least = int(labels.max()) + 1, np.zeros(len(labels)), np.inf
    units, strata = np.arange(labels.shape[1]), design.strata_of_units
    masses = csr_array((design.masses, (strata, units)))
    total = np.maximum(masses.sum(axis=1), np.finfo(float).tiny)
    for g in range(1 if k == 2 else k):
        z = (labels == g).astype(np.float32)
        squares = np.concatenate([forms(z[start : start + BLOCK]) for start in range(0, len(z), BLOCK)])
        held = (masses @ z.T).T
        # These differ from draw to draw where units do not have one mass.
        size = np.sum(held * (total - held) / total, axis=1) ** 2 if k == 2 else held.sum(axis=1)
        positive = size > 0
        values[positive] += squares[positive] / size[positive]
        least = min(least, float(size[positive].min(initial=np.inf)))
    return Permuted(values, rounding / least)


def _labels_of_units(design: Design, groups: np.ndarray) -> np.ndarray:
    """The group of each unit; refused where one has rows of two groups."""
    labels = groups[design.first_rows]
    if (labels[design.units] != groups).any():
        raise InputError("a cluster has rows of two groups, which are exchanged inside of it: pass it as within=.")
    return labels


def _spreads(
    samples: Samples, design: Design, labels: np.ndarray, generator: np.random.Generator, door: Door
) -> Iterator[Permuted]:
    """The statistic under every kernel."""
    if sum(samples.sizes) <= WHOLE:
        for kernel in samples.kernels:
            half = design.collapsed(np.asarray(gram_matrix(kernel, samples.pooled), float))
            products = design.collapsed(half.T).astype(np.float32)
            yield exchanged_spread(
                lambda z, m=products: np.einsum("ij,ij->i", z, z @ m, dtype=np.float64),
                SINGLE * float(np.abs(products).sum(dtype=float)) / 4,
                labels,
                design,
            )
        return
    features = landmark_features(samples.kernels, samples.pooled, LANDMARKS, generator, door, np.float64)
    for member in features.members:
        phi = design.collapsed(transformed(member, samples.pooled)).astype(np.float32)
        rounding = SQUARED * float(np.sum(phi.astype(float) ** 2))
        yield exchanged_spread(
            lambda z, f=phi: np.square(z @ f).sum(axis=1, dtype=np.float64), rounding, labels, design
        )
