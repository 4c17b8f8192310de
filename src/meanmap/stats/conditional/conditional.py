"""Are two variables independent given a third?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.rng import Rng
from meanmap.core.settings import one_of
from meanmap.core.synonyms import own_words
from meanmap.core.tables.missing import length, settle
from meanmap.core.tables.order import clocks
from meanmap.core.tables.picked import check_no_names
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.kernels.base import Kernel
from meanmap.learning.default import asks_to_learn, is_default, strange_kernel
from meanmap.stats.asked import Asked, Found
from meanmap.stats.conditional.asking_again import DOUBTED, told_in_order
from meanmap.stats.conditional.conditional_plan import ConditionalIndependencePlan, doubts
from meanmap.stats.conditional.judging import judge_streamed
from meanmap.stats.conditional.residuals import WIDE, Given, Unread, read_side, residuals
from meanmap.stats.conditional.settled import settled
from meanmap.stats.conditional.strata import (
    codes_told,
    found_in_strata,
    many_told,
    other_reading,
    rows_together,
    strata_told,
)
from meanmap.stats.conditional.variables import TOO_MANY, Variable, check_given, holds_texts, read_given
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.designs.reading import from_strata
from meanmap.stats.independence.joint_variables import common_length
from meanmap.stats.independence.variables import for_two
from meanmap.stats.result import TestResult

__all__ = ["WHOLE", "conditional_independence_test", "read_triples"]

NAMES = ("x", "y", "z")
# The null distributions available for each method; "auto" takes the first.
METHODS = {
    "kci": ("bootstrap", "gamma", "spectral"),
    "residuals": ("permutation",),
    "features": ("spectral", "gamma"),
}
# The methods' names in results.
CALLED = {
    "kci": "kernel conditional independence test",
    "residuals": "conditional independence test, HSIC of Gaussian process residuals",
    "features": "conditional independence test with streamed features",
}
# Up to this many points "auto" uses full matrices, beyond it features.
WHOLE = 5000
# Signs are flipped for whole clusters. With fewer clusters than this the normal limit of their sums is inaccurate.
FEW_CLUSTERS = 30


@own_words
@one_blas_thread()
def conditional_independence_test(
    x: Data,
    y: Data,
    z: Data,
    *,
    data: Data = None,
    within: Data = None,
    clusters: Data = None,
    method: str = "auto",
    kernel: KernelLike = None,
    kernel_x: Kernel | str | None = None,
    kernel_y: Kernel | str | None = None,
    null: str = "auto",
    n_permutations: int = 1000,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> TestResult:
    """Test whether x and y are independent given z.

    Regression removes the dependence of x and of y on z; the test asks whether the residuals are dependent anywhere in
    the range of z.

    Parameters
    ----------
    x, y, z : points, or names of columns of `data`
        n triples; each variable may be numbers, vectors, labels, text, times, or a table of these with several columns.
    data : DataFrame or mapping of columns, optional
        The table in which x, y, z, `within` and `clusters` name a column, or a list of columns.
    within, clusters : column name, several, array, or table, optional
        `within` gives strata (sites, batches): the test also conditions on them, as labels, and centres the numbers of
        x and y within strata. Rows of the same cluster (people, schools) may be dependent; an integer as `clusters`
        stands for blocks of that many consecutive rows of a series. Clusters require "kci" with "bootstrap".
    method : {"auto", "kci", "residuals", "features"}
        "kci": the kernel conditional independence test, without assumptions about noise (Zhang et al. 2011).
        "residuals": Gaussian process residuals of x and of y, then HSIC (Flaxman et al. 2016, section 5); for numbers
        with noise that does not change with z; it cannot detect dependence that cancels over z. "features": "kci" with
        at most ten features for each side, streamed, for 10⁵ points and more. "auto" takes "kci" up to 5000 points,
        then "features".
    kernel : Kernel, "median", "learned" or None
        For both x and y. For numbers it is applied to the residuals given z, in their units. "median": RBF at the
        median distance of the standardised residuals, so that rescaling a column changes nothing; Delta for labels.
        "learned": at the lengthscale that `learn_kernel` finds in each side's residuals. By default "kci" uses
        residuals at their median distance, up to 500 points also the numbers themselves, and a linear part; "features"
        uses "median". "residuals" does too, but with a lengthscale at least as long as for normal residuals.
    kernel_x, kernel_y : as `kernel`
        Separate kernels for each side, instead of `kernel`.
    null : {"auto", "bootstrap", "gamma", "spectral", "permutation"}
        "bootstrap" (the default of "kci") flips signs of the products of residuals; "spectral" (that of "features") and
        "gamma" draw from the limiting distribution: weighted chi-squares, or a gamma distribution with their moments.
        "permutation" is for "residuals", which are permuted.
    n_permutations : int
        The number of permutations, bootstrap draws, or draws from the limiting distribution.
    missing : {"raise", "drop", "category"}, or list of codes
        What happens to missing values: an error; rows with one in any variable are dropped, and a warning counts them;
        or missing labels form a label of their own. A list of codes, such as ["?", -999], drops rows with these, too.
    kinds : mapping of column to kind, optional
        The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`.
    rng : None, int, numpy.random.Generator or JAX key
        Source of the draws; `rng=result.seed` repeats them.

    Returns
    -------
    TestResult
        `warnings` say where the level is doubtful.

    Notes
    -----
    With residual features uᵢ of x and vᵢ of y and a kernel k on z the statistic is (1/n) Σᵢⱼ ⟨uᵢ, uⱼ⟩⟨vᵢ, vⱼ⟩k(zᵢ, zⱼ).
    The default kernels of "kci" add |Σᵢ xᵢ ⊗ yᵢ|²/n of the residuals themselves, which detects linear dependence (Shah
    & Peters 2020). The statistic is then minus the log of the weighted harmonic mean of both p-values (Wilson 2019),
    with the null distribution of this combination. For the second part the residuals come from a regression with a cost
    of 1.4 per degree of freedom (Kim & Gu 2004), and their products have the variance E[|x|² | z] E[|y|² | z] that
    holds under independence, from squares regressed on z. The first statistic divided by n has the limit zero only
    under conditional independence (Daudin 1980; Pogodin et al. 2024), and no joint function of x and z has to be
    regressed on z.

    No conditional test keeps its level under every distribution (Shah & Peters 2020): regressions that are biased on
    both sides look like dependence. To counter this, numbers are first replaced by their residuals, which does not
    change the hypothesis and leaves little to regress. Each regression is linear plus smooth, in the additive, joint or
    learned metric (Radhakrishnan et al. 2024) that predicts best by generalised cross-validation. Draws are inflated,
    row by row, for the variance shared by fits to the same points: if only two rows have a label of z, both residuals
    have the same size. If x or y is a function of z up to rounding, the p-value is 1, with a warning. Functions of z
    that the regressions fit less well (steps, waves faster than the spacing of z) leave a remainder, and remainders on
    both sides look like dependence. If the p-value is .2 or less, three correlations of the residuals are therefore
    checked: between neighbours in z, with products of two or three of up to eight numbers in z, and with products of
    waves of the ranks of two numbers (steps, signs, chessboards). If one is larger on both sides than noise makes it
    once in a hundred times, richer regressions are added and the test is repeated. They use leaves of trees, narrower
    kernels, the same products, and all smooth functions of the two pairs of columns that are most correlated with
    residuals. A warning reports what is missed even then (a function of many columns, two functions without any noise,
    series along z): its share of the residual variance, and the p-value without its contribution unless this is the
    same. Of twelve functions that x and y shared (300 rows, 100 data sets each; `python -m benchmarks.structures`) 0 to
    6 were rejected without a warning; causal-learn's kernel test rejected nine nearly always. With more than 5000 rows
    2000 are checked. A warning says if z leaves under a twentieth of both variances.

    Weak functions of z that bend quickly are not found in this way. The correlation between neighbours along each
    column of z is therefore also checked for the sum of the residuals of x and y. If it is larger than noise makes it
    once in twelve times, y is permuted within groups of three neighbouring rows along that column (Kim et al. 2022).
    The larger p-value is reported, with a warning if this matters. Of 100 data sets of 200 rows, z uniform from -3 to
    3, in which .5 sin(20 z) was added to noise of variance 1 on both sides, 8 were rejected (23 without this step).
    With two more columns in z 19 were rejected (39 without), and with noise of standard deviation exp(.8 sin(20 z)) 16
    (43 without). Dependences detected in 94 of 100 data sets without this step were detected in 92 with it. The test
    neither finds nor reports functions that oscillate within about three rows, or along none of the columns of z, nor
    any with clusters or beyond 5000 rows.

    A column of z that repeats an earlier one, perhaps in another unit, is left out, with a note. One-to-one functions
    of a column do not change the hypothesis. For numbers more than 20 robust standard deviations from the median only
    the logarithm of the distance counts; otherwise one value like 999999 in x and z would dominate every regression. A
    warning names values beyond 1000 standard deviations.

    If rows share all values of z (labels, sites, years, counts, grades), with 6 rows or more for each combination on
    average, x and y are permuted within these combinations, which is exact: the result is that of `independence_test(x,
    y, within=z)`. A warning says so if z holds numbers. Given counts with smooth effects, permutation detected 56 of 60
    partial correlations of .3 among 200 rows, and regressions detected 60. `method="kci"` always regresses on z; so do
    `clusters=`, a learned kernel and more than 5000 rows, and warnings name whole numbers in z that regressions may not
    follow.

    A warning says if z has each value once, in equal steps, like clocks and ids. Of 40 pairs of series of 200 rows that
    shared a random walk, with steps half as large as their noise, 26 were rejected given the number of the row, at .05,
    and 7 by `independence_test` within pairs of neighbouring rows.

    A number in z with 8 rows for each of its values (up to 200 values, and a fifth of the rows) enters regressions both
    as a number and as a label, if z has other columns or with `method="kci"`. The hypothesis is the same, as both carry
    all information in z, but regressions can then follow smooth effects of the number as well as separate effects of
    each value. If z is one such number, with 8 rows for each value, some bias remains: at .05 regressions rejected .05
    to .19 of true null hypotheses with 12 values and .07 to .30 with 63. With more values, or fewer rows for each,
    effects are assumed smooth. For integers a warning gives the p-value with values as codes, if it differs.

    Labels become indicators; ordered labels become ranks if `kinds` says "rank". Angles and times of a cycle become
    points on a circle if `kinds` says so. Text that differs in nearly every row is replaced by its first principal
    coordinates by substrings of three characters, and a warning says so. Vectors are several columns of numbers.

    Dropping incomplete rows keeps the level if values are missing at random given z, and if missingness depends on z
    and x, or on z and y: in the remaining rows x and y are still independent given z. If missingness depends on both x
    and y they are not, and no test of complete rows can detect that.

    The level of "kci" was measured on data sets with one to five conditioning columns and linear and nonlinear causes
    (see the benchmarks in the documentation): near 0.05 from 100 points on, but 0.07 for nonlinear functions of five
    columns at 100 points, where half of the results carry a warning. "residuals" rejects too often if noise enters
    inside a function (0.11 at 200 points and three columns), or if its variance grows with z on both sides (0.78 at 100
    points). With rare labels or rare large values of z, alone and together with a number, and 100 or 200 points, all
    three methods keep the level (0.034 to 0.061 of 1000 data sets each). "features" is conservative (0.028) if the
    variance of the noise grows with z.

    The cost is O(n² (r + B)) for "kci" with B draws, O(n r (r + B)) for "residuals" and O(n r²) for "features", for r
    up to some hundred.

    Examples
    --------
    Two effects of one cause are dependent, but not given the cause:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=300)
    >>> x, y = np.sin(2 * z) + 0.3 * rng.normal(size=300), z**2 + 0.3 * rng.normal(size=300)
    >>> conditional_independence_test(x, y, z, rng=0).reject(0.05)
    False
    >>> conditional_independence_test(x, y + 0.5 * x, z, rng=0).reject(0.05)
    True
    """
    _check(method, null)
    wanted = *_kernels(*for_two(kernel, kernel_x, kernel_y)), None
    asked = [x, y, z], wanted, (within, clusters), n_permutations, missing, kinds, Rng.of(rng), NAMES
    return _Triple(*asked, data=data, method=method, null=null).answer()


@dataclass
class _Triple(Asked):
    """Two variables, the conditioning variable, and how dependence is measured."""

    method: str = "auto"
    null: str = "auto"
    across: ClassVar[bool] = True

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels of x and of y."""
        return tuple(self.wanted[:2])

    def pick(self) -> None:
        super().pick()
        check_no_names(**dict(zip(NAMES, self.parts, strict=True)))
        check_given(self.parts[2])
        if self.said[1] is None:
            self.tell(clocks(self.parts[2], "z"))

    def in_one_pass(self) -> Found | None:
        if not _streams(self.parts, self.designed, self.method, self.kernels, self.null):
            return None
        _check_kernels("features", self.kernels)
        x, y, z = self.parts
        plan = ConditionalIndependencePlan.of(x, y, z, missing=self.missing, kinds=self.kinds, rng=self.random.seed)
        while plan.passes > 1:
            plan = plan.after(plan.state(x, y, z))
        found = plan._found(plan.state(x, y, z), self.n_draws, self.null)
        if not any(map(comes_in_pieces, self.parts)) and not any(TOO_MANY in note for note in found.told):
            self.tell(many_told(settle((z,), ("z",), self.missing)[0][0], self.kinds))
        return found

    def _strata(self, z: Data) -> np.ndarray | None:
        """Groups of rows with equal values of z, and equal strata, if they are large enough to be permuted."""
        if (
            self.method != "auto"
            or self.null != "auto"
            or self.said[1] is not None
            or any(map(asks_to_learn, self.kernels))
        ):
            return None
        return rows_together(z, beside=None if self.exchange is None else self.exchange.strata)

    def leave_strata(self) -> None:
        """The conditions with the strata added as labels to z."""

    def compute(self, door: Door) -> Found:
        generator, kernels, method, design = self.random.generator, self.kernels, self.method, self.exchange
        x, y, z = self.parts
        strata = self._strata(z)
        if strata is not None:
            check_triples((x, y), len(strata))
            self.tell(strata_told(z, strata))
            return found_in_strata((x, y), kernels, strata, self.n_draws, self.random, door)
        conditions, sides = read_triples(x, y, z, kernels, door, design)
        n, clustered = len(conditions.columns), self.said[1] is not None
        if method == "auto":
            # "features" has fixed kernels: other kernels, clusters, and other null distributions need full matrices.
            whole = n <= WHOLE or any(map(_chosen, kernels)) or self.null not in ("auto", *METHODS["features"])
            method = "kci" if whole or clustered else "features"
            _check(method, self.null)
        if clustered and (method != "kci" or self.null not in ("auto", "bootstrap")):
            raise ParameterError("clusters= are for method='kci' with null='bootstrap': leave out method= and null=.")
        _check_sides(sides, method, kernels)
        null = METHODS[method][0] if self.null == "auto" else self.null
        if method == "features":
            value, law, used, fitted = judge_streamed(sides, conditions, null, self.n_draws, generator, door)
        else:
            units = design.units if clustered and design is not None else None
            given = Given.of(conditions, generator, units)
            kernels = kernels if method == "kci" else tuple(WIDE if k is None else k for k in kernels)
            left, right = (residuals(s, k, given, door, generator) for s, k in zip(sides, kernels, strict=True))
            three = tuple(zip(sides, kernels, (left, right), strict=True))
            found = settled(
                left, right,
                lambda: [residuals(s, k, given, door, generator, missed=m) for s, k, m in three],
                method, null, self.n_draws, generator,
            )  # fmt: skip
            value, law, left, right, fitted = found.value, found.law, found.left, found.right, found.fitted
            used = left.kernel, right.kernel
            self.tell(told_in_order(left, right, sides, law.pvalue(value)))
            if self.method == "auto" and design is None and law.pvalue(value) <= DOUBTED:
                own = (x, y), self.kernels, law.pvalue(value), self.n_draws, Rng.of(0)
                self.tell(other_reading(z, *own, door) or codes_told(z, beside=True))
            elif clustered and self.said[0] is None:
                self.tell(codes_told(z))
        self.tell([text for read in (*sides, conditions) for text in read.notes])
        if clustered and design is not None and len(design.first_rows) < FEW_CLUSTERS:
            few = f"there are {len(design.first_rows)} clusters: with so few the level may not be kept."
            self.tell([few])
        told = doubts(method, n, fitted, conditions.columns.shape[1], self.n_draws, law.pvalue(value))
        name = CALLED[method] if design is None else design.told(CALLED[method])
        return Found(value, law, used, name, (n,), told)


def read_triples(
    x: Data,
    y: Data,
    z: Data,
    kernels: Sequence[Kernel | str | None],
    door: Door,
    design: Exchange | None = None,
) -> tuple[Variable, list[Variable | Unread]]:
    """z with the strata of a design, and x and y, as numeric columns with one row for each triple."""
    conditions = read_given(z)
    if design is not None and design.strata.any():
        conditions = conditions.within(design.strata)
        x, y = (
            from_strata((part,), (name,), design)[0] if is_default(k) else part
            for part, k, name in zip((x, y), kernels, "xy", strict=True)
        )
    sides = [read_side(data, name, k, door) for data, name, k in zip((x, y), "xy", kernels, strict=True)]
    check_triples(sides, len(conditions.columns))
    return conditions, sides


def check_triples(sides: Sequence[Any], n: int) -> None:
    """Refuse x and y whose numbers of rows differ from that of z."""
    for side, name in zip(sides, "xy", strict=True):
        rows = len(side) if isinstance(side, Variable | Unread) else length(side)
        if rows != n:
            raise ShapeError(f"{name} has {rows} points and z has {n}; expected triples, one of each.")


def _check(method: str, null: str) -> None:
    nulls = list(dict.fromkeys(name for names in METHODS.values() for name in names))
    for name, value, known in (("method", method, METHODS), ("null", null, nulls)):
        one_of(value, name, ("auto", *known))
    if "auto" not in (method, null) and null not in METHODS[method]:
        raise ParameterError(
            f"method={method!r} has no null={null!r}: pass null={' or '.join(map(repr, METHODS[method]))}."
        )
    if method == "auto" and null == "permutation":
        raise ParameterError("null='permutation' is for residuals: pass method='residuals' with it.")


def _streams(variables: Sequence[Any], designed: bool, method: str, kernels: Sequence[Any], null: str) -> bool:
    """Whether the test is computed from sums over rows, since there are many and nothing needs all of them at once."""
    if method not in ("auto", "features") or common_length(NAMES, variables) <= WHOLE:
        return False
    asked = designed or (method == "auto" and any(map(_chosen, kernels)))
    texts = any(holds_texts(each) for each in variables if not comes_in_pieces(each))
    return not asked and not texts and null in ("auto", *METHODS["features"])


def _kernels(*kernels: Any) -> tuple[Kernel | str | None, ...]:
    for name, kernel in zip(("kernel_x", "kernel_y"), kernels, strict=True):
        if not (kernel is None or isinstance(kernel, Kernel) or kernel in ("median", "learned")):
            raise strange_kernel(kernel, name)
    return kernels


def _chosen(kernel: Kernel | str | None) -> bool:
    """Whether this differs from the default of a method."""
    return isinstance(kernel, Kernel) or kernel == "learned"


def _check_kernels(method: str, kernels: Sequence[Kernel | str | None]) -> None:
    if method == "features" and any(map(_chosen, kernels)):
        raise ParameterError("method='features' chooses its own kernels: pass kernel=None, or method='kci'.")


def _check_sides(sides: Sequence[Variable | Unread], method: str, kernels: Sequence[Kernel | str | None]) -> None:
    """Refuse labels with method='residuals', and chosen kernels with method='features'."""
    _check_kernels(method, kernels)
    for side, name in zip(sides, "xy", strict=True):
        if method == "residuals" and (isinstance(side, Unread) or side.indicators.shape[1]):
            raise KindError(f"{name} has labels, and method='residuals' is for numbers: pass method='kci'.")
