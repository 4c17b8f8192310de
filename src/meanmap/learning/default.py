"""A kernel for a table of mixed columns, with nothing to choose."""

from typing import Any

import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.errors import ColumnError
from meanmap.core.table import Table
from meanmap.kernels.base import Kernel, OnColumns, Product
from meanmap.kernels.discrete import Hamming
from meanmap.kernels.stationary import RBF
from meanmap.learning.median import median_heuristic

__all__ = ["default_kernel"]


def default_kernel(table: Any, rng: Any = None) -> Kernel:
    """A characteristic kernel for a table: RBF on its numeric columns times Hamming on its labels.

    Numeric columns get one lengthscale each, √d times the median distance in that column, so that rescaling a column
    changes nothing and two typical rows are about one lengthscale apart however many columns there are. A column of
    labels counts as one mismatch of the Hamming kernel. Constant columns cannot tell rows apart and get lengthscale 1.

    Parameters
    ----------
    table : DataFrame, mapping of columns, or array
        At least two rows.
    rng : None, int, numpy.random.Generator or JAX key
        Subsamples tables of more than 2000 rows for the medians.

    Examples
    --------
    >>> default_kernel({"height": [1.6, 1.8, 1.7], "colour": ["red", "blue", "red"]})
    Product(members=(OnColumns(kernel=RBF(lengthscale=[0.1]), names=('height',)), \
OnColumns(kernel=Hamming(lengthscale=1.0), names=('colour',))))
    """
    table = Table.of(table)
    check_rows(len(table), "table", least=2)
    real = [name for name in table.names if table.is_real(name)]
    labels = [name for name in table.names if not table.is_real(name)]
    members: list[Kernel] = []
    if real:
        members.append(OnColumns(RBF(_lengthscales(table.matrix(real), rng)), real))
    if labels:
        members.append(OnColumns(Hamming(1.0), labels))
    return members[0] if len(members) == 1 else Product(tuple(members))


def _lengthscales(matrix: Any, rng: Any) -> np.ndarray:
    matrix = np.asarray(matrix, dtype=np.float64)
    scales = np.ones(matrix.shape[1])
    varying = np.ptp(matrix, axis=0) > 0
    if not varying.any():
        raise ColumnError("every numeric column of the table is constant: there is no scale to compare rows on.")
    scales[varying] = median_heuristic(matrix[:, varying], per_column=True, rng=rng) * np.sqrt(varying.sum())
    return scales
