"""From data to a kernel."""

from meanmap.learning.default import default_kernel, kernel_for
from meanmap.learning.median import at_median, median_heuristic
from meanmap.learning.pseudolikelihood import log_pseudolikelihood

__all__ = ["at_median", "default_kernel", "kernel_for", "log_pseudolikelihood", "median_heuristic"]
