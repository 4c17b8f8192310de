"""From data to a kernel."""

from meanmap.learning.default import default_kernel, kernel_for
from meanmap.learning.draws import KernelDraws
from meanmap.learning.learn import LearnedKernel, learn_kernel
from meanmap.learning.median import at_median, median_heuristic
from meanmap.learning.modes import Mode, Profile
from meanmap.learning.pseudolikelihood import log_pseudolikelihood
from meanmap.learning.sampling import sample_kernel

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
