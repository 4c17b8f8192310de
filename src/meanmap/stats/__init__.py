"""Hypothesis tests whose level can be trusted."""

from meanmap.stats import results  # noqa: F401  # stats.results
from meanmap.stats.anytime.bets import IndependenceBet, TwoSampleBet
from meanmap.stats.asking.ask import test
from meanmap.stats.conditional.conditional import conditional_independence_test
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.effects.closeness import closeness_test
from meanmap.stats.effects.conditional import conditional_independence_effect
from meanmap.stats.effects.dependence import independence_effect
from meanmap.stats.effects.size import k_sample_effect, two_sample_effect
from meanmap.stats.independence.independence import independence_test
from meanmap.stats.independence.joint_independence import joint_independence_test
from meanmap.stats.multiple import adjusted
from meanmap.stats.planning import plan
from meanmap.stats.result import Null, TestResult
from meanmap.stats.samples.drift import DriftMonitor
from meanmap.stats.samples.k_sample import k_sample_test
from meanmap.stats.samples.samples import Outcome, Samples
from meanmap.stats.samples.two_sample import two_sample_test
from meanmap.stats.samples.ways import register_two_sample
from meanmap.stats.simulation import power_curve, rejection_rate

__all__ = [
    "DriftMonitor",
    "Exchange",
    "IndependenceBet",
    "Null",
    "Outcome",
    "Samples",
    "TestResult",
    "TwoSampleBet",
    "adjusted",
    "closeness_test",
    "conditional_independence_effect",
    "conditional_independence_test",
    "independence_effect",
    "independence_test",
    "joint_independence_test",
    "k_sample_effect",
    "k_sample_test",
    "plan",
    "power_curve",
    "register_two_sample",
    "rejection_rate",
    "test",
    "two_sample_effect",
    "two_sample_test",
]
