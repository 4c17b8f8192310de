"""The test of several samples on data of any size: a plan, states of parts of the samples, and the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.features.states.passes import SampleState
from meanmap.linalg.moments import Moments
from meanmap.stats.asked import Found, alone
from meanmap.stats.collections import fused
from meanmap.stats.permutations import SQUARED, Permuted
from meanmap.stats.result import Null, flat
from meanmap.stats.samples.feature_statistics import sizes_of, standardising
from meanmap.stats.samples.k_sample_result import KSampleResult
from meanmap.stats.samples.rank_features import without_columns
from meanmap.stats.samples.samples_plan import SamplesPlan
from meanmap.stats.samples.several import named
from meanmap.stats.settings import FEW_FOR_A_LIMIT, PERMUTED, check_draws

__all__ = ["RATE", "KSamplePlan"]

# The parameter λ of the soft maximum over kernels, which is that of MMD-FUSE for two samples of equal size, in the unit
# of this statistic.
RATE = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class KSamplePlan(SamplesPlan):
    """The plan of a test of several samples: columns, kernels and features, chosen before all rows are read.

    Used like `TwoSamplePlan`: `plan.state(part)` is the contribution of any part of a sample, `state.merge(other)`
    adds two states, and `plan.result(states)`, with states in the order of the samples, is the test.
    `k_sample_test` does the same with samples of more than 20,000 rows in all.

    Made by `plan`.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> samples = [rng.normal(mean, 1.0, size=8000) for mean in (0.0, 0.0, 0.1)]
    >>> plan = mm.stats.plan("several samples", samples, mm.kernels.RBF(1.0), rng=0)
    >>> states = [plan.state(sample[5000:]).merge(plan.state(sample[:5000])) for sample in samples]
    >>> plan.result(states).pvalue == mm.k_sample_test(samples, mm.kernels.RBF(1.0), rng=0).pvalue < 0.01
    True
    """

    @classmethod
    @own_words
    def of(
        cls,
        samples: Data,
        kernel: KernelLike = None,
        *,
        scale: bool = True,
        missing: str = "raise",
        kinds: Mapping[str, Any] | None = None,
        rng: Seed = None,
    ) -> "KSamplePlan":
        """The plan for several samples, made from all rows or from some of them.

        Parameters
        ----------
        samples : sequence of points, files or collections, or mapping of name to these
            As for `k_sample_test`. If there are more, 16,384 rows are drawn, some of each sample, by row number only. A
            random sample of the rows suffices.
        kernel, scale, missing, kinds, rng
            As for `k_sample_test`.
        """
        names, listed = named(samples)
        return cls.made(listed, names, kernel, scale, missing, kinds, Rng.of(rng))

    def result(self, states: Sequence[SampleState], n_permutations: int = 1000) -> KSampleResult:
        """The test, from the states of all samples, with `n_permutations` draws from the limiting distribution."""
        check_draws(n_permutations)
        if len(states) != len(self.names):
            raise ParameterError(
                f"there are {len(states)} states, but the plan is for {len(self.names)} samples: "
                f"{', '.join(self.names)}. Pass one state of each, in this order."
            )
        return self._found(states, n_permutations).result(self.seed)

    def _found(self, states: Sequence[SampleState], n_draws: int) -> Found:
        value, law, own = self._limit(self._moments(states), n_draws)
        sizes = tuple(state.n for state in states)
        method = f"{len(self.names)}-sample test, spread between mean embeddings{self.fused()}"
        told = (*self._told(states), *_doubts(self.names, sizes), *flat(law, value))
        more = {"columns": self.columns, "alone": own}
        return Found(value, law, alone(self.kernels), method, sizes, told, KSampleResult, more)

    def _limit(self, groups: list[Moments], n_draws: int) -> tuple[float, Null, dict[str, float]]:
        """The spread of the means of features, and draws of it from its Gaussian limit."""
        n, k = sum(group.n for group in groups), len(groups)
        within = np.sum([(group.n - 1) * group.covariance() for group in groups], axis=0) / (n - k)
        together = Moments.merged(groups)
        mean, second = together.mean, together.second
        values, vectors = np.linalg.eigh(within)
        root = vectors * np.sqrt(np.maximum(values, 0))
        # The statistic is a sum of squares of k group means for the data, and of k − 1 Gaussian vectors for each draw.
        data = np.stack([np.sqrt(group.n) * (group.mean - mean) for group in groups])
        normal = self._draws.standard_normal((k - 1, n_draws, len(values)))
        draws = np.einsum("ij,gbj->gbi", root, normal, optimize=True)
        found, norms, start = [], [], 0
        of_kernels, ranks = without_columns(self.features.features)
        for size in sizes_of(of_kernels):
            part = slice(start, start + size)
            start += size
            trace = (k - 1) * float(np.trace(within[part, part]))
            squares = np.r_[np.sum(data[:, part] ** 2), np.sum(draws[..., part] ** 2, axis=(0, 2))]
            found.append(Permuted(squares - trace, SQUARED * trace))
            norms.append(float(np.sqrt(np.sum(second[part, part] ** 2))))
        result, _ = fused(found, norms, RATE)
        own: dict[str, float] = {}
        if ranks is not None:
            part = slice(start, None)
            squares = np.vstack([np.sum(data[:, part] ** 2, axis=0), np.sum(draws[..., part] ** 2, axis=0)])
            smallest = min(group.n for group in groups)
            squares = squares / standardising(within, part)
            result, own = ranks.judged(result, squares, smallest), ranks.of_each(squares, smallest)
        law = Null("weighted chi-squares", result.values[1:], exact=False, rounding=result.rounding)
        return float(result.values[0]), law, own


def _doubts(names: Sequence[str], sizes: tuple[int, ...]) -> tuple[str, ...]:
    """The note on the limiting distribution if a sample is small."""
    if min(sizes) >= FEW_FOR_A_LIMIT:
        return ()
    few = (
        f"{names[int(np.argmin(sizes))]} has {min(sizes)} points, but the p-value comes from a limit for large samples"
    )
    return (f"{few}: up to {PERMUTED} points in all it would be exact.",)
