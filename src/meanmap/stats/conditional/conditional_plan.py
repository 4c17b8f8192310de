"""The conditional independence test on data of any size: a plan for each pass, states of parts, and the result."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.points import count
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.kinds import is_text
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, Seed
from meanmap.features.states.pairs import beside_state
from meanmap.features.states.passes import SampleState
from meanmap.features.states.reading import Reading
from meanmap.kernels.base import Kernel
from meanmap.linalg.exact import ExactSums, Grid
from meanmap.stats.asked import Found
from meanmap.stats.conditional.asking_again import told_of
from meanmap.stats.conditional.judging import Fitted, law_of, nothing_left, passes_of
from meanmap.stats.conditional.nearby import told_nearby
from meanmap.stats.conditional.passes import Passes
from meanmap.stats.conditional.variables import VariableReading, check_given
from meanmap.stats.independence.joint_variables import common_length
from meanmap.stats.settings import LEAST_POINTS
from meanmap.stats.variables_plan import VariablesPlan, begun

__all__ = ["ConditionalIndependencePlan", "doubts"]

NAMES = ("x", "y", "z")


class Nothing:
    """The only pass if x or y is a function of z, which just counts rows."""

    grid = Grid(np.zeros(1), np.ones(1))
    left = 1

    def sums(self, parts: Any) -> ExactSums:
        """The number of rows."""
        total = ExactSums.none(self.grid, False)
        for part in parts:
            total = total.add(np.zeros((count(part), 1)))
        return total


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalIndependencePlan(VariablesPlan):
    """The plan of a conditional independence test for one of its three passes over all rows.

    Plans take some megabytes, and can be saved and loaded. `plan = mm.stats.plan("conditional independence", x, y, z,
    rng=0)` draws some of the rows; `plan.state(x, y, z)` is the contribution of any part of them, and
    `state.merge(other)` adds two states. While `plan.passes` is above one, `plan = plan.after(state)` is the plan for
    the next pass; then `plan.result(state)` is the test. `conditional_independence_test` does the same with more
    than 5000 rows, and gives the same p-value bit for bit.

    Made by `plan`.

    Attributes
    ----------
    readings : tuple of Reading
        The columns of x, y and z.
    members : tuple of VariableReading
        How the columns of x, y and z become numbers.
    chosen : Passes or None
        The regressions; None if x or y is a function of z.
    kernels : pair of Kernel
    fitted : Fitted
        The residuals of the regressions on the sample.
    seed : int
    missing : str
        How missing values are handled.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=6000)
    >>> x, y = np.sin(2 * z) + rng.normal(size=6000), z**2 + rng.normal(size=6000)
    >>> plan = mm.stats.plan("conditional independence", x, y, z, rng=0)
    >>> def add_up(plan):
    ...     first, second = (plan.state(x[part], y[part], z[part]) for part in (slice(1000), slice(1000, None)))
    ...     return second.merge(first)
    >>> while plan.passes > 1:
    ...     plan = plan.after(add_up(plan))
    >>> found = plan.result(add_up(plan))
    >>> found.reject(0.05), found.pvalue == mm.conditional_independence_test(x, y, z, rng=0).pvalue
    (False, True)
    """

    readings: tuple[Reading, ...]
    members: tuple[VariableReading, ...]
    chosen: Passes | None
    kernels: tuple[Kernel, Kernel]
    fitted: Fitted
    seed: int
    missing: str = "raise"

    @classmethod
    @own_words
    @one_blas_thread()
    def of(
        cls,
        x: Data,
        y: Data,
        z: Data,
        *,
        missing: str = "raise",
        kinds: Mapping[str, Any] | None = None,
        rng: Seed = None,
    ) -> "ConditionalIndependencePlan":
        """The plan for x, y and z, made from all rows or from some of them.

        Parameters
        ----------
        x, y, z : points, files or collections
            As for `conditional_independence_test`. If there are more, 8192 rows are drawn, by row number only.
        missing, kinds, rng
            As for `conditional_independence_test`.
        """
        check_given(z)
        random = Rng.of(rng)
        seed, readings, read = begun([x, y, z], NAMES, missing, kinds, random)
        common_length(NAMES, read)
        found = [VariableReading.of(part, name, given=name == "z") for part, name in zip(read, NAMES, strict=True)]
        for (member, variable), name in zip(found, NAMES, strict=True):
            for column, (labels, _) in member.labels.items():
                if is_text(len(labels), len(variable.columns)):
                    raise KindError(
                        f"{name} holds texts that differ in nearly every row ({column!r}), which can only be read "
                        f"in memory: leave them out, or pass vectors such as those of an encoder."
                    )
        members, (*sides, conditions) = zip(*found, strict=True)
        with Door() as door:
            passes, kernels, fitted = passes_of(sides, conditions, random.generator, door)
        return cls(readings, members, passes, kernels, fitted, seed, missing)

    @property
    def features(self) -> Any:
        """The sums of this pass."""
        return Nothing() if self.chosen is None else self.chosen

    @property
    def passes(self) -> int:
        """The number of passes over all rows that remain, including this one."""
        return self.features.left

    @one_blas_thread()
    @own_words
    def state(self, x: Data, y: Data = None, z: Data = None) -> SampleState:
        """The contribution of some rows to this pass.

        Parameters
        ----------
        x, y, z : points, files or collections
            The same number of rows of each; or, as x alone, an iterator of pieces (x, y, z), a new one for each pass.
        """
        return beside_state(self, (x, y, z), NAMES)

    def after(self, state: SampleState) -> "ConditionalIndependencePlan":
        """The plan for the next pass, from the state of all rows in this one."""
        if self.chosen is None:
            raise ParameterError("no pass is left: call result(state).")
        return replace(self, chosen=self.chosen.after(state.sums))

    def _found(self, state: SampleState, n_draws: int, null: str) -> Found:
        check_rows(state.n, "x", LEAST_POINTS)
        value, law, fitted = 0.0, nothing_left(n_draws), self.fitted
        if self.chosen is not None:
            streamed, generator = self.chosen.result(state.sums), np.random.default_rng([self.seed, 1])
            value, law, fitted = law_of(streamed, fitted, state.n, null, n_draws, generator)
        told = (
            *self._told(state, "x and y and z"),
            *(text for member in self.members for text in member.notes),
            *doubts("features", state.n, fitted, self.members[2].size, n_draws, law.pvalue(value)),
        )
        label = "conditional independence test with streamed features"
        return Found(value, law, self.kernels, label, (state.n,), told)


def doubts(method: str, n: int, fitted: Fitted, d: int, n_draws: int, pvalue: float) -> tuple[str, ...]:
    """Warnings about the regressions on d columns of z."""
    found = []
    if any(fitted.determined):
        return ("x or y is a function of z: given z no variation is left, and the p-value is 1.",)
    if fitted.nearly:
        x, y = fitted.rest
        found.append(
            f"z explains all but {x:.2g} of the variance of x and {y:.2g} of that of y. Functions of z that the "
            f"regressions miss look like dependence: if x and y have no noise of their own, do not trust the p-value."
        )
    if said := told_of(fitted.missed, pvalue, fitted.sure):
        found.append(said)
    if fitted.before is not None and (said := told_nearby(pvalue, fitted.before)):
        found.append(said)
    if fitted.freedom > n / 4:
        found.append(
            f"the regressions on z take {fitted.freedom:.0f} degrees of freedom of {n} points: too few points for {d} "
            f"conditioning columns, so the level may not be kept."
        )
    if method == "residuals":
        found.append(
            "residuals are assumed to be noise whose distribution does not change with z; method='kci' does "
            "not assume this."
        )
    if n_draws < 100:
        found.append(f"with {n_draws} draws no p-value can be below {1 / (n_draws + 1):.2g}.")
    return tuple(found)
