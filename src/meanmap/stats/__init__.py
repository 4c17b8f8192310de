"""Hypothesis tests whose level can be trusted."""

from meanmap.stats.conditional import conditional_independence_test
from meanmap.stats.drift import DriftMonitor
from meanmap.stats.independence import independence_test
from meanmap.stats.joint_independence import joint_independence_test
from meanmap.stats.k_sample import k_sample_test
from meanmap.stats.result import Null, TestResult
from meanmap.stats.samples import Outcome, Samples
from meanmap.stats.simulation import PowerCurve, RejectionRate, power_curve, rejection_rate
from meanmap.stats.two_sample import two_sample_test
from meanmap.stats.two_sample_result import TwoSampleResult
from meanmap.stats.ways import register_two_sample

__all__ = [
    "DriftMonitor",
    "Null",
    "Outcome",
    "PowerCurve",
    "RejectionRate",
    "Samples",
    "TestResult",
    "TwoSampleResult",
    "conditional_independence_test",
    "independence_test",
    "joint_independence_test",
    "k_sample_test",
    "power_curve",
    "register_two_sample",
    "rejection_rate",
    "two_sample_test",
]
