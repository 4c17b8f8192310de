"""The two-sample test on data of any size: a plan, states of parts of the samples, and the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.features.states.passes import SampleState
from meanmap.stats.asked import Found, alone
from meanmap.stats.result import flat
from meanmap.stats.samples.feature_statistics import of_moments
from meanmap.stats.samples.samples_plan import SamplesPlan
from meanmap.stats.samples.two_sample_result import TwoSampleResult
from meanmap.stats.samples.ways import Way, choices, way
from meanmap.stats.settings import check_choice, check_draws, doubt_about_limit

__all__ = ["TwoSamplePlan"]


@dataclass(frozen=True, eq=False, repr=False)
class TwoSamplePlan(SamplesPlan):
    """The plan of a two-sample test: columns, kernels and features, chosen before all rows are read.

    Plans are small, and can be saved and loaded.

    `plan = mm.stats.plan("two samples", x, y, rng=0)` draws some rows of both samples; `plan.state(part)` is the
    contribution of any part of a sample, computed in any process; `state.merge(other)` adds two states; and
    `plan.result(state_x, state_y)` is the test. `two_sample_test` does the same with samples of more than 20,000
    rows in all, and gives the same p-value bit for bit.

    Made by `plan`.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(30_000, 2)), rng.normal(0.05, 1.0, size=(20_000, 2))
    >>> plan = mm.stats.plan("two samples", x, y, rng=0)
    >>> first, second = plan.state(x[:10_000]), plan.state(x[10_000:])     # on two machines, say
    >>> result = plan.result(second.merge(first), plan.state(y))
    >>> result.pvalue == mm.two_sample_test(x, y, rng=0).pvalue < 0.01
    True
    """

    @classmethod
    @own_words
    def of(
        cls,
        x: Data,
        y: Data,
        kernel: KernelLike = None,
        *,
        scale: bool = True,
        missing: str = "raise",
        kinds: Mapping[str, Any] | None = None,
        rng: Seed = None,
    ) -> "TwoSamplePlan":
        """The plan for two samples, made from all rows or from some of them.

        Parameters
        ----------
        x, y : points, files or collections
            As for `two_sample_test`. If there are more, 8192 rows of each are drawn, by row number only. A random
            sample of the rows suffices: the covariance of features is estimated from it.
        kernel, scale, missing, kinds, rng
            As for `two_sample_test`.
        """
        return cls.made((x, y), ("x", "y"), kernel, scale, missing, kinds, Rng.of(rng))

    def result(
        self,
        x: SampleState,
        y: SampleState,
        n_permutations: int = 1000,
        *,
        statistic: str = "features",
        null: str = "spectral",
    ) -> TwoSampleResult:
        """The test, from the states of both samples, with `n_permutations` draws from the limiting distribution.

        Any other `statistic` or `null` must have been registered by `register_two_sample` with `of_sums`.
        """
        check_draws(n_permutations)
        check_choice(statistic, null, choices(summed=True))
        return self._found((x, y), n_permutations, way(statistic, null)).result(self.seed)

    def _found(self, states: Sequence[SampleState], n_draws: int, chosen: Way) -> Found:
        assert chosen.of_sums is not None
        first, second = self._moments(states)
        found = of_moments(chosen.of_sums, first, second, self.features.features, n_draws, self._draws)
        schema, sizes = self.reading.schema, (first.n, second.n)
        names = schema if schema is not None and schema.named else None
        method = f"two-sample test, {chosen.label(self)}"
        told = (*self._told(states), *doubt_about_limit(found.null.exact, sizes), *flat(found.null, found.statistic))
        more = {"witness": replace(found.difference, schema=names), "columns": self.columns, "alone": found.alone}
        return Found(found.statistic, found.null, alone(self.kernels), method, sizes, told, TwoSampleResult, more)
