from . import results as results
from .anytime.bets import IndependenceBet, TwoSampleBet
from .asking.ask import test
from .conditional.conditional import conditional_independence_test
from .designs.exchanges import Exchange
from .effects.closeness import closeness_test
from .effects.conditional import conditional_independence_effect
from .effects.dependence import independence_effect
from .effects.size import k_sample_effect, two_sample_effect
from .independence.independence import independence_test
from .independence.joint_independence import joint_independence_test
from .multiple import adjusted
from .planning import plan
from .result import Null, TestResult
from .samples.drift import DriftMonitor
from .samples.k_sample import k_sample_test
from .samples.samples import Outcome, Samples
from .samples.two_sample import two_sample_test
from .samples.ways import register_two_sample
from .simulation import power_curve, rejection_rate

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
    "results",
    "test",
    "two_sample_effect",
    "two_sample_test",
]
