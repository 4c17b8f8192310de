"""The learned kernel for data of any kind: the meaning of `kernel="learned"`, invariant to the units of columns."""

from typing import TYPE_CHECKING

import numpy as np

from meanmap import learning  # whose names load when they are used
from meanmap.core.door import Door
from meanmap.core.points import in_columns, on_host
from meanmap.core.tables.table import table_in
from meanmap.core.types import Data, Seed
from meanmap.kernels.base import Kernel
from meanmap.kernels.columns import OnColumns
from meanmap.kernels.discrete import Hamming
from meanmap.kernels.reading import read_points
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import column_lengthscales, kernel_for, reads_numbers

if TYPE_CHECKING:
    from meanmap.learning import LearnedKernel

__all__ = ["learned_for", "learned_in_units", "learned_multiple"]


def learned_for(data: Data, rng: Seed = None) -> tuple[Kernel, tuple[str, ...]]:
    """A learned RBF kernel for numbers, with the doubts about it; the default for labels; both for mixed tables.

    Examples
    --------
    >>> learned_for(["red", "blue", "red"])
    (Delta(), ())
    """
    if table := table_in(data):
        real = [name for name in table.names if table.is_real(name)]
        labels = [name for name in table.names if name not in real]
        if labels and real and np.ptp(table.matrix(real), axis=0).any():
            numbers, fit = learned_in_units(np.asarray(table.matrix(real)), rng)
            return OnColumns(numbers, real) * OnColumns(Hamming(1.0), labels), fit.report.notes
        if labels:
            return kernel_for(table, rng), ()
    elif not reads_numbers(data):
        return kernel_for(data, rng), ()
    with Door() as door:
        matrix = on_host(read_points(RBF(), data, "x", door))
    if in_columns(matrix) and matrix.shape[1] > 1 and np.ptp(matrix, axis=0).any():
        kernel, fit = learned_in_units(matrix, rng)
        return kernel, fit.report.notes
    fit = learning.learn_kernel(data, rng=rng)
    return fit.kernel, fit.report.notes


def learned_in_units(matrix: np.ndarray, rng: Seed) -> tuple[RBF, "LearnedKernel"]:
    """An RBF kernel of several columns, one lengthscale learned in their own units; and the fit."""
    scales = column_lengthscales(matrix)
    fit = learned_multiple(matrix / scales, rng)
    return RBF(np.asarray(fit.kernel.lengthscale) * scales), fit  # pyright: ignore[reportAttributeAccessIssue]


def learned_multiple(columns: np.ndarray, rng: Seed) -> "LearnedKernel":
    """One lengthscale for columns already in units of their own; those that do not vary are left out."""
    return learning.learn_kernel(columns[:, np.ptp(columns, axis=0) > 0], rng=rng)
