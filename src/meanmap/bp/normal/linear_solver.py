"""Belief propagation as a solver of linear systems."""

from dataclasses import dataclass

import numpy as np

from meanmap.bp.normal.gaussian_graph import GaussianGraph, read_precision
from meanmap.core.arrays import as_array, check_finite
from meanmap.core.door import Door
from meanmap.core.errors import ShapeError
from meanmap.core.report import Report
from meanmap.core.types import Array
from meanmap.core.values import Value
from meanmap.graphs import Flooding
from meanmap.graphs.schedules import Schedule

__all__ = ["Solution", "solve"]

# A solver goes on for as long as messages move.
MOST_SWEEPS = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Value):
    """The result of `solve`.

    Attributes
    ----------
    x : array (n,) or (n, B)
        So that J x = h.
    variances : array (n,)
        Of belief propagation: the diagonal of J⁻¹ on forests, an approximation of it with cycles.
    report : Report
        Whether messages settled, with cycles the spectral radius, and the relative residual ‖J x − h‖ / ‖h‖.
    """

    x: np.ndarray
    variances: np.ndarray
    report: Report


def solve(
    matrix: Array, h: object, *, schedule: Schedule | None = None, damping: float = 0.0, tolerance: float = 1e-10
) -> Solution:
    """Solve J x = h for a symmetric positive definite J by Gaussian belief propagation (Bickson 2008).

    Parameters
    ----------
    matrix : array (n, n) or SciPy sparse matrix
        J.
    h : array (n,) or (n, B)
        Right-hand sides; B of them cost one solve with longer messages.
    schedule, damping
        By default two passes where the graph of J is a forest, exact; else up to 10,000 sweeps of flooding.
    tolerance : float
        Stop when no message changes by more, in units in which J has a diagonal of ones.

    Notes
    -----
    Where `spectral_radius(J)` < 1 (diagonal dominance is enough) messages converge, at least as fast as Jacobi's
    iteration, whose asymptotic rate is that radius for |I − D^(−1/2) J D^(−1/2)|. Cost O(non-zeros) per sweep. For one
    system on one machine a direct sparse solver is faster: 14 and 28 times on grids of 100 × 100 and 300 × 300 with a
    radius of .98. Messages need only neighbours, and give variances too.

    Examples
    --------
    >>> J = np.array([[3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.0]])
    >>> found = solve(J, [5.0, 5.0, 5.0])
    >>> found.x.round(9).tolist(), found.report.converged
    ([1.0, 1.0, 1.0], True)
    """
    read = read_precision(matrix, "matrix")
    right = as_array(h, "h").astype(float)
    n = len(read.diagonal())
    if right.ndim not in (1, 2) or len(right) != n:
        raise ShapeError(f"h has shape {right.shape}; expected ({n},) or ({n}, B).")
    check_finite(right, "h")
    graph = GaussianGraph(read)
    columns = right.reshape(len(right), -1)
    if schedule is None and not graph.graph.is_forest:
        schedule = Flooding(MOST_SWEEPS)
    with Door():
        means, precisions, report = graph._model.run({}, np.zeros(columns.shape), columns, schedule, damping, tolerance)
    return Solution(means.reshape(right.shape), 1 / precisions[:, 0], report)
