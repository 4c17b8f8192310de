"""Messages learned just in time: operators that stand in for an oracle where they are sure, and ask it elsewhere."""

from meanmap.ep.learned.files import load_operator, save_operator
from meanmap.ep.learned.forest import Forest
from meanmap.ep.learned.just_in_time import Learned
from meanmap.ep.learned.kernel_regression import KERNELS, KernelRegression
from meanmap.ep.learned.network import Network
from meanmap.ep.learned.operator import MessageOperator, Predicted
from meanmap.ep.learned.recorded import Recorded
from meanmap.ep.learned.regression import Estimate, Regression
from meanmap.ep.learned.targets import Derivatives, Target, TiltedMoments

__all__ = [
    "KERNELS",
    "Derivatives",
    "Estimate",
    "Forest",
    "KernelRegression",
    "Learned",
    "MessageOperator",
    "Network",
    "Predicted",
    "Recorded",
    "Regression",
    "Target",
    "TiltedMoments",
    "load_operator",
    "save_operator",
]
