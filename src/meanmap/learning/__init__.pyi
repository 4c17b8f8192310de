from .conditional_density import least_squares_density, nadaraya_watson_density
from .conditional_mixture import ConditionalMixture
from .default import at_median, default_kernel, kernel_for, median_heuristic
from .draws import KernelDraws
from .learn import LearnedKernel, learn_kernel
from .modes import Mode, Profile
from .pseudolikelihood import log_pseudolikelihood
from .sampling import sample_kernel

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
