"""Do several samples come from the same distribution?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.stats.asked import Found
from meanmap.stats.permutations import Centred, Permuted
from meanmap.stats.result import flat
from meanmap.stats.samples.compared import OfComparedSamples
from meanmap.stats.samples.exchanged import design_test
from meanmap.stats.samples.feature_statistics import centred_features
from meanmap.stats.samples.gram_statistics import centred_grams
from meanmap.stats.samples.k_sample_plan import RATE, KSamplePlan
from meanmap.stats.samples.k_sample_result import KSampleResult
from meanmap.stats.samples.samples import Outcome, Samples, columns_of, exact_test, read_samples
from meanmap.stats.samples.samples_plan import in_one_pass, is_long
from meanmap.stats.samples.scores import Scores, grouped_forms
from meanmap.stats.samples.several import several_samples
from meanmap.stats.samples.units import Forms, Units
from meanmap.stats.settings import WHOLE

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
) -> KSampleResult:
    """Test whether several samples come from the same distribution: an analysis of variance of their mean embeddings.

    The statistic is Σ_g n_g ‖μ_g − μ̄‖² minus its mean under permutations, with μ̄ the embedding of the pooled sample:
    nm/(n + m) times MMD² for two samples, and HSIC between the points and their labels for any number.

    Parameters
    ----------
    samples : sequence of points, or mapping of name to points
        Two samples or more, at least 5 points each; or with `by` one table. Samples may come in pieces, as in
        `two_sample_test`, and the p-value is the same bit for bit wherever the rows are stored (`plan`).
    by : str, optional
        The column of the table whose values define the samples. Differences are those to the first
        one, a control group (control, baseline, placebo, reference) or else the first in sorted order. For another
        order pass categories of pandas in that order, or kinds={"arm": ["blue", "green"]}.
    within, clusters, weights : column name or array, optional
        Which rows are exchangeable, and the weight of each, as in `two_sample_test`.
    kernel : Kernel, "median", "learned", a sequence of kernels, or None
        As in `two_sample_test`: by default five Laplace kernels, fused, and the ranks in each column; chosen
        without the labels.
    n_permutations : int
        The number of permutations of the labels, which keep the level exactly.
    scale : bool
        As in `two_sample_test`: whether each column of numbers is measured in its own unit.
    missing : {"raise", "drop", "category"}, or list of codes
        What happens to missing values: an error; the rows are dropped, and a warning counts them by column; or missing
        labels form a label of their own. A list of codes, such as ["?", -999], drops rows with these, too.
    kinds : mapping of column to kind, optional
        The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`. Without its
        kind a column that only identifies the rows is left out, as in `two_sample_test`.
    rng : None, int, numpy.random.Generator or JAX key
        Draws the permutations; `result.seed` repeats them.

    Returns
    -------
    KSampleResult
        A TestResult with a p-value for each column, and the differences of each pair of samples in the units of the
        data.

    Notes
    -----
    Up to 3000 points in all full Gram matrices are used, at a cost of O(N² (d + k B)) for N points, k samples and B
    permutations. Beyond, features of r random landmarks cost O(N r (d + k B)), and the level is still exact. Beyond
    20,000 points the p-value comes from the limiting distribution, a sum of k − 1 squared Gaussian differences of
    feature means. This takes one pass, in O(N r d), with kernels, landmarks and correlations of features from 16,384
    rows.

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
    asked = [samples], (kernel,), (within, clusters, weights), n_permutations, missing, kinds, Rng.of(rng)
    return _SeveralSamples(*asked, by=by, scale=scale).answer()


@dataclass
class _SeveralSamples(OfComparedSamples):
    """The test of any number of samples by the spread of their mean embeddings."""

    def pick(self) -> None:
        self.names, self.parts, told = several_samples(self.parts[0], self.by, self.missing, self.kinds, self.keeps)
        self.tell(told)

    def in_one_pass(self) -> Found | None:
        made = None if self.designed or not is_long(self.parts, self.names) else in_one_pass(self, KSamplePlan)
        return self.compared(made and made[0]._found(made[1], self.n_draws), made and made[0].reading)

    def encode(self) -> None:
        self.compare()
        super().encode()

    def compute(self, door: Door) -> Found:
        generator, label = self.random.generator, "spread between mean embeddings"
        read = read_samples(self.parts, self.names, self.kernel, generator, door, self.scale, fusing=True)
        if self.exchange is not None:
            found, told = design_test(read, self.exchange, self.n_draws, generator, door)
            label = self.exchange.told(label)
        else:
            found, told = _permutation_test(read, self.n_draws, generator, door), ()
        method = f"{len(self.names)}-sample test, {label}{read.fused()}"
        told = (*told, *read.doubts, *flat(found.null, found.statistic))
        more = {
            "columns": columns_of(read),
            "differences": self.differences,
            "whole": self.whole,
            "widths": dict(read.widths),
        }
        more |= {"points": read.pooled, "design": self.exchange}
        return Found(found.statistic, found.null, read.kernel, method, read.sizes, told, KSampleResult, more)


def _permutation_test(samples: Samples, n_draws: int, generator: np.random.Generator, door: Door) -> Outcome:
    """The exact test under permutations of the labels, from full Gram matrices of few points or features of more."""
    units = Units.of(samples.sizes, generator)
    labels = units.exchanged(n_draws, generator)
    if sum(samples.sizes) <= WHOLE:
        held: Iterable[tuple[Centred, float]] = centred_grams(samples.kernels, units, samples.pooled, door)
    else:
        held = centred_features(samples, units, generator, door)

    def spread(gram: Centred) -> Permuted:
        # Sums over rows: the mean of a unit counts once for each of its rows.
        found = between_groups(gram, labels, units.sizes)
        return Permuted(units.size * found.values, units.size * found.rounding)

    found = ((spread(centred), norm) for centred, norm in held)

    def of_columns(scores: Scores) -> tuple[Permuted, Forms]:
        return spread(scores.pairs(generator, units)), units.forms(grouped_forms(labels, units.sizes))

    return exact_test(samples, found, RATE, of_columns, "permutation")


def between_groups(gram: Centred, labels: np.ndarray, sizes: tuple[int, ...]) -> Permuted:
    """Σ_g z_gᵀ K̃ z_g / n_g − (k − 1) tr K̃ / (N − 1) for each row of labels: zero on average over permutations."""
    total: Any = 0.0
    rounding = 0.0
    for g, (size, forms) in enumerate(zip(sizes, gram.of_groups(labels, len(sizes)), strict=True)):
        total = total + (forms + gram.own((labels == g).astype(np.float32))) / size
        # The form of the last group follows from those of the others.
        rounding += gram.rounding(size) / size * (len(sizes) - 1 if g == len(sizes) - 1 else 1)
    return Permuted(total, rounding)
