"""Messages learned just in time: operators that replace an oracle where they are certain, and ask it elsewhere."""

from meanmap.ep.learned.card import Card
from meanmap.ep.learned.files import load_operator, read_card, save_operator
from meanmap.ep.learned.just_in_time import Learned
from meanmap.ep.learned.kernel_regression import KERNELS, KernelRegression
from meanmap.ep.learned.operator import MessageOperator, Predicted
from meanmap.ep.learned.ready import READY, Ready, build_operator, log_compound_gamma
from meanmap.ep.learned.recorded import Recorded
from meanmap.ep.learned.regression import Estimate, Regression
from meanmap.ep.learned.targets import Derivatives, Target, TiltedMoments

__all__ = [
    "KERNELS",
    "READY",
    "Card",
    "Derivatives",
    "Estimate",
    "KernelRegression",
    "Learned",
    "MessageOperator",
    "Predicted",
    "Ready",
    "Recorded",
    "Regression",
    "Target",
    "TiltedMoments",
    "build_operator",
    "load_operator",
    "log_compound_gamma",
    "read_card",
    "save_operator",
]
