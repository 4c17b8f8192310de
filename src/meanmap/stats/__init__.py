"""Hypothesis tests whose level can be trusted."""

from meanmap.stats.independence import independence_test
from meanmap.stats.k_sample import k_sample_test
from meanmap.stats.result import Null, TestResult
from meanmap.stats.two_sample import two_sample_test

__all__ = ["Null", "TestResult", "independence_test", "k_sample_test", "two_sample_test"]
from meanmap.stats.joint_independence import joint_independence_test
__all__ = ["Null", "TestResult", "independence_test", "joint_independence_test", "two_sample_test"]
