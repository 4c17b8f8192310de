"""The two-sample test on data of any size: a plan, states of parts of the samples, and the result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.features.states.passes import SampleState
from meanmap.stats.result import flat
from meanmap.stats.samples.feature_statistics import gaussian_limit
from meanmap.stats.samples.samples_plan import SamplesPlan
from meanmap.stats.samples.two_sample_result import TwoSampleResult
from meanmap.stats.settings import check_draws, doubt_about_limit

__all__ = ["TwoSamplePlan"]


@dataclass(frozen=True, eq=False, repr=False)
class TwoSamplePlan(SamplesPlan):
    """What a two-sample test decides before it looks at all rows: columns, kernels and features.

    Small, and saved and loaded as usual.

    `plan = mm.stats.TwoSamplePlan.of(x, y, rng=0)` draws some rows of both samples; `plan.state(part)` is what any part
    of a sample adds, in whichever process; `state.merge(other)` adds two up; and `plan.result(state_x, state_y)` is the
    test. [`two_sample_test`][] does just this with samples of more than 20,000 rows in all, and gives the same p-value
    bit by bit.

    Made by [`TwoSamplePlan.of`][].

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(30_000, 2)), rng.normal(0.05, 1.0, size=(20_000, 2))
    >>> plan = mm.stats.TwoSamplePlan.of(x, y, rng=0)
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
        """From the samples themselves, or from some of their rows.

        Parameters
        ----------
        x, y : points, files or collections
            As for [`two_sample_test`][]. Of larger ones 8192 rows of each are drawn, by their numbers alone. Some of
            the rows will do if these were drawn at random too: how features vary together is read off them.
        kernel, scale, missing, kinds, rng
            As for [`two_sample_test`][].
        """
        return cls.made((x, y), ("x", "y"), kernel, scale, missing, kinds, Rng.of(rng))

    def result(self, x: SampleState, y: SampleState, n_permutations: int = 1000) -> TwoSampleResult:
        """The test, from the states of both samples; `n_permutations` draws stand for the limit."""
        check_draws(n_permutations)
        first, second = self._moments((x, y))
        value, null = gaussian_limit(first, second, self.features.sizes, n_permutations, self._draws)
        names = self.reading.schema if self.reading.schema is not None and self.reading.schema.named else None
        doubts = *doubt_about_limit(null.exact, (x.n, y.n)), *flat(null, value)
        return TwoSampleResult(
            statistic=value,
            pvalue=null.pvalue(value),
            null=null,
            kernel=self.kernels[0] if len(self.kernels) == 1 else self.kernels,
            method=f"two-sample test, {self._label('unbiased MMD² of features')}",
            sizes=(x.n, y.n),
            seed=self.seed,
            warnings=(*doubts, *self._told((x, y))),
            witness=FeatureEmbedding(self.features.features, first.mean - second.mean, schema=names),
            columns=self.columns,
        )
