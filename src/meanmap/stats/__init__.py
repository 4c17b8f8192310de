"""Hypothesis tests whose level can be trusted."""

from meanmap.stats.conditional import conditional_independence_test
from meanmap.stats.independence import independence_test
from meanmap.stats.k_sample import k_sample_test
from meanmap.stats.result import Null, TestResult
from meanmap.stats.two_sample import two_sample_test

__all__ = [
    "Null",
    "TestResult",
    "conditional_independence_test",
    "independence_test",
    "k_sample_test",
    "two_sample_test",
]
