"""The two-sample test on data of any size: a plan, states of parts of the samples, and the result."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.pieces.partitions import is_dask
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.core.values import Value
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.stats.result import flat
from meanmap.stats.samples.feature_statistics import feature_map, gaussian_limit
from meanmap.stats.samples.samples import columns_of, read_samples
from meanmap.stats.samples.two_sample_result import TwoSampleResult
from meanmap.stats.settings import LEAST_POINTS, check_draws, doubt_about_limit
from meanmap.stats.states.feature_map import FeatureMap
from meanmap.stats.states.passes import SampleState, drawn, known_seed, one_pass
from meanmap.stats.states.reading import Reading, left_out

__all__ = ["TwoSamplePlan"]


@dataclass(frozen=True, eq=False, repr=False)
class TwoSamplePlan(Value):
    """What a two-sample test decides before it looks at all rows: columns, kernels and features.

    Small, and saved and loaded as usual.

    `plan = mm.stats.TwoSamplePlan.of(x, y, rng=0)` draws some rows of both samples; `plan.state(part)` is what any part
    of a sample adds, in whichever process; `state.merge(other)` adds two up; and `plan.result(state_x, state_y)` is the
    test. [`two_sample_test`][] does just this with samples of more than 20,000 rows in all, and gives the same p-value
    bit by bit.

    Made by [`TwoSamplePlan.of`][].

    Attributes
    ----------
    reading : Reading
        Columns and what is done about missing values.
    kernels : tuple of Kernel
    features : FeatureMap
        Nyström features of all kernels, and the grid that they are rounded to, so that sums are exact.
    columns : tuple of str
    seed : int
    notes : tuple of str
        What is odd about the sample.

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

    reading: Reading
    kernels: tuple[Any, ...]
    features: FeatureMap
    columns: tuple[str, ...]
    seed: int
    notes: tuple[str, ...] = ()

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
            As for [`two_sample_test`][]. Of larger ones 8192 rows of each are drawn, by their numbers alone.
        kernel, scale, missing, kinds, rng
            As for [`two_sample_test`][].
        """
        random = Rng.of(rng)
        seed = known_seed(random)
        sample = [drawn([source], random.generator, [name])[0] for source, name in ((x, "x"), (y, "y"))]
        reading, sample = Reading.of(sample, ("x", "y"), missing, kinds, LEAST_POINTS)
        with Door() as door:
            samples = read_samples(sample, ("x", "y"), kernel, random.generator, door, scale)
            features = feature_map(samples, random.generator, door)
        columns = columns_of(samples)
        return cls(reading, samples.kernels, features, columns, seed, samples.doubts)

    def state(self, rows: Data, name: str = "rows") -> SampleState:
        """What some rows of a sample add.

        Parameters
        ----------
        rows : points, files or iterator of pieces
            With the columns of the samples; there may be none.
        name : str
            What to call them in errors.
        """
        if is_dask(rows):
            return one_pass(self, TwoSamplePlan.state, [rows], [name])[0]
        came, gaps = 0, Counter()

        def points(door: Door) -> Iterator[Any]:
            nonlocal came
            for piece, number, missing in self.reading.pieces(rows, name):
                where = f"{name}[{came}:]" if came else name
                came += number
                gaps.update(missing)
                if piece is not None:
                    yield self.features.features.read(piece, where, door)

        with Door() as door:
            sums = self.features.sums(points(door))
        return SampleState(sums, came, dict(sorted(gaps.items())))

    def result(self, x: SampleState, y: SampleState, n_permutations: int = 1000) -> TwoSampleResult:
        """The test, from the states of both samples; `n_permutations` draws stand for the limit."""
        check_draws(n_permutations)
        for state, name in ((x, "x"), (y, "y")):
            check_rows(state.n, name, LEAST_POINTS)
        generator = np.random.default_rng([self.seed, 1])
        moments = x.sums.moments(), y.sums.moments()
        value, null = gaussian_limit(*moments, self.features.sizes, n_permutations, generator)
        names = self.reading.schema if self.reading.schema is not None and self.reading.schema.named else None
        several = f" fused over {len(self.kernels)} kernels" if len(self.kernels) > 1 else ""
        told = [
            note for state, name in ((x, "x"), (y, "y")) for note in left_out(name, state.rows, state.n, state.gaps)
        ]
        return TwoSampleResult(
            statistic=value,
            pvalue=null.pvalue(value),
            null=null,
            kernel=self.kernels[0] if len(self.kernels) == 1 else self.kernels,
            method=f"two-sample test, unbiased MMD² of features{several}",
            sizes=(x.n, y.n),
            seed=self.seed,
            warnings=(*doubt_about_limit(null.exact, (x.n, y.n)), *flat(null, value), *told, *self.notes),
            witness=FeatureEmbedding(self.features.features, moments[0].mean - moments[1].mean, schema=names),
            columns=self.columns,
        )
