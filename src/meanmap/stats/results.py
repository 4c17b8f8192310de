"""The classes that tests, effect sizes, plans and simulations return."""

from meanmap.features.states.passes import SampleState
from meanmap.stats.conditional.conditional_plan import ConditionalIndependencePlan
from meanmap.stats.effects.closeness import ClosenessResult
from meanmap.stats.effects.effect import Effect
from meanmap.stats.independence.independence_plan import IndependencePlan
from meanmap.stats.independence.joint_plan import JointIndependencePlan
from meanmap.stats.multiple import Adjusted
from meanmap.stats.result import Interval
from meanmap.stats.samples.k_sample_plan import KSamplePlan
from meanmap.stats.samples.k_sample_result import KSampleResult
from meanmap.stats.samples.two_sample_plan import TwoSamplePlan
from meanmap.stats.samples.two_sample_result import TwoSampleResult
from meanmap.stats.simulation import PowerCurve, RejectionRate

__all__ = [
    "Adjusted",
    "ClosenessResult",
    "ConditionalIndependencePlan",
    "Effect",
    "IndependencePlan",
    "Interval",
    "JointIndependencePlan",
    "KSamplePlan",
    "KSampleResult",
    "PowerCurve",
    "RejectionRate",
    "SampleState",
    "TwoSamplePlan",
    "TwoSampleResult",
]
