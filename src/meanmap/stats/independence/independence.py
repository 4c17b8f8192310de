"""Are two variables independent?"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.arrays import check_paired, check_rows
from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.pieces.sources import is_stream
from meanmap.core.points import is_dask, on_host, rows
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import count_rows, in_memory
from meanmap.core.tables.picked import picked
from meanmap.core.tables.schema import admitted
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.kernels.base import Kernel, Sum
from meanmap.kernels.reading import read_points
from meanmap.learning.default import is_default
from meanmap.stats.designs.design import Design
from meanmap.stats.designs.reading import check_permuted, from_strata, observed
from meanmap.stats.encoding import encoded
from meanmap.stats.independence.exchanged import design_hsic
from meanmap.stats.independence.hsic import (
    Margins,
    centre,
    diagonal_sums,
    fused_hsic,
    one_hsic,
    permuted_features,
    permuted_hsic,
    single_gram,
)
from meanmap.stats.independence.independence_plan import cut_short, in_one_pass
from meanmap.stats.independence.moments import (
    all_features,
    features_of,
)
from meanmap.stats.independence.shifts import Shifts
from meanmap.stats.independence.variables import constant, for_two, handicaps, kernels_of, one_for_each
from meanmap.stats.permutations import Permuted
from meanmap.stats.result import Null, TestResult, flat
from meanmap.stats.settings import LEAST_POINTS, check_choice, check_draws
from meanmap.stats.texts import texts_of_variables

__all__ = ["independence_test"]

# Which null distributions each statistic has.
CHOICES = {"biased": ("permutation", "gamma", "spectral"), "unbiased": ("permutation",), "normalised": ("permutation",)}
NAMES = ("x", "y")
# Whole Gram matrices up to here: with the default collection about 0.8 GB and 6 s.
MOST_FOR_GRAM = 6000
# Permutations up to here unless told otherwise: beyond, the limit is as accurate as the draws that estimate a p-value.
MOST_FOR_PERMUTATIONS = 20_000


@own_words
def independence_test(
    x: Data,
    y: Data = None,
    kernel: KernelLike = None,
    *,
    data: Data = None,
    kernel_x: KernelLike = None,
    kernel_y: KernelLike = None,
    within: Data = None,
    clusters: Data = None,
    features_x: Any = None,
    features_y: Any = None,
    null: str = "auto",
    statistic: str = "biased",
    n_permutations: int = 1000,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> TestResult:
    """Test whether x and y are independent, by the Hilbert-Schmidt norm of their cross-covariance operator (HSIC).

    Parameters
    ----------
    x, y : points, or names of columns of `data`
        n pairs, at least 5; each may be numbers, labels, or a table of both. For data larger than memory: memory maps,
        Parquet files (a path, a folder, a pattern, a list), lazy frames of polars, columns of one array or frame of
        Dask, whose workers compute, or iterators of pieces; or one iterator of pieces (x, y) as `x`. With more than
        20,000 rows the p-value is the same bit by bit wherever they lie ([`IndependencePlan`][]); only of iterators the
        first 4096 rows choose kernels and features, instead of any.
    data : DataFrame or mapping of columns, optional
        The table of which x, y, `within` and `clusters` name a column, or several in a list.
    kernel : None, "median", "learned" or Kernel
        For both variables: a kernel, or "median", RBF at the median distance with one lengthscale per column (Delta for
        labels); "learned" multiplies these by what [`learn_kernel`][] finds in that variable alone. By default each
        variable of numbers gets five lengthscales, from very short to long distances, and 20 pairs of them are fused,
        those of short ones with a head start. Rescaling any column changes nothing.
    kernel_x, kernel_y : as `kernel`, or a list of Kernel
        For one variable each, instead of `kernel`; of lists all pairs are fused. (A pair as `kernel`, the spelling of
        earlier versions, is still read.)
    within, clusters : column name, several, array, or table, optional
        Which rows may be exchanged. `within` are strata (sites, batches, pairs): rows change places inside of these,
        and what differs between strata plays no part. The rows of one of the `clusters` (people, schools) stay
        together; a whole number stands for blocks of so many consecutive rows of a series. Clusters take one another's
        values row by row, hence those of one size, unless a variable is constant within them. The level is exact if
        rows of a stratum, or its clusters, are exchangeable under the hypothesis. Each has a value for each row.
    features_x, features_y : callable, optional
        What stands for x, or for y: any function from a batch of rows to a vector for each. In memory.
    null : {"auto", "permutation", "gamma", "spectral"}
        "permutation" pairs x with permuted y and keeps the level exactly; "auto" takes it up to 20,000 points.
        "spectral" and "gamma" use the limit of the biased statistic of one kernel, and read data piece by piece.
    statistic : {"biased", "unbiased", "normalised"}
        HSIC as tr(K H L H)/n² (Gretton et al. 2005), its unbiased form (Song et al. 2012, eq. 5), or divided by the
        norms of both centred Gram matrices, which makes it a correlation between 0 and 1 (Cortes et al. 2012).
        With several kernels the largest biased statistic counts, each standardised over its permutations.
    n_permutations : int
        Permutations, or draws from the limit.
    missing : {"raise", "drop", "category"}
        What happens to missing values: an error; rows with one in any variable are left out, which the warnings tell;
        or missing labels are a label of their own.
    kinds : mapping of column to kind, optional
        What columns mean where their data type does not say, such as {"zip": "label"}: see [`Schema.of`][].
    rng : None, int, numpy.random.Generator or JAX key
        Draws the permutations; `result.seed` repeats them.

    Returns
    -------
    TestResult

    Notes
    -----
    Permutations are cyclic shifts of random orders, n of them at once by fast Fourier transforms: O(n² log n) on whole
    Gram matrices up to 6000 points, and O(n log n) for each pair of at most 128 features beyond. Limits come from one
    pass in O(n r²), holding some thousand rows at a time.

    With `within` or `clusters` HSIC is that of at most 48 features a kernel, less the means of their strata. Numbers
    are measured from the mean of their stratum first, unless the kernel is given.

    Where one kernel is needed, the default for up to 6000 points is the median's; beyond, and for iterators, lists of
    kernels and the default collection are summed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, size=100)
    >>> independence_test(x, x**2 + 0.3 * rng.normal(size=100), rng=0).reject(0.05)
    True
    """
    check_choice(statistic, null, CHOICES)
    kernel = for_two(kernel, kernel_x, kernel_y)
    check_draws(n_permutations)
    random = Rng.of(rng)
    if data is not None:
        x, y, within, clusters = picked(data, x=x, y=y, within=within, clusters=clusters)
    x, y = (on_host(part) for part in (x, y))
    if within is not None or clusters is not None:
        check_permuted(statistic, null, "biased")
        if _length(x, y) is None:
            raise ParameterError("within= and clusters= are for variables in memory.")
        (x, y), design, told = observed(tuple(map(in_memory, (x, y))), NAMES, within, clusters, missing, kinds)
        if design is not None:
            x, y = _encoded((x, y), (features_x, features_y), random)
            (x, y), heard = texts_of_variables((x, y), NAMES, one_for_each(kernel, 2), kinds)
            return _by_design((x, y), kernel, design, n_permutations, random, (*told, *heard))
    told: tuple[str, ...] = ()
    many = _is_many(x, y)
    if not many or features_x is not None or features_y is not None:
        (x, y), told = admitted(tuple(map(in_memory, (x, y))), NAMES, missing, kinds, paired=True, least=LEAST_POINTS)
        x, y = _encoded((x, y), (features_x, features_y), random)
        (x, y), heard = texts_of_variables((x, y), NAMES, one_for_each(kernel, 2), kinds)
        told += heard
        missing, kinds, many = "raise", None, _is_many(x, y)
    n = _length(x, y)
    if n is None and (null == "permutation" or statistic != "biased"):
        raise ParameterError(
            "an iterator is read once, which permutations are not: pass null='auto' and statistic='biased', or arrays."
        )
    if n is None or null in ("gamma", "spectral") or (null == "auto" and many and statistic == "biased"):
        kind = "gamma" if null == "gamma" else "spectral"
        result = in_one_pass(x, y, kernel, kind, n_permutations, missing, kinds, random, MOST_FOR_GRAM)
        return replace(result, warnings=(*told, *result.warnings))
    if many:
        (x, y), told = admitted((x, y), NAMES, missing, kinds, paired=True, least=LEAST_POINTS)
        n = _length(x, y)
    assert n is not None  # an iterator has one way
    with Door() as door:
        if many and (is_dask(x) or is_dask(y)):
            raise ParameterError(
                f"collections of Dask of more than {MOST_FOR_PERMUTATIONS} rows have null='spectral' or 'gamma', "
                f"not {null!r} with statistic={statistic!r}: pass x.compute() and y.compute() for these."
            )
        x, y = in_memory(x, "x"), in_memory(y, "y")
        default = "several" if n > MOST_FOR_GRAM else "fused" if statistic == "biased" else "median"
        wanted = one_for_each(kernel, 2)
        kernels = tuple(
            kernels_of(w, data, name, default, random.generator)
            for w, data, name in zip(wanted, (x, y), NAMES, strict=True)
        )
        if default == "median" and max(map(len, kernels)) > 1:
            raise ParameterError(f"statistic={statistic!r} is for one kernel; with several use 'biased'.")
        if n > MOST_FOR_GRAM:
            kernels = tuple((_one(listed),) for listed in kernels)
        shifts = Shifts.draw(n, n_permutations, random.generator)
        if n <= MOST_FOR_GRAM:
            found, label = _by_gram((x, y), kernels, statistic, shifts, handicaps(wanted, kernels), door)
            warnings: tuple[str, ...] = ()
        else:
            found, label, warnings = _by_features((x, y), kernels, statistic, shifts, random.generator, door)
    value, law = float(found.values[0]), Null("permutation", found.values[1:], exact=True, rounding=found.rounding)
    return TestResult(
        value,
        law.pvalue(value),
        law,
        tuple(listed[0] if len(listed) == 1 else listed for listed in kernels),
        f"independence test, {label}",
        (n,),
        random.seed,
        (*told, *warnings, *flat(law, value)),
    )


def _encoded(data: tuple[Any, Any], features: tuple[Any, Any], random: Rng) -> tuple[Any, Any]:
    """Both variables, each as the vectors that a function of its rows gives, where there is one."""
    first, second = (
        part if function is None else encoded(part, function, name, random.generator)
        for part, function, name in zip(data, features, NAMES, strict=True)
    )
    return first, second


def _by_design(
    data: tuple[Any, Any], kernel: KernelLike, design: Design, n_draws: int, random: Rng, told: tuple[str, ...]
) -> TestResult:
    """The default collection's or one kernel's HSIC within strata, under the exchanges of a design."""
    design.doubts_of_orders(constant=True)
    wanted = one_for_each(kernel, 2)
    data = tuple(
        from_strata((part,), (name,), design)[0] if is_default(w) else part
        for w, part, name in zip(wanted, data, NAMES, strict=True)
    )
    with Door() as door:
        kernels = tuple(
            kernels_of(w, part, name, "fused", random.generator)
            for w, part, name in zip(wanted, data, NAMES, strict=True)
        )
        behind = handicaps(wanted, kernels)
        found, doubts = design_hsic(data, NAMES, kernels, behind, design, n_draws, random.generator, door)
    value, law = float(found.values[0]), Null("exchanges", found.values[1:], exact=True, rounding=found.rounding)
    sizes = tuple(map(len, kernels))
    several = f" fused over {sizes[0]} × {sizes[1]} kernels" if max(sizes) > 1 else ""
    return TestResult(
        value,
        law.pvalue(value),
        law,
        tuple(listed[0] if len(listed) == 1 else listed for listed in kernels),
        f"independence test, {design.label('HSIC')}{several}",
        (len(design.units),),
        random.seed,
        (*told, *doubts, *flat(law, value)),
    )


def _is_many(x: Data, y: Data) -> bool:
    """Whether there are more pairs than are permuted unless told otherwise, as an iterator may have."""
    n = _length(x, y)
    return n is None or n > MOST_FOR_PERMUTATIONS


def _length(x: Data, y: Data) -> int | None:
    """How many pairs there are; None where an iterator does not say."""
    if y is None:
        if is_stream(x):
            return None
        raise KindError("y is None; expected the second variable, or as x an iterator of pieces (x, y).")
    n, m = count_rows(x), count_rows(y)
    if n is None or m is None:
        return None
    for size, name in ((n, "x"), (m, "y")):
        check_rows(size, name, LEAST_POINTS)
    check_paired(n, m)
    return n


def _one(kernels: tuple[Kernel, ...]) -> Kernel:
    return kernels[0] if len(kernels) == 1 else Sum(kernels)


def _by_gram(
    data: Data, kernels: Any, statistic: str, shifts: Shifts, behind: np.ndarray, door: Door
) -> tuple[Permuted, str]:
    """The statistic of whole Gram matrices for the data and each permutation."""
    n = len(shifts.base)
    margins: tuple[list[Margins], list[Margins]] = ([], [])
    # One array for all Gram matrices in turn: fresh memory costs more than the arithmetic.
    space = np.empty((n, n + n // 2), np.float32)

    def grams(side: int) -> Iterator[np.ndarray]:
        for kernel in kernels[side]:
            points = rows(read_points(kernel, data[side], NAMES[side], door), shifts.base)
            unit = single_gram(door.cast(kernel), points, door, space[:, :n])
            margins[side].append(centre(space[:, :n], unit))
            yield space
        if all(margin.is_zero for margin in margins[side]):
            raise constant(NAMES[side])

    sums = permuted_hsic(grams(0), grams(1), shifts, behind)
    if sums.shape[:2] != (1, 1):
        label = f"HSIC fused over {sums.shape[0]} × {sums.shape[1]} kernels"
        return fused_hsic(sums, *margins, shifts, behind), label
    (first,), (second,) = margins
    return one_hsic(sums[0, 0], first, second, statistic, shifts), f"{statistic} HSIC"


def _by_features(
    data: Data, kernels: Any, statistic: str, shifts: Shifts, generator: np.random.Generator, door: Door
) -> tuple[Permuted, str, tuple[str, ...]]:
    """The statistic of features for the data and each permutation."""
    sides, fitted = [], []
    for (kernel,), values, name in zip(kernels, data, NAMES, strict=True):
        feature = features_of(kernel, values, name, generator, door)
        fitted.append(feature)
        sides.append(all_features(feature, values, name, door)[shifts.base])
        if np.ptp(sides[-1], axis=0).max() == 0:
            raise constant(name)
    x, y = (Margins.of_features(side) for side in sides)
    off = permuted_features(sides[0], sides[1], shifts) - diagonal_sums(x, y, shifts)
    found = one_hsic(off, x, y, statistic, shifts)
    return found, f"{statistic} HSIC of features", cut_short(fitted, "the level is exact")
