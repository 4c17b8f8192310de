from .card import Card
from .files import load_operator, read_card, save_operator
from .just_in_time import Learned
from .kernel_regression import KERNELS, KernelRegression
from .operator import MessageOperator, Predicted
from .ready import READY, Ready, build_operator, log_compound_gamma
from .recorded import Recorded
from .regression import Estimate, Regression
from .targets import Derivatives, Target, TiltedMoments

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
