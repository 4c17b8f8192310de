"""Messages learned just in time: operators that replace an oracle where they are sure, and ask it where they are not."""

from meanmap.ep.learned.just_in_time import Learned
from meanmap.ep.learned.kernel_regression import KERNELS, KernelRegression
from meanmap.ep.learned.operator import MessageOperator, Predicted
from meanmap.ep.learned.recorded import Recorded
from meanmap.ep.learned.regression import Estimate, Regression
from meanmap.ep.learned.targets import Derivatives, Target, TiltedMoments

__all__ = [
    "KERNELS",
    "Derivatives",
    "Estimate",
    "KernelRegression",
    "Learned",
    "MessageOperator",
    "Predicted",
    "Recorded",
    "Regression",
    "Target",
    "TiltedMoments",
]
