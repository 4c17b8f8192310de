"""The independence test on data of any size: a plan, states of parts, and the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.features.base import Features
from meanmap.features.states.feature_map import FeatureMap
from meanmap.features.states.pairs import NAMES, SideBySide, beside_state
from meanmap.features.states.passes import SampleState
from meanmap.features.states.reading import Reading
from meanmap.kernels.base import Kernel, Sum
from meanmap.kernels.reading import read_points
from meanmap.stats.asked import Found
from meanmap.stats.independence.moments import BLOCK, TRACE_TOLERANCE, JointMoments, features_of
from meanmap.stats.independence.variables import constant, for_two, kernels_of
from meanmap.stats.result import flat
from meanmap.stats.settings import LEAST_POINTS, doubt_about_limit
from meanmap.stats.texts import refuse_numbers
from meanmap.stats.variables_plan import VariablesPlan, begun

__all__ = ["IndependencePlan", "cut_short"]


@dataclass(frozen=True, eq=False, repr=False)
class IndependencePlan(VariablesPlan):
    """The plan of an independence test: columns, kernels and features, chosen before all rows are read.

    Plans are small, and can be saved and loaded. `plan = mm.stats.plan("independence", x, y, rng=0)` draws some of the
    rows; `plan.state(x, y)` is the contribution of any part of them, `state.merge(other)` adds two states, and
    `plan.result(state)` is the test. `independence_test` does the same with more than 20,000 rows, and gives the
    same p-value bit for bit.

    Made by `plan`.

    Attributes
    ----------
    readings : pair of Reading
        The columns of x and of y.
    kernels : pair of Kernel
    features : FeatureMap
        Pivoted features of both, and the grid that they are rounded to, so that sums are exact.
    seed : int
    missing : str
        How missing values are handled.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> x = np.random.default_rng(0).normal(size=21_000)
    >>> y = x**2 + np.random.default_rng(1).normal(size=21_000) * 20
    >>> plan = mm.stats.plan("independence", x, y, rng=0)
    >>> first, second = plan.state(x[:5000], y[:5000]), plan.state(x[5000:], y[5000:])
    >>> plan.result(second.merge(first)).pvalue == mm.independence_test(x, y, rng=0).pvalue < 0.01
    True
    """

    readings: tuple[Reading, Reading]
    kernels: tuple[Kernel, Kernel]
    features: FeatureMap
    seed: int
    missing: str = "raise"

    @classmethod
    @own_words
    def of(
        cls,
        x: Data,
        y: Data,
        kernel: KernelLike = None,
        *,
        kernel_x: KernelLike = None,
        kernel_y: KernelLike = None,
        missing: str = "raise",
        kinds: Mapping[str, Any] | None = None,
        rng: Seed = None,
    ) -> "IndependencePlan":
        """The plan for two variables, made from all rows or from some of them.

        Parameters
        ----------
        x, y : points, files or collections
            As for `independence_test`. If there are more, 4096 rows are drawn, by row number only.
        kernel, kernel_x, kernel_y, missing, kinds, rng
            As for `independence_test`.
        """
        return cls._of(x, y, for_two(kernel, kernel_x, kernel_y), "several", missing, kinds, Rng.of(rng))

    @classmethod
    def _of(
        cls,
        x: Data,
        y: Data,
        wanted: tuple[KernelLike, KernelLike],
        default: str,
        missing: str,
        kinds: Mapping[str, Any] | None,
        random: Rng,
    ) -> "IndependencePlan":
        seed, readings, sides = begun([x, y], NAMES, missing, kinds, random, BLOCK)
        for side, name, want in zip(sides, NAMES, wanted, strict=True):
            refuse_numbers([side], [name], kinds, want)
        beside = zip(wanted, sides, NAMES, strict=True)
        chosen = [kernels_of(w, part, name, default, random.generator) for w, part, name in beside]
        kernels = tuple(listed[0] if len(listed) == 1 else Sum(listed) for listed in chosen)
        with Door() as door:
            sets = zip(kernels, sides, NAMES, strict=True)
            members = tuple(features_of(each, part, name, random.generator, door) for each, part, name in sets)
            points = tuple(read_points(*each, door) for each in zip(kernels, sides, NAMES, strict=True))
            both = SideBySide(kernels[0], members)
            features = FeatureMap.of(both, points, groups=[member.size for member in members])
        return cls((readings[0], readings[1]), (kernels[0], kernels[1]), features, seed, missing)

    @property
    def members(self) -> tuple[Features, ...]:
        """The features of x and of y."""
        return self.features.features.members  # pyright: ignore[reportAttributeAccessIssue]

    @own_words
    def state(self, x: Data, y: Data = None) -> SampleState:
        """The contribution of some rows to the test.

        Parameters
        ----------
        x, y : points, files or iterators of pieces
            The same number of rows of each; or, as x alone, an iterator of pieces (x, y).
        """
        return beside_state(self, (x, y))

    def _found(self, state: SampleState, n_draws: int, null: str) -> Found:
        check_rows(state.n, "x", LEAST_POINTS)
        moments = JointMoments(state.sums.moments(), self.members[0].size)
        for spectrum, name in zip(moments.spectra(), NAMES, strict=True):
            if spectrum.max(initial=0) <= 1e-14:
                raise constant(name)
        value = moments.n * moments.hsic
        law = moments.limit(null, n_draws, np.random.default_rng([self.seed, 1]))
        doubts = *cut_short(self.members, "the level is that of the limit"), *doubt_about_limit(law.exact, (moments.n,))
        label = "independence test, n HSIC of features"
        told = *self._told(state, "x and y"), *doubts, *flat(law, value)
        return Found(value, law, self.kernels, label, (moments.n,), told)


def cut_short(fitted: Sequence[Any], level: str) -> tuple[str, ...]:
    """A note if a kernel has more features than are kept."""
    return tuple(
        f"the kernel of {name} was cut to {feature.size} features; {level}, but some power may be lost."
        for name, feature in zip(NAMES, fitted, strict=True)
        if feature.relative_error > 10 * TRACE_TOLERANCE
    )
