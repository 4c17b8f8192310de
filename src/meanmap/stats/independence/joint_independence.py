"""Are several variables jointly independent?"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from meanmap.core.door import Door
from meanmap.core.errors import InputError, ParameterError
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.points import count, rows
from meanmap.core.progress import track
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.picked import set_apart
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.core.values import is_sequence
from meanmap.kernels.reading import read_points
from meanmap.learning.default import is_default
from meanmap.stats.asked import Asked, Found
from meanmap.stats.independence.hsic import single_gram
from meanmap.stats.independence.joint_exchanged import design_joint
from meanmap.stats.independence.joint_permuted import permuted_at_landmarks
from meanmap.stats.independence.joint_plan import JointIndependencePlan
from meanmap.stats.independence.joint_variables import alone, common_length, listed, varying
from meanmap.stats.independence.shifts import LAGS, Shifts
from meanmap.stats.independence.variables import constant, one_for_each, single_kernel
from meanmap.stats.limits import gamma_null
from meanmap.stats.permutations import Permuted
from meanmap.stats.result import Null, TestResult, flat
from meanmap.stats.settings import check_choice, doubt_about_limit

__all__ = ["joint_independence_test"]

# A permutation of full Gram matrices costs d n²/2 products. Beyond this many points, kernel values at landmarks are
# permuted instead.
MOST_WHOLE = 300
MOST_POINTS = 5000
# The rounding error of a sum in single precision, relative to the largest of the three terms that cancel.
SINGLE = 8 * float(np.finfo(np.float32).eps)


@own_words
def joint_independence_test(
    variables: object,
    kernel: KernelLike = None,
    *,
    within: Data = None,
    clusters: Data = None,
    null: str = "auto",
    n_permutations: int = 1000,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> TestResult:
    """Test whether d ≥ 2 variables are jointly independent, by the d-variable HSIC.

    dHSIC = ‖μ(joint) − μ₁ ⊗ ... ⊗ μ_d‖², the squared distance between the embeddings of the joint distribution and of
    the product of the marginals. With characteristic kernels, such as the defaults, dHSIC is zero only if the variables
    are jointly independent; pairwise independence does not suffice.

    Parameters
    ----------
    variables : sequence of variables, or a table
        Each with n points, at least 5: numbers, labels, or a table of both. Each column of a table (a DataFrame, a
        mapping) is a variable. Parquet files and Dask collections work too, as a table or as one of the variables.
    kernel : None, "median", "learned", Kernel, or a sequence with one of these for each variable
        By default, as with "median", RBF at each variable's median distance, or Delta for labels, so that rescaling
        changes nothing; "learned" as in `independence_test`.
    within, clusters : column name, several, array, or table, optional
        Which rows are exchangeable, as in `independence_test`; names refer to columns of the table `variables`,
        which are then not tested themselves. At most 2000 rows; clusters of equal size.
    null : {"auto", "permutation", "gamma", "spectral"}
        "permutation" (the choice of "auto" up to 5000 points, its maximum) keeps the level exactly. "gamma" fits the
        limiting distribution of n dHSIC by its mean and variance. "spectral" (the choice of "auto" beyond) draws from
        the limit at up to 256 landmarks, in one pass over the rows: see `plan`.
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
    With strata the statistic is the squared norm of the weighted mean, over strata, of the difference between the two
    embeddings. Numbers are centred within strata unless the kernel is given.

    Pfister, Bühlmann, Schölkopf & Peters (2018), eq. 4, with V-statistics. Permutations are cyclic shifts of random
    orders: if the second variable is shifted by s, the third is shifted by 2 s, and so on. Each permutation is then a
    sum over products of slices, in O(d n²). With more than 300 points dHSIC is projected on the span of 256 to 512
    landmarks, whose values are drawn from each variable separately. Each permutation then costs O(d n) for each
    landmark, and the level is still exact. At m landmarks the limit takes O(n d m) time, and memory for some thousand
    rows.

    Examples
    --------
    Any two of these are independent, but not all three:

    >>> import numpy as np
    >>> x, y, noise = np.random.default_rng(0).normal(size=(3, 150))
    >>> w = np.abs(noise) * np.sign(x * y)
    >>> joint_independence_test([x, y, w], rng=0).reject(0.05)
    True
    """
    check_choice("biased", null, {"biased": ("permutation", "gamma", "spectral")})
    asked = [variables], (), (within, clusters), n_permutations, missing, kinds, Rng.of(rng), ["variables"]
    return _Jointly(*asked, kernel=kernel, null=null).answer()


@dataclass
class _Jointly(Asked):
    """The joint test of several variables, which may be the columns of one table."""

    kernel: KernelLike = None
    null: str = "auto"

    def pick(self) -> None:
        if self.designed and self.null in ("gamma", "spectral"):
            raise ParameterError("within= and clusters= are for null='permutation': leave out null=.")
        (self.came,) = self.parts
        n = common_length(*listed(self.came))
        self.long = not self.designed and (self.null == "spectral" or n > MOST_POINTS)
        if self.long and self.null == "permutation":
            raise InputError(
                f"there are {n} points; null='permutation' takes at most {MOST_POINTS}: pass null='spectral', or draw "
                "a sample."
            )
        if is_sequence(self.came) and not comes_in_pieces(self.came):
            self.parts, self.names = list(self.came), [f"variables[{k}]" for k in range(len(self.came))]

    def leave_ids(self) -> None:
        if self.names == ["variables"]:
            self.wanted = (self.kernel,)
            super().leave_ids()
            (self.came,) = self.parts

    def in_one_pass(self) -> Found | None:
        if not self.long:
            return None
        settings = {"missing": self.missing, "kinds": self.kinds, "rng": self.random.seed}
        plan = JointIndependencePlan.of(self.came, self.kernel, **settings)
        return plan._found(plan.state(self.came), self.n_draws, self.null)

    def admit(self) -> None:
        one = self.names == ["variables"]
        table = one and source_of(self.parts[0]).named
        if table:
            within, clusters = self.said
            self.parts[0], *said = set_apart(self.parts[0], within=within, clusters=clusters)
            self.said = tuple(said)
        super().admit()
        names, columns = listed(self.parts[0] if one else self.parts)
        common_length(names, columns)
        if table:
            columns = [alone(column, name) for column, name in zip(columns, names, strict=True)]
        kept, told = varying(names, columns) if is_default(self.kernel) else (list(range(len(names))), ())
        self.names, self.parts = [names[k] for k in kept], [columns[k] for k in kept]
        self.wanted = one_for_each(self.kernel, len(kept))
        self.tell(told)

    def compute(self, door: Door) -> Found:
        generator, d = self.random.generator, len(self.names)
        chosen = list(zip(self.wanted, self.parts, self.names, strict=True))
        kernels = [single_kernel(wanted, column, name, generator) for wanted, column, name in chosen]
        points = [read_points(k, column, name, door) for k, (_, column, name) in zip(kernels, chosen, strict=True)]
        n = count(points[0])
        method = f"joint independence test of {d} variables, "
        if n > MOST_WHOLE and self.exchange is None and self.null != "gamma":
            shifts = Shifts.draw(n, self.n_draws, generator, few=True)
            found, m = permuted_at_landmarks(kernels, points, self.names, shifts, generator, door)
            return Found.exact(found, "permutation", tuple(kernels), f"{method}dHSIC at {m} landmarks", (n,), ())
        shifts, grams, unit = Shifts.draw(n, self.n_draws, generator), [], 1.0
        for k, part, name in zip(kernels, points, self.names, strict=True):
            grams.append(np.empty((n, n), np.float32))
            ordered = part if self.exchange is not None else rows(part, shifts.base)
            unit *= single_gram(door.cast(k), ordered, door, grams[-1])
            if np.ptp(grams[-1]) <= 1e-6 * np.abs(grams[-1]).max():
                raise constant(name)
        if self.null == "gamma":
            (value,), rounding = _joint(grams, [np.arange(n)] * d, np.zeros(1, int))
            law, value = _gamma(grams, self.n_draws, generator), n * unit * float(value)
            law = replace(law, draws=unit * law.draws, rounding=n * unit * rounding)
            told = (*doubt_about_limit(law.exact, (n,)), *flat(law, value))
            return Found(value, law, tuple(kernels), f"{method}n dHSIC", (n,), told)
        if self.exchange is not None:
            (values, rounding), told = design_joint(grams, self.exchange, self.n_draws, generator)
            kind, label = "exchanges", self.exchange.told("dHSIC")
        else:
            (values, rounding), told = _permuted(grams, shifts, generator), ()
            kind, label = "permutation", "dHSIC"
        found = Permuted(unit * values, unit * rounding)
        return Found.exact(found, kind, tuple(kernels), method + label, (n,), told)


def _permuted(grams: list[np.ndarray], shifts: Shifts, generator: np.random.Generator) -> Permuted:
    """dHSIC for the data and each permutation: shifts of the variables in their given order, then in random ones."""
    n = len(shifts.base)
    cosets = [(np.arange(n),) * len(grams)]
    for order in shifts.orders[1:]:
        others = (generator.permutation(n) for _ in grams[2:])
        cosets.append((np.arange(n), order, *others))
    pairs = list(zip(cosets, shifts.chosen, strict=True))
    found = [_joint(grams, orders, chosen) for orders, chosen in pairs]
    return Permuted(np.concatenate([part.values for part in found]), max(part.rounding for part in found))


def _joint(grams: list[np.ndarray], orders: Any, chosen: np.ndarray) -> Permuted:
    """dHSIC with variable k in its order of `orders` and then shifted by k s, for each of the shifts s.

    Diagonals are stored twice in a row, so a shifted matrix is a slice of them and no entries need to be gathered.
    """
    n, half = len(grams[0]), len(grams[0]) // 2
    weights = np.full(half + 1, 2.0)
    weights[[0, half] if n % 2 == 0 else [0]] = 1
    diagonals, means = [], []
    for gram, order in zip(grams, orders, strict=True):
        turned = gram[np.ix_(order, order)]
        wide = np.concatenate([turned, turned[:, :half]], axis=1)
        lags = as_strided(wide, (half + 1, n), (wide.itemsize, wide.strides[0] + wide.itemsize), writeable=False)
        diagonals.append(np.concatenate([lags, lags], axis=1))
        means.append(turned.mean(axis=1, dtype=float))
    product_of_means = np.prod([mean.mean() for mean in means])
    values, largest = np.empty(len(chosen)), 0.0
    for index, s in enumerate(track(chosen.tolist(), "permutations") if n * len(grams) > 1000 else chosen.tolist()):
        starts = [k * s % n for k in range(len(grams))]
        total = 0.0
        for block in (slice(a, a + LAGS) for a in range(0, half + 1, LAGS)):
            product = diagonals[0][block, :n]
            for diagonal, start in zip(diagonals[1:-1], starts[1:-1], strict=True):
                product = product * diagonal[block, start : start + n]
            total += weights[block] @ np.vecdot(product, diagonals[-1][block, starts[-1] : starts[-1] + n])
        crossed = np.prod([np.roll(mean, -start) for mean, start in zip(means, starts, strict=True)], axis=0).mean()
        values[index] = total / n**2 + product_of_means - 2 * crossed
        largest = max(largest, abs(total) / n**2, abs(product_of_means), 2 * abs(crossed))
    return Permuted(values, SINGLE * largest)


def _gamma(grams: list[np.ndarray], n_draws: int, generator: np.random.Generator) -> Null:
    """The limiting distribution of n dHSIC under independence, as a gamma distribution with its mean and variance.

    n dHSIC → Σ λᵢ zᵢ² with the eigenvalues of the covariance of ψ(x) = ⊗ φ_j(x_j) − Σ_j φ_j(x_j) ⊗ (others' means) + (d
    − 1) ⊗ (means), the influence of a point. Their matrix S of inner products is computed on independently reordered
    variables, for which the null hypothesis holds. Then Σ λ = tr S/n and Σ λ² = ‖S‖²/n².
    """
    n, d = len(grams[0]), len(grams)
    matrices = []
    for gram in grams:
        order = generator.permutation(n)
        matrices.append(gram[np.ix_(order, order)].astype(float))
    rows_of = [matrix.mean(axis=1) for matrix in matrices]
    all_of = [mean.mean() for mean in rows_of]

    def others(values: list[Any], *left: int) -> Any:
        return np.prod([value for k, value in enumerate(values) if k not in left], axis=0)

    s = np.prod(matrices, axis=0)
    for j in range(d):
        # ⟨⊗ φ(x), φ_j(y) ⊗ means⟩, and the same with x and y exchanged.
        across = matrices[j] * others(rows_of, j)[:, None]
        s -= across + across.T
        for k in range(d):
            same = matrices[j] * others(all_of, j)
            s += same if j == k else np.outer(rows_of[j], rows_of[k]) * others(all_of, j, k)
    to_mean = np.prod(rows_of, axis=0) - sum(rows_of[j] * others(all_of, j) for j in range(d))
    s += (d - 1) * (to_mean[:, None] + to_mean[None, :]) + (d - 1) ** 2 * np.prod(all_of)
    return gamma_null(float(np.trace(s)) / n, 2 * float(np.sum(s**2)) / n**2, n_draws, generator)
