"""Are two variables independent given a third?"""

from collections.abc import Mapping, Sequence
from typing import Any

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.points import on_host
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import in_memory
from meanmap.core.tables.picked import check_no_names, picked
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.kernels.base import Kernel
from meanmap.learning.default import is_default
from meanmap.stats.conditional.conditional_plan import ConditionalIndependencePlan, doubts
from meanmap.stats.conditional.judging import Fitted, judge, judge_streamed
from meanmap.stats.conditional.residuals import WIDE, Given, Unread, read_side, residuals
from meanmap.stats.conditional.variables import Variable, check_given, holds_texts, read_given
from meanmap.stats.designs.design import Design
from meanmap.stats.designs.reading import from_strata, observed
from meanmap.stats.independence.joint_variables import common_length
from meanmap.stats.independence.variables import for_two
from meanmap.stats.result import TestResult
from meanmap.stats.settings import check_draws
from meanmap.stats.texts import texts_of_variables

__all__ = ["WHOLE", "conditional_independence_test", "read_triples"]

NAMES = ("x", "y", "z")
# Which null distributions each method has; the first is what "auto" takes.
METHODS = {
    "kci": ("bootstrap", "gamma", "spectral"),
    "residuals": ("permutation",),
    "features": ("spectral", "gamma"),
}
# Up to this many points "auto" takes whole matrices, and beyond it features.
WHOLE = 5000
# Signs are flipped for whole clusters; with fewer than this the sums of clusters are not yet near their limit.
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

    What z says about x and about y is removed by regression; the test asks whether what is left still goes together,
    anywhere in the range of z.

    Parameters
    ----------
    x, y, z : points, or names of columns of `data`
        n triples; each may be numbers, vectors, labels, text, times, or a table of these with several columns.
    data : DataFrame or mapping of columns, optional
        The table of which x, y, z, `within` and `clusters` name a column, or several in a list.
    within, clusters : column name, several, array, or table, optional
        `within` are strata (sites, batches): they are conditioned on too, as labels, and numbers of x and y are
        measured from the mean of their stratum. The rows of one of the `clusters` (people, schools) may depend on each
        other; a whole number stands for blocks of so many consecutive rows of a series. Clusters are for "kci" with
        "bootstrap".
    method : {"auto", "kci", "residuals", "features"}
        "kci": the kernel conditional test, with nothing assumed about noise (Zhang et al. 2011). "residuals": Gaussian
        process residuals of x and of y, then HSIC (Flaxman et al. 2016, section 5); for numbers with noise that does
        not change with z, and blind to dependence that cancels over z. "features": the first with at most ten features
        a side, streamed, for 10⁵ points and more. "auto" takes "kci" up to 5000 points, then "features".
    kernel : Kernel, "median", "learned" or None
        For x and y alike. Of numbers it sees the residuals given z, in their units. "median": RBF at the
        median distance of the standardised residuals, so that rescaling a column changes nothing; Delta for labels.
        "learned": at the lengthscale that [`learn_kernel`][] finds in each side's residuals. By default "kci" sees
        residuals at their median, up to 500 points the numbers themselves, and what is linear; "features" takes
        "median", and "residuals" the same, but at least as wide as for normal residuals.
    kernel_x, kernel_y : as `kernel`
        For one side each, instead of `kernel`. (A pair as `kernel`, the spelling of earlier versions, is still read.)
    null : {"auto", "bootstrap", "gamma", "spectral", "permutation"}
        "bootstrap" (the default of "kci") flips signs of the products of residuals; "spectral" (that of "features") and
        "gamma" draw from the limit, weighted chi-squares or a gamma law with their moments. "permutation" is for
        "residuals", which are permuted.
    n_permutations : int
        Permutations, bootstrap draws, or draws from the limit.
    missing : {"raise", "drop", "category"}
        What happens to missing values: an error; rows with one in any variable are left out, which the warnings count;
        or missing labels are a label of their own.
    kinds : mapping of column to kind, optional
        What columns mean where their data type does not say, such as {"zip": "label"}: see [`Schema.of`][].
    rng : None, int, numpy.random.Generator or JAX key
        Draws them; `result.seed` repeats them.

    Returns
    -------
    TestResult
        `warnings` say where the level is in doubt.

    Notes
    -----
    With residual features uᵢ of x and vᵢ of y and a kernel k on z the statistic is (1/n) Σᵢⱼ ⟨uᵢ, uⱼ⟩⟨vᵢ, vⱼ⟩k(zᵢ, zⱼ).
    With the default kernels of "kci" |Σᵢ xᵢ ⊗ yᵢ|²/n of the residuals themselves, which sees what is linear (Shah &
    Peters 2020), is judged beside it: the statistic is then minus the log of the weighted harmonic mean of both
    p-values (Wilson 2019), and its null that of both together. There residuals are of a regression that pays 1.4 for a
    degree of freedom (Kim & Gu 2004), and their products have the variance E[|x|² | z] E[|y|² | z] that independence
    gives them, from squares regressed on z.

    Divided by n the first vanishes in the limit just for conditional independence (Daudin 1980; Pogodin et al. 2024),
    and no function of x and z together has to be regressed on z.

    No conditional test keeps its level under every law (Shah & Peters 2020): regressions that are biased on both sides
    look like dependence. Against that, numbers are first replaced by their residuals, which does not change the
    hypothesis and leaves little to regress; each regression is linear plus smooth, in whichever of additive, joint and
    learned metrics (Radhakrishnan et al. 2024) predicts best by generalised cross-validation; and draws are enlarged,
    row by row, by the variance that fits to the same points share: two rows that alone have a label of z leave one
    residual twice.

    Where z decides x or y to rounding the p-value is 1, and a warning says so. Functions of z that the regressions fit
    less well, such as the absolute value, steps, or waves that are quick beside the spacing of z, leave what they miss.
    Two of them without any noise are rejected more often than not: no test can tell that from dependence. A warning
    says where z leaves less than a twentieth of the variance of both.

    The hypothesis is the same for one-to-one functions of a column. Of numbers more than 20 robust standard deviations
    from the median only the logarithm of the distance counts, or one value like 999999 in x and z would decide every
    regression; a warning names values beyond 1000.

    Labels are indicators, and the order of ordered ones counts where `kinds` says "rank". Angles and times of a cycle,
    if `kinds` says so, are points of a circle. Text, where nearly every row has its own, stands for its first
    principal coordinates by substrings of three characters; a warning says so. Vectors are several columns of numbers.

    Without the rows in which something is missing the level is kept where values go missing at random given z, and
    where what is missing hangs on z and x, or on z and y: of the rows that are left x and y are still independent given
    z. Where values go missing for reasons in both x and y at once they are not, and no test of complete rows sees that.

    The level of "kci" was measured on data sets with one to five conditioning columns and linear and nonlinear causes
    (see the benchmarks in the documentation): near 0.05 from 100 points on, but 0.07 for nonlinear functions of five
    columns at 100 points, where half of the results warn. "residuals" rejects too often where noise enters inside a
    function, 0.11 at 200 points and three columns, or grows with z on both sides, 0.78 at 100 points. With rare labels
    or rare large values of z, alone and beside a number, 100 or 200 points, all three keep it (0.034 to 0.061 of 1000
    data sets each); "features" is careful, 0.028, where noise grows with z.

    Cost O(n² (r + B)) for "kci" with B draws, O(n r (r + B)) for "residuals" and O(n r²) for "features", with r at most
    a few hundred.

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
    _check(method, null, n_permutations)
    random = Rng.of(rng)
    told: tuple[str, ...] = ()
    if data is not None:
        x, y, z, within, clusters = picked(data, x=x, y=y, z=z, within=within, clusters=clusters)
    check_no_names(x=x, y=y, z=z)
    check_given(z)
    kernels = _kernels(for_two(kernel, kernel_x, kernel_y))
    if z is not None and any(map(comes_in_pieces, (x, y, z))) and common_length(NAMES, (x, y, z)) <= WHOLE:
        x, y, z = map(in_memory, (x, y, z))
    if _streams((x, y, z), within, clusters, method, kernels, null):
        _check_kernels("features", kernels)
        x, y, z = map(on_host, (x, y, z))
        plan = ConditionalIndependencePlan.of(x, y, z, missing=missing, kinds=kinds, rng=random.seed)
        while plan.passes > 1:
            plan = plan.after(plan.state(x, y, z))
        return plan.result(plan.state(x, y, z), n_permutations, "gamma" if null == "gamma" else "spectral")
    x, y, z = map(in_memory, (x, y, z))
    design = None
    if z is not None:
        (x, y, z), design, told = observed((x, y, z), NAMES, within, clusters, missing, kinds, across=True)
        asked = for_two(kernel, kernel_x, kernel_y)
        asked = tuple(asked) if isinstance(asked, list | tuple) and len(asked) == 2 else (asked, asked)
        (x, y, z), heard = texts_of_variables((x, y, z), NAMES, (*asked, None), kinds)
        told += heard
    with Door() as door:
        conditions, sides = read_triples(x, y, z, kernels, door, design)
        n = len(conditions.columns)
        if method == "auto":
            # "features" has kernels of its own: a chosen one, clusters, or a null it lacks, are for whole matrices.
            whole = n <= WHOLE or any(map(_chosen, kernels)) or null not in ("auto", *METHODS["features"])
            method = "kci" if whole or clusters is not None else "features"
            _check(method, null, n_permutations)
        if clusters is not None and (method != "kci" or null not in ("auto", "bootstrap")):
            raise ParameterError("clusters= are for method='kci' with null='bootstrap': leave out method= and null=.")
        _check_sides(sides, method, kernels)
        chosen = METHODS[method][0] if null == "auto" else null
        if method == "features":
            value, law, used, fitted = judge_streamed(sides, conditions, chosen, n_permutations, random.generator, door)
        else:
            given = Given.of(conditions.columns, random.generator)
            kernels = kernels if method == "kci" else tuple(WIDE if k is None else k for k in kernels)
            left, right = (residuals(s, k, given, door, random.generator) for s, k in zip(sides, kernels, strict=True))
            units = None if clusters is None or design is None else design.units
            value, law = judge(left, right, given, method, chosen, n_permutations, random.generator, units)
            used, fitted = (left.kernel, right.kernel), Fitted.of(left, right)
    told += tuple(text for read in (*sides, conditions) for text in read.notes)
    if clusters is not None and design is not None and len(design.first_rows) < FEW_CLUSTERS:
        told += (f"there are {len(design.first_rows)} clusters: these are few, and the level may not be kept.",)
    names = {
        "kci": "kernel conditional independence test",
        "residuals": "conditional independence test, HSIC of Gaussian process residuals",
        "features": "conditional independence test with streamed features",
    }
    warnings = told + doubts(method, n, fitted, conditions.columns.shape[1], n_permutations)
    name = names[method] if design is None else design.label(names[method])
    return TestResult(value, law.pvalue(value), law, used, name, (n,), random.seed, warnings)


def read_triples(
    x: Data,
    y: Data,
    z: Data,
    kernels: Sequence[Kernel | str | None],
    door: Door,
    design: Design | None = None,
) -> tuple[Variable, list[Variable | Unread]]:
    """z with the strata of a design, and x and y, as columns; one of each for every triple."""
    conditions = read_given(z)
    if design is not None and design.strata.any():
        conditions = conditions.within(design.strata)
        x, y = (
            from_strata((part,), (name,), design)[0] if is_default(k) else part
            for part, k, name in zip((x, y), kernels, "xy", strict=True)
        )
    sides = [read_side(data, name, k, door) for data, name, k in zip((x, y), "xy", kernels, strict=True)]
    n = len(conditions.columns)
    for side, name in zip(sides, "xy", strict=True):
        if len(side) != n:
            raise ShapeError(f"{name} has {len(side)} points and z has {n}; expected triples, one of each.")
    return conditions, sides


def _check(method: str, null: str, n_permutations: Any) -> None:
    nulls = list(dict.fromkeys(name for names in METHODS.values() for name in names))
    for name, value, known in (("method", method, METHODS), ("null", null, nulls)):
        if value not in ("auto", *known):
            raise ParameterError(f"{name} is {value!r}; expected one of 'auto', {', '.join(map(repr, known))}.")
    if "auto" not in (method, null) and null not in METHODS[method]:
        raise ParameterError(
            f"method={method!r} has no null={null!r}: pass null={' or '.join(map(repr, METHODS[method]))}."
        )
    if method == "auto" and null == "permutation":
        raise ParameterError("null='permutation' is for residuals: pass method='residuals' with it.")
    check_draws(n_permutations)


def _streams(
    variables: Sequence[Any], within: Any, clusters: Any, method: str, kernels: Sequence[Any], null: str
) -> bool:
    """Whether rows are only added up: there are many, and nothing asks for all of them at once."""
    if variables[2] is None or method not in ("auto", "features") or common_length(NAMES, variables) <= WHOLE:
        return False
    asked = within is not None or clusters is not None or (method == "auto" and any(map(_chosen, kernels)))
    texts = any(holds_texts(each) for each in variables if not comes_in_pieces(each))
    return not asked and not texts and null in ("auto", *METHODS["features"])


def _kernels(kernel: KernelLike) -> tuple[Kernel | str | None, Kernel | str | None]:
    pair = tuple(kernel) if isinstance(kernel, list | tuple) else (kernel, kernel)
    if len(pair) == 2 and all(k is None or isinstance(k, Kernel) or str(k) in ("median", "learned") for k in pair):
        return pair
    raise KindError(
        f"kernel is {kernel!r}; expected a kernel, 'median', 'learned' or None, or one of these each as kernel_x and "
        "kernel_y."
    )


def _chosen(kernel: Kernel | str | None) -> bool:
    """Whether this is not what a method takes by itself."""
    return isinstance(kernel, Kernel) or kernel == "learned"


def _check_kernels(method: str, kernels: Sequence[Kernel | str | None]) -> None:
    if method == "features" and any(map(_chosen, kernels)):
        raise ParameterError("method='features' chooses its own kernels: pass kernel=None, or method='kci'.")


def _check_sides(sides: Sequence[Variable | Unread], method: str, kernels: Sequence[Kernel | str | None]) -> None:
    """What a method cannot use: labels for regressions of numbers, chosen kernels for streams."""
    _check_kernels(method, kernels)
    for side, name in zip(sides, "xy", strict=True):
        if method == "residuals" and (isinstance(side, Unread) or side.indicators.shape[1]):
            raise KindError(f"{name} has labels, and method='residuals' is for numbers: pass method='kci'.")
