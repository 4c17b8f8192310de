"""Do several samples come from one distribution?"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.progress import track
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.schema import admitted
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.features.base import transformed
from meanmap.linalg.moments import Moments
from meanmap.stats.collections import fused
from meanmap.stats.designs.reading import design_of, from_strata, grouped, without_design
from meanmap.stats.permutations import SQUARED, Centred, CentredFeatures, Permuted
from meanmap.stats.result import Null, TestResult, flat
from meanmap.stats.samples.exchanged import design_test
from meanmap.stats.samples.feature_statistics import LANDMARKS, feature_map, landmark_features
from meanmap.stats.samples.gram_statistics import centred_gram
from meanmap.stats.samples.samples import Outcome, Samples, read_samples
from meanmap.stats.settings import FEW_FOR_A_LIMIT, LEAST_POINTS, PERMUTED, WHOLE, check_draws

__all__ = ["k_sample_test", "several_samples"]

# λ of the soft maximum over kernels: that of MMD-FUSE for two samples of one size, in the unit of this statistic.
RATE = 2.0


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
        Two samples or more, at least 5 points each; or with `by` one table.
    by : str, optional
        The column of the table whose values tell the samples apart.
    within, clusters, weights : column name or array, optional
        Which rows may be exchanged, and how much each counts, as in [`two_sample_test`][].
    kernel : Kernel, "median", "learned", a sequence of kernels, or None
        As in [`two_sample_test`][]: by default five Laplace kernels, fused; label-blind.
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
    O(N r (d + r)).

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
    design = design_of(listed, names, within, clusters, weights, missing, by)
    listed = without_design(listed, names, within, clusters, weights)
    listed = from_strata(listed, names, design) if kernel is None or isinstance(kernel, str) else listed
    with Door() as door:
        read = read_samples(listed, names, kernel, random.generator, door, scale)
        if design is not None:
            outcome, more = design_test(read, design, n_permutations, random.generator, door)
            told += more
        else:
            test = _permutation_test if sum(read.sizes) <= PERMUTED else _limit_test
            outcome = test(read, n_permutations, random.generator, door)
    doubts = flat(outcome.null, outcome.statistic) + _doubts(outcome.null, names, read.sizes)
    label = "spread between mean embeddings"
    several = f" fused over {len(read.kernels)} kernels" if len(read.kernels) > 1 else ""
    return TestResult(
        statistic=outcome.statistic,
        pvalue=outcome.null.pvalue(outcome.statistic),
        null=outcome.null,
        kernel=read.kernel,
        method=f"{len(names)}-sample test, {design.label(label) if design else label}{several}",
        sizes=read.sizes,
        seed=random.seed,
        warnings=(*doubts, *told, *read.doubts),
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
    return Outcome.exact(fused(found, norms, RATE)[0], "permutation")


def _limit_test(samples: Samples, n_draws: int, generator: np.random.Generator, door: Door) -> Outcome:
    """From the means of features, in one pass over each sample, under their Gaussian limit."""
    mapped = feature_map(samples, generator, door)
    groups = [mapped.sums([samples[g]]).moments() for g in track(range(len(samples.sizes)), "samples")]
    n, k = sum(samples.sizes), len(groups)
    within = np.sum([(group.n - 1) * group.covariance() for group in groups], axis=0) / (n - k)
    together = Moments.merged(groups)
    mean, second = together.mean, together.second
    values, vectors = np.linalg.eigh(within)
    root = vectors * np.sqrt(np.maximum(values, 0))
    # The statistic is a sum of squares for the data, of k group means, and for each draw, of k − 1 Gaussian vectors.
    data = np.stack([np.sqrt(group.n) * (group.mean - mean) for group in groups])
    draws = np.einsum("ij,gbj->gbi", root, generator.standard_normal((k - 1, n_draws, len(values))), optimize=True)
    found, norms, start = [], [], 0
    for size in mapped.sizes:
        part = slice(start, start + size)
        start += size
        trace = (k - 1) * float(np.trace(within[part, part]))
        squares = np.r_[np.sum(data[:, part] ** 2), np.sum(draws[..., part] ** 2, axis=(0, 2))]
        found.append(Permuted(squares - trace, SQUARED * trace))
        norms.append(float(np.sqrt(np.sum(second[part, part] ** 2))))
    result, _ = fused(found, norms, RATE)
    law = Null("weighted chi-squares", result.values[1:], exact=False, rounding=result.rounding)
    return Outcome(float(result.values[0]), law)


def several_samples(
    samples: Data, by: str | None, missing: str, kinds: Mapping[str, Any] | None
) -> tuple[list[str], list[Any], tuple[str, ...]]:
    """What samples are called, the samples as they came or as the groups of one table, and what is to be told."""
    if by is not None:
        groups, told = grouped(samples, by, missing, kinds)
        return list(groups), list(groups.values()), told
    names, listed = _named(samples)
    listed, told = admitted(listed, names, missing, kinds, least=LEAST_POINTS)
    return names, listed, told


def _named(samples: Data) -> tuple[list[str], list[Any]]:
    """Names for errors, and the samples."""
    if isinstance(samples, Mapping):
        names, listed = [str(name) for name in samples], list(samples.values())
    elif isinstance(samples, Iterable) and not hasattr(samples, "shape") and not hasattr(samples, "columns"):
        listed = list(samples)
        names = [f"samples[{i}]" for i in range(len(listed))]
    else:
        raise KindError("samples is one array or table; expected a list of samples, such as [x, y, z].")
    if len(listed) < 2:
        raise InputError(f"samples has {len(listed)} sample(s); expected at least two to compare.")
    return names, listed


def _doubts(law: Null, names: list[str], sizes: tuple[int, ...]) -> tuple[str, ...]:
    """What is said of a limit where a sample is small."""
    if law.exact or min(sizes) >= FEW_FOR_A_LIMIT:
        return ()
    few = f"{names[int(np.argmin(sizes))]} has {min(sizes)} points, and the p-value is that of a limit for many"
    return (f"{few}: up to {PERMUTED} points in all it would be exact.",)


def _permuted_labels(sizes: tuple[int, ...], n_permutations: int, generator: np.random.Generator) -> np.ndarray:
    """Who is in which sample, (1 + B, N): the data first, then permutations."""
    labels = np.empty((n_permutations + 1, sum(sizes)), np.int32)
    labels[:] = np.repeat(np.arange(len(sizes)), sizes)
    labels[1:] = generator.permuted(labels[1:], axis=1)
    return labels


def between_groups(gram: Centred, labels: np.ndarray, sizes: tuple[int, ...]) -> Permuted:
    """Σ_g z_gᵀ K̃ z_g / n_g − (k − 1) tr K̃ / (N − 1) for each row of labels: zero on average over permutations."""
    total, rounding = np.zeros(len(labels)), 0.0
    for g, size in enumerate(sizes):
        z = (labels == g).astype(np.float32)
        total += (gram.forms(z) + gram.own(z)) / size
        rounding += gram.rounding(size) / size
    return Permuted(total, rounding)
