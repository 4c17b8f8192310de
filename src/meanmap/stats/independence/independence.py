"""Are two variables independent?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from meanmap.core.arrays import check_paired, check_rows
from meanmap.core.containers import is_dask
from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.points import rows
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import chunks_of, count_rows, paired_chunks, source_of
from meanmap.core.tables.order import alike_in_order
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.kernels.base import Kernel, Sum
from meanmap.kernels.reading import read_points
from meanmap.stats.asked import Asked, Found, alone
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.designs.reading import check_permuted
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
from meanmap.stats.independence.independence_plan import IndependencePlan, cut_short
from meanmap.stats.independence.moments import (
    BLOCK,
    MOST_FEATURES,
    features_and_values,
)
from meanmap.stats.independence.shifts import Shifts
from meanmap.stats.independence.variables import constant, for_two, handicaps, kernels_of
from meanmap.stats.permutations import Permuted
from meanmap.stats.result import TestResult
from meanmap.stats.settings import LEAST_POINTS, check_choice

__all__ = ["independence_test"]

# The null distributions available for each statistic.
CHOICES = {"biased": ("permutation", "gamma", "spectral"), "unbiased": ("permutation",), "normalised": ("permutation",)}
NAMES = ("x", "y")
# Full Gram matrices are used up to this many points, with one kernel for each variable and with several. Beyond,
# features of several kernels cost no more.
MOST_FOR_GRAM, MOST_FOR_GRAMS = 6000, 1500
# The number of features of each kernel if there are several.
MOST_OF_SEVERAL = 64
# null="auto" permutes up to this many points. Beyond, the limit is as accurate as the draws that estimate a p-value.
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
    features_x: object = None,
    features_y: object = None,
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
        n pairs, at least 5; each may be numbers, labels, or a table of both. Data larger than memory may be given as
        memory maps, Parquet files (a path, a folder, a pattern, a list), polars lazy frames, columns of one Dask array
        or frame, computed by its workers, or iterators of pieces; or one iterator of pieces (x, y) as `x`. With more
        than 20,000 rows the p-value is the same bit for bit wherever they are stored (`plan`); for iterators,
        kernels and features are chosen from the first 4096 rows, otherwise from random ones.
    data : DataFrame or mapping of columns, optional
        The table in which x, y, `within` and `clusters` name a column, or a list of columns.
    kernel : None, "median", "learned" or Kernel
        For both variables: a kernel, or "median", RBF at the median distance with one lengthscale per column (Delta for
        labels); "learned" multiplies these by the lengthscale that `learn_kernel` finds in that variable alone. By
        default each numeric variable gets five lengthscales, from very short to long distances, and 20 pairs of them
        are fused, with a bonus for pairs of short ones. Rescaling any column changes nothing.
    kernel_x, kernel_y : as `kernel`, or a list of Kernel
        Separate kernels for each variable, instead of `kernel`; with lists all pairs are fused.
    within, clusters : column name, several, array, or table, optional
        Which rows are exchangeable. `within` gives strata (sites, batches, pairs): rows are permuted within strata, so
        differences between strata have no effect. Rows of the same cluster (people, schools) stay together; an integer
        as `clusters` stands for blocks of that many consecutive rows of a series. Clusters are permuted with their rows
        in order, so only clusters of equal size can replace each other, unless a variable is constant within clusters.
        The level is exact if the rows of a stratum, or its clusters, are exchangeable under the null hypothesis. Both
        need a value for each row. An `Exchange` object may be passed as `within` instead.
    features_x, features_y : callable, optional
        Representations of x, or of y: any function that maps a batch of rows to one vector per row. For data in memory.
    null : {"auto", "permutation", "gamma", "spectral"}
        "permutation" pairs x with permuted y and keeps the level exactly; "auto" uses it up to 20,000 points.
        "spectral" and "gamma" use the limiting distribution of the biased statistic of one kernel, and read data piece
        by piece.
    statistic : {"biased", "unbiased", "normalised"}
        HSIC as tr(K H L H)/n² (Gretton et al. 2005), its unbiased form (Song et al. 2012, eq. 5), or divided by the
        norms of both centred Gram matrices, which makes it a correlation between 0 and 1 (Cortes et al. 2012).
        With several kernels the statistic is the largest of the biased ones, each standardised over its permutations.
    n_permutations : int
        The number of permutations, or of draws from the limiting distribution.
    missing : {"raise", "drop", "category"}, or list of codes
        What happens to missing values: an error; rows with one in any variable are dropped, and a warning counts them;
        or missing labels form a label of their own. A list of codes, such as ["?", -999], drops rows with these, too.
    kinds : mapping of column to kind, optional
        The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`.
    rng : None, int, numpy.random.Generator or JAX key
        Draws the permutations; `result.seed` repeats them.

    Returns
    -------
    TestResult

    Notes
    -----
    Permutations are cyclic shifts of random orders, n of them at once by fast Fourier transforms. Up to 6000 points
    with one kernel for each variable, or 1500 with several, full Gram matrices are used, in O(n² log n). Beyond, each
    pair of features costs O(n): one kernel has at most 128 features, several kernels have at most 64 each, and shifts
    are by steps of a few points. Limiting distributions take one pass over the data, in O(n r²) for r features, with
    some thousand rows in memory at a time.

    With `within` or `clusters` HSIC uses at most 48 features for each kernel, centred within strata. Unless the kernel
    is given, numbers are first centred within strata.

    If the method needs one kernel, the default for up to 6000 points is RBF at the median distance. Beyond, and for
    limits and iterators, the kernels of a list or of the default collection are summed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, size=100)
    >>> independence_test(x, x**2 + 0.3 * rng.normal(size=100), rng=0).reject(0.05)
    True
    """
    check_choice(statistic, null, CHOICES)
    wanted, said, features = for_two(kernel, kernel_x, kernel_y), (within, clusters), (features_x, features_y)
    asked = [x, y], wanted, said, n_permutations, missing, kinds, Rng.of(rng), NAMES
    return _Pair(*asked, data=data, features=features, statistic=statistic, null=null).answer()


def in_strata(
    sides: Sequence[Any], kernels: Sequence[Any], exchange: Exchange, n_draws: int, random: Rng, door: Door
) -> Found:
    """The test of two variables under the permutations of a design; variables and design have been read before."""
    asked = _Pair(list(sides), kernels, (None, None), n_draws, "raise", None, random, NAMES, exchange)
    asked.leave_strata()
    return asked.compute(door)


@dataclass
class _Pair(Asked):
    """Two variables, and how their dependence is measured."""

    statistic: str = "biased"
    null: str = "auto"

    def in_one_pass(self) -> Found | None:
        n = _length(*self.parts)
        if self.designed:
            check_permuted(self.statistic, self.null, "biased")
            if n is None:
                raise ParameterError("within= and clusters= are for variables in memory.")
        if self.designed or any(each is not None for each in self.features) or not self._is_many(n):
            return None
        if n is None and (self.null == "permutation" or self.statistic != "biased"):
            raise ParameterError(
                "an iterator can be read only once, and permutations need the rows again: pass null='auto' and "
                "statistic='biased', or arrays."
            )
        if not self._is_limit(n):
            if any(map(is_dask, self.parts)):
                raise ParameterError(
                    f"Dask collections of more than {MOST_FOR_PERMUTATIONS} rows take null='spectral' or 'gamma', "
                    f"not {self.null!r} with statistic={self.statistic!r}: pass x.compute() and y.compute() for these."
                )
            return None
        found = self._limit(self.missing, self.kinds)
        self.tell(alike_in_order(self.parts, NAMES, paired=True))
        return found

    def _is_many(self, n: int | None) -> bool:
        """Whether null="auto" means the limit because there are too many pairs to permute; true for iterators."""
        return n is None or n > MOST_FOR_PERMUTATIONS

    def _is_limit(self, n: int | None) -> bool:
        """Whether the null is the limit."""
        by_itself = self.null == "auto" and self.statistic == "biased" and self._is_many(n)
        return n is None or by_itself or self.null in ("gamma", "spectral")

    def _limit(self, missing: str, kinds: Mapping[str, Any] | None) -> Found:
        """The test in one pass: of iterators, data larger than memory, and data with a limiting null distribution."""
        x, y = self.parts
        default, first, rest = "several", (x, y), (x, y)
        if _length(x, y) is None:
            blocks = chunks_of(x, BLOCK, "x") if y is None else paired_chunks((x, y), BLOCK, NAMES)
            first = next(blocks, None)
            if not isinstance(first, tuple) or len(first) != 2:
                raise KindError("the iterator x gives no pairs; expected pieces (x, y), or y as a second argument.")
            rest = (chain([first], blocks),)
        elif (count_rows(x) or 0) <= MOST_FOR_GRAM:
            default = "median"
        wanted = self.wanted[0], self.wanted[1]
        plan = IndependencePlan._of(*first, wanted, default, missing, kinds, self.random)
        return plan._found(plan.state(*rest), self.n_draws, self.null)

    def compute(self, door: Door) -> Found:
        n = _length(*self.parts)
        assert n is not None  # an iterator can only be read in one pass
        if self.exchange is not None:
            return self._by_design(self.exchange, door)
        if self._is_limit(n):
            return self._limit("raise", None)
        fused = self.statistic == "biased"
        kernels = self._kernels("fused" if fused else "median" if n <= MOST_FOR_GRAM else "several")
        if not fused and max(map(len, kernels)) > 1:
            if n <= MOST_FOR_GRAM:
                raise ParameterError(f"statistic={self.statistic!r} is for one kernel; with several use 'biased'.")
            kernels = tuple((_one(listed),) for listed in kernels)
        behind, generator, warnings = handicaps(self.wanted, kernels), self.random.generator, ()
        whole = n <= (MOST_FOR_GRAM if behind.size == 1 else MOST_FOR_GRAMS)
        shifts = Shifts.draw(n, self.n_draws, generator, few=not whole)
        if whole:
            found, label = _by_gram(self.parts, kernels, self.statistic, shifts, behind, door)
        else:
            asked = self.parts, kernels, self.statistic, shifts, behind
            found, label, warnings = _by_features(*asked, generator, door)
        return self._exact(found, "permutation", kernels, label, warnings)

    def _by_design(self, exchange: Exchange, door: Door) -> Found:
        """HSIC within strata, of one kernel or the default collection, under the permutations of a design."""
        exchange.doubts_of_orders(constant=True)
        kernels = self._kernels("fused")
        behind, sizes = handicaps(self.wanted, kernels), tuple(map(len, kernels))
        generator = self.random.generator
        found, doubts = design_hsic(self.parts, NAMES, kernels, behind, exchange, self.n_draws, generator, door)
        several = f" fused over {sizes[0]} × {sizes[1]} kernels" if max(sizes) > 1 else ""
        return self._exact(found, "exchanges", kernels, exchange.told("HSIC") + several, doubts)

    def _kernels(self, default: str) -> tuple[tuple[Kernel, ...], ...]:
        beside = zip(self.wanted, self.parts, NAMES, strict=True)
        return tuple(kernels_of(w, part, name, default, self.random.generator) for w, part, name in beside)

    def _exact(self, found: Permuted, kind: str, kernels: Any, label: str, told: Sequence[str]) -> Found:
        sizes = (_length(*self.parts) or 0,)
        return Found.exact(found, kind, tuple(map(alone, kernels)), f"independence test, {label}", sizes, told)


def _length(x: Data, y: Data) -> int | None:
    """The number of pairs; None for an iterator."""
    if y is None:
        if source_of(x).once:
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
    data: Sequence[Any], kernels: Any, statistic: str, shifts: Shifts, behind: np.ndarray, door: Door
) -> tuple[Permuted, str]:
    """The statistic of full Gram matrices for the data and each permutation."""
    n = len(shifts.base)
    margins: tuple[list[Margins], list[Margins]] = ([], [])
    # One array holds all Gram matrices in turn: allocating memory costs more than the arithmetic.
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
    data: Sequence[Any],
    kernels: Any,
    statistic: str,
    shifts: Shifts,
    behind: np.ndarray,
    generator: np.random.Generator,
    door: Door,
) -> tuple[Permuted, str, tuple[str, ...]]:
    """The statistic of features for the data and each permutation."""
    fitted, sides, margins = [], [], []
    most = MOST_FEATURES if behind.size == 1 else MOST_OF_SEVERAL
    for listed, values, name in zip(kernels, data, NAMES, strict=True):
        found = [features_and_values(kernel, values, name, generator, door, most) for kernel in listed]
        fitted.append(min((feature for feature, _ in found), key=lambda feature: feature.relative_error))
        sides.append([phi[shifts.base] for _, phi in found])
        if max(float(np.ptp(phi, axis=0).max()) for phi in sides[-1]) == 0:
            raise constant(name)
        margins.append([Margins.of_features(phi) for phi in sides[-1]])
    x, y = margins
    sums = permuted_features(sides[0], sides[1], shifts, behind)
    sums -= np.array([[diagonal_sums(one, other, shifts) for other in y] for one in x])
    told = cut_short(fitted, "the level is exact")
    if behind.size > 1:
        label = f"HSIC of features fused over {len(x)} × {len(y)} kernels"
        return fused_hsic(sums, x, y, shifts, behind), label, told
    return one_hsic(sums[0, 0], x[0], y[0], statistic, shifts), f"{statistic} HSIC of features", told
