"""A kernel for a table of mixed columns, with nothing to choose."""

import numpy as np

from meanmap.core.arrays import check_rows, is_categorical, plain
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError
from meanmap.core.pieces.sources import is_file
from meanmap.core.points import is_dask, is_sparse
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import sampled
from meanmap.core.tables.column import robust_scales
from meanmap.core.tables.table import Table
from meanmap.core.types import Array, Data, Seed
from meanmap.kernels.base import Kernel, Product
from meanmap.kernels.columns import OnColumns
from meanmap.kernels.discrete import Delta, Hamming
from meanmap.kernels.manifolds import Rotation
from meanmap.kernels.reading import read_points
from meanmap.kernels.stationary import RBF
from meanmap.learning.median import at_median

__all__ = ["column_lengthscales", "default_kernel", "kernel_for", "mixed_kernel", "reader_for", "unit_free_kernel"]

# Rows of files and collections that are read: medians are then within half a percent or so.
MEASURED = 100_000


@own_words
def default_kernel(table: Data, rng: Seed = None) -> Kernel:
    """A characteristic kernel for a table: RBF on its numeric columns times Hamming on its labels.

    Numeric columns get one lengthscale each, √d times the median distance in that column, so that rescaling a column
    changes nothing and two typical rows are one to one and a half lengthscales apart however many columns there are. A
    column of labels counts as one mismatch of the Hamming kernel. Constant columns cannot tell rows apart and get
    lengthscale 1; a table where no column varies is refused.

    Parameters
    ----------
    table : DataFrame, mapping of columns, or array; Parquet files; array or frame of Dask
        At least two rows. What need not fit in memory is measured on 100,000 of its rows.
    rng : None, int, numpy.random.Generator or JAX key
        Draws these rows, always the same if it is None. Medians of what is in memory are those of all rows.

    Examples
    --------
    >>> default_kernel({"height": [1.6, 1.8, 1.7], "colour": ["red", "blue", "red"]})
    Product(members=(OnColumns(kernel=RBF(lengthscale=[0.1]), names=('height',)), \
OnColumns(kernel=Hamming(lengthscale=1.0), names=('colour',))))
    """
    if is_file(table) or is_dask(table):
        (table,) = sampled([table], Rng.of(0 if rng is None else rng).generator, ["table"], MEASURED)
    table = Table.of(table)
    check_rows(len(table), "table", least=2)
    if all((np.asarray(column) == np.asarray(column)[0]).all() for column in table.columns.values()):
        raise ColumnError("every column of the table is constant: there is nothing to compare rows by.")
    return mixed_kernel(table)


def mixed_kernel(table: Table) -> Kernel:
    """The default kernel of a table that was read, even if nothing varies in it.

    Examples
    --------
    >>> mixed_kernel(Table.of({"flag": [True, True]}))
    OnColumns(kernel=Hamming(lengthscale=1.0), names=('flag',))
    """
    real = [name for name in table.names if table.is_real(name)]
    labels = [name for name in table.names if name not in real]
    members: list[Kernel] = []
    if real:
        members.append(OnColumns(RBF(column_lengthscales(table.matrix(real))), real))
    if labels:
        members.append(OnColumns(Hamming(1.0), labels))
    return members[0] if len(members) == 1 else Product(tuple(members))


def kernel_for(data: Data, rng: Seed = 0, argument: str = "x") -> Kernel:
    """A kernel for data of any kind: RBF at the median distance, Delta for labels, `default_kernel` for mixed tables.

    `rng` subsamples for the median; unless it is given, the same data get the same kernel. Errors call the data
    `argument`.

    Examples
    --------
    >>> kernel_for([0.0, 1.0, 3.0]), kernel_for(["red", "blue"])
    (RBF(lengthscale=2.0), Delta())
    """
    kernel = reader_for(data, argument)
    return default_kernel(data, rng) if kernel is None else at_median(kernel, data, rng, argument)


def unit_free_kernel(data: Data, argument: str = "x") -> Kernel:
    """As `kernel_for`, with a lengthscale for each column of numbers where there are several: no unit matters.

    Examples
    --------
    >>> unit_free_kernel([[0.0, 0.0], [1.0, 1000.0], [3.0, 3000.0]]).lengthscale.round(2).tolist()
    [2.83, 2828.43]
    """
    kernel = reader_for(data, argument)
    if not isinstance(kernel, RBF) or is_sparse(data):
        return kernel_for(data, argument=argument)
    with Door() as door:
        matrix = np.asarray(read_points(kernel, data, argument, door))
    if matrix.shape[1] == 1 or len(matrix) < 2 or not np.ptp(matrix, axis=0).any():
        return at_median(kernel, data, 0, argument)
    return RBF(column_lengthscales(matrix))


def reader_for(data: Data, argument: str = "x") -> Kernel | None:
    """The kernel that reads data of this kind, with nothing measured yet; None for mixed tables, which have several.

    Examples
    --------
    >>> reader_for([0.0, 1.0, 3.0]), reader_for(["red", "blue"]), reader_for({"age": [1.0, 2.0], "town": ["a", "b"]})
    (RBF(lengthscale=1.0), Delta(), None)
    >>> reader_for([True, False])
    Delta()
    """
    if Table.looks_like_one(data):
        table = Table.of(data)
        return RBF() if all(table.is_real(name) for name in table.names) else None
    if hasattr(data, "as_matrix"):
        return Rotation()
    if is_sparse(data):
        return RBF()
    array = plain(data, argument)
    truths = array.dtype.kind == "b" and array.ndim == 1
    return Delta() if truths or array.dtype.kind in "SUOT" or is_categorical(data) else RBF()


def column_lengthscales(matrix: Array) -> np.ndarray:
    """√d times the median distance in each of the d columns that vary; 1 for those that do not."""
    scales = robust_scales(matrix)
    varying = scales > 0
    return np.where(varying, scales * np.sqrt(varying.sum()), 1.0)
