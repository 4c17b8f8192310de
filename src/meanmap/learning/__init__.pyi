from .default import at_median, default_kernel, kernel_for, median_heuristic
from .draws import KernelDraws
from .learn import LearnedKernel, learn_kernel
from .modes import Mode, Profile
from .pseudolikelihood import log_pseudolikelihood
from .sampling import sample_kernel

__all__ = [
    "KernelDraws",
    "LearnedKernel",
    "Mode",
    "Profile",
    "at_median",
    "default_kernel",
    "kernel_for",
    "learn_kernel",
    "log_pseudolikelihood",
    "median_heuristic",
    "sample_kernel",
]
