"""Tests of rows stored in several places: the plan computes the contribution of each part."""

from typing import Any, Literal, overload

from meanmap.core.errors import ParameterError
from meanmap.core.language import a_type
from meanmap.core.meant import did_you_mean
from meanmap.core.types import Data
from meanmap.stats.conditional.conditional_plan import ConditionalIndependencePlan
from meanmap.stats.independence.independence_plan import IndependencePlan
from meanmap.stats.independence.joint_plan import JointIndependencePlan
from meanmap.stats.samples.k_sample_plan import KSamplePlan
from meanmap.stats.samples.two_sample_plan import TwoSamplePlan

__all__ = ["plan"]

PLANS = {
    "two samples": TwoSamplePlan,
    "several samples": KSamplePlan,
    "independence": IndependencePlan,
    "joint independence": JointIndependencePlan,
    "conditional independence": ConditionalIndependencePlan,
}


@overload
def plan(question: Literal["two samples"], *data: Data, **settings: object) -> TwoSamplePlan: ...
@overload
def plan(question: Literal["several samples"], *data: Data, **settings: object) -> KSamplePlan: ...
@overload
def plan(question: Literal["independence"], *data: Data, **settings: object) -> IndependencePlan: ...
@overload
def plan(question: Literal["joint independence"], *data: Data, **settings: object) -> JointIndependencePlan: ...
@overload
def plan(
    question: Literal["conditional independence"], *data: Data, **settings: object
) -> ConditionalIndependencePlan: ...
def plan(question: str, *data: Data, **settings: object) -> Any:
    """Plan a test whose rows are read in parts, possibly on several machines.

    `plan = mm.stats.plan("two samples", x, y, rng=0)` draws some of the rows and chooses columns, kernels and features.
    `plan.state(part)` is the contribution of any part of the rows, computed in any process; `state.merge(other)` adds
    two states, in any order; and `plan.result(...)` is the test, from the states of all rows. Tests of many rows do the
    same internally, so the p-value is the same bit for bit. Plans and states are small, and can be saved and loaded.

    - "two samples", data x, y as for `two_sample_test`: `plan.state(part)` of each sample; `plan.result(state_x,
      state_y)`.
    - "several samples", data as for `k_sample_test`: `plan.state(part)` of each sample;
      `plan.result([state, ...])`.
    - "independence", data x, y as for `independence_test`: `plan.state(x, y)` of the same rows;
      `plan.result(state)`.
    - "joint independence", variables as for `joint_independence_test`: `plan.state(part)`; `plan.result(state)`.
    - "conditional independence", data x, y, z as for `conditional_independence_test`: `plan.state(x, y, z)`; while
      `plan.passes` is above one, `plan = plan.after(state)` and all rows again; `plan.result(state)`.

    Parameters
    ----------
    question : str
        The kind of test, one of those listed above.
    *data : points, files or collections
        As for that test: all rows, or a random sample of them. From larger data 8192 rows of each are drawn, by row
        number only (16,384 in all for several samples; 4096 for independence).
    **settings
        `missing`, `kinds` and `rng`, as for that test; `kernel` but for conditional independence; `scale` of samples;
        `kernel_x` and `kernel_y` for independence.

    Returns
    -------
    TwoSamplePlan, KSamplePlan, IndependencePlan, JointIndependencePlan or ConditionalIndependencePlan
        See `mm.stats.results`.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(3000, 2)), rng.normal(0.2, 1.0, size=(2000, 2))
    >>> plan = mm.stats.plan("two samples", x, y, mm.kernels.RBF(1.0), rng=0)
    >>> first, second = plan.state(x[:1000]), plan.state(x[1000:])     # on two machines, say
    >>> plan.result(second.merge(first), plan.state(y)).reject()
    True
    """
    if not isinstance(question, str) or question not in PLANS:
        came = repr(question) if isinstance(question, str) else a_type(question)
        meant = did_you_mean(question, PLANS) if isinstance(question, str) else ""
        raise ParameterError(
            f"question is {came}{meant}; expected one of {', '.join(map(repr, PLANS))}, and then the data."
        )
    return PLANS[question].of(*data, **settings)
