"""From data to a kernel."""

from meanmap.learning.default import default_kernel, kernel_for
from meanmap.learning.median import at_median, median_heuristic

__all__ = ["at_median", "default_kernel", "kernel_for", "median_heuristic"]
