"""The kernels of one variable, given or chosen from the data; the units of columns do not matter by default."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.core.containers import refuse_sparse
from meanmap.core.domains import Real
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, KindError, ParameterError
from meanmap.core.points import in_columns
from meanmap.core.rng import Rng
from meanmap.core.tables.table import table_in
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.core.values import is_sequence
from meanmap.kernels.base import Kernel
from meanmap.kernels.columns import OnColumns
from meanmap.kernels.discrete import Hamming
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import (
    at_median,
    column_lengthscales,
    is_default,
    kernel_for,
    reads_numbers,
    strange_kernel,
)
from meanmap.learning.learned import learned_multiple
from meanmap.stats.settings import finite_distances

__all__ = ["constant", "for_two", "handicaps", "kernels_of", "one_for_each", "single_kernel"]

# Half a million distances determine each median to within a percent.
MOST_POINTS = 1000
# The default collection has this many lengthscales, from a short distance to somewhat more than a long one. The ratio
# of the two is forty in one dimension and three in ten dimensions. The values were chosen on the panel of dependences
# in the documentation.
QUANTILES = (0.05, 0.95)
STRETCH, SIZES = 1.5, 4
# Fused collections have one more lengthscale, shorter by this factor, for curves that oscillate. It is paired only with
# the long ones of the other variable. Pairs of short lengthscales of the same size detect local dependence; all other
# pairs have a handicap of this many standard deviations. These values were chosen on twenty relations
# (benchmarks/relations.py) in one and three columns. On other seeds the power for a diamond rose by .13, for two
# parabolas by .18, for a square by .02, and on average over all by .06. In three columns the average fell by .006.
FINER, LOCAL, BEHIND = 4.0, (1, 2), 1.5


def for_two(kernel: KernelLike, kernel_x: KernelLike, kernel_y: KernelLike) -> tuple[KernelLike, KernelLike]:
    """The kernel requested for each of two variables: `kernel` for both, or one for each."""
    if kernel_x is None and kernel_y is None:
        if kernel is None or isinstance(kernel, Kernel | str):
            return kernel, kernel
        raise KindError(
            f"kernel is {kernel!r}; expected a kernel, 'median', 'learned' or None for both variables, or kernel_x= "
            "and kernel_y=, one for each."
        )
    if kernel is not None:
        raise ParameterError("kernel is for both variables: pass either kernel, or kernel_x and kernel_y.")
    return kernel_x, kernel_y


def one_for_each(kernel: KernelLike, count: int) -> tuple[Any, ...]:
    """The kernel requested for each of `count` variables: the same for all, or a sequence with one entry for each."""
    if kernel is None or isinstance(kernel, Kernel | str):
        return (kernel,) * count
    if isinstance(kernel, Sequence) and len(kernel) == count:
        return tuple(kernel)
    raise KindError(
        f"kernel is {kernel!r}; expected a kernel, 'median', 'learned', None, or a sequence of {count}, one for each "
        "variable."
    )


def kernels_of(wanted: object, data: Data, name: str, default: str, rng: Seed) -> tuple[Kernel, ...]:
    """The kernels of one variable.

    `default` names the kernels that are used if none are requested: "median", "several" from short to long distances,
    or "fused", which puts one with a shorter lengthscale before these.
    """
    if isinstance(wanted, Kernel):
        return (wanted,)
    if is_default(wanted) and wanted in (None, "median", "learned"):
        return _from_data(data, name, wanted or default, rng)
    if is_sequence(wanted):
        members = tuple(member for member in wanted if isinstance(member, Kernel))
        if members and len(members) == len(wanted):
            return members
    raise strange_kernel(wanted, f"the kernel of {name}", "a list of kernels, ")


def single_kernel(wanted: object, data: Data, name: str, rng: Seed) -> Kernel:
    """The one kernel of a variable, by default RBF at the median distance."""
    kernel, *more = kernels_of(wanted, data, name, "median", rng)
    if more:
        raise ParameterError(f"{1 + len(more)} kernels were given for {name}; this test takes one for each.")
    return kernel


def handicaps(wanted: Sequence[Any], kernels: Sequence[Sequence[Any]]) -> np.ndarray:
    """The handicap of each pair of kernels in standard deviations, (p, q); a pair with infinity is left out."""
    sizes = [len(listed) for listed in kernels]
    found = np.zeros(sizes)
    collections = [w is None and size == SIZES + 1 for w, size in zip(wanted, sizes, strict=True)]
    if all(collections):
        found += BEHIND
        found[LOCAL, LOCAL] = 0.0
    # The shortest lengthscale is paired only with the two longest of the other variable.
    longest = slice(-2, None) if all(collections) else slice(0, 0)
    for side in np.flatnonzero(collections):
        finest = found.swapaxes(0, side)[0]
        kept = finest[longest].copy()
        finest[:] = np.inf
        finest[longest] = kept
    return found


def _from_data(data: Data, name: str, how: str, rng: Seed) -> tuple[Kernel, ...]:
    """RBF kernels for numbers, Delta for labels, and RBF times Hamming for tables of both."""
    if table := table_in(data, name):
        real = [column for column in table.names if table.is_real(column)]
        labels = [column for column in table.names if not table.is_real(column)]
        if all((np.asarray(table[column]) == np.asarray(table[column])[:1]).all() for column in table.names):
            raise constant(name)
        # With labels, short lengthscales compare too few points: fused kernels lost a third of the power.
        how = "several" if labels and how == "fused" else how
        numbers = _rbfs(np.asarray(table.matrix(real)), how, rng) if real else ()
        if not labels:
            return numbers
        categories = OnColumns(Hamming(1.0), labels)
        return tuple(OnColumns(kernel, real) * categories for kernel in numbers) or (categories,)
    if not reads_numbers(data, name):
        return (kernel_for(data, rng, name),)
    with Door() as door:
        matrix = Real(sparse=True).read(data, name, door)
    if not in_columns(matrix):  # sparse
        if how == "learned":
            refuse_sparse(matrix, name, "and a learned kernel needs a density")
        return (at_median(RBF(), matrix, rng, name),)
    if not np.ptp(matrix, axis=0).any():
        raise constant(name)
    return _rbfs(matrix, how, rng)


def _rbfs(matrix: np.ndarray, how: str, rng: Seed) -> tuple[Kernel, ...]:
    """RBF at the median distance, learned, or several from short to long distances, in the columns' own units."""
    if how == "learned":
        scales = column_lengthscales(matrix)
        size = float(learned_multiple(matrix / scales, rng).kernel.lengthscale)  # pyright: ignore[reportAttributeAccessIssue]
        return (RBF(size * (scales if len(scales) > 1 else scales[0])),)
    if len(matrix) > MOST_POINTS:
        drawn = matrix[np.sort(Rng.of(rng).generator.choice(len(matrix), MOST_POINTS, replace=False))]
        # Keep all rows if a column that varies is constant in the drawn ones.
        matrix = drawn if ((np.ptp(drawn, axis=0) > 0) == (np.ptp(matrix, axis=0) > 0)).all() else matrix
    scales = column_lengthscales(matrix)
    with np.errstate(over="ignore"):
        distances = finite_distances(matrix / scales, "euclidean")
    # Ties (counts, rounded numbers, rare events) carry no information about the scale.
    distances = distances[distances > 0] if (distances > 0).any() else np.ones(1)
    if how in ("several", "fused"):
        short, long = np.quantile(distances, QUANTILES)
        sizes = np.geomspace(short, STRETCH * long, SIZES)
        sizes = np.append(short / FINER, sizes) if how == "fused" else sizes
    else:
        sizes = np.array([np.median(distances)])
    return tuple(RBF(size * (scales if len(scales) > 1 else scales[0])) for size in sizes)


def constant(name: str) -> ColumnError:
    """The error for a variable that does not vary."""
    return ColumnError(f"{name} is constant: it is independent of everything. Leave it out.")
