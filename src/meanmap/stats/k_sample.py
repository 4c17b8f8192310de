"""Do several samples come from one distribution?"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.rng import Rng
from meanmap.core.schema import admitted
from meanmap.core.synonyms import own_words
from meanmap.stats.collections import fused
from meanmap.stats.gram_statistics import centred_gram
from meanmap.stats.permutations import Centred, Permuted
from meanmap.stats.result import TestResult, flat
from meanmap.stats.samples import Outcome, read_samples
from meanmap.stats.settings import LEAST_POINTS, check_draws

__all__ = ["k_sample_test"]

# Above this many points in all a Gram matrix no longer fits comfortably.
MOST_POINTS = 12_000


@own_words
def k_sample_test(
    samples: Any,
    kernel: Any = None,
    *,
    n_permutations: int = 1000,
    scale: bool = True,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Any = None,
) -> TestResult:
    """Test whether several samples come from one distribution: an analysis of variance of their mean embeddings.

    The statistic is Σ_g n_g ‖μ_g − μ̄‖² less its mean under permutations, with μ̄ the embedding of the pooled sample: for
    two samples nm/(n + m) times MMD², and HSIC between the points and their labels for any number.

    Parameters
    ----------
    samples : sequence of points, or mapping of name to points
        Two samples or more, at least 5 points each.
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
    O(N² (d + k B)) for N points in all, k samples and B permutations.

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
    names, listed = _named(samples)
    listed, told = admitted(listed, names, missing, kinds, least=LEAST_POINTS)
    with Door() as door:
        read = read_samples(listed, names, kernel, random.generator, door, scale)
        if sum(read.sizes) > MOST_POINTS:
            raise InputError(
                f"there are {sum(read.sizes)} points; this test takes {MOST_POINTS} at most: draw samples."
            )
        labels = _permuted_labels(read.sizes, n_permutations, random.generator)
        found, norms = [], []
        for one in read.kernels:
            centred = centred_gram(one, read.pooled, door)
            found.append(between_groups(centred, labels, read.sizes))
            norms.append(centred.norm)
        outcome = Outcome.exact(fused(found, norms, rate=2.0)[0], "permutation")  # the rate of MMD-FUSE, for n = m
    several = f" fused over {len(read.kernels)} kernels" if len(read.kernels) > 1 else ""
    return TestResult(
        statistic=outcome.statistic,
        pvalue=outcome.null.pvalue(outcome.statistic),
        null=outcome.null,
        kernel=read.kernel,
        method=f"{len(names)}-sample test, spread between mean embeddings{several}",
        sizes=read.sizes,
        seed=random.seed,
        warnings=(*flat(outcome.null, outcome.statistic), *told, *read.doubts),
    )


def _named(samples: Any) -> tuple[list[str], list[Any]]:
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
