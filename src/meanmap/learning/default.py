"""The kernel of data that nobody chose: lengthscales at the median distance, kernels for tables of mixed columns."""

from typing import Any, TypeGuard

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import check_rows, is_categorical, plain
from meanmap.core.containers import is_rotations, is_sparse, refuse_sparse
from meanmap.core.domains import Real
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, KindError, ParameterError
from meanmap.core.held import holds_labels, holds_truth
from meanmap.core.language import in_python
from meanmap.core.meant import did_you_mean
from meanmap.core.points import count, in_columns, library_of, on_host, rows
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import brought
from meanmap.core.tables.column import robust_scales
from meanmap.core.tables.table import Table, table_in
from meanmap.core.types import Array, Data, Points, Seed
from meanmap.kernels.base import Composite, Kernel, Product, Wrapper
from meanmap.kernels.columns import OnColumns
from meanmap.kernels.discrete import Delta, Hamming
from meanmap.kernels.manifolds import Rotation
from meanmap.kernels.reading import read_points
from meanmap.kernels.spectral import Spectral
from meanmap.kernels.stationary import RBF, Laplace
from meanmap.learning.medians import median_distance

__all__ = [
    "asks_to_learn",
    "at_median",
    "column_lengthscales",
    "default_kernel",
    "is_default",
    "kernel_for",
    "median_heuristic",
    "mixed_kernel",
    "reader_for",
    "reads_numbers",
    "strange_kernel",
    "unit_free_kernel",
]

# What a kernel may be called that is found from the data.
WORDS = ("median", "learned")
# The median of 2 million distances is within half a percent or so of that of all of them.
MOST_POINTS = 2000


@own_words
def median_heuristic(
    x: Data, *, per_column: bool = False, convention: int = 2, most_points: int = MOST_POINTS, rng: Seed = None
) -> Any:
    """The lengthscale at the median distance between points, ready for `RBF(lengthscale=...)`.

    Parameters
    ----------
    x : array_like, DataFrame or sparse matrix; Parquet files; array or frame of Dask
        n points. From data that need not fit in memory only the drawn rows are read, the same as of an array.
    per_column : bool
        One lengthscale per column, from the distances in that column alone, instead of a joint one.
    convention : {2, 1}
        Both versions in the literature take m = median |xᵢ − xⱼ| over pairs i < j. With 2 the kernel is exp(−r²/2m²)
        (Muandet et al. 2014), so ℓ = m; with 1 it is exp(−r²/m²) (Mooij et al. 2015), so ℓ = m/√2.
        See Flaxman et al. (2016), section 2.4.
    most_points : int
        Larger samples are reduced to this many points drawn at random.
    rng : None, int, numpy.random.Generator or JAX key
        Draws that subsample.

    Returns
    -------
    float, or array of shape (d,) with `per_column`

    Notes
    -----
    Where ties make the median zero (counts, categories, rounded data), the median of the non-zero distances is taken.
    If all points are equal there is no scale, which is an error. Cost O(k² d) for k = min(n, most_points).

    Examples
    --------
    >>> median_heuristic([0.0, 1.0, 3.0])
    2.0
    >>> median_heuristic([[0.0, 0.0], [1.0, 10.0], [3.0, 30.0]], per_column=True).tolist()
    [2.0, 20.0]
    """
    if convention not in (1, 2):
        raise ParameterError(f"convention is {convention!r}; expected 2, for exp(-r²/2l²), or 1, for exp(-r²/l²).")
    whole_number(most_points, "most_points", 2)
    x = brought(x, rng, "x", most_points)
    with Door(x) as door:
        points = _subsample(Real(sparse=True).read(x, "x", door), most_points, rng)
        factor = 1.0 if convention == 2 else 0.5**0.5
        if not per_column:
            median = median_distance(points, "all points of x are equal")
            return median * factor if door.follows else float(median * factor)
        refuse_sparse(points, "x", "which has no per-column lengthscales here")
        medians = [
            median_distance(points[:, d : d + 1], f"column {d} of x is constant") for d in range(points.shape[1])
        ]
        return (jnp if door.follows else np).stack(medians) * factor


@own_words
def at_median(kernel: Kernel, x: Data, rng: Seed = None, argument: str = "x") -> Kernel:
    """`kernel` with its lengthscales at the median distance of `x`, in the kernel's own geometry.

    Distances are those that the kernel sees: the sum over columns for `Laplace`, the chord for `Torus` and `Rotation`,
    Euclidean otherwise. Relative lengthscales of an ARD kernel are kept. Members of sums and products are set one by
    one; kernels without a lengthscale stay as they are. Errors call the points `argument`.

    Examples
    --------
    >>> from meanmap.kernels import RBF
    >>> at_median(RBF(), [0.0, 1.0, 3.0])
    RBF(lengthscale=2.0)
    """
    with Door(kernel, x) as door:
        points = read_points(kernel, x, argument, door)
        return door.leave(_at_median(door.cast(kernel), _subsample(points, MOST_POINTS, rng, argument), argument))


def _at_median(kernel: Kernel, points: Points, argument: str) -> Kernel:
    if isinstance(kernel, Composite):
        return kernel.with_members(tuple(_at_median(each, part, argument) for each, part in kernel.beside(points)))
    if isinstance(kernel, Wrapper):
        return eqx.tree_at(lambda k: k.kernel, kernel, _at_median(kernel.kernel, points, argument))
    lengthscale = getattr(kernel, "lengthscale", None)
    if lengthscale is None or not isinstance(kernel, Spectral):
        return kernel
    coordinates = kernel.coordinates(points)
    metric = "cityblock" if isinstance(kernel, Laplace) else "euclidean"
    median = median_distance(coordinates, f"all points of {argument} are equal", metric)
    library = library_of(median)
    return eqx.tree_at(lambda k: k.lengthscale, kernel, library.asarray(lengthscale * median))  # pyright: ignore[reportAttributeAccessIssue]


def _subsample(points: Points, most: int, rng: Seed, argument: str = "x") -> Any:
    n = count(points)
    check_rows(n, argument, least=2)
    if n <= most:
        return points
    return rows(points, np.sort(Rng.of(rng).generator.choice(n, most, replace=False)))


# Rows of files and collections that are read: medians are then within half a percent or so.
MEASURED = 100_000


def is_default(kernel: object) -> TypeGuard[str | None]:
    """Whether the kernel is to be found from the data: none is given, or a word such as "median"."""
    return kernel is None or isinstance(kernel, str)


def strange_kernel(
    kernel: object, argument: str = "kernel", also: str = "", words: tuple[str, ...] = WORDS
) -> KindError:
    """The error for anything but a kernel: what else the `argument` may be, and the word that was meant."""
    meant = did_you_mean(kernel, words) if isinstance(kernel, str) else ""
    return KindError(
        f"{argument} is {kernel!r}{meant}; expected {in_python(f'a kernel, {also}')}{', '.join(map(repr, words))}"
        f"{in_python(' or None', ', or no such option')}."
    )


def asks_to_learn(kernel: object) -> bool:
    """Whether the kernel is to be learned from the data."""
    return is_default(kernel) and kernel == "learned"


@own_words
def default_kernel(table: Data, rng: Seed = None) -> Kernel:
    """A characteristic kernel for a table: RBF on its numeric columns times Hamming on its labels.

    Numeric columns get one lengthscale each, √d times the median distance in that column, so that rescaling a column
    changes nothing and two typical rows are one to one and a half lengthscales apart, for any number of columns. A
    column of labels counts as one mismatch of the Hamming kernel. Constant columns do not distinguish rows and get
    lengthscale 1; a table in which no column varies is refused.

    Parameters
    ----------
    table : DataFrame, mapping of columns, or array; Parquet files; array or frame of Dask
        At least two rows. For data that need not fit in memory 100,000 rows are used.
    rng : None, int, numpy.random.Generator or JAX key
        Draws these rows, always the same ones if it is None. Medians of data in memory use all rows.

    Examples
    --------
    >>> default_kernel({"height": [1.6, 1.8, 1.7], "colour": ["red", "blue", "red"]})
    Product(members=(OnColumns(kernel=RBF(lengthscale=[0.1]), names=('height',)), \
OnColumns(kernel=Hamming(lengthscale=1.0), names=('colour',))))
    """
    table = Table.of(brought(table, 0 if rng is None else rng, "table", MEASURED))
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


@own_words
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
    if not isinstance(kernel, RBF):
        return kernel_for(data, argument=argument)
    with Door() as door:
        matrix = on_host(read_points(kernel, data, argument, door))
    if not in_columns(matrix):  # sparse
        return kernel_for(data, argument=argument)
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
    if table := table_in(data, argument):
        return RBF() if all(table.is_real(name) for name in table.names) else None
    if is_rotations(data):
        return Rotation()
    if is_sparse(data):
        return RBF()
    array = plain(data, argument)
    truths = holds_truth(array) and array.ndim == 1
    return Delta() if truths or holds_labels(array) or is_categorical(data) else RBF()


def reads_numbers(data: Data, argument: str = "x") -> bool:
    """Whether data are rows of numbers, of which an RBF kernel is the default. Errors call the data `argument`."""
    return isinstance(reader_for(data, argument), RBF)


def column_lengthscales(matrix: Array) -> np.ndarray:
    """√d times the median distance in each of the d columns that vary; 1 for those that do not."""
    scales = robust_scales(matrix)
    varying = scales > 0
    return np.where(varying, scales * np.sqrt(varying.sum()), 1.0)
