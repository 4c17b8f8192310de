"""Do several samples come from one distribution?"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.pieces.sources import is_stream
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import in_memory
from meanmap.core.tables.schema import admitted
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.features.base import transformed
from meanmap.features.states.passes import one_pass
from meanmap.learning.default import is_default
from meanmap.stats.collections import BEHIND, fused
from meanmap.stats.designs.reading import design_of, from_strata, without_design
from meanmap.stats.permutations import Centred, CentredFeatures, Permuted
from meanmap.stats.result import TestResult, flat
from meanmap.stats.samples.columns import column_statistics
from meanmap.stats.samples.exchanged import design_test
from meanmap.stats.samples.feature_statistics import LANDMARKS, landmark_features
from meanmap.stats.samples.gram_statistics import centred_gram
from meanmap.stats.samples.k_sample_plan import RATE, KSamplePlan
from meanmap.stats.samples.samples import Outcome, Samples, read_samples
from meanmap.stats.samples.samples_plan import begun, is_long
from meanmap.stats.samples.several import several_samples
from meanmap.stats.settings import LEAST_POINTS, WHOLE, check_draws
from meanmap.stats.texts import read_texts

__all__ = ["k_sample_test"]


@own_words
def k_sample_test(
    samples: Data,
    kernel: KernelLike = None,
    *,
    by: str | None = None,
    within: Data = None,
    clusters: Data = None,
    weights: Data = None,
    n_permutations: int = 1000,
    scale: bool = True,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> TestResult:
    """Test whether several samples come from one distribution: an analysis of variance of their mean embeddings.

    The statistic is Σ_g n_g ‖μ_g − μ̄‖² less its mean under permutations, with μ̄ the embedding of the pooled sample: for
    two samples nm/(n + m) times MMD², and HSIC between the points and their labels for any number.

    Parameters
    ----------
    samples : sequence of points, or mapping of name to points
        Two samples or more, at least 5 points each; or with `by` one table. Samples may come in pieces, as in
        [`two_sample_test`][], and the p-value is the same bit by bit wherever the rows lie ([`KSamplePlan`][]).
    by : str, optional
        The column of the table whose values tell the samples apart.
    within, clusters, weights : column name or array, optional
        Which rows may be exchanged, and how much each counts, as in [`two_sample_test`][].
    kernel : Kernel, "median", "learned", a sequence of kernels, or None
        As in [`two_sample_test`][]: by default five Laplace kernels, fused, and one more for each of 2 to 32 columns up
        to 20,000 points; label-blind.
    n_permutations : int
        Permutations of the labels, which keep the level exactly.
    scale : bool
        As in [`two_sample_test`][]: whether each column of numbers is measured in its own unit.
    missing : {"raise", "drop", "category"}
        What happens to missing values: an error; the rows are left out, which the warnings tell by column; or
        missing labels are a label of their own.
    kinds : mapping of column to kind, optional
        What columns mean where their data type does not say, such as {"zip": "label"}: see [`Schema.of`][].
    rng : None, int, numpy.random.Generator or JAX key
        Draws the permutations; `result.seed` repeats them.

    Notes
    -----
    Up to 3000 points in all the Gram matrices are whole, O(N² (d + k B)) for N points, k samples and B permutations.
    Beyond, r random landmarks make features: O(N r (d + k B)), the level still exact. Beyond 20,000 the p-value is that
    of the limit, in which the statistic is a sum of k − 1 squared Gaussian differences of feature means: one pass,
    O(N r d), with kernels, landmarks and correlations of features from 16,384 rows.

    References
    ----------
    Gretton et al. (2012) for the discrepancy; Panda et al. (2019, arXiv:1910.08883) for k-sample tests as tests of
    independence.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> heights = {name: rng.normal(mean, 1.0, size=40) for name, mean in (("a", 0.0), ("b", 0.0), ("c", 1.0))}
    >>> k_sample_test(heights, rng=0).reject(0.05)
    True
    """
    check_draws(n_permutations)
    random = Rng.of(rng)
    names, listed, told = several_samples(samples, by, missing, kinds)
    known = kinds
    missing, kinds = (missing, kinds) if by is None else ("raise", None)
    if all(given is None for given in (within, clusters, weights)) and is_long(listed):
        drawn = not any(map(is_stream, listed))
        listed, whole = begun(listed, names, missing, kinds)
        if whole is not None:
            plan = KSamplePlan.made(listed, names, kernel, scale, missing, kinds, random, drawn)
            result = plan.result(one_pass(plan, KSamplePlan.state, whole, names), n_permutations)
            return replace(result, warnings=(*result.warnings, *told))
    listed, more = admitted(list(map(in_memory, listed)), names, missing, kinds, least=LEAST_POINTS)
    design = design_of(listed, names, within, clusters, weights, missing, by)
    listed = without_design(listed, names, within, clusters, weights)
    listed, heard = read_texts(listed, names, kernel, known)
    told += heard
    listed = from_strata(listed, names, design) if is_default(kernel) else listed
    with Door() as door:
        read = read_samples(listed, names, kernel, random.generator, door, scale)
        if design is not None:
            outcome, doubts = design_test(read, design, n_permutations, random.generator, door)
        else:
            outcome, doubts = _permutation_test(read, n_permutations, random.generator, door), ()
    label = "spread between mean embeddings"
    several = read.fused(alone=design is None)
    return TestResult(
        statistic=outcome.statistic,
        pvalue=outcome.null.pvalue(outcome.statistic),
        null=outcome.null,
        kernel=read.kernel,
        method=f"{len(names)}-sample test, {design.label(label) if design else label}{several}",
        sizes=read.sizes,
        seed=random.seed,
        warnings=(*flat(outcome.null, outcome.statistic), *told, *more, *doubts, *read.doubts),
    )


def _permutation_test(samples: Samples, n_draws: int, generator: np.random.Generator, door: Door) -> Outcome:
    """From whole Gram matrices of few points, from features of more, under permutations of the labels: exact."""
    labels = _permuted_labels(samples.sizes, n_draws, generator)
    if sum(samples.sizes) <= WHOLE:
        held: Iterable[Centred] = (centred_gram(kernel, samples.pooled, door) for kernel in samples.kernels)
    else:
        features = landmark_features(samples.kernels, samples.pooled, LANDMARKS, generator, door, np.float64)
        held = (CentredFeatures(transformed(member, samples.pooled)) for member in features.members)
    found, norms = [], []
    for centred in held:
        found.append(between_groups(centred, labels, samples.sizes))
        norms.append(centred.norm)
    ours, theirs = column_statistics(
        samples.alone, samples.pooled, lambda gram: between_groups(gram, labels, samples.sizes)
    )
    result, _ = fused([*found, *ours], [*norms, *theirs], RATE, [BEHIND] * len(ours))
    return Outcome.exact(result, "permutation")


def _permuted_labels(sizes: tuple[int, ...], n_permutations: int, generator: np.random.Generator) -> np.ndarray:
    """Who is in which sample, (1 + B, N): the data first, then permutations."""
    labels = np.empty((n_permutations + 1, sum(sizes)), np.int32)
    labels[:] = np.repeat(np.arange(len(sizes)), sizes)
    labels[1:] = generator.permuted(labels[1:], axis=1)
    return labels


def between_groups(gram: Centred, labels: np.ndarray, sizes: tuple[int, ...]) -> Permuted:
    """Σ_g z_gᵀ K̃ z_g / n_g − (k − 1) tr K̃ / (N − 1) for each row of labels: zero on average over permutations."""
    total: Any = 0.0
    rounding = 0.0
    for g, size in enumerate(sizes):
        z = (labels == g).astype(np.float32)
        total = total + (gram.forms(z) + gram.own(z)) / size
        rounding += gram.rounding(size) / size
    return Permuted(total, rounding)
