"""Hypothesis tests whose level can be trusted."""

from meanmap.features.states.passes import SampleState
from meanmap.stats.anytime.bets import IndependenceBet, TwoSampleBet
from meanmap.stats.asking.ask import test
from meanmap.stats.conditional.conditional import conditional_independence_test
from meanmap.stats.conditional.conditional_plan import ConditionalIndependencePlan
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.effects.closeness import ClosenessResult, closeness_test
from meanmap.stats.effects.conditional import conditional_independence_effect
from meanmap.stats.effects.dependence import independence_effect
from meanmap.stats.effects.effect import Effect
from meanmap.stats.effects.size import k_sample_effect, two_sample_effect
from meanmap.stats.independence.independence import independence_test
from meanmap.stats.independence.independence_plan import IndependencePlan
from meanmap.stats.independence.joint_independence import joint_independence_test
from meanmap.stats.independence.joint_plan import JointIndependencePlan
from meanmap.stats.result import Interval, Null, TestResult
from meanmap.stats.samples.drift import DriftMonitor
from meanmap.stats.samples.k_sample import k_sample_test
from meanmap.stats.samples.k_sample_plan import KSamplePlan
from meanmap.stats.samples.samples import Outcome, Samples
from meanmap.stats.samples.two_sample import two_sample_test
from meanmap.stats.samples.two_sample_plan import TwoSamplePlan
from meanmap.stats.samples.two_sample_result import TwoSampleResult
from meanmap.stats.samples.ways import register_two_sample
from meanmap.stats.simulation import PowerCurve, RejectionRate, power_curve, rejection_rate

__all__ = [
    "ClosenessResult",
    "ConditionalIndependencePlan",
    "DriftMonitor",
    "Effect",
    "Exchange",
    "IndependenceBet",
    "IndependencePlan",
    "Interval",
    "JointIndependencePlan",
    "KSamplePlan",
    "Null",
    "Outcome",
    "PowerCurve",
    "RejectionRate",
    "SampleState",
    "Samples",
    "TestResult",
    "TwoSampleBet",
    "TwoSamplePlan",
    "TwoSampleResult",
    "closeness_test",
    "conditional_independence_effect",
    "conditional_independence_test",
    "independence_effect",
    "independence_test",
    "joint_independence_test",
    "k_sample_effect",
    "k_sample_test",
    "power_curve",
    "register_two_sample",
    "rejection_rate",
    "test",
    "two_sample_effect",
    "two_sample_test",
]
