"""From data to a kernel; conditional densities from pairs."""

from meanmap.learning.conditional_density import least_squares_density, nadaraya_watson_density
from meanmap.learning.conditional_mixture import ConditionalMixture
from meanmap.learning.default import at_median, default_kernel, kernel_for, median_heuristic
from meanmap.learning.draws import KernelDraws
from meanmap.learning.learn import LearnedKernel, learn_kernel
from meanmap.learning.modes import Mode, Profile
from meanmap.learning.pseudolikelihood import log_pseudolikelihood
from meanmap.learning.sampling import sample_kernel

__all__ = [
    "ConditionalMixture",
    "KernelDraws",
    "LearnedKernel",
    "Mode",
    "Profile",
    "at_median",
    "default_kernel",
    "kernel_for",
    "learn_kernel",
    "least_squares_density",
    "log_pseudolikelihood",
    "median_heuristic",
    "nadaraya_watson_density",
    "sample_kernel",
]
