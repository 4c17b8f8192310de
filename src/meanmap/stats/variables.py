"""The kernels of one variable: given, the median's, learned, or the default collection; no column's units matter."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from meanmap.core.arrays import plain
from meanmap.core.domains import Real
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, KindError
from meanmap.core.points import is_sparse
from meanmap.core.rng import Rng
from meanmap.core.table import Table
from meanmap.kernels.base import Kernel, OnColumns
from meanmap.kernels.discrete import Hamming
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import column_lengthscales, kernel_for
from meanmap.learning.learned import learned_multiple
from meanmap.learning.median import at_median

__all__ = ["constant", "kernels_of", "one_for_each"]

# Half a million distances give each median to a percent.
MOST_POINTS = 1000
# The collection: so many lengthscales, from a short distance to somewhat more than a long one. In one dimension that is
# a factor of forty, in ten dimensions one of three. Chosen on the panel of dependences in the documentation.
QUANTILES = (0.05, 0.95)
STRETCH, SIZES = 1.5, 4


def one_for_each(kernel: Any, count: int) -> tuple[Any, ...]:
    """What was asked for each of `count` variables: the same for all, or a sequence with one entry for each."""
    if kernel is None or isinstance(kernel, Kernel | str):
        return (kernel,) * count
    if isinstance(kernel, Sequence) and len(kernel) == count:
        return tuple(kernel)
    which = "a pair (kernel of x, kernel of y)" if count == 2 else f"a sequence of {count}, one for each variable"
    raise KindError(
        f"kernel is {kernel!r}; expected a kernel, 'median', 'learned', None, or {which}, each a kernel or a list of "
        "kernels."
    )


def kernels_of(wanted: Any, data: Any, name: str, several: bool, rng: Any) -> tuple[Kernel, ...]:
    """The kernels of one variable; `several` says whether the default may be a collection."""
    if isinstance(wanted, Kernel):
        return (wanted,)
    if wanted is None or (isinstance(wanted, str) and wanted in ("median", "learned")):
        how = wanted or ("several" if several else "median")
        return _from_data(data, name, how, rng)
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        members = tuple(member for member in wanted if isinstance(member, Kernel))
        if members and len(members) == len(wanted):
            return members
    raise KindError(
        f"the kernel of {name} is {wanted!r}; expected a kernel, a list of kernels, 'median', 'learned' or None."
    )


def _from_data(data: Any, name: str, how: str, rng: Any) -> tuple[Kernel, ...]:
    """RBF kernels for numbers; Delta for labels; for tables with labels RBF times Hamming."""
    if Table.looks_like_one(data):
        table = Table.of(data, name)
        real = [column for column in table.names if table.is_real(column)]
        labels = [column for column in table.names if not table.is_real(column)]
        if all((np.asarray(table[column]) == np.asarray(table[column])[:1]).all() for column in table.names):
            raise constant(name)
        numbers = _rbfs(np.asarray(table.matrix(real)), how, rng) if real else ()
        if not labels:
            return numbers
        categories = OnColumns(Hamming(1.0), labels)
        return tuple(OnColumns(kernel, real) * categories for kernel in numbers) or (categories,)
    if hasattr(data, "as_matrix") or (not is_sparse(data) and plain(data, name).dtype.kind in "SUOT"):
        return (kernel_for(data, rng),)
    with Door() as door:
        matrix = Real(sparse=True).read(data, name, door)
    if is_sparse(matrix) and how == "learned":
        raise KindError(f"{name} is sparse, and a learned kernel needs a density: pass {name}.toarray().")
    if is_sparse(matrix):
        return (at_median(RBF(), matrix, rng),)
    if not np.ptp(matrix, axis=0).any():
        raise constant(name)
    return _rbfs(matrix, how, rng)


def _rbfs(matrix: np.ndarray, how: str, rng: Any) -> tuple[Kernel, ...]:
    """RBF at the median distance, learned, or several from short to long distances, in the columns' own units."""
    if how == "learned":
        scales = column_lengthscales(matrix)
        size = float(learned_multiple(matrix / scales, rng).kernel.lengthscale)  # pyright: ignore[reportAttributeAccessIssue]
        return (RBF(size * (scales if len(scales) > 1 else scales[0])),)
    if len(matrix) > MOST_POINTS:
        drawn = matrix[np.sort(Rng.of(rng).generator.choice(len(matrix), MOST_POINTS, replace=False))]
        # Unless the few rows that differ in a column were not among them.
        matrix = drawn if ((np.ptp(drawn, axis=0) > 0) == (np.ptp(matrix, axis=0) > 0)).all() else matrix
    scales = column_lengthscales(matrix)
    distances = pdist(matrix / scales)
    # Ties (counts, rounded numbers, rare events) say nothing about a scale.
    distances = distances[distances > 0] if (distances > 0).any() else np.ones(1)
    if how == "several":
        short, long = np.quantile(distances, QUANTILES)
        sizes = np.geomspace(short, STRETCH * long, SIZES)
    else:
        sizes = np.array([np.median(distances)])
    return tuple(RBF(size * (scales if len(scales) > 1 else scales[0])) for size in sizes)


def constant(name: str) -> ColumnError:
    """The error for a variable that does not vary."""
    return ColumnError(f"{name} is constant: it is independent of everything. Leave it out.")
